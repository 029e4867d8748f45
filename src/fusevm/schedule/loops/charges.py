"""Bounds the dynamic gas of an iteration, which must be known for a loop with side exits."""

from __future__ import annotations

from functools import cache

from fusevm.evm.forks import Fork, rules_of
from fusevm.evm.gas import memory_cost, words_of
from fusevm.evm.opcodes import BY_NAME, Effect, Opcode, Span
from fusevm.schedule.loops.shape import Shape
from fusevm.schedule.loops.walk import Refused, Value

WORD_BOUND = 1 << 16  # memory below this is a bounded cost


def slack_of(shape: Shape) -> tuple[int, int]:
    """The maximum dynamic gas of an iteration, and the maximum that is charged once."""
    if shape.inner:
        raise Refused("it can be left early, and holds a loop of its own")
    nodes = [shape.nodes[number] for number in shape.members]
    each = sum(node.block.gas for node in nodes if node.number not in shape.spine)
    once = 0
    for access in (access for node in nodes for access in node.accesses):
        op = BY_NAME[access.name]
        span = _span_of(op)
        if op.prices and not op.touches:
            each += sum(_most(price.rule) * 32 for price in op.prices)  # bytes of an exponent
        elif span is not None:
            size = -span.size if span.size < 0 else access.size
            if not _bounded(access.address) or not _bounded(size):
                raise Refused(f"it can be left early, and what {access.name} may cost has no bound")
            assert isinstance(access.address, int)
            assert isinstance(size, int)
            once = max(once, memory_cost(words_of(access.address + size)))
            each += sum(_most(price.rule) * -(-size // price.unit) for price in op.prices)
        elif op.dynamic and not op.writes & Effect.MSIZE:
            each += max(_most("cold_account"), _most("cold_sload"))
        elif op.dynamic:
            raise Refused(f"it can be left early, and what {access.name} may cost has no bound")
    return each, once


@cache
def _most(rule: str) -> int:
    """The price in the fork where it is highest: a bound for all of them."""
    return max(int(getattr(rules_of(fork), rule)) for fork in Fork)


def _span_of(op: Opcode) -> Span | None:
    """The memory it touches, if an `Access` describes it: at the first operand, of constant size or of the second's."""
    if len(op.touches) != 1 or op.halts:
        return None
    span = op.touches[0]
    return span if span.offset == 0 and span.size <= 1 else None


def _bounded(value: Value) -> bool:
    return isinstance(value, int) and value < WORD_BOUND
