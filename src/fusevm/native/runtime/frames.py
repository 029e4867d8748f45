"""Native code for what calls and creations have in common. In the subset of `lang`."""

from __future__ import annotations

from fusevm.native.lang import inlined, native, ptr, store, u64, u256
from fusevm.native.layout import STACK_ALIGN, Engine, NativeFrame

ASK_PYTHON = 0
DONE = 1
FRAME_SIZE = NativeFrame.byte_size()
FRAME_REST = NativeFrame.offset("ip")  # from here on it goes with the code


@inlined
def answer(frame: NativeFrame, gas: u64, word: u256) -> u64:
    """The call is over already: the frame continues, with the result on its stack."""
    frame.gas = gas
    store(frame.sp, 0, word)
    frame.sp = frame.sp + 32
    return DONE


@native
def child_of(frame: NativeFrame, gas: u64, given: u64, mark: u64) -> ptr:
    """The next frame, with part of this one's gas. Its code, data and address are set later."""
    engine = Engine(frame.engine)
    slice_part = gas
    if given < slice_part:
        slice_part = given
    frame.gas = gas - slice_part
    frame.reserve -= given - slice_part
    child = NativeFrame(frame + FRAME_SIZE)
    child.sp = frame.sp + (STACK_ALIGN - (u64(frame.sp) & (STACK_ALIGN - 1)))
    child.gas = slice_part
    child.reserve = given - slice_part
    child.memory = frame.memory + frame.memory_size
    child.memory_size = 0
    child.load_limit = 0
    child.zeroed = 0
    frame.zeroed = 0  # the child writes there
    child.returned = engine.output
    child.returned_size = 0
    child.engine = frame.engine
    child.depth = frame.depth + 1
    child.in_python = 0
    engine.serial += 1
    child.serial = engine.serial
    child.journal_mark = mark
    child.log_mark = engine.log_size
    child.refund_mark = engine.refund
    return child
