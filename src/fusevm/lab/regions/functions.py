"""Random programs with functions as compilers write them: called by a pushed return address, with arguments and results
on the stack, nested, recursive, in loops, on deep stacks."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from fusevm.lab.fuzz import constants as words
from fusevm.lab.fuzz.code import CodeParts
from fusevm.lab.fuzz.flow import block, branch, ending
from fusevm.lab.fuzz.loop_programs import loop
from fusevm.lab.fuzz.writer import Surroundings, Writer

_MAX_FUEL = 4  # calls within calls of functions that may call any other


@dataclass(frozen=True, slots=True)
class GeneratedFunction:
    label: int
    arguments: int
    results: int
    address_first: bool  # the return address is below the arguments, or above them
    has_fuel: bool  # its last argument counts down as functions call each other


class FunctionWriter(Writer):
    def __init__(self, rng: Random, around: Surroundings) -> None:
        super().__init__(rng, around)
        self.callees: list[GeneratedFunction] = []
        self.fuel: int | None = None  # the stack height of the running function's fuel
        self.wrong = 0.4 if self.chance(0.1) else 0.01  # how many return addresses are

    def add(self, count: int) -> None:
        for _ in range(count):
            arguments = self.rng.choice((0, 1, 1, 2, 2, 3, 4, 7))
            has_fuel = bool(arguments) and self.chance(0.5)
            self.callees.append(
                GeneratedFunction(
                    self.new_label(), arguments, self.rng.choice((0, 1, 1, 1, 2, 3)), self.chance(0.7), has_fuel
                )
            )

    def call(self, callee: GeneratedFunction) -> None:
        base, back = self.height, self.new_label()
        if callee.address_first:
            self._return_address(back)
        for number in range(callee.arguments):
            if callee.has_fuel and number == callee.arguments - 1:
                self._pass_fuel()
            else:
                self.operand()
        if not callee.address_first:
            self._return_address(back)
        self.ref(callee.label)
        if self.chance(0.25):  # computed, so that no region follows it: the schedule enters the function
            self.push(0)
            self.op("ADD")
        self.op("JUMP")
        self.label(back)
        self.height = base + callee.results

    def _return_address(self, back: int) -> None:
        wrong = self.chance(self.wrong)
        if wrong and self.chance(0.5):
            self.push(self.rng.choice((0, 1, 3, 0xFFFF, words.word(self.rng))))  # seldom a JUMPDEST
            return
        self.ref(back)
        if wrong:  # after one; or not an address, though its last limb is that of a JUMPDEST
            self.push(self.rng.choice((1, 2, 1 << 64, 1 << 255)))
            self.op("ADD")

    def _pass_fuel(self) -> None:
        depth = 0 if self.fuel is None else self.height - self.fuel
        if 0 < depth < 16:  # DUP16 reaches it, with the 1 above it
            self.push(1)
            self.op(f"DUP{depth + 1}")
            self.op("SUB")
        else:
            self.push(self.rng.randrange(_MAX_FUEL) if self.fuel is None else 0)

    def define(self, callee: GeneratedFunction, others: list[GeneratedFunction], room: int) -> None:
        """Its code: a body, then its results, then the return."""
        bottom = callee.arguments + 1
        self.height = self.floor = bottom
        at = 0 if callee.address_first else bottom - 1
        self.label(callee.label)
        out = self.new_label()
        if callee.has_fuel:
            self.fuel = bottom - 1 if callee.address_first else bottom - 2
            self.op(f"DUP{bottom - self.fuel}")
            self.op("ISZERO")
            self.ref(out)
            self.op("JUMPI")
        self.fill(others, room)
        self.settle(bottom)
        self.label(out)
        for _ in range(callee.results):
            self.operand()
        if self.height - 1 > at:
            self.op(f"SWAP{self.height - 1 - at}")
        for _ in range(callee.arguments):
            self.ops("SWAP1", "POP")
        self.op("JUMP")
        self.fuel, self.floor = None, 0

    def fill(self, callees: list[GeneratedFunction], room: int) -> None:
        """Statements, calls of these functions among them, in loops and branches too."""
        end = len(self.code.items) + room
        while len(self.code.items) < end:
            kind = self.rng.random()
            if callees and kind < 0.45:
                self.call(self.rng.choice(callees))
            elif callees and kind < 0.6 and not self.loops:
                callee = self.rng.choice(callees)
                loop(self, lambda inside, callee=callee: inside.call(callee))  # type: ignore[misc]
            elif kind < 0.7:
                self.room = 12
                branch(self)
            elif kind < 0.77:
                (at_the_edge if self.chance(0.6) else masked)(self)
            elif kind < 0.84:
                (assigned if self.chance(0.5) else exchanged)(self)
            else:
                block(self, self.rng.randint(2, 8))
            self.level()


def at_the_edge(w: Writer) -> None:
    """Memory near its end, at a place that no compiler knows: the last bytes that are there, the first that are not."""
    w.operand()
    w.push(w.rng.choice((0, 32, 64)))
    w.op("MSTORE")
    kind = w.rng.choice(("MLOAD", "MLOAD", "MSTORE", "MSTORE8"))
    if kind != "MLOAD":
        w.operand()
    w.push(w.rng.choice((1, 2, 16, 30, 31, 32, 32)))
    w.ops("MSIZE", "SUB")
    if w.chance(0.2):  # a place that no memory has, with the last limb of one that it has
        w.push(w.rng.choice((1 << 64, 1 << 128, 1 << 255)))
        w.op("ADD")
    w.op(kind)
    if kind == "MLOAD":
        w.push(0)
        w.op("MSTORE")


def assigned(w: Writer) -> None:
    """A word on the stack, or not, is replaced by a small number: perhaps that of its own place, or of another's."""
    if not w.height:
        return
    depth = w.rng.randint(1, min(w.height, 15))
    kept = w.new_label()
    if w.chance(0.5):
        w.push(w.rng.choice((0, 4, 32)))
        w.op("CALLDATALOAD")
    else:
        w.operand()
    if w.chance(0.5):
        w.op("ISZERO")
    w.ref(kept)
    w.op("JUMPI")
    w.push(w.rng.randint(1, 6))
    w.ops(f"SWAP{depth}", "POP")
    w.label(kept)


