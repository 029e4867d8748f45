"""State from a source: loaded when first touched, in batches; nothing half-loaded when the source fails."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Sequence
from random import Random
from typing import Any

import pytest

from fusevm import EVM
from fusevm.chain.sources.source import Facts, PartialState, Place, SourceError
from fusevm.chain.state import Account, State
from fusevm.evm.assembly import assemble

A, B, C, D = b"\xa1" * 20, b"\xb0" * 20, b"\xc0" * 20, b"\xd0" * 20
TIERS = ("reference", "native", "native-unfused", "auto", "lockstep")
# storage[2] = storage[1] + storage[calldata[0:32]]; returns it with the balance of B
SUMS = assemble(
    "PUSH0 CALLDATALOAD SLOAD PUSH1 1 SLOAD ADD DUP1 PUSH1 2 SSTORE "
    f"PUSH20 0x{B.hex()} BALANCE ADD PUSH0 MSTORE PUSH1 32 PUSH0 RETURN"
)
# calls C with its own calldata, returns what C returns
CALLS = assemble(
    "CALLDATASIZE PUSH0 PUSH0 CALLDATACOPY PUSH1 32 PUSH0 CALLDATASIZE PUSH0 PUSH0 "
    f"PUSH20 0x{C.hex()} GAS CALL POP PUSH1 32 PUSH0 RETURN"
)


class Kept:
    """A source that holds accounts, counts the batches it is asked, and fails when told to."""

    name = "the test's source"

    def __init__(self, accounts: dict[bytes, Account]) -> None:
        self.held = accounts
        self.asked: list[tuple[Any, ...]] = []
        self.fails_after = 1 << 30

    def _ask(self, *what: Any) -> None:
        if len(self.asked) >= self.fails_after:
            raise SourceError("the source is gone")
        self.asked.append(what)

    def accounts(self, addresses: Sequence[bytes]) -> list[Facts | None]:
        self._ask("accounts", *addresses)
        found = [self.held.get(address) for address in addresses]
        return [None if each is None else Facts(each.nonce, each.balance, each.code) for each in found]

    def slots(self, places: Sequence[Place]) -> list[int]:
        self._ask("slots", *places)
        return [self.held[address].storage.get(key, 0) if address in self.held else 0 for address, key in places]

    def block_hash(self, number: int) -> bytes:
        self._ask("hash", number)
        return number.to_bytes(32, "big")


def world() -> dict[bytes, Account]:
    return {
        A: Account(3, 10**20),
        B: Account(0, 7),
        C: Account(1, 0, SUMS, {1: 10, 5: 100}),
        D: Account(1, 0, CALLS),
    }


def word(number: int) -> bytes:
    return number.to_bytes(32, "big")


def forked(tier: str = "auto") -> tuple[EVM, Kept]:
    source = Kept(world())
    return EVM(tier=tier, state=State(source=source)), source


def plain(tier: str = "reference") -> EVM:
    evm = EVM(tier=tier)
    evm.state.accounts.update(world())
    return evm


@pytest.mark.parametrize("tier", TIERS)
def test_a_call_answers_as_on_a_whole_state(tier: str) -> None:
    evm, _ = forked(tier)
    whole = plain()
    for key in (5, 6, 5, 2, 2):
        got, wanted = evm.call(D, word(key), caller=A), whole.call(D, word(key), caller=A)
        assert (got.status, got.output, got.gas_used) == (wanted.status, wanted.output, wanted.gas_used)
    assert evm.get_storage(C, 2) == whole.get_storage(C, 2)


@pytest.mark.parametrize("tier", ["reference", "native", "auto"])
def test_nothing_is_asked_for_twice(tier: str) -> None:
    evm, source = forked(tier)
    for _ in range(5):
        for key in (5, 6):
            assert evm.call(C, word(key)).ok
        assert evm.get_balance(b"\xee" * 20) == 0
    asked = [thing for kind, *things in source.asked for thing in things]
    assert len(asked) == len(set(asked))
    assert {(C, 1), (C, 2), (C, 5), (C, 6)} == {each for each in asked if isinstance(each, tuple)}


def test_known_zero_and_unknown_slots_are_told_apart() -> None:
    state = State(source=Kept(world()))
    slots: Any = state.account(C).storage
    assert not slots.knows(6)
    assert state.storage(C, 6) == 0
    assert slots.knows(6)
    assert dict(slots) == {}
    state.set_storage(C, 5, 0)
    assert state.storage(C, 5) == 0
    assert slots.knows(5)


def test_what_was_deleted_is_not_loaded_again() -> None:
    state = State(source=Kept(world()))
    assert state.exists(C)
    mark = state.mark()
    state.delete(C)
    assert not state.exists(C)
    assert state.account(C).code == b""
    state.revert(mark)
    assert state.account(C).code == SUMS
    assert state.storage(C, 1) == 10


def test_an_account_that_is_not_there_is_created_and_undone() -> None:
    evm, _ = forked()
    nobody = b"\xee" * 20
    with evm.snapshot():
        evm.set_balance(nobody, 1)
        assert evm.state.exists(nobody)
    assert not evm.state.exists(nobody)


@pytest.mark.parametrize("tier", TIERS)
def test_a_source_that_fails_leaves_the_state_as_it_was(tier: str) -> None:
    for failing in range(1, 12):
        evm, source = forked(tier)
        evm.set_storage(C, 2, 1)
        evm.set_balance(A, 10**19)
        source.fails_after = len(source.asked) + failing
        try:
            evm.transact(A, D, word(5), value=3, gas=500_000)
        except SourceError as error:
            assert "gone" in str(error)  # noqa: PT017
        else:
            assert failing > 3
            break
        source.fails_after = 1 << 30
        assert (evm.get_storage(C, 2), evm.get_balance(A), evm.get_nonce(A)) == (1, 10**19, 3)
        assert evm.get_balance(D) == 0
        assert evm.state.ledger is None
        whole = plain(tier)
        whole.set_storage(C, 2, 1)
        whole.set_balance(A, 10**19)
        assert evm.transact(A, D, word(5), value=3, gas=500_000) == whole.transact(A, D, word(5), value=3, gas=500_000)
    else:
        pytest.fail("the source was never asked so often")


def test_the_root_of_a_partial_state_is_refused() -> None:
    evm, _ = forked()
    evm.get_balance(A)
    with pytest.raises(PartialState, match=r"of the test's source only 1 are loaded"):
        _ = evm.state_root


def test_what_a_transaction_names_comes_in_one_batch() -> None:
    evm, source = forked()
    listed = [(C, [1, 2, 5]), (B, [])]
    assert evm.transact(A, C, word(5), access_list=listed).ok
    assert source.asked[0][0] == "accounts"
    assert {A, B, C} <= set(source.asked[0][1:])
    assert source.asked[1] == ("slots", (C, 1), (C, 2), (C, 5))
    assert len(source.asked) == 2


def test_block_hashes_come_from_the_source() -> None:
    evm, source = forked()
    evm.block.number, evm.block.hashes = 100, source.block_hash
    evm.set_code(B, assemble("PUSH1 99 BLOCKHASH PUSH0 MSTORE PUSH1 32 PUSH0 RETURN"))
    assert evm.call(B).output == word(99)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda evm: pickle.loads(pickle.dumps(evm))])
def test_copies_and_pickles_go_on_loading(copied: Any) -> None:
    evm, _ = forked()
    evm.call(C, word(5))
    evm.set_storage(C, 1, 0)
    evm.state.delete(B)
    twin = copied(evm)
    twin.set_storage(C, 5, 1)
    assert (evm.get_storage(C, 5), twin.get_storage(C, 5)) == (100, 1)
    assert twin.get_storage(C, 1) == 0
    assert not twin.state.exists(B)
    assert twin.get_code(D) == CALLS
    with pytest.raises(PartialState):
        _ = twin.state_root


def test_snapshots_and_checkpoints_undo_on_loaded_state() -> None:
    evm, _ = forked()
    before = evm.checkpoint()
    evm.call(C, word(5)).check()
    with evm.snapshot():
        evm.set_storage(C, 5, 1)
    assert evm.get_storage(C, 2) == 110
    evm.revert(before)
    assert (evm.get_storage(C, 2), evm.get_storage(C, 5)) == (0, 100)


# -- against a whole state, with random programs


def program(rng: Random) -> bytes:
    """Reads and writes slots, reads accounts, calls others: whatever may load something."""
    lines = []
    for _ in range(rng.randrange(3, 14)):
        kind, key = rng.randrange(8), rng.randrange(6)
        other = rng.choice((A, B, C, D, b"\xee" * 20)).hex()
        if kind < 2:
            lines.append(f"PUSH1 {key} SLOAD")
        elif kind < 4:
            lines.append(f"PUSH1 {rng.randrange(3)} PUSH1 {key} SSTORE")
        elif kind == 4:
            lines.append(f"PUSH20 0x{other} {rng.choice(('BALANCE', 'EXTCODESIZE', 'EXTCODEHASH'))}")
        elif kind == 5:
            call = rng.choice(("CALL", "STATICCALL", "DELEGATECALL"))
            value = f"PUSH1 {rng.randrange(2)}" if call == "CALL" else ""
            lines.append(f"PUSH1 32 PUSH0 PUSH0 PUSH0 {value} PUSH20 0x{other} PUSH2 0x9000 {call} POP")
        elif kind == 6:
            lines.append("PUSH0 PUSH0 PUSH0 CREATE")
        else:
            lines.append(f"PUSH20 0x{other} SELFDESTRUCT" if rng.randrange(4) == 0 else "GAS POP")
    return assemble(" ".join(lines)) + bytes.fromhex("5f5f" + rng.choice(("f3", "f3", "fd")))


@pytest.mark.parametrize("tier", ["reference", "native", "auto", "lockstep"])
def test_random_programs_do_the_same_as_on_a_whole_state(tier: str) -> None:
    for seed in range(60):
        rng = Random(seed)
        accounts = {
            A: Account(rng.randrange(3), 10**20),
            B: Account(0, rng.randrange(2)),
            C: Account(1, rng.randrange(3), program(rng), {key: 1 for key in range(6) if rng.randrange(2)}),
            D: Account(1, rng.randrange(3), program(rng), {key: 2 for key in range(6) if rng.randrange(2)}),
        }
        lazy = EVM(tier=tier, state=State(source=Kept({a: each.copy() for a, each in accounts.items()})))
        whole = EVM(tier="reference")
        whole.state.accounts.update({address: each.copy() for address, each in accounts.items()})
        for _ in range(4):
            to, gas = rng.choice((C, D)), rng.choice((30_000, 60_000, 400_000))
            assert lazy.transact(A, to, gas=gas) == whole.transact(A, to, gas=gas), seed
        for address, account in whole.state.items():
            found = lazy.state.account(address)
            assert (found.nonce, found.balance, found.code) == (account.nonce, account.balance, account.code), seed
            assert all(lazy.get_storage(address, key) == account.storage.get(key, 0) for key in range(6)), seed
        assert all(address in dict(whole.state.items()) for address, _ in lazy.state.items()), seed
