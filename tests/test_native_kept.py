"""Native tables that are kept between calls answer as if every call began with empty ones."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from typing import Any

import pytest

from conftest import WHOLE
from fusevm import EVM, Block, Rejected, Result
from fusevm.chain.environment import Context, Message
from fusevm.chain.processing import warm_up
from fusevm.chain.state import Account
from fusevm.evm.assembly import assemble
from fusevm.evm.forks import Fork, fork_named
from fusevm.native.host import engine as machinery
from fusevm.native.host.choice import NEW_SIZE
from fusevm.native.host.tiers import engine
from fusevm.values import BadValue
from programs import CALLER, HERE, NOBODY, OTHER, call, deployer, push

THIRD, FOURTH = b"\x33" * 20, b"\x44" * 20
CONTRACTS = (HERE, OTHER, THIRD)
PEOPLE = (CALLER, NOBODY, FOURTH, bytes(20))
MINER = b"\x3a" * 20
TIERS = ("native", "auto", "native-tiered", "native-unfused")
RUNS = int(os.environ.get("FUSEVM_KEPT_RUNS", "12" if WHOLE else "4"))
DEEDS = int(os.environ.get("FUSEVM_KEPT_DEEDS", "70"))


class Writer:
    """Programs that read and write all that tables hold, and tell of it by their output, logs and gas."""

    def __init__(self, rng: random.Random, fork: Fork) -> None:
        self._rng = rng
        self._fork = fork

    def program(self) -> bytes:
        rng = self._rng
        body = " ".join(self._statement() for _ in range(rng.randrange(1, 7)))
        ending = rng.choice(["STOP"] * 6 + ["PUSH1 32 PUSH1 0 RETURN"] * 6 + ["PUSH1 0 PUSH1 0 REVERT", "INVALID"])
        return assemble(f"{body} {ending}", self._fork)

    def _statement(self) -> str:
        rng = self._rng
        key, value, who = rng.randrange(4), rng.choice([0, 0, 1, 2, 7]), rng.choice(CONTRACTS + PEOPLE + (MINER,))
        kinds = ["CALL", "CALL", "DELEGATECALL", "STATICCALL", "CALLCODE"]
        spend = rng.choice(["PUSH2 30000", "PUSH2 50000", "PUSH2 3000"])
        inner = call(rng.choice(CONTRACTS), kind=rng.choice(kinds), gas=spend, out=32)
        choices = [
            f"PUSH1 {key} SLOAD PUSH1 0 MSTORE",
            f"PUSH1 {value} PUSH1 {key} SSTORE",
            f"PUSH1 {key} SLOAD PUSH1 1 ADD PUSH1 {key} SSTORE",
            f"PUSH1 4 CALLDATALOAD PUSH1 {key} SSTORE",
            f"{push(who)} BALANCE PUSH1 0 MSTORE",
            f"{push(who)} EXTCODESIZE PUSH1 0 MSTORE",
            f"{push(who)} BALANCE PUSH1 {key} PUSH1 0 PUSH1 0 LOG2",
            f"{inner} PUSH1 32 MSTORE",
            f"{inner} PUSH1 {key} SSTORE",
            "ORIGIN COINBASE XOR CALLER XOR PUSH1 0 MSTORE",
            "GAS PUSH1 0 MSTORE",
            "PUSH1 1 NUMBER SUB BLOCKHASH PUSH1 0 MSTORE",
        ]
        if self._fork >= Fork.CONSTANTINOPLE:
            choices.append(f"{push(who)} EXTCODEHASH PUSH1 0 MSTORE")
        if self._fork >= Fork.CANCUN:
            choices += [f"PUSH1 {key} TLOAD PUSH1 0 MSTORE", f"PUSH1 5 PUSH1 {key} TSTORE"]
        if rng.random() < 0.12:
            choices = [
                f"{call(who, value=1, gas='PUSH2 9000')} POP",
                f"{call(bytes(19) + bytes([rng.randrange(1, 5)]), kind='STATICCALL', gas='PUSH2 5000', out=32)} POP",
                "PUSH1 0 PUSH1 0 PUSH1 0 CREATE PUSH1 0 MSTORE",
                f"{push(who)} SELFDESTRUCT",
            ]
        return rng.choice(choices)


class Pair:
    """The same deeds on a native tier and on the reference tier."""

    def __init__(self, seed: int, tier: str, fork: str) -> None:
        self.rng = random.Random(f"kept {seed} {tier} {fork}")
        self.fork = fork_named(fork)
        self.evms = [EVM(fork, tier), EVM(fork, "reference")]
        self.done: list[str] = []
        self.made: list[bytes] = []  # large contracts that were deployed: tables are made ready for these
        self.writer = Writer(self.rng, self.fork)
        for number, address in enumerate((*CONTRACTS, CALLER)):
            code = self.writer.program() if address in CONTRACTS else b""
            self.both("set up", lambda evm, to=address, code=code, n=number: prepare(evm, to, code, n))  # type: ignore[misc]

    def both(self, what: str, deed: Callable[[EVM], Any]) -> None:
        self.done.append(what)
        found, expected = (outcome(deed, evm) for evm in self.evms)
        assert found == expected, self.done[-12:]

    def compare(self) -> None:
        found, expected = (fingerprint(evm) for evm in self.evms)
        assert found == expected, self.done[-12:]

    def deed(self, depth: int) -> None:
        rng = self.rng
        to, caller = rng.choice((*CONTRACTS, HERE, HERE, *self.made)), rng.choice((*PEOPLE, CALLER, *CONTRACTS))
        data, gas = rng.randbytes(rng.choice([0, 4, 36])), rng.choice([200_000, 200_000, 40_000, 3_000])
        key, word = rng.randrange(4), rng.choice([0, 1, 3, 2**255])
        code = self.writer.program()
        calls: list[tuple[str, Callable[[EVM], Any]]] = [
            ("call", lambda evm: evm.call(to, data, caller=caller, gas=gas)),
            ("static", lambda evm: evm.call(to, data, caller=caller, gas=gas, static=True)),
            ("simulate", lambda evm: evm.simulate(to, data, caller=caller, gas=gas)),
            ("price", lambda evm: evm.call(to, data, caller=caller, gas=gas, gas_price=3, origin=NOBODY)),
        ]
        changes: list[tuple[str, Callable[[EVM], Any]]] = [
            ("value", lambda evm: evm.call(to, data, caller=CALLER, gas=gas, value=1)),
            ("transact", lambda evm: evm.transact(CALLER, to, data, gas=gas + 60_000)),
            ("access list", lambda evm: transact_listed(evm, to, key, gas)),
            ("deploy", lambda evm: evm.deploy(deployer(code[:40]), caller=CALLER, gas=400_000)),
            ("deploy much", lambda evm: self.deploy_much(evm, code, word)),
            ("transact much", lambda evm: evm.transact(CALLER, None, large_init(code, word), gas=2_000_000)),
            ("set_storage", lambda evm: evm.set_storage(to, key, word)),
            ("set_balance", lambda evm: evm.set_balance(rng_choice, word % 2**200)),
            ("set_nonce", lambda evm: evm.set_nonce(to, 5)),
            ("set_code", lambda evm: evm.set_code(to, code)),
            ("clear code", lambda evm: evm.set_code(rng_choice, b"")),
            ("block", lambda evm: setattr(evm.block, "coinbase", rng_choice)),
            ("number", lambda evm: setattr(evm.block, "number", evm.block.number + 1)),
            ("new block", lambda evm: setattr(evm, "block", block_with(code))),
            ("get", lambda evm: (evm.get_storage(to, key), evm.get_balance(to))),
            ("timeout", lambda evm: with_timeout(evm, to)),
        ]  # fmt: skip
        rng_choice = rng.choice((*CONTRACTS, *PEOPLE))
        if rng.random() < 0.12 and depth < 3:
            self.snapshot(depth)
        else:
            self.both(*rng.choice(calls if rng.random() < 0.7 else changes))

    def deploy_much(self, evm: EVM, code: bytes, word: int) -> Result:
        result = evm.deploy(large_init(code, word), caller=CALLER, gas=2_000_000)
        if result.address is not None:
            self.made = [result.address] * 4
        return result

    def snapshot(self, depth: int) -> None:
        with self.evms[0].snapshot(), self.evms[1].snapshot():
            self.done.append("snapshot")
            for _ in range(self.rng.choice([1, 1, 1, 2, 3, 7])):
                self.deed(depth + 1)
            if self.rng.random() < 0.5:
                self.compare()
        self.done.append("undone")


def large_init(code: bytes, word: int) -> bytes:
    """Init code of a contract that `auto` would not try on the reference tier; it writes a slot first."""
    start = f"PUSH32 {word} PUSH1 1 SSTORE PUSH2 {NEW_SIZE + 100} PUSH2 @code PUSH1 0 CODECOPY"
    return assemble(f"{start} PUSH2 {NEW_SIZE + 100} PUSH1 0 RETURN code:") + code


def prepare(evm: EVM, to: bytes, code: bytes, number: int) -> None:
    evm.set_code(to, code)
    evm.set_balance(to, 1_000_000 * (number + 1))
    if number == 1:
        evm.set_storage(to, 1, 9)


def transact_listed(evm: EVM, to: bytes, key: int, gas: int) -> Result | None:
    if evm.fork < Fork.BERLIN:
        return None
    listed = [(to, [key]), (FOURTH, [])][: 1 + key % 2]
    return evm.transact(CALLER, to, gas=gas + 60_000, access_list=listed)


def block_with(code: bytes) -> Block:
    return Block(number=300, coinbase=MINER, hashes={299: code.ljust(32)[:32]})


def outcome(deed: Callable[[EVM], Any], evm: EVM) -> Any:
    try:
        return seen(deed(evm))
    except (BadValue, Rejected) as error:
        return str(error)


def with_timeout(evm: EVM, to: bytes) -> Result:
    evm.timeout = 60
    try:
        return evm.call(to)
    finally:
        evm.timeout = None


def seen(result: Any) -> Any:
    if not isinstance(result, Result):
        return result
    gas = result.gas_used, result.gas_refunded
    return result.status, result.output, gas, list(result.logs), result.error, result.address


def fingerprint(evm: EVM) -> Any:
    return {
        address: (each.nonce, each.balance, each.code, dict(each.storage))
        for address, each in evm.state.items()
        if not each.empty or each.storage
    }


@pytest.mark.parametrize("fork", ["osaka", "shanghai", "berlin", "istanbul"])
@pytest.mark.parametrize("tier", TIERS)
def test_any_order_of_calls_and_changes_ends_as_on_the_reference_tier(tier: str, fork: str) -> None:
    base = random.randrange(1 << 30)
    for seed in range(base, base + RUNS):
        pair = Pair(seed, tier, fork)
        for _ in range(DEEDS):
            pair.deed(0)
            if pair.rng.random() < 0.1:
                pair.compare()
        pair.compare()
        assert pair.evms[0].state_root == pair.evms[1].state_root, seed


COUNTS = "PUSH1 1 SLOAD PUSH1 1 ADD DUP1 PUSH1 1 SSTORE PUSH1 0 MSTORE PUSH1 32 PUSH1 0 RETURN"


def counter(tier: str = "native") -> EVM:
    evm = EVM(tier=tier)
    evm.set_code(HERE, assemble(COUNTS))
    evm.call(HERE)
    return evm


def count_of(result: Result) -> int:
    return int.from_bytes(result.output, "big")


def questions(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What native code asks from now on."""
    asked: list[str] = []
    questions = engine().callbacks
    for name in ("load_slot", "load_account"):
        original = questions._callbacks[name]
        counted = type(original)(lambda address, name=name, original=original: asked.append(name) or original(address))
        import ctypes

        field = ctypes.cast(counted, ctypes.c_void_p).value
        monkeypatch.setattr(questions, f"kept_{name}", counted, raising=False)
        before = getattr(engine().tables.shared, name)
        monkeypatch.setattr(engine().tables.shared, name, field)
        assert before != field
    return asked


