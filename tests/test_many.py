"""Many calls at once answer as the same calls made one by one, whatever happens in between."""

from __future__ import annotations

import os
import random
from typing import Any

import pytest

from conftest import WHOLE
from fusevm import EVM, Batch, Block, Call
from fusevm.chain.state import Account
from fusevm.evm.assembly import assemble
from fusevm.evm.forks import Fork
from fusevm.lab.fuzz.generator import CONTRACTS, DELEGATES, NOBODY, PERSON, SENDER, program
from fusevm.machine import batches
from test_native_kept import CONTRACTS as WRITTEN
from test_native_kept import Writer

TIERS = ("native", "auto", "reference")
NATIVE = ("native", "auto", "native-tiered", "native-unfused")
HERE, OTHER, CALLER = b"\xc0" * 20, b"\xc1" * 20, b"\xca" * 20
RUNS = int(os.environ.get("FUSEVM_MANY_RUNS", "8" if WHOLE else "3"))
FORKS = (Fork.OSAKA, Fork.CANCUN, Fork.BERLIN, Fork.BYZANTIUM)
RETURN_WORD = "PUSH1 0 MSTORE PUSH1 32 PUSH1 0 RETURN"


def machine(tier: str, **codes: str) -> EVM:
    evm = EVM(tier=tier)
    evm.set_balance(CALLER, 10**20)
    for name, text in codes.items():
        evm.set_code({"here": HERE, "other": OTHER}[name], assemble(text))
    return evm


def word(number: int) -> bytes:
    return number.to_bytes(32, "big")


# -- random programs


@pytest.fixture
def tireless(monkeypatch: pytest.MonkeyPatch) -> None:
    """The native loop is tried for every call, even where it does not pay."""
    monkeypatch.setattr(batches, "FEW", 0)


