"""The library's front door: calls, deployments, transactions, simulations, snapshots and the state around them."""

from __future__ import annotations

import subprocess
import sys
import threading
from typing import Any

import pytest
from eth_abi.abi import encode

import fusevm
from fusevm import (
    EVM,
    BadValue,
    Block,
    ExecutionFailed,
    Fork,
    HaltReason,
    Hooks,
    Log,
    Rejected,
    RejectReason,
    Status,
    Step,
    UnknownFork,
    UnknownTier,
    WrongThread,
)
from fusevm.chain.addresses import create2_address, create_address
from fusevm.chain.state import State
from fusevm.chain.trie import EMPTY_ROOT
from fusevm.evm.assembly import assemble
from fusevm.machine.scope import OpenTransaction
from programs import CALLER, HERE, NOBODY, OTHER, RETURN_TOP, deployer, machine, push

COUNTER = "PUSH1 0 SLOAD PUSH1 1 ADD DUP1 PUSH1 0 SSTORE" + RETURN_TOP  # adds one and answers it


def number(data: bytes) -> int:
    return int.from_bytes(data, "big")


# -- making one -------------------------------------------------------------------------------------------------------


def test_a_new_machine_is_empty_and_at_the_latest_fork() -> None:
    evm = EVM()
    assert evm.fork is Fork.OSAKA
    assert evm.state_root == EMPTY_ROOT


@pytest.mark.parametrize("fork", ["london", "London", Fork.LONDON, "gray-glacier"])
def test_a_fork_is_given_by_name_or_member(fork: Any) -> None:
    assert EVM(fork).fork is Fork.LONDON


def test_an_unknown_fork_or_tier_is_refused_at_once() -> None:
    with pytest.raises(UnknownFork, match="unknown fork 'moon'; known: frontier, "):
        EVM("moon")
    with pytest.raises(UnknownTier, match="unknown tier 'warp'; known: auto, "):
        EVM(tier="warp")


def test_it_shows_what_it_is() -> None:
    assert repr(EVM("cancun", "reference")) == "<EVM cancun, reference tier, 0 accounts>"


def test_everything_named_in_all_is_there() -> None:
    assert all(hasattr(fusevm, name) for name in fusevm.__all__)


def test_a_state_can_be_shared_by_two_machines() -> None:
    state = State()
    EVM("cancun", state=state).set_balance(OTHER, 5)
    assert EVM("osaka", state=state).get_balance(OTHER) == 5


# -- values as people write them --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "address",
    [
        HERE,
        bytearray(HERE),
        "0x" + HERE.hex(),
        HERE.hex(),
        "0x" + HERE.hex().upper(),
        f" 0x{HERE.hex()}\n",
        number(HERE),
    ],
    ids=["bytes", "bytearray", "0x-hex", "hex", "upper case", "blanks around", "number"],
)
def test_an_address_is_understood_in_many_forms(address: Any) -> None:
    evm = EVM()
    evm.set_balance(address, 7)
    assert evm.get_balance(HERE) == 7
    assert evm.call(address).ok


@pytest.mark.parametrize(
    "data", [b"\xab\xcd", bytearray(b"\xab\xcd"), memoryview(b"\xab\xcd"), "0xabcd", "abCD", "0Xabcd"]
)
def test_bytes_are_understood_in_many_forms(data: Any) -> None:
    evm = EVM()
    evm.set_code(HERE, data)
    assert evm.get_code(HERE) == b"\xab\xcd"
    assert EVM().call(4, data).output == b"\xab\xcd"  # the identity precompile


