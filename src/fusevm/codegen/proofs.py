"""Proves with z3 that two versions of a function are equivalent, for functions that only compute words.

A function is read as its outcomes: the path condition, how it ends, and with which words. Loops, memory and storage are
not supported; calls only if they do not return and end the function. z3 has a limit of steps instead of time, so that
the answer does not depend on the machine.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from fusevm.evm.words import meanings_in
from fusevm.ir.functions import BRANCH, JUMP, NEVER, SWITCH, Arc, DependencyBlock, End, Function
from fusevm.ir.values import CONST, TRAITS, Value

STEPS = 400_000  # z3's resource limit: about a tenth of a second
MAX_BLOCKS = 64
MAX_OUTCOMES = 32
_HARD = frozenset(("EXP", "ADDMOD", "MULMOD"))  # too much for a tenth of a second


class NotReadable(Exception):
    """The function does more than compute words."""


class ProofOutcome(NamedTuple):
    condition: Any
    kind: tuple[str, int]  # the opcode that ends it, and the function if that is a call
    words: tuple[Any, ...]


def same(one: Function, two: Function) -> bool | None:
    """Whether both are equivalent for all arguments; None if that is not known."""
    try:
        import z3

        from fusevm.rules.z3_words import BitVectors
    except ImportError:
        return None
    algebra = BitVectors()
    operands = [z3.BitVec(f"x{number}", 256) for number in range(len(one.params))]
    try:
        before = _Reader(algebra, z3, operands).outcomes(one)
        after = _Reader(algebra, z3, operands).outcomes(two)
    except NotReadable:
        return None
    solver = z3.Solver()
    solver.set("rlimit", STEPS)
    solver.add(z3.Not(_agree(z3, before, after)))
    verdict = solver.check()
    if verdict == z3.unsat:
        return True
    # A call differs from the body of its callee here, though a pass may have replaced one by the other.
    calls = any(outcome.kind[0] == "CALLFN" for outcome in (*before, *after))
    return False if verdict == z3.sat and not calls else None


def _agree(z3: Any, before: list[ProofOutcome], after: list[ProofOutcome]) -> Any:
    """For every pair of outcomes whose conditions both hold: the same ending with the same words."""
    clauses = []
    for one in before:
        for two in after:
            if one.kind != two.kind or len(one.words) != len(two.words):
                clauses.append(z3.Not(z3.And(one.condition, two.condition)))
            else:
                equal = [a == b for a, b in zip(one.words, two.words, strict=True)]
                clauses.append(z3.Implies(z3.And(one.condition, two.condition), z3.And(*equal)))
    return z3.And(*clauses)


class _Reader:
    def __init__(self, algebra: Any, z3: Any, operands: list[Any]) -> None:
        self.algebra, self.z3, self.operands = algebra, z3, operands
        self.meanings = meanings_in(algebra)
        self.found: list[ProofOutcome] = []

    def outcomes(self, function: Function) -> list[ProofOutcome]:
        blocks = function.blocks()
        place = {block: number for number, block in enumerate(blocks)}
        if len(blocks) > MAX_BLOCKS or any(place[to] <= place[block] for block in blocks for to in block.targets):
            raise NotReadable
        words = {id(param): word for param, word in zip(function.params, self.operands, strict=True)}
        self.follow(function.entry, words, self.z3.BoolVal(True))
        return self.found

    def follow(self, block: DependencyBlock, words: dict[int, Any], condition: Any) -> None:
        """Explores every path through the function."""
        if len(self.found) > MAX_OUTCOMES:
            raise NotReadable
        words = dict(words)
        called: Value | None = None
        for value in block.instructions:
            if value.op == "CALLFN" and block.end.op == NEVER and value is block.instructions[-1]:
                called = value
            else:
                words[id(value)] = self.word(value, words)
        if called is not None:
            given = tuple([self.known(arg, words) for arg in called.args])
            self.found.append(ProofOutcome(condition, ("CALLFN", called.number), given))
            return
        end = block.end
        given = tuple([self.known(arg, words) for arg in end.args])
        if end.op == JUMP:
            self.go(end.arcs[0], words, condition)
        elif end.op == BRANCH:
            holds = given[0] != self.algebra.const(0)
            self.go(end.arcs[0], words, self.z3.And(condition, holds))
            self.go(end.arcs[1], words, self.z3.And(condition, self.z3.Not(holds)))
        elif end.op == SWITCH:
            none = condition
            for case, arc in zip(end.cases, end.arcs, strict=False):
                equal = given[0] == self.algebra.const(case)
                self.go(arc, words, self.z3.And(condition, equal))
                none = self.z3.And(none, self.z3.Not(equal))
            self.go(end.arcs[-1], words, none)
        else:
            self.found.append(ProofOutcome(condition, *self.ended(end, given)))

    @staticmethod
    def ended(end: End, given: tuple[Any, ...]) -> tuple[tuple[str, int], tuple[Any, ...]]:
        """How the frame ends; RETURN and REVERT only without data, since memory is not modelled."""
        if end.op in ("RETURN", "REVERT"):
            if end.args[1].op != CONST or end.args[1].number:
                raise NotReadable
            return ("STOP" if end.op == "RETURN" else end.op, 0), ()
        return (end.op, 0), given

    def go(self, arc: Arc, words: dict[int, Any], condition: Any) -> None:
        handed = {id(param): self.known(arg, words) for param, arg in zip(arc.target.params, arc.args, strict=True)}
        self.follow(arc.target, {**words, **handed}, condition)

    def known(self, value: Value, words: dict[int, Any]) -> Any:
        if value.op == CONST:
            return self.algebra.const(value.number)
        if value.op == "SYMBOL":
            return self.z3.BitVec(f"symbol{value.number}", 256)
        return words[id(value)]

    def word(self, value: Value, words: dict[int, Any]) -> Any:
        if value.op in ("SYMBOL", "LITERAL"):
            return self.known(Value(CONST if value.op == "LITERAL" else value.op, (), value.number), words)
        traits = TRAITS[value.op]
        if value.op in self.meanings and value.op not in _HARD:
            return self.meanings[value.op](*[self.known(arg, words) for arg in value.args])
        if traits.pure and traits.opcode is not None and not value.args:  # CALLER and the like: constant in a frame
            return self.z3.BitVec(f"asked{value.op}", 256)
        raise NotReadable