class Scene:
    """A random program's accounts on a machine, and random calls of them."""

    def __init__(self, seed: int, fork: Fork) -> None:
        self.rng = random.Random(f"many {seed} {fork.label}")
        self.fork = fork
        self._block = program(seed, fork).block
        self._accounts = program(seed, fork).work().accounts
        if seed % 2:  # short programs, that native code can do to their end
            writer = Writer(self.rng, fork)
            for address in CONTRACTS[:3]:
                code = writer.program()
                for mine, theirs in zip(CONTRACTS, WRITTEN, strict=False):
                    code = code.replace(theirs, mine)
                self._accounts[address] = Account(1, self.rng.choice((0, 7)), code, {1: 5})
        self._contracts = [address for address in CONTRACTS if address in self._accounts]

    def machine(self, tier: str) -> EVM:
        evm = EVM(self.fork, tier, block=Block(number=300, coinbase=self._block.coinbase))
        for address, account in self._accounts.items():
            evm.set_balance(address, account.balance)
            evm.set_nonce(address, account.nonce)
            evm.set_code(address, account.code)
            for key, value in account.storage.items():
                evm.set_storage(address, key, value)
        return evm

    def call(self, *, special: float, slots: bool) -> Call:
        rng = self.rng
        made = Call(
            to=rng.choice(self._contracts * 6 + [*CONTRACTS, PERSON, NOBODY, *DELEGATES, b"\0" * 19 + b"\x04"]),
            data=rng.randbytes(rng.choice((0, 1, 4, 36, 68))),
            caller=rng.choice((SENDER, SENDER, PERSON, CONTRACTS[0], NOBODY)),
            gas=rng.choice((400_000, 400_000, 400_000, 60_000, 5_000, 0)),
        )
        if rng.random() < special:
            if rng.random() < 0.3:
                made.caller, made.value = SENDER, rng.choice((0, 1, 1000))
            if slots and rng.random() < 0.8:
                keys = {rng.randrange(4): rng.choice((0, 1, 7, 2**256 - 1)) for _ in range(rng.choice((1, 2)))}
                made.storage = {rng.choice((*CONTRACTS, PERSON, NOBODY)): keys}
            if rng.random() < 0.2:
                made.block = {"timestamp": rng.randrange(10**9), "number": rng.choice((1, 257, 10**6))}
        return made

    def calls(self, count: int, *, special: float = 0.0, slots: bool = True) -> list[Call]:
        """Some of them come again: then tables know what they need."""
        made = [self.call(special=special, slots=slots) for _ in range(count // 3)]
        return [self.rng.choice(made) for _ in range(count)]


def one_by_one(evm: EVM, calls: list[Call], *, keep: bool) -> list[Any]:
    """What the same calls answer, made by themselves."""
    found: list[Any] = []
    for call in calls:
        given: dict[str, Any] = {"caller": call.caller, "gas": call.gas, "value": call.value or 0}
        try:
            with evm.snapshot() if not keep else _with_block(evm):
                for address, slots in call.storage.items():
                    for key, value in slots.items():
                        evm.set_storage(address, key, value)
                for name, field in call.block.items():
                    setattr(evm.block, name, field)
                run = evm.call if keep else evm.simulate
                found.append(run(call.to, call.data, **given))  # type: ignore[arg-type]
        except Exception as error:
            found.append(str(error))
    return found


class _with_block:  # noqa: N801
    def __init__(self, evm: EVM) -> None:
        self._restore = evm.block.keep()

    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None:
        self._restore()


def as_list(batch: Batch) -> list[Any]:
    return [batch.errors[n].error if n in batch.errors else batch[n] for n in range(len(batch))]


def assert_same(found: list[Any], expected: list[Any], calls: list[Call]) -> None:
    assert len(found) == len(expected)
    for number, (mine, right) in enumerate(zip(found, expected, strict=True)):
        assert mine == right, (number, calls[number])


def fingerprint(evm: EVM) -> Any:
    return evm.state_root, evm.state.refund, list(evm.state.logs), evm.block.number, evm.block.timestamp


@pytest.mark.usefixtures("tireless")
@pytest.mark.parametrize("fork", FORKS, ids=lambda fork: fork.label)
@pytest.mark.parametrize("tier", TIERS)
def test_calls_that_are_not_kept_answer_as_by_themselves(tier: str, fork: Fork) -> None:
    for seed in range(RUNS):
        scene = Scene(seed, fork)
        calls = scene.calls(60)
        evm = scene.machine(tier)
        before = evm.state_root
        expected = one_by_one(scene.machine("reference"), calls, keep=False)
        assert_same(as_list(evm.simulate_many(calls, errors="keep")), expected, calls)
        assert_same(as_list(evm.simulate_many(calls, errors="keep")), expected, calls)
        assert evm.state_root == before


@pytest.mark.usefixtures("tireless")
@pytest.mark.parametrize("fork", FORKS, ids=lambda fork: fork.label)
@pytest.mark.parametrize("tier", TIERS)
def test_calls_that_are_kept_answer_as_one_after_another(tier: str, fork: Fork) -> None:
    for seed in range(RUNS):
        scene = Scene(100 + seed, fork)
        calls = scene.calls(60, special=0.1, slots=False)
        many, single = scene.machine(tier), scene.machine("reference")
        expected = one_by_one(single, calls, keep=True)
        assert_same(as_list(many.call_many(calls, errors="keep")), expected, calls)
        assert fingerprint(many) == fingerprint(single)


@pytest.mark.usefixtures("tireless")
@pytest.mark.parametrize("fork", FORKS, ids=lambda fork: fork.label)
@pytest.mark.parametrize("tier", TIERS)
def test_calls_with_slots_value_and_block_of_their_own_answer_as_by_themselves(tier: str, fork: Fork) -> None:
    for seed in range(RUNS):
        scene = Scene(200 + seed, fork)
        calls = scene.calls(60, special=0.6)
        evm = scene.machine(tier)
        before = fingerprint(evm)
        expected = one_by_one(scene.machine("reference"), calls, keep=False)
        assert_same(as_list(evm.simulate_many(calls, errors="keep")), expected, calls)
        assert fingerprint(evm)[0] == before[0]


@pytest.mark.parametrize("tier", NATIVE)
def test_batches_of_both_kinds_and_single_calls_can_be_mixed(tier: str) -> None:
    for seed in range(RUNS):
        scene = Scene(300 + seed, Fork.OSAKA)
        many, single = scene.machine(tier), scene.machine("reference")
        for _ in range(8):
            keep = scene.rng.random() < 0.5
            calls = scene.calls(9, special=0.2, slots=not keep)
            expected = one_by_one(single, calls, keep=keep)
            run = many.call_many if keep else many.simulate_many
            assert_same(as_list(run(calls, errors="keep")), expected, calls)
            call = scene.call(special=0.0, slots=False)
            for evm in (many, single):
                evm.call(call.to, call.data, caller=call.caller, gas=call.gas)  # type: ignore[arg-type]
                evm.set_storage(CONTRACTS[0], 1, seed)
            assert many.state_root == single.state_root