@pytest.mark.parametrize(
    ("do", "message"),
    [
        (lambda evm: evm.call("0x12"), "to: expected 20 bytes, got 1"),
        (lambda evm: evm.call(b"\1" * 21), "to: expected 20 bytes, got 21"),
        (lambda evm: evm.call(1 << 160), f"to: {1 << 160} is not a 20-byte number"),
        (lambda evm: evm.call(-1), "to: -1 is not a 20-byte number"),
        (lambda evm: evm.call(HERE, "0xabc"), "data: an odd number of hex digits (3)"),
        (lambda evm: evm.call(HERE, "0xzz"), "data: 'z' at position 0 is not a hex digit"),
        (lambda evm: evm.call(HERE, 5), "data: expected bytes or hex text, got int"),
        (lambda evm: evm.call(HERE, caller="0x"), "caller: expected 20 bytes, got 0"),
        (lambda evm: evm.call(HERE, origin="0x"), "origin: expected 20 bytes, got 0"),
        (lambda evm: evm.call(HERE, value=-1), "value: -1 is not a number of 256 bits"),
        (lambda evm: evm.call(HERE, gas=-1), "gas: -1 is not a number of 64 bits"),
        (lambda evm: evm.deploy("6"), "initcode: an odd number of hex digits (1)"),
        (lambda evm: evm.transact("0x"), "sender: expected 20 bytes, got 0"),
        (lambda evm: evm.transact(HERE, HERE, value=-1), "value: -1 is not a number of 256 bits"),
        (lambda evm: evm.set_code(HERE, "q"), "code: 'q' at position 0 is not a hex digit"),
        (lambda evm: evm.set_balance(HERE, 1 << 256), f"balance: {1 << 256} is not a number of 256 bits"),
        (lambda evm: evm.set_balance(HERE, "5"), "balance: '5' is not a number; write an int or 0x hex text"),
        (lambda evm: evm.set_nonce(HERE, 1 << 64), f"nonce: {1 << 64} is not a number of 64 bits"),
        (lambda evm: evm.set_storage(HERE, -1, 1), "key: -1 is not a number of 256 bits"),
        (lambda evm: evm.set_storage(HERE, 1, -1), "value: -1 is not a number of 256 bits"),
    ],
)
def test_what_cannot_be_read_is_named_in_one_line_and_changes_nothing(do: Any, message: str) -> None:
    evm = EVM()
    with pytest.raises(BadValue) as caught:
        do(evm)
    assert str(caught.value) == message
    assert evm.state_root == EMPTY_ROOT


# -- the state --------------------------------------------------------------------------------------------------------


def test_what_is_set_can_be_got() -> None:
    evm = EVM()
    evm.set_code(HERE, b"\x01")
    evm.set_balance(HERE, 2)
    evm.set_nonce(HERE, 3)
    evm.set_storage(HERE, 4, 5)
    assert (evm.get_code(HERE), evm.get_balance(HERE), evm.get_nonce(HERE), evm.get_storage(HERE, 4)) == (
        b"\x01",
        2,
        3,
        5,
    )


def test_what_was_never_set_reads_as_zero_and_leaves_no_trace() -> None:
    evm = EVM()
    assert (evm.get_code(HERE), evm.get_balance(HERE), evm.get_nonce(HERE), evm.get_storage(HERE, 4)) == (b"", 0, 0, 0)
    assert evm.state_root == EMPTY_ROOT


def test_the_state_root_is_that_of_the_accounts_whatever_the_way_to_them() -> None:
    first, second = EVM(), EVM("london")
    first.set_storage(HERE, 1, 2)
    first.set_balance(OTHER, 3)
    second.set_balance(OTHER, 9)
    second.set_storage(HERE, 7, 7)
    second.set_storage(HERE, 7, 0)
    second.set_storage(HERE, 1, 2)
    second.set_balance(OTHER, 3)
    assert first.state_root == second.state_root != EMPTY_ROOT


# -- call -------------------------------------------------------------------------------------------------------------


def test_a_call_costs_what_its_code_costs_and_keeps_what_it_changes() -> None:
    evm = machine({HERE: COUNTER})
    assert [number(evm.call(HERE).output) for _ in range(3)] == [1, 2, 3]
    assert evm.get_storage(HERE, 0) == 3
    assert evm.get_nonce(CALLER) == 0


def test_a_call_pays_no_fee_but_moves_its_value() -> None:
    evm = machine({HERE: "CALLVALUE" + RETURN_TOP})
    before = evm.get_balance(CALLER)
    assert number(evm.call(HERE, caller=CALLER, value=5, gas_price=100).output) == 5
    assert (evm.get_balance(CALLER), evm.get_balance(HERE)) == (before - 5, 5)


