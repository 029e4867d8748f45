"""A region's function while it is emitted: its values, its gas, the stack in memory, and the side exits.

A function takes the frame, the stack's top and the gas, and returns the gas that is left. Its arguments are on the
stack, where it leaves its results; slot 0 is the first above the top on entry. A negative result means that
the frame continues elsewhere (LEFT) or failed.
"""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir

from fusevm.ir.functions import Function
from fusevm.ir.ranges import ANYTHING, Range
from fusevm.ir.regions.build import FunctionShape
from fusevm.ir.regions.demand import DemandFinder
from fusevm.ir.values import CONST, FrameState, Value
from fusevm.native.emit.emitter import I8, I64, I256, Emitter
from fusevm.native.emit.llvm_words import V
from fusevm.native.emit.state import status_of
from fusevm.native.lang import PTR
from fusevm.native.layout import WORD
from fusevm.native.switches import is_on

REGION = ir.FunctionType(I64, [PTR, PTR, I64])  # frame, sp, gas -> gas, or less than zero
LEFT = -1  # the frame continues in the schedule, at frame.ip; less than that: ~1 - status
NARROW = (1 << 64) - 1

Places = dict[int, int]  # the word of the schedule at which each section begins, by pc


class ExitCode:
    """A block that stores some words and returns, and those that store one word more and go on there: by the number
    of its slot, and the word, which is a constant or a value's id."""

    __slots__ = ("block", "longer")

    def __init__(self, block: ir.Block) -> None:
        self.block = block
        self.longer: dict[tuple[int, bool, int], ExitCode] = {}


