"""What native code is told of the fork, the block and the transaction: one entry per field of the native engine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields

from fusevm.chain.environment import Context
from fusevm.evm.forks import Fork, Rules
from fusevm.native.layout import RULES, SURROUNDINGS, Engine

_NO_LIMIT = (1 << 64) - 1


def _mixed(context: Context) -> int:
    """What PREVRANDAO answers (EIP-4399)."""
    return context.block.prev_randao if context.fork >= Fork.PARIS else context.block.difficulty


WORDS: dict[str, Callable[[Context], int]] = {
    "origin": lambda context: int.from_bytes(context.origin, "big"),
    "gas_price": lambda context: context.gas_price,
    "coinbase": lambda context: int.from_bytes(context.block.coinbase, "big"),
    "timestamp": lambda context: context.block.timestamp,
    "number": lambda context: context.block.number,
    "prev_randao": _mixed,
    "gas_limit": lambda context: context.block.gas_limit,
    "chain_id": lambda context: context.block.chain_id,
    "base_fee": lambda context: context.block.base_fee,
    "blob_base_fee": lambda context: context.blob_base_fee,
}


def require_sources(rules: tuple[str, ...], words: tuple[str, ...]) -> None:
    """Every field of the native engine that Python must fill has a source, and every source a field."""
    unknown = set(rules) - {field.name for field in fields(Rules)} | set(words) ^ set(WORDS)
    if unknown:
        raise TypeError(f"native/layout.py, Engine: {sorted(unknown)} without a source, or a source without a field")


require_sources(RULES, SURROUNDINGS)


def describe(context: Context, engine: Engine) -> None:
    for name in RULES:
        rule = getattr(context.rules, name)
        setattr(engine, name, _NO_LIMIT if rule is None else int(rule))
    for name, word in WORDS.items():
        setattr(engine, name, word(context))