def test_a_call_of_more_value_than_the_caller_has_is_refused() -> None:
    evm = machine({HERE: "STOP"})
    with pytest.raises(ValueError, match=f"caller 0x{NOBODY.hex()} has 0 wei, not 5"):
        evm.call(HERE, caller=NOBODY, value=5)
    assert evm.call(HERE).ok  # and the machine goes on


def test_origin_and_gas_price_are_what_was_said() -> None:
    evm = machine({HERE: "ORIGIN GASPRICE ADD" + RETURN_TOP})
    assert number(evm.call(HERE, caller=CALLER, gas_price=7).output) == number(CALLER) + 7
    assert number(evm.call(HERE, caller=CALLER, origin=OTHER).output) == number(OTHER)


def test_a_static_call_may_change_nothing() -> None:
    result = machine({HERE: COUNTER}).call(HERE, static=True)
    assert result.failure is not None
    assert result.failure.reason is HaltReason.STATIC_WRITE


def test_the_refund_of_a_call_is_what_a_transaction_would_be_paid_back() -> None:
    evm = machine({HERE: "PUSH1 0 PUSH1 0 SSTORE"})
    evm.set_storage(HERE, 0, 1)
    result = evm.call(HERE)
    assert (result.gas_used, result.gas_refunded) == (5_006, 4_800)
    evm = machine({HERE: "PUSH1 0 PUSH1 0 SSTORE PUSH1 0 PUSH1 1 SSTORE"})
    evm.set_storage(HERE, 0, 1)
    evm.set_storage(HERE, 1, 1)
    assert evm.call(HERE).gas_refunded == (21_000 + 2 * 5_006) // 5  # the cap counts the intrinsic cost too


def test_warm_sets_and_transient_storage_begin_anew_with_each_call() -> None:
    evm = machine({HERE: "PUSH1 0 SLOAD PUSH1 0 TLOAD ADD PUSH1 1 PUSH1 0 TSTORE" + RETURN_TOP})
    first, second = evm.call(HERE), evm.call(HERE)
    assert first == second


def test_a_failing_call_says_why_and_where() -> None:
    result = machine({HERE: "PUSH1 3 JUMP"}).call(HERE)
    assert result.status is Status.HALT
    assert result.failure is not None
    assert (result.failure.reason, result.failure.pc) == (HaltReason.INVALID_JUMP, 2)
    assert result.error == "halted: invalid jump at pc 2 (0x3 is not a JUMPDEST)"


def test_a_revert_with_a_reason_is_decoded() -> None:
    data = bytes.fromhex("08c379a0") + encode(["string"], ["not today"])
    code = assemble(f"PUSH1 {len(data)} PUSH1 @data PUSH1 0 CODECOPY PUSH1 {len(data)} PUSH1 0 REVERT data:") + data
    result = machine({HERE: code}).call(HERE)
    assert (result.status, result.output, result.error) == (Status.REVERT, data, 'reverted: Error("not today")')
    with pytest.raises(ExecutionFailed, match=r'^reverted: Error\("not today"\)$'):
        result.check()


# -- deploy -----------------------------------------------------------------------------------------------------------


def test_a_deployment_leaves_a_contract_and_says_where() -> None:
    evm = machine({})
    result = evm.deploy(deployer(assemble(COUNTER)), caller=CALLER, value=3).check()
    assert result.address == create_address(CALLER, 0)
    assert evm.get_code(result.address) == assemble(COUNTER)
    assert (evm.get_balance(result.address), evm.get_nonce(CALLER)) == (3, 1)
    assert evm.call(result.address).ok


def test_deployments_follow_the_callers_nonce() -> None:
    evm = machine({})
    addresses = [evm.deploy("0x00", caller=CALLER).address for _ in range(2)]
    assert addresses == [create_address(CALLER, 0), create_address(CALLER, 1)]


def test_a_salt_makes_the_address_that_of_create2() -> None:
    result = machine({}).deploy("0x00", caller=CALLER, salt=7)
    assert result.address == create2_address(CALLER, 7, b"\x00")