def test_a_slot_and_an_account_are_asked_for_once_while_nothing_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    evm = EVM(tier="native")
    evm.set_code(HERE, assemble(f"PUSH1 1 SLOAD {push(OTHER)} BALANCE STOP"))
    evm.set_storage(HERE, 1, 1)
    first = evm.call(HERE)
    asked = questions(monkeypatch)
    for _ in range(5):
        assert evm.call(HERE) == evm.simulate(HERE) == first
    assert asked == []
    evm.set_balance(OTHER, 5)
    evm.call(HERE)
    assert asked == ["load_account"]
    evm.set_storage(HERE, 1, 2)
    evm.call(HERE)
    assert asked == ["load_account", "load_slot", "load_account"]


def test_a_call_that_is_undone_leaves_the_tables_good(monkeypatch: pytest.MonkeyPatch) -> None:
    evm = counter()
    first = count_of(evm.call(HERE))
    with evm.snapshot():
        evm.call(HERE)
    asked = questions(monkeypatch)
    for _ in range(3):
        with evm.snapshot():
            assert [count_of(evm.call(HERE)) for _ in range(2)] == [first + 1, first + 2]
    assert asked == []


def test_a_state_whose_accounts_were_handed_out_is_asked_each_time() -> None:
    evm = counter()
    storage = evm.state.accounts[HERE].storage
    assert count_of(evm.call(HERE)) == 2
    assert evm.get_storage(HERE, 1) == 2
    storage[1] = 10
    assert count_of(evm.call(HERE)) == 11
    evm.state.accounts = {HERE: Account(code=assemble(COUNTS), storage={1: 99})}
    assert count_of(evm.call(HERE)) == 100


