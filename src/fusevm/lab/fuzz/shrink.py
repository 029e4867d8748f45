"""Shrinks a failing program while it keeps failing, so that a person can read what is left.

Pieces are cut and simplified one after another: accounts, the transaction's extras, runs of instructions, parts,
single instructions, constants, gas. Jump targets are names, so that whatever remains still fits together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from fusevm.evm.opcodes import BY_NAME
from fusevm.lab.fuzz.code import CodePart, CodeParts, push
from fusevm.lab.fuzz.program import Program

Failing = Callable[[Program], bool]
Change = Callable[[Program], None]


def shrink(program: Program, failing: Failing, attempts: int = 4_000) -> Program:
    """The smallest program found that still fails. `failing` is asked at most `attempts` times."""
    left = attempts
    best = program.copy()
    while left > 0:
        improved = False
        for passed in _PASSES:
            # A pass lists its changes again after each one that helped, and continues after it.
            skipped = 0
            while left > 0:
                change = _nth(passed(best), skipped)
                if change is None:
                    break
                tried = best.copy()
                change(tried)
                left -= 1
                if failing(tried):
                    best, improved = tried, True
                else:
                    skipped += 1
        if not improved:
            break
    return best


def _nth(changes: Iterator[Change], index: int) -> Change | None:
    for _ in range(index):
        if next(changes, None) is None:
            return None
    return next(changes, None)


# -- passes: each lists changes, the boldest first


def _drop_accounts(program: Program) -> Iterator[Change]:
    for address in program.accounts:
        if address != program.transaction.sender:
            yield partial(_without_account, address)


def _plain_accounts(program: Program) -> Iterator[Change]:
    for address, account in program.accounts.items():
        for key in account.storage:
            yield partial(_without_slot, address, key)
        if account.balance and address != program.transaction.sender:
            yield partial(_without_balance, address)


_PLAINER_TRANSACTION: tuple[dict[str, Any], ...] = (
    {"data": b""},
    {"value": 0},
    {"access_list": None},
    {"authorizations": None},
    {"blob_hashes": None, "max_blob_fee": 0},
    {"max_fee": None, "max_priority_fee": None, "gas_price": 0},
    {"gas_price": 0},
)
_PLAINER_BLOCK: tuple[dict[str, Any], ...] = (
    {"base_fee": 0},
    {"excess_blob_gas": 0},
    {"prev_randao": 0},
    {"number": 1},
    {"timestamp": 1},
    {"difficulty": 0},
)


def _plain_transaction(program: Program) -> Iterator[Change]:
    tx, block = program.transaction, program.block
    for changes in _PLAINER_TRANSACTION:
        plainer = replace(tx, **changes)
        if plainer != tx and (plainer.max_fee is None) != (plainer.gas_price is None):
            yield partial(_with, "transaction", plainer)
    for changes in _PLAINER_BLOCK:
        simpler = replace(block, **changes)
        if simpler != block:
            yield partial(_with, "block", simpler)


def _less_gas(program: Program) -> Iterator[Change]:
    gas = program.transaction.gas_limit
    for less in (gas // 2, gas * 3 // 4, gas - 1_000, gas // 1_000 * 1_000):
        if 0 < less < gas:
            yield partial(_with, "transaction", replace(program.transaction, gas_limit=less))


def _drop_parts(program: Program) -> Iterator[Change]:
    for index, code in enumerate(program.codes()):
        for place, part in enumerate(code.parts):
            if part.items:
                yield partial(_without_part, index, place)


def _cut_runs(program: Program) -> Iterator[Change]:
    """Runs of instructions, long ones first."""
    codes = program.codes()
    length = max((len(code.items) for code in codes), default=0)
    while length:
        for index, code in enumerate(codes):
            for start in range(0, len(code.items) - length + 1, max(1, length // 2)):
                yield partial(_instead, index, start, length, [])
        length = length * 2 // 3 if length > 4 else length - 1


def _neutral(program: Program) -> Iterator[Change]:
    """POPs and PUSHes for an instruction, leaving the stack as high as it did."""
    for index, code in enumerate(program.codes()):
        for place, item in enumerate(code.items):
            op = BY_NAME.get(item.op)
            if op is None or op.is_stack or op.ends or op.name == "JUMPI":
                continue
            delta = op.pushes - op.pops
            yield partial(_instead, index, place, 1, [CodePart("POP")] * -delta if delta < 0 else [push(0)] * delta)


def _small_constants(program: Program) -> Iterator[Change]:
    for index, code in enumerate(program.codes()):
        for place, item in enumerate(code.items):
            op = BY_NAME.get(item.op)
            if op is None or not op.immediate:
                continue
            for value in (0, 1, item.value >> 128, item.value >> 8, item.value - 1):
                if 0 <= value < item.value:
                    yield partial(_instead, index, place, 1, [push(value)])


# -- changes


def _without_account(address: bytes, tried: Program) -> None:
    del tried.accounts[address]


def _without_slot(address: bytes, key: int, tried: Program) -> None:
    del tried.accounts[address].storage[key]


def _without_balance(address: bytes, tried: Program) -> None:
    tried.accounts[address].balance = 0


def _without_part(index: int, place: int, tried: Program) -> None:
    tried.codes()[index].parts[place] = CodeParts()


def _with(name: str, value: object, tried: Program) -> None:
    setattr(tried, name, value)


def _instead(index: int, start: int, length: int, items: list[CodePart], tried: Program) -> None:
    tried.codes()[index].items[start : start + length] = items


_PASSES: tuple[Callable[[Program], Iterator[Change]], ...] = (
    _drop_accounts,
    _drop_parts,
    _cut_runs,
    _plain_transaction,
    _plain_accounts,
    _neutral,
    _small_constants,
    _less_gas,
)
