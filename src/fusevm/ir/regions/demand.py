"""Demanded bits: which bits of a value are used, backwards from the uses that need the whole word."""

from __future__ import annotations

from fusevm.ir import analyses
from fusevm.ir.functions import Function
from fusevm.ir.ranges import TOP
from fusevm.ir.values import CONST, FrameState, Value

_SAME = frozenset(("OR", "XOR", "NOT"))
_CARRYING = frozenset(("ADD", "SUB", "MUL"))  # a bit of the result depends on those below it


class DemandFinder:
    def __init__(self, function: Function) -> None:
        self.demanded: dict[int, int] = {}
        self.blocks, self.arguments = analyses.order(function), analyses.arguments(function)

    def run(self) -> dict[int, int]:
        """Demanded bits by value id; of other values, none."""
        for block in self.blocks:
            self._whole(block.end.args)
            self._state(block.state)
            for value in block.instructions:
                self._state(value.state)
        changed = True
        while changed:
            changed = False
            for block in reversed(self.blocks):
                for value in reversed(block.instructions):
                    changed |= self._passed_on(value)
                for param in block.params:
                    bits = self.demanded.get(param.id, 0)
                    for arg in self.arguments.get(param.id, ()):
                        changed |= self._want(arg, bits)
        return self.demanded

    def _state(self, state: FrameState | None) -> None:
        if state is not None:
            self._whole(state.words)

    def _whole(self, words: tuple[Value, ...]) -> None:
        self._want_all(words, TOP)

    def _want(self, value: Value, bits: int) -> bool:
        if value.op == CONST:
            return False
        before = self.demanded.get(value.id, 0)
        self.demanded[value.id] = before | bits
        return before | bits != before

    def _passed_on(self, value: Value) -> bool:
        bits, args = self.demanded.get(value.id, 0), value.args
        below = (1 << bits.bit_length()) - 1
        if value.op == "AND":
            masks = [arg.number if arg.op == CONST else TOP for arg in args]
            return self._want(args[0], bits & masks[1]) | self._want(args[1], bits & masks[0])
        if value.op in _SAME or value.op in _CARRYING:
            wanted = bits if value.op in _SAME else below
            return self._want_all(args, wanted)
        if value.op in ("SHL", "SHR") and args[0].op == CONST:
            count = min(args[0].number, 256)
            return self._want(args[1], bits >> count if value.op == "SHL" else bits << count & TOP)
        return self._want_all(args, TOP)

    def _want_all(self, values: tuple[Value, ...], bits: int) -> bool:
        changed = False
        for value in values:
            changed |= self._want(value, bits)
        return changed