def test_machines_that_share_an_engine_do_not_see_each_others_storage() -> None:
    one, other = counter(), counter()
    assert [count_of(evm.call(HERE)) for evm in (one, other, one, one, other)] == [2, 2, 3, 4, 3]


def test_two_machines_on_one_state_see_what_the_other_did() -> None:
    one = counter()
    for tier in ("native", "auto", "reference", "native-unfused"):
        other = EVM(tier=tier, state=one.state)
        before = one.get_storage(HERE, 1)
        assert [count_of(evm.call(HERE)) - before for evm in (one, other, one, other, one)] == [1, 2, 3, 4, 5]


def test_a_simulation_leaves_nothing_in_the_tables() -> None:
    evm = counter()
    assert [count_of(evm.simulate(HERE)) for _ in range(3)] == [2, 2, 2]
    assert count_of(evm.call(HERE)) == 2


def test_storage_waits_to_be_written_and_the_last_value_counts() -> None:
    evm = counter()
    for _ in range(1_000):
        last = evm.call(HERE)
    assert count_of(last) == 1_001
    assert evm.state.pending is not None
    assert evm.get_storage(HERE, 1) == 1_001
    assert evm.state.pending is None


def test_what_waits_to_be_written_is_undone_with_the_snapshot_it_belongs_to() -> None:
    evm = counter()
    evm.call(HERE)
    with evm.snapshot():
        evm.call(HERE)
        evm.call(HERE)
    assert count_of(evm.call(HERE)) == 3
    assert evm.get_storage(HERE, 1) == 3