class FunctionState(Emitter):
    def __init__(
        self,
        module: ir.Module,
        llvm: ir.Function,
        function: Function,
        shape: FunctionShape,
        ranges: dict[int, Range],
        unpatched: Places,
        patched: Places,
    ) -> None:
        super().__init__(module, llvm, llvm.args[0])
        self.llvm, self.function, self.shape = llvm, function, shape
        self.ranges, self.unpatched, self.patched = ranges, unpatched, patched
        self.demanded = DemandFinder(function).run()
        self._narrows = is_on("narrowing")
        _, self.sp, gas = llvm.args
        self.values: dict[int, V] = {}
        self.ahead = 0  # static gas of the blocks after this one, up to those that check it
        self.own: dict[int, int] = {}  # parameters, and the slots they came in
        self.untouched = 0  # slots below this are never written
        self._gas = self.build.alloca(I64)
        self.build.store(gas, self._gas)
        self._why = self.build.alloca(I64)
        self._result = self.build.alloca(I64)  # of a side exit
        self._exit: ExitCode | None = None  # that stores nothing
        self._failing: dict[int, ir.Block] = {}  # by the frame state
        self._held: list[FrameState] = []
        self.memory = self.field("memory", PTR)
        self.anchor: FrameState | None = None  # where the instruction that is emitted can be repeated from

    # -- values

    def value(self, value: Value) -> V:
        return self.words.const(value.number) if value.op == CONST else self.values[value.id]

    def word(self, value: Value) -> ir.Value:
        return self.value(value).value

    def bind(self, value: Value, found: V | ir.Value) -> None:
        """Truncates words that are known to be short, so that LLVM computes only the bits needed."""
        word = found if isinstance(found, V) else V(self.words, found)
        if word.known is None and self.is_narrow(value):
            word = V(self.words, self.build.zext(self.build.trunc(word.value, I64), I256))
        self.values[value.id] = word

    def is_narrow(self, value: Value) -> bool:
        """Whether 64 bits hold all of it that anybody looks at."""
        return self._narrows and (self.range(value).high <= NARROW or self.demanded.get(value.id, 0) <= NARROW)

    def range(self, value: Value) -> Range:
        return Range(value.number, value.number) if value.op == CONST else self.ranges.get(value.id, ANYTHING)

    def limb(self, value: Value) -> ir.Value:
        return self._limb(self.value(value))

    def _limb(self, word: V) -> ir.Value:
        """The lowest 64 bits."""
        return self.build.trunc(word.value, I64) if word.known is None else ir.Constant(I64, word.known & NARROW)

    def pointer(self, offset: V, size: int) -> ir.Value:
        """A guard has made memory large enough."""
        return self.build.gep(self.memory, [self._limb(offset)], source_etype=I8)

    # -- the frame

    @property
    def gas(self) -> ir.Value:
        return self.build.load(self._gas, typ=I64)

    @gas.setter
    def gas(self, gas: ir.Value) -> None:
        self.build.store(gas, self._gas)

    def slot(self, number: int) -> ir.Value:
        return self.at(self.sp, WORD * number)

    def store_words(self, words: tuple[Value, ...]) -> None:
        """Writes the stack back, from the deepest word the function knows upwards, except words that are in place."""
        for number, word in self.displaced(words):
            self.build.store(self.word(word), self.slot(number), align=8)

    def displaced(self, words: tuple[Value, ...]) -> list[tuple[int, Value]]:
        """The words that are not in their slots, with these."""
        numbered = enumerate(words, -self.shape.taken)
        return [
            (number, word)
            for number, word in numbered
            if number >= self.untouched or self.own.get(word.id) != number or word.op == CONST
        ]

    def height(self, words: tuple[Value, ...]) -> int:
        return len(words) - self.shape.taken

    # -- side exits

    def branch_off(self, condition: ir.Value, name: str) -> Callable[[], None]:
        """Starts a cold block; calling the result returns to the hot path."""
        cold, following = self.llvm.append_basic_block(name), self.llvm.append_basic_block("on")
        self.build.cbranch(condition, cold, following).set_weights([1, 2000])
        self.build.position_at_end(cold)
        return lambda: self.build.position_at_end(following)

    def leave_to(self, pc: int, words: tuple[Value, ...]) -> None:
        """A side exit where a block cannot run in the region now: it runs in the unpatched copy of the schedule."""
        self.go_to(self.unpatched[pc], self.height(words))
        self.leave(words, ir.Constant(I64, LEFT))

    def continue_at(self, pc: int, words: tuple[Value, ...]) -> None:
        """A side exit to a block that the region does not have: control may enter it again right after that."""
        self.go_to(self.patched[pc], self.height(words))
        self.leave(words, ir.Constant(I64, LEFT))

    def go_to(self, place: int, height: int) -> None:
        self.set_field("ip", self.at(self.field("schedule", PTR), 8 * place))
        self.set_field("sp", self.slot(height))
        self.set_field("gas", self.gas)

    def leave(self, words: tuple[Value, ...], result: ir.Value) -> None:
        """Writes the stack back and returns. Exits share the code that stores the deep words they have in common:
        most words of most exits, which would be most of a region's code."""
        self.build.store(result, self._result)
        with self.build.goto_block(self.build.block):
            found = self._storing(self.displaced(words))
        self.build.branch(found)

    def _storing(self, stores: list[tuple[int, Value]]) -> ir.Block:
        """The block that stores these words, the top one first, and returns. A word is defined wherever it is stored:
        all exits that lead there have it on their stack."""
        if self._exit is None:
            self._exit = ExitCode(self._cold("leave"))
            self.build.ret(self.build.load(self._result, typ=I64))
        found = self._exit
        for number, word in stores:
            key = (number, True, word.number) if word.op == CONST else (number, False, word.id)
            longer = found.longer.get(key)
            if longer is None:
                longer = found.longer[key] = ExitCode(self._cold("store"))
                self.build.store(self.word(word), self.slot(number), align=8)
                self.build.branch(found.block)
            found = longer
        return found.block

    def _cold(self, name: str) -> ir.Block:
        """A new block, in which code is written from now on."""
        block = self.llvm.append_basic_block(name)
        self.build.position_at_end(block)
        return block

    def fail(self, state: FrameState, why: ir.Value) -> None:
        """An exceptional halt, with the frame at the anchor, from which it can be repeated to find the reason."""
        self.build.store(why, self._why)
        if id(state) in self._failing:
            self.build.branch(self._failing[id(state)])
            return
        block = self._failing[id(state)] = self.llvm.append_basic_block("failed")
        self._held.append(state)  # so that its id is not reused
        self.build.branch(block)
        self.build.position_at_end(block)
        self.set_field("ip", ir.Constant(PTR, None))
        self.set_field("pc", ir.Constant(I64, state.pc))
        self.set_field("sp", self.slot(self.height(state.words)))
        self.set_field("gas", self.build.add(self.gas, ir.Constant(I64, state.gas)))
        why = self.build.call(status_of(self.module), [self.build.load(self._why, typ=I64)])
        self.leave(state.words, self.build.sub(ir.Constant(I64, LEFT - 1), why))

    def charged(self, gas: ir.Value) -> None:
        assert self.anchor is not None
        back = self.branch_off(self.build.icmp_signed("<", gas, ir.Constant(I64, 0)), "bad")
        self.fail(self.anchor, gas)
        back()
        self.gas = gas

    def fail_if(self, condition: ir.Value, status: int) -> None:
        back = self.branch_off(condition, "bad")
        self.build.ret(ir.Constant(I64, LEFT - 1 - status))
        back()
