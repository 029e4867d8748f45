"""Tells native code the fork's rules and the words of the block and the transaction."""

from __future__ import annotations

import ctypes
from dataclasses import astuple, fields
from functools import lru_cache
from operator import attrgetter

from fusevm.chain.environment import Context
from fusevm.evm.forks import Rules
from fusevm.evm.opcodes import BY_NAME, CONTEXT_WORDS
from fusevm.native.host.tables import Tables
from fusevm.native.host.views import packed
from fusevm.native.layout import Engine

_NAMES = [field.name for field in fields(Rules)]
_RULES = packed(Engine, " ".join(_NAMES))
_RULES_AT = Engine.offset(_NAMES[0])
# The origin is passed with each call.
_WORDS = [
    (field, attrgetter(BY_NAME[name].word.removeprefix("context.")))
    for name, field in CONTEXT_WORDS.items()
    if name != "ORIGIN"
]


def write_environment(tables: Tables, context: Context) -> None:
    ctypes.memmove(tables.address + _RULES_AT, _packed(context.rules), _RULES.size)
    for field, find in _WORDS:
        found: bytes | int = find(context)
        setattr(tables.shared, field, int.from_bytes(found, "big") if isinstance(found, bytes) else found)


@lru_cache(maxsize=64)
def _packed(rules: Rules) -> bytes:
    return _RULES.pack(*map(int, astuple(rules)))