def test_more_changed_slots_than_are_handed_over_at_once_all_arrive(monkeypatch: pytest.MonkeyPatch) -> None:
    evm = EVM(tier="native")
    body = "PUSH2 20000 loop: JUMPDEST DUP1 DUP1 SSTORE PUSH1 1 SWAP1 SUB DUP1 PUSH1 @loop JUMPI STOP"
    evm.set_code(HERE, assemble(body))
    evm.call(HERE, gas=10**9).check()
    assert evm.state.account(HERE).storage == {n: n for n in range(1, 20_001)}


def test_a_block_hash_is_asked_for_in_every_call() -> None:
    hashes = {299: b"\1" * 32}
    evm = EVM(tier="native", block=Block(number=300, hashes=hashes))
    evm.set_code(HERE, assemble("PUSH1 1 NUMBER SUB BLOCKHASH PUSH1 0 MSTORE PUSH1 32 PUSH1 0 RETURN"))
    found = []
    for number in range(4):
        hashes[299] = bytes([number]) * 32
        found.append(evm.call(HERE).output)
    assert found == [bytes([number]) * 32 for number in range(4)]


def test_callers_in_turn_are_origin_and_warm_each_in_its_own_call() -> None:
    code = assemble(f"ORIGIN PUSH1 0 MSTORE {push(FOURTH)} BALANCE {push(OTHER)} BALANCE PUSH1 32 PUSH1 0 RETURN")
    seen_by: dict[str, list[Any]] = {}
    for tier in ("reference", "native"):
        evm = EVM(tier=tier)
        evm.set_code(HERE, code)
        seen_by[tier] = [seen(evm.call(HERE, caller=who)) for who in (FOURTH, OTHER, NOBODY, FOURTH, NOBODY)]
    assert seen_by["native"] == seen_by["reference"]


def test_a_listed_account_is_warm_though_the_tables_know_it_as_cold() -> None:
    code = assemble(f"{push(FOURTH)} BALANCE POP PUSH1 1 SLOAD POP")
    gas: dict[str, list[int]] = {}
    for tier in ("reference", "native"):
        evm = EVM(tier=tier)
        evm.set_code(HERE, code)
        gas[tier] = [evm.call(HERE, access_list=each).gas_used for each in (None, [(FOURTH, ())], None)]
    assert gas["native"] == gas["reference"]
    assert len(set(gas["native"])) == 2


def test_tables_can_be_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FUSEVM_WITHOUT", "kept,direct")
    evm = counter()
    assert evm._direct is None
    plain = machinery.NativeEngine()
    message = Message(CALLER, HERE, assemble(COUNTS), gas=100_000, code_address=HERE)
    for _ in range(2):
        evm.state.begin_transaction()
        plain.execute(message, evm.state, Context(evm.fork, evm.block))
        assert plain.warm.state is None


