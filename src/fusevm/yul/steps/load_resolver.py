"""LoadResolver (L): forwards values that are known to be in storage or memory instead of loading them.

Needs: Disambiguator, ForLoopInitRewriter, ExpressionSplitter (arguments have to be variables).
Does: replaces sload and mload by the variable that was stored there or loaded before, keccak256 by a variable that
holds the same hash, or by the number, where memory is known and the number costs less gas.
Why: loads and hashes are expensive.
"""

from __future__ import annotations

from fusevm.evm.keccak import keccak256
from fusevm.yul.analysis.contents import KnownPlaces
from fusevm.yul.analysis.dataflow import StoreAnalyzer
from fusevm.yul.analysis.effects import program_effects, uses_msize
from fusevm.yul.analysis.metrics import GasMeter
from fusevm.yul.context import StepContext
from fusevm.yul.syntax import literals
from fusevm.yul.syntax.ast import Block, Expression, FunctionCall, Identifier, Literal

_WORD = 32


def run(context: StepContext, block: Block) -> None:
    _Resolver(context, block).block(block)


class _Resolver(StoreAnalyzer):
    def __init__(self, context: StepContext, block: Block) -> None:
        super().__init__(context.dialect, program_effects(context.dialect, block))
        self.uses_msize = uses_msize(block)
        self.meter = GasMeter(context.dialect, context.runs)

    def expression(self, expression: Expression) -> Expression:
        if expression.__class__ is not FunctionCall:
            return expression
        self.call(expression)
        match expression.function.name:
            case "sload":
                return self._lying_at(expression, self.storage) or expression
            case "mload" if not self.uses_msize:
                return self._lying_at(expression, self.memory) or expression
            case "keccak256" if not self.uses_msize:
                return self._hash(expression) or expression
        return expression

    def _lying_at(self, load: FunctionCall, known: KnownPlaces) -> Expression | None:
        place = load.arguments[0]
        name = known.get(place.name) if isinstance(place, Identifier) else None
        return Identifier(name, load.location) if name is not None and name in self.in_scope else None

    def _hash(self, call: FunctionCall) -> Expression | None:
        start, length = call.arguments
        if not isinstance(start, Identifier) or not isinstance(length, Identifier):
            return None
        name = self.hashes.get((start.name, length.name))
        if name is not None and name in self.in_scope:
            return Identifier(name, call.location)
        if self.meter.total(*self.meter.literal((1 << 256) - 1)) > self.meter.costs(call):
            return None
        content, size = self._literal(self.memory.get(start.name)), self._literal(length.name)
        if content is None or size is None or size > _WORD:
            return None
        digest = keccak256(content.to_bytes(_WORD, "big")[:size])
        return literals.decimal(int.from_bytes(digest, "big"), call.location)

    def _literal(self, name: str | None) -> int | None:
        value = self.values.get(name) if name is not None and name in self.in_scope else None
        return value.value if isinstance(value, Literal) else None