def exchanged(w: Writer) -> None:
    """Words change their places, next to each other most often."""
    for _ in range(w.rng.randint(1, 3)):
        if w.height < 2:
            return
        deepest = min(w.height - 1, 16)
        depth = w.rng.randint(1, deepest if w.chance(0.3) else min(deepest, 3))
        w.op(f"SWAP{depth}")


def shown(w: Writer) -> None:
    """What the stack holds is logged, so that it can be compared."""
    words = min(w.height, w.rng.randint(1, 12))
    for number in range(words):
        w.push(32 * number)
        w.op("MSTORE")
    w.push(32 * words)
    w.push(0)
    w.op("LOG0")


def masked(w: Writer) -> None:
    """A word of which some bits are looked at: about as many as a machine word has."""
    for _ in range(2):
        w.push(w.rng.choice((0, 1, 4, 32)))
        w.op("CALLDATALOAD")
    w.op(w.rng.choice(("ADD", "MUL", "SUB", "XOR")))
    w.push(w.rng.choice(((1 << 64) - 1, (1 << 65) - 1, 1 << 64, 1 << 63, 0xFFFFFFFF)))
    w.op("AND")
    w.push(w.rng.choice((0, 32, 64)))
    w.op("SSTORE" if w.chance(0.5) else "MSTORE")


def code_with_functions(rng: Random, around: Surroundings, room: int, raised: int = 0) -> CodeParts:
    """On a stack that so many words are on already."""
    w = FunctionWriter(rng, around)
    w.add(rng.randint(1, 5))
    if raised:
        _raise(w, raised)
    for _ in range(rng.choice((0, 0, 0, 3, 17, 20))):
        w.operand()
    w.fill(w.callees, room // 2)
    if w.chance(0.8):
        shown(w)
    ending(w)
    share = max(room // 2 // len(w.callees), 4)
    for number, callee in enumerate(w.callees):
        later = w.callees[number + 1 :]
        fuelled = [each for each in w.callees if each.has_fuel] if callee.has_fuel else []
        w.define(callee, [*later, *fuelled], rng.randint(2, share))
    return w.code


def code_with_loops(rng: Random, around: Surroundings, room: int) -> CodeParts:
    w = Writer(rng, around)
    end = room
    while len(w.code.items) < end:
        loop(w, at_the_edge if w.chance(0.1) else lambda inside: block(inside, rng.randint(1, 10)))
        if w.chance(0.5):
            block(w, rng.randint(1, 8))
        w.level()
    if w.chance(0.8):
        shown(w)
    ending(w)
    return w.code


def _raise(w: Writer, words_more: int) -> None:
    """A stack that is already high: a loop leaves a word each time."""
    top = w.new_label()
    w.push(words_more)
    w.label(top)
    w.ops("CALLVALUE", "SWAP1")
    w.push(1)
    w.ops("SWAP1", "SUB", "DUP1")
    w.ref(top)
    w.op("JUMPI")
    w.op("POP")
