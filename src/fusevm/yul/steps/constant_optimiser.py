"""ConstantOptimiser: large numbers as short expressions.

Needs: nothing; stands at the end of the suite, for it hides the numbers.
Does: writes a number of more than two bytes as `not(n)`, or as `shl(k, n)` plus or minus something small, if the gas
meter says that computing it costs less than having its bytes.
Why: bytes of code are paid for at deployment; for code that runs often the literal stays.
"""

from __future__ import annotations

from dataclasses import dataclass

from fusevm.evm.forks import Fork
from fusevm.yul.analysis.metrics import GasMeter, byte_length
from fusevm.yul.context import StepContext
from fusevm.yul.syntax import literals
from fusevm.yul.syntax.ast import Block, Expression, FunctionCall, Identifier, Literal, LiteralKind
from fusevm.yul.syntax.walk import Modifier, copy_expression

_SMALLEST = 0x10000
_BUDGET = 10_000  # splits tried for one constant
_ALL = (1 << 256) - 1


def run(context: StepContext, block: Block) -> None:
    _Optimiser(context).block(block)


class _Optimiser(Modifier):
    def __init__(self, context: StepContext) -> None:
        super().__init__()
        self.dialect = context.dialect
        self.finder = _Finder(GasMeter(context.dialect, context.runs))

    def expression(self, expression: Expression) -> Expression:
        if isinstance(expression, Literal):
            if expression.kind is LiteralKind.NUMBER and expression.value >= _SMALLEST:
                return self.finder.shortest(expression)
            return expression
        return super().expression(expression)

    def call(self, call: FunctionCall) -> None:
        self.free_arguments(call, self.dialect.builtin(call.function.name))


@dataclass(frozen=True, slots=True)
class _Way:
    """A representation of a number, with its cost."""

    expression: Expression
    cost: int


class _Finder:
    def __init__(self, meter: GasMeter) -> None:
        self.meter = meter
        self.known: dict[int, _Way] = {}
        self.budget = 0
        self.has_shifts = meter.dialect.fork >= Fork.CONSTANTINOPLE

    def shortest(self, literal: Literal) -> Expression:
        self.budget = _BUDGET
        expression = self.find(literal.value).expression
        return literal if isinstance(expression, Literal) else copy_expression(expression)

    def find(self, value: int) -> _Way:
        known = self.known.get(value)
        if known is not None:
            return known
        best = self.literal(value)
        if byte_length(~value & _ALL) < byte_length(value):
            best = _cheaper(best, self.operation("not", self.find(~value & _ALL)))
        for bits in range(255, 8, -1):
            if self.budget <= 0:
                break
            best = self.split(value, bits, best)
        self.known[value] = best
        return best

    def split(self, value: int, bits: int, best: _Way) -> _Way:
        """upper · 2^bits + lower, where lower is much smaller: a run of ones or zeros lies between them."""
        gap = (value >> (bits - 8)) & 0x1FF
        if gap not in (0xFF, 0x100):
            return best
        upper, lower = value >> bits, value & ((1 << bits) - 1)
        if (1 << bits) - lower < lower:
            lower -= 1 << bits
            upper += 1
        if upper == 0 or abs(lower) >= 1 << (bits - 8):
            return best
        way = self.shifted(bits, upper)
        if way.cost >= best.cost:
            return best
        if lower:
            way = self.operation("add" if lower > 0 else "sub", way, self.find(abs(lower)))
        self.budget -= 1
        return _cheaper(best, way)

    def shifted(self, bits: int, upper: int) -> _Way:
        if self.has_shifts:
            return self.operation("shl", self.literal(bits), self.find(upper))
        power = self.operation("exp", self.literal(2), self.literal(bits))
        return power if upper == 1 else self.operation("mul", self.find(upper), power)

    def literal(self, value: int) -> _Way:
        return _Way(literals.number(value), self.meter.total(*self.meter.literal(value)))

    def operation(self, name: str, *arguments: _Way) -> _Way:
        cost = self.meter.total(*self.meter.instruction(name)) + sum(each.cost for each in arguments)
        return _Way(FunctionCall(Identifier(name), [each.expression for each in arguments]), cost)


def _cheaper(first: _Way, second: _Way) -> _Way:
    return first if first.cost <= second.cost else second
