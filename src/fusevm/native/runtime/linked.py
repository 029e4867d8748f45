"""The functions of the runtime that code compiled later calls where they are, in the handlers' object code."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import cast

from fusevm.native.lang import Native
from fusevm.native.runtime import division, memory, moduli, outside, storage


def natives(functions: Iterable[Callable[..., int | None]]) -> list[Native]:
    """To a type checker functions of the subset are functions."""
    return [cast(Native, function) for function in functions]


LINKED = natives((
    memory.grow, memory.hash_memory, memory.hash_paid, memory.copy_padded, memory.copy_returned, memory.copy_memory,
    memory.read_data, storage.storage_load, storage.storage_store, storage.transient_load, storage.transient_store,
    outside.read_balance, outside.read_own_balance, outside.read_code_size, outside.read_code_hash, outside.copy_code,
    outside.block_hash, outside.blob_hash, outside.pay_log, outside.write_log,
    division.udiv_long, division.urem_long, division.addmod, moduli.mulmod_again, division.power,
))  # fmt: skip