def test_messages_of_one_transaction_know_what_slots_were_as_it_began() -> None:
    """As a tool may run them, one after another: the second's price and refund depend on what was before the first."""
    code = assemble("PUSH0 CALLDATALOAD PUSH1 1 SSTORE STOP")
    found = []
    for tier in ("reference", "native"):
        evm = EVM(tier=tier)
        evm.set_code(HERE, code)
        evm.set_storage(HERE, 1, 7)
        state, context = evm.state, Context(evm.fork, evm.block)
        state.begin_transaction()
        warm_up(state, context, CALLER, HERE)
        state.warm_slot(HERE, 1)
        for value in (8, 7, 0, 7):
            message = Message(CALLER, HERE, code, value.to_bytes(32, "big"), gas=100_000, code_address=HERE)
            outcome = evm._execute(message, state, context, None)
            found.append((tier, outcome.status, outcome.gas_left, state.refund, state.storage(HERE, 1)))
    half = len(found) // 2
    assert [each[1:] for each in found[:half]] == [each[1:] for each in found[half:]]


def test_transient_storage_is_zero_again_in_the_next_call() -> None:
    evm = EVM(tier="native")
    evm.set_code(HERE, assemble("PUSH1 1 TLOAD PUSH0 MSTORE PUSH1 5 PUSH1 1 TSTORE PUSH1 32 PUSH0 RETURN"))
    assert [count_of(evm.call(HERE)) for _ in range(3)] == [0, 0, 0]


@pytest.mark.parametrize("tier", ["native", "native-unfused", "auto"])
def test_another_fork_sees_no_precompiles_and_delegations_of_the_last(tier: str) -> None:
    """An account is described by the fork's rules: under other rules it must be described again."""
    calls = assemble("PUSH0 PUSH0 PUSH0 PUSH0 PUSH0 PUSH0 CALLDATALOAD GAS CALL STOP")
    evms = [EVM(tier=each) for each in (tier, "reference")]
    for evm in evms:
        evm.set_code(HERE, calls)
        evm.set_code(b"\xd1" * 20, b"\xef\x01\x00" + b"\xd2" * 20)
        evm.set_code(b"\xd2" * 20, assemble("PUSH1 1 SLOAD POP STOP"))
    for fork in ("osaka", "cancun", "prague", "osaka", "london"):
        for to in (0x100, 0x0B, 0xD1D1D1D1D1D1D1D1D1D1D1D1D1D1D1D1D1D1D1D1):
            for evm in evms:
                evm.fork = fork
            used = [[evm.call(HERE, to.to_bytes(32, "big")).gas_used for _ in range(3)] for evm in evms]
            assert used[0] == used[1], (fork, hex(to))


@pytest.mark.parametrize("how", ["forget", "change_schedules", "_forget_idle"])
@pytest.mark.parametrize("size", [1_000, 5_000])
@pytest.mark.parametrize("called", [False, True])
def test_the_code_of_accounts_in_the_tables_is_held_or_they_are_described_again(
    how: str, size: int, called: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two accounts have copies of one code. Native code knows of one copy, which its own account has no more."""
    looks = " ".join(f"PUSH2 {size} PUSH0 PUSH0 {push(each)} EXTCODECOPY" for each in (THIRD, OTHER))
    code = b"\x00" + b"\x07" * (size - 1)  # it stops
    evm, native = EVM(tier="native-tiered"), engine(tiered=True)
    monkeypatch.setattr(native.codes, "is_worth_fusing", lambda *_: False)
    evm.set_code(HERE, assemble(f"{looks} PUSH2 {size} PUSH0 RETURN"))
    evm.set_code(FOURTH, assemble(" ".join(f"{call(each, gas='PUSH2 5000')} POP" for each in (THIRD, OTHER))))
    for each in (THIRD, OTHER):
        evm.set_code(each, bytes(bytearray(code)))
    if called:
        evm.call(FOURTH)
    assert evm.call(HERE).output == code
    evm.set_code(THIRD, b"\x01")
    assert evm.call(HERE).output == code
    getattr(native.codes, how)(*[()] * (how == "_forget_idle"))
    assert evm.call(HERE).output == code  # what was retired is reclaimed as this call begins
    others = [bytes([9]) * size for _ in range(500)]  # where the freed copy was
    assert evm.call(HERE).output == code
    assert len(others) == 500
