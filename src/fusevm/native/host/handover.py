"""Frames that the reference tier began and native code ends.

A call that turns out to be longer than the reference tier is good for need not begin again: its frames have the same
stack, memory, gas and pc wherever they run. The innermost is ended natively first, as a message of its own that begins
in the middle of its code; then its caller, from there on. Between the two all is in the state, as Python has it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from fusevm.chain.environment import Context
from fusevm.native.host.memory import NativeMemory
from fusevm.native.host.tables import FRAME_SIZE
from fusevm.reference.brief import TooLong
from fusevm.reference.frame import Frame

if TYPE_CHECKING:
    from fusevm.native.host.engine import NativeEngine

DEEPEST = 7  # each frame is a native call of its own, some 0.1 ms: with more of them it is quicker to begin again


def resume_natively(engine: NativeEngine, frame: Frame, context: Context) -> Frame:
    """Runs a frame from where it is to its end, with all it calls; as `run` of the reference tier.

    Raises TooLong, the frame being as before, where native code can only run it from the start.
    """
    if frame.message.depth > DEEPEST:
        raise TooLong
    state, world, codes = frame.state, engine.world, engine.codes
    carries, left = context.carries or frame.message.depth > 0, None
    if context is not engine.context or context.block.version != engine.block_version:
        engine.bind(context)
    try:
        state.settle()
        engine.warm.begin(state, good=False)
        engine.warm.state = None
        world.prepare(state)
        world.busy = True
        world.take_over(state)
        engine.native.forget_all(engine.tables.address)
        engine.tables.shared.carries = bool(state.transient)
        engine.tables.shared.origin = int.from_bytes(context.origin, "big")
        twin = _enter(engine, frame, context)
        outcome = engine.drive(None, None, frame.message.depth)
        if frame.message.creates and not frame.message.depth and twin.succeeded:
            twin.pc = engine.halting.pc_at_end(
                frame.message.code, engine.tables.views[0]
            )  # should its code not be kept
        left = engine.leave(state, outcome, carries=carries)
    finally:
        world.end(state)
        engine.tables.shared.carries = 0
        if codes.in_use:
            codes.tally()
        if left is not None:
            left.apply(state)
    state.settle()
    frame.pc = twin.pc
    if twin.error is not None:
        raise twin.error
    frame.gas, frame.output, frame.reverted = twin.gas, twin.output, twin.reverted
    return frame


def _enter(engine: NativeEngine, frame: Frame, context: Context) -> Frame:
    """Makes the native frame, and what Python has for it; the one that was begun stays as it is."""
    tables, message = engine.tables, frame.message
    found = engine.codes.from_inside(message.code, frame.pc)
    if found is None:
        raise TooLong
    depth, shared, view = message.depth, tables.shared, tables.views[message.depth]
    twin = Frame(replace(message, creates=False), frame.state, context)  # the frame that was begun keeps its code
    start = frame.context.memory_used - len(frame.memory)  # so much have the frames that called this one
    twin.memory = NativeMemory(tables.memory, start, view)  # type: ignore[assignment]
    twin.gas, twin.stack, twin.returndata = frame.gas, list(frame.stack), frame.returndata
    twin.mark = frame.state.mark()
    shared.serial += 1
    engine.message = message
    engine.frames[:] = [twin] * (depth + 1)  # native code does not return to the callers
    engine.serials[:] = [each.serial for each in tables.views[:depth]] + [shared.serial]
    rest = engine.codes.records.frame_rest(*found, depth, start, (0, 0, 0), shared.serial)
    tables.frames.write(depth * FRAME_SIZE, engine.frame_head(message) + rest)
    if frame.memory:
        twin.memory.extend(frame.memory)
    engine.give_back(twin, returned=True)
    engine.world.undo_to(0, 0, 0)
    shared.epoch += 1
    return twin