def test_a_failed_deployment_has_no_address_and_a_taken_one_collides() -> None:
    evm = machine({})
    assert evm.deploy(assemble("PUSH1 0 PUSH1 0 REVERT"), caller=CALLER).address is None
    assert evm.deploy("0x00", caller=CALLER, salt=7).ok
    collision = evm.deploy("0x00", caller=CALLER, salt=7)
    assert collision.failure is not None
    assert collision.failure.reason is HaltReason.ADDRESS_COLLISION


def test_a_deployment_that_is_refused_counts_no_nonce() -> None:
    evm = EVM()
    with pytest.raises(ValueError, match="has 0 wei, not 5"):
        evm.deploy("0x00", value=5, caller=CALLER)
    assert evm.state_root == EMPTY_ROOT


# -- simulate ---------------------------------------------------------------------------------------------------------


def test_a_simulation_tells_everything_and_keeps_nothing() -> None:
    evm = machine({HERE: "PUSH1 1 PUSH1 0 SSTORE PUSH1 7 PUSH1 0 PUSH1 0 LOG1" + " PUSH1 32 PUSH1 0 RETURN"})
    root = evm.state_root
    simulated = evm.simulate(HERE, caller=CALLER, value=5)
    assert evm.state_root == root
    assert list(simulated.logs) == [Log(HERE, (7,), b"")]
    assert simulated == evm.call(HERE, caller=CALLER, value=5)
    assert evm.state_root != root


def test_a_deployment_can_be_simulated() -> None:
    evm = machine({})
    root = evm.state_root
    assert evm.simulate(None, deployer(b"\x00"), caller=CALLER).address == create_address(CALLER, 0)
    assert evm.state_root == root


# -- transact ---------------------------------------------------------------------------------------------------------


def test_a_transaction_pays_and_counts_its_nonce() -> None:
    evm = machine({HERE: "PUSH1 7 PUSH1 0 PUSH1 0 LOG1"}, block=Block(coinbase=OTHER, base_fee=3))
    before = evm.get_balance(CALLER)
    result = evm.transact(CALLER, HERE, value=5, gas_price=10)
    assert result.gas_used == 21_000 + 9 + 750
    assert list(result.logs) == [Log(HERE, (7,), b"")]
    assert before - evm.get_balance(CALLER) == 5 + 10 * result.gas_used
    assert evm.get_balance(OTHER) == 7 * result.gas_used
    assert evm.get_nonce(CALLER) == 1


def test_without_a_price_a_transaction_pays_the_base_fee() -> None:
    evm = machine({}, block=Block(coinbase=OTHER, base_fee=3))
    before = evm.get_balance(CALLER)
    evm.transact(CALLER, HERE)
    assert before - evm.get_balance(CALLER) == 3 * 21_000
    assert evm.get_balance(OTHER) == 0


def test_without_a_target_a_transaction_creates() -> None:
    evm = machine({})
    result = evm.transact(CALLER, data=deployer(b"\x01")).check()
    assert result.address == create_address(CALLER, 0)
    assert evm.get_code(result.address) == b"\x01"


def test_an_invalid_transaction_is_rejected_with_its_reason() -> None:
    evm = machine({})
    root = evm.state_root
    with pytest.raises(Rejected, match=r"transaction rejected: nonce too high \(9, the account's is 0\)") as caught:
        evm.transact(CALLER, HERE, nonce=9)
    assert caught.value.reason is RejectReason.NONCE_MISMATCH_TOO_HIGH
    assert evm.state_root == root


@pytest.mark.parametrize(("fork", "gas"), [("prague", 30_000_000), ("osaka", 2**24)])
def test_the_default_gas_is_all_that_is_allowed(fork: str, gas: int) -> None:
    assert machine({HERE: "INVALID"}, fork).transact(CALLER, HERE).gas_used == gas


# -- snapshots --------------------------------------------------------------------------------------------------------


def test_a_snapshot_undoes_whatever_happens_inside() -> None:
    evm = machine({HERE: COUNTER})
    root = evm.state_root
    with evm.snapshot():
        evm.set_balance(OTHER, 5)
        evm.set_code(OTHER, b"\x00")
        evm.call(HERE)
        evm.transact(CALLER, HERE)
        evm.deploy("0x00", caller=CALLER)
        assert evm.state_root != root
    assert evm.state_root == root


