"""Arithmetic, comparison and bits: straight from the word meanings, by the number of operands."""

from __future__ import annotations

from collections.abc import Callable

from fusevm.evm.gas import exponent_cost
from fusevm.evm.opcodes import BY_NAME
from fusevm.evm.words import INTEGER_MEANINGS
from fusevm.reference.frame import Frame


def _unary(meaning: Callable[[int], int]) -> Callable[[Frame], None]:
    def run(frame: Frame) -> None:
        stack = frame.stack
        stack[-1] = meaning(stack[-1])

    return run


def _binary(meaning: Callable[[int, int], int]) -> Callable[[Frame], None]:
    def run(frame: Frame) -> None:
        stack = frame.stack
        x = stack.pop()
        stack[-1] = meaning(x, stack[-1])

    return run


def _ternary(meaning: Callable[[int, int, int], int]) -> Callable[[Frame], None]:
    def run(frame: Frame) -> None:
        stack = frame.stack
        x, y = stack.pop(), stack.pop()
        stack[-1] = meaning(x, y, stack[-1])

    return run


_BY_ARITY = {1: _unary, 2: _binary, 3: _ternary}


def _exp(frame: Frame) -> None:
    stack = frame.stack
    base, exponent = stack.pop(), stack.pop()
    frame.charge(exponent_cost(frame.context.rules, exponent.bit_length()))
    stack.append(INTEGER_MEANINGS["EXP"](base, exponent))


INSTRUCTIONS = {name: _BY_ARITY[BY_NAME[name].pops](meaning) for name, meaning in INTEGER_MEANINGS.items()}  # type: ignore[operator]
INSTRUCTIONS["EXP"] = _exp
