"""An execution tier over the IR that becomes native code: its functions run over Python integers, without a backend.

Word operations use the shared meanings; effects are executed by the reference tier, which also runs what is in no
region. A region is entered where a frame begins and after jumps. The promises of the IR are checked: an unchecked
access is within memory, and a frame that a region says has failed fails on the reference tier too, from the anchor on.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from functools import lru_cache

from fusevm.chain.environment import Context, Message
from fusevm.chain.outcome import Outcome
from fusevm.chain.state import State
from fusevm.evm.forks import Fork
from fusevm.evm.halts import ExceptionalHalt
from fusevm.evm.limits import STACK_LIMIT
from fusevm.evm.opcodes import BY_NAME
from fusevm.ir.functions import BRANCH, JUMP, LEAVE, DependencyBlock
from fusevm.ir.regions.build import EXIT, FAIL, RegionUnit
from fusevm.ir.values import CONST, FrameState, Value
from fusevm.lab.ir.evaluate import BrokenPromise, Operations
from fusevm.reference.frame import Frame
from fusevm.reference.instructions import refuse, table_of
from fusevm.reference.trampoline import drive

_JUMPS = frozenset(BY_NAME[name].byte for name in ("JUMP", "JUMPI"))
Calls = Generator[Frame, None, None]  # yields the frames it calls, and ends with its own
Maker = Callable[[bytes, Fork], RegionUnit]


class Left(Exception):
    """Control has left the region: the frame goes on at its pc on the reference tier."""


class RegionRunner:
    """Runs a frame: its regions by their IR, everything else by the reference tier."""

    def __init__(self, region: RegionUnit, frame: Frame) -> None:
        self.region, self.frame = region, frame
        self.doomed: FrameState | None = None  # where a region found that the frame fails
        self.entered = 0

    def run(self) -> Calls:
        frame, table = self.frame, table_of(self.frame.context.fork)
        jumped = True
        while True:
            if jumped and self.doomed is None and frame.pc in self.region.entries:
                jumped = self.enter(frame.pc)
                continue
            byte = frame.code[frame.pc]
            instruction, gas, needs, room = table[byte]
            frame.pc += 1
            if gas > frame.gas or not needs <= len(frame.stack) <= room:
                refuse(frame, gas, needs)
            frame.gas -= gas
            event = instruction(frame)
            if event is frame:
                break
            if event is not None:
                yield event
            jumped = byte in _JUMPS
        if self.doomed is not None:
            raise BrokenPromise(f"the frame was to fail after pc {self.doomed.pc}, and ended")
        yield frame

    def enter(self, pc: int) -> bool:
        """Runs the region that begins here; whether the frame goes on after a jump, as a region's return is."""
        frame, shape = self.frame, self.region.shapes[self.region.entries[pc]]
        back = 0
        if len(frame.stack) < shape.taken:
            return False
        if shape.returns:
            back = frame.stack[-shape.place]
            if not frame.is_jumpdest(back):
                return False
        self.entered += 1
        try:
            self.call(self.region.entries[pc])
        except Left:
            return False
        frame.pc = back
        return True

    def call(self, name: str) -> None:
        """Runs a function, whose arguments are on the frame's stack, where it leaves its results; or raises Left."""
        shape = self.region.shapes[name]
        if len(self.frame.stack) + shape.rises > STACK_LIMIT:
            self.leave_to(shape.entry)
        _Activation(self, name).run()

    def leave_to(self, pc: int) -> None:
        self.frame.pc = pc
        raise Left


class _Activation(Operations):
    """One call of a function: its registers, and where its words are on the frame's stack."""

    def __init__(self, runner: RegionRunner, name: str) -> None:
        super().__init__(runner.frame)
        self.runner, self.unit = runner, runner.region.unit
        self.function = self.unit.functions[name]
        self.base = len(self.frame.stack) - runner.region.shapes[name].taken
        for depth, param in enumerate(self.function.params, 1):
            self.registers[param.id] = self.frame.stack[-depth]

    def read(self, value: Value) -> int:
        return value.number if value.op == CONST else self.registers[value.id]

    def store(self, words: Sequence[Value]) -> None:
        """Writes back the words of the stack, from the deepest that the function knows."""
        self.frame.stack[self.base :] = [self.read(word) for word in words]

    def refer(self, value: Value, words: list[int]) -> Frame | None:
        stack = self.frame.stack
        kept = stack[:]
        try:
            return super().refer(value, words)
        finally:
            stack[:] = kept

    def run(self) -> None:
        block = self.function.entry
        while True:
            if block.gas > self.frame.gas:
                if block.state is None:
                    raise BrokenPromise(f"block {block.start} has gas to charge and no state to leave with")
                self.store(block.state.words)
                self.runner.leave_to(block.pc)
            self.frame.gas -= block.gas
            for value in block.instructions:
                self.step(value)
            following = self.end(block)
            if following is None:
                return
            block = following

    def step(self, value: Value) -> None:
        if value.op == "CALLFN":
            assert value.state is not None
            self.store(value.state.words)
            self.runner.call(self.unit.names[value.number])
        elif value.op == "RESULT":
            (call,) = value.args
            assert call.state is not None
            self.set(value, self.frame.stack[self.base + len(call.state.words) - len(call.args) + value.number])
        else:
            gas = self.frame.gas
            try:
                self.operate(value, [self.read(arg) for arg in value.args])
            except ExceptionalHalt:
                if value.state is None:
                    raise BrokenPromise(f"{value!r} fails and has no state") from None
                self.frame.gas = gas
                self.fail(value.state)

    def fail(self, state: FrameState) -> None:
        """The frame fails: it goes on from the anchor, so that the reference tier finds the reason."""
        self.store(state.words)
        self.frame.gas += state.gas
        self.runner.doomed = state
        self.runner.leave_to(state.pc)

    def end(self, block: DependencyBlock) -> DependencyBlock | None:
        end = block.end
        if end.op in (JUMP, BRANCH):
            arc = end.arcs[0] if end.op == JUMP or self.read(end.args[0]) else end.arcs[1]
            words = [self.read(arg) for arg in arc.args]
            for param, word in zip(arc.target.params, words, strict=True):
                self.set(param, word)
            return arc.target
        if end.op == EXIT:
            self.store(end.args)
            self.runner.leave_to(end.cases[0])
        elif end.op == LEAVE:
            self.store(end.args)
        elif end.op == FAIL:
            self.fail(FrameState(end.cases[0], end.args, end.cases[1]))
        else:
            raise BrokenPromise(f"block {block.start} ends with {end.op}, which was thought unreachable")
        return None


class RegionTier:
    """An execution tier over the IR of regions, for testing, not for speed."""

    def __init__(self, make: Maker) -> None:
        self.make = lru_cache(maxsize=256)(make)
        self.entered = 0

    def __call__(self, message: Message, state: State, context: Context) -> Outcome:
        running: dict[int, tuple[RegionRunner, Calls]] = {}  # holds the frame, so that its id is not reused

        def step(frame: Frame) -> Frame:
            if id(frame) not in running:
                runner = RegionRunner(self.make(frame.message.code, frame.context.fork), frame)
                running[id(frame)] = runner, runner.run()
            runner, calls = running[id(frame)]
            before = runner.entered
            try:
                return next(calls)
            finally:
                self.entered += runner.entered - before

        return drive(Frame(message, state, context), step)