def test_snapshots_nest() -> None:
    evm = machine({HERE: COUNTER})
    roots = [evm.state_root]
    with evm.snapshot():
        evm.call(HERE)
        roots.append(evm.state_root)
        with evm.snapshot():
            evm.call(HERE)
            with evm.snapshot():
                evm.transact(CALLER, HERE)
            assert evm.get_storage(HERE, 0) == 2
        assert evm.state_root == roots[1]
        evm.call(HERE)
    assert evm.state_root == roots[0]


def test_a_snapshot_is_undone_by_an_exception_too() -> None:
    evm = machine({HERE: COUNTER})
    root = evm.state_root
    with pytest.raises(ExecutionFailed), evm.snapshot():
        evm.call(HERE).check() and evm.call(HERE, static=True).check()
    assert evm.state_root == root
    assert number(evm.call(HERE).output) == 1


def test_a_snapshot_brings_back_a_contract_that_destroyed_itself() -> None:
    evm = machine({HERE: f"{push(CALLER)} SELFDESTRUCT"}, "shanghai")
    root = evm.state_root
    with evm.snapshot():
        evm.call(HERE)
        assert evm.get_code(HERE) == b""
    assert evm.state_root == root


def test_what_came_before_a_snapshot_stays() -> None:
    evm = machine({HERE: COUNTER})
    evm.call(HERE)
    evm.set_balance(OTHER, 5)
    root = evm.state_root
    with evm.snapshot():
        pass
    assert evm.state_root == root


def test_results_from_inside_a_snapshot_outlive_it() -> None:
    evm = machine({HERE: "PUSH1 7 PUSH1 0 PUSH1 0 LOG1"})
    with evm.snapshot():
        results = [evm.call(HERE), evm.transact(CALLER, HERE)]
    assert [list(result.logs) for result in results] == [[Log(HERE, (7,), b"")]] * 2


# -- one thread at a time ---------------------------------------------------------------------------------------------


def test_a_hook_may_not_call_the_machine_it_watches() -> None:
    evm = machine({HERE: COUNTER})

    def meddle(step: Step) -> None:
        evm.call(HERE)

    evm.hooks = Hooks(on_opcode=meddle)
    with pytest.raises(WrongThread, match="this EVM is running already; give each thread"):
        evm.call(HERE)
    evm.hooks = None
    assert number(evm.call(HERE).output) == 1


def test_a_second_thread_is_told_to_use_a_machine_of_its_own() -> None:
    evm = machine({HERE: "STOP"})
    root = evm.state_root
    inside, caught = threading.Event(), []
    leave = threading.Event()

    def wait(message: object) -> None:
        inside.set()
        leave.wait(10)

    evm.hooks = Hooks(on_call=wait)
    first = threading.Thread(target=lambda: evm.call(HERE))
    first.start()
    assert inside.wait(10)
    for do, *arguments in ((evm.call, HERE), (evm.transact, CALLER, HERE), (evm.deploy, "0x00")):
        try:
            do(*arguments)
        except WrongThread as error:
            caught.append(error)
    leave.set()
    first.join()
    assert len(caught) == 3
    assert evm.state_root == root


# -- lightness --------------------------------------------------------------------------------------------------------


def test_importing_fusevm_loads_nothing_heavy() -> None:
    heavy = {"z3", "llvmlite", "py_ecc", "typer", "rich", "coincurve", "Crypto", "eth_abi", "cryptography", "blake2b"}
    program = f"import sys, fusevm; print(sorted({heavy!r} & set(sys.modules)))"
    output = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert output.strip() == "[]"


@pytest.mark.parametrize("kind", [EVM, OpenTransaction])
def test_every_public_method_has_an_example(kind: type) -> None:
    """The examples themselves are run by the tests of the documentation."""
    for name in dir(kind):
        found = getattr(kind, name)
        if not name.startswith("_") and (callable(found) or isinstance(found, property)):
            assert ">>> " in (found.__doc__ or ""), f"{kind.__name__}.{name} has no example"
