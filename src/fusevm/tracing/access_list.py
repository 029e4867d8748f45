"""Access lists (EIP-2930) for calls, as geth's eth_createAccessList makes them: run, list what was used, run again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from fusevm.chain.result import Result
from fusevm.chain.transaction import Transaction
from fusevm.evm.precompiles import precompiles_of
from fusevm.tracing.errors import REVERTED, error_text
from fusevm.tracing.requests import Json
from fusevm.tracing.touched import Touched, touching
from fusevm.tracing.tracers import TracedWorld, target_of
from fusevm.values import AccessList

MAX_RUNS = 64  # code that asks for its gas may use other slots with every list


def create_access_list(world: TracedWorld, tx: Transaction, run: Callable[[Transaction], Result]) -> Json:
    """The list that a run with it uses, too; and the gas of that run, the list's own price included.

    A run may use less with a list than without, and more: the list is made again until it does not change.
    """
    listed = _merged(tx.access_list or (), Touched(), world, tx)
    for _ in range(MAX_RUNS):
        with touching(world, world.state, partial(run, replace(tx, access_list=listed))) as (result, found):
            pass
        used = _merged(listed, found, world, tx)
        if used == listed:
            break
        listed = used
    form: Json = {
        "accessList": [
            {"address": "0x" + address.hex(), "storageKeys": [f"0x{key:064x}" for key in keys]}
            for address, keys in listed
        ]
    }
    if not result.ok:
        form["error"] = error_text(result.failure.reason) if result.failure else REVERTED
    form["gasUsed"] = hex(result.gas_used)
    return form


def _merged(before: AccessList, touched: Touched, world: TracedWorld, tx: Transaction) -> AccessList:
    """What was listed and what was used. Accounts that are warm anyway are listed for their slots alone."""
    warm = {tx.sender, target_of(tx, world.state), *precompiles_of(world.fork)}
    found: dict[bytes, dict[int, None]] = {}
    for address, keys in before:
        if keys or address not in warm:
            found[address] = dict.fromkeys(keys)
    for address in touched.accounts:
        if address not in warm:
            found.setdefault(address, {})
    for address, key in touched.slots:
        found.setdefault(address, {})[key] = None
    return tuple((address, tuple(sorted(keys))) for address, keys in sorted(found.items()))
