"""The reference interpreter on storage, transient storage, logs and self-destruction, fork by fork."""

from __future__ import annotations

import pytest

from fusevm import EVM, HaltReason, Log, Status
from fusevm.chain.addresses import create_address
from fusevm.chain.state import Account
from fusevm.evm.assembly import assemble
from programs import (
    CALLER,
    HERE,
    NOBODY,
    OTHER,
    RETURN_TOP,
    answer,
    call,
    deployer,
    gas_of,
    machine,
    push,
    run,
    store_initcode,
)

# -- SSTORE -----------------------------------------------------------------------------------------------------------

# The tables of EIP-1283, EIP-2200 and EIP-3529: a slot's original value and what is written to it one after another,
# then for each fork the gas used, two pushes a write included, and the refund counter at the end. From Berlin on the
# tables take the slot to be warm, so the first write here costs 2,100 more.
COLD = 2_100
SSTORE_TABLE = [
    # original, writes       constantinople      istanbul            berlin                   london
    (0, (0, 0),              (412, 0),           (1_612, 0),         (212 + COLD, 0),         (212 + COLD, 0)),
    (0, (0, 1),              (20_212, 0),        (20_812, 0),        (20_112 + COLD, 0),      (20_112 + COLD, 0)),
    (0, (1, 0),              (20_212, 19_800),   (20_812, 19_200),   (20_112 + COLD, 19_900), (20_112 + COLD, 19_900)),
    (0, (1, 2),              (20_212, 0),        (20_812, 0),        (20_112 + COLD, 0),      (20_112 + COLD, 0)),
    (0, (1, 1),              (20_212, 0),        (20_812, 0),        (20_112 + COLD, 0),      (20_112 + COLD, 0)),
    (1, (0, 0),              (5_212, 15_000),    (5_812, 15_000),    (3_012 + COLD, 15_000),  (3_012 + COLD, 4_800)),
    (1, (0, 1),              (5_212, 4_800),     (5_812, 4_200),     (3_012 + COLD, 2_800),   (3_012 + COLD, 2_800)),
    (1, (0, 2),              (5_212, 0),         (5_812, 0),         (3_012 + COLD, 0),       (3_012 + COLD, 0)),
    (1, (2, 0),              (5_212, 15_000),    (5_812, 15_000),    (3_012 + COLD, 15_000),  (3_012 + COLD, 4_800)),
    (1, (2, 3),              (5_212, 0),         (5_812, 0),         (3_012 + COLD, 0),       (3_012 + COLD, 0)),
    (1, (2, 1),              (5_212, 4_800),     (5_812, 4_200),     (3_012 + COLD, 2_800),   (3_012 + COLD, 2_800)),
    (1, (2, 2),              (5_212, 0),         (5_812, 0),         (3_012 + COLD, 0),       (3_012 + COLD, 0)),
    (1, (1, 0),              (5_212, 15_000),    (5_812, 15_000),    (3_012 + COLD, 15_000),  (3_012 + COLD, 4_800)),
    (1, (1, 2),              (5_212, 0),         (5_812, 0),         (3_012 + COLD, 0),       (3_012 + COLD, 0)),
    (1, (1, 1),              (412, 0),           (1_612, 0),         (212 + COLD, 0),         (212 + COLD, 0)),
    (0, (1, 0, 1),           (40_218, 19_800),   (40_818, 19_200),   (40_118 + COLD, 19_900), (40_118 + COLD, 19_900)),
    (1, (0, 1, 0),           (10_218, 19_800),   (10_818, 19_200),   (5_918 + COLD, 17_800),  (5_918 + COLD, 7_600)),
]  # fmt: skip
SSTORE_ROWS = [
    (fork, original, writes, *row)
    for original, writes, *by_fork in SSTORE_TABLE
    for fork, row in zip(("constantinople", "istanbul", "berlin", "london"), by_fork, strict=True)
]


def sstore_run(fork: str, original: int, writes: tuple[int, ...]) -> tuple[int, int]:
    """Gas used, and the refund counter before the cap."""
    evm = machine({HERE: " ".join(f"PUSH1 {value} PUSH1 0 SSTORE" for value in writes)}, fork)
    if original:
        evm.set_storage(HERE, 0, original)
    result = evm.call(HERE).check()
    assert evm.get_storage(HERE, 0) == writes[-1]
    return result.gas_used, evm.state.refund


@pytest.mark.parametrize(("fork", "original", "writes", "gas", "refund"), SSTORE_ROWS)
def test_sstore_is_metered_by_what_changes_in_the_end(
    fork: str, original: int, writes: tuple[int, ...], gas: int, refund: int
) -> None:
    assert sstore_run(fork, original, writes) == (gas, refund)


@pytest.mark.parametrize("fork", ["frontier", "byzantium", "petersburg"])
@pytest.mark.parametrize(
    ("original", "new", "price", "refund"),
    [(0, 0, 5_000, 0), (0, 1, 20_000, 0), (1, 0, 5_000, 15_000), (1, 1, 5_000, 0), (1, 2, 5_000, 0)],
)
def test_before_net_metering_each_write_stood_alone(
    fork: str, original: int, new: int, price: int, refund: int
) -> None:
    assert sstore_run(fork, original, (new,)) == (6 + price, refund)
    assert sstore_run(fork, original, (new, new)) == (12 + price + 5_000, refund)


def test_sstore_needs_more_than_the_stipend_left_since_istanbul() -> None:
    program = "PUSH1 0 PUSH1 0 SSTORE"
    failure = run(program, gas=6 + 2_300).failure
    assert failure is not None
    assert (failure.reason, failure.detail) == (HaltReason.OUT_OF_GAS, "SSTORE needs more than 2300 gas left")
    assert run(program, gas=6 + 2_301).gas_used == 6 + 2_200
    assert run(program, "constantinople", gas=6 + 200).ok  # EIP-1283 had no such guard


def test_a_write_undone_by_a_revert_gives_its_refund_back() -> None:
    evm = machine(
        {HERE: f"{call(OTHER, kind='DELEGATECALL')} STOP", OTHER: "PUSH1 0 PUSH1 0 SSTORE PUSH1 0 PUSH1 0 REVERT"}
    )
    evm.set_storage(HERE, 0, 1)
    evm.call(HERE).check()
    assert (evm.get_storage(HERE, 0), evm.state.refund) == (1, 0)


def test_the_refund_counter_may_fall_in_a_frame_below_what_that_frame_added() -> None:
    """A callee takes back, by writing again, the refund its caller earned by clearing."""
    evm = machine({HERE: f"PUSH1 0 PUSH1 0 SSTORE {call(OTHER, kind='DELEGATECALL')}", OTHER: "PUSH1 9 PUSH1 0 SSTORE"})
    evm.set_storage(HERE, 0, 1)
    evm.call(HERE).check()
    assert evm.state.refund == 0


# -- SLOAD ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fork", "first", "second"),
    [("frontier", 50, 50), ("tangerine-whistle", 200, 200), ("istanbul", 800, 800), ("berlin", 2_100, 100)],
)
def test_sload_is_cold_once(fork: str, first: int, second: int) -> None:
    assert gas_of("PUSH1 5 SLOAD POP PUSH1 5 SLOAD POP", fork) == 10 + first + second


def test_a_slot_is_warm_for_its_own_account_alone() -> None:
    result = run(f"PUSH1 5 SLOAD {call(OTHER)}", others={OTHER: "PUSH1 5 SLOAD"})
    assert result.gas_used == 3 + 2_100 + 6 * 3 + 2 + 2_600 + 3 + 2_100


def test_a_slot_warmed_by_a_callee_that_reverts_is_cold_again() -> None:
    warming = f"{call(OTHER, kind='DELEGATECALL', gas='PUSH2 9999')} POP PUSH1 5 SLOAD"
    kept = run(warming, others={OTHER: "PUSH1 5 SLOAD"}).gas_used
    undone = run(warming, others={OTHER: "PUSH1 5 SLOAD PUSH1 0 PUSH1 0 REVERT"}).gas_used
    assert undone - kept == 2_000 + 6


def test_storage_is_read_back_by_whole_words() -> None:
    key, value = (1 << 256) - 1, (1 << 255) + 1
    assert answer(f"{push(value)} {push(key)} SSTORE {push(key)} SLOAD") == value


# -- transient storage ------------------------------------------------------------------------------------------------


def test_transient_storage_costs_100_to_read_and_to_write() -> None:
    assert gas_of("PUSH1 1 PUSH1 0 TSTORE PUSH1 0 TLOAD") == 9 + 200


def test_transient_storage_lasts_for_the_transaction_and_belongs_to_its_account() -> None:
    toggle = f"PUSH1 0 TLOAD PUSH1 1 PUSH1 0 TSTORE {call(OTHER, out=32)} POP PUSH1 0 MLOAD ADD"
    evm = machine({HERE: toggle + RETURN_TOP, OTHER: "PUSH1 0 TLOAD" + RETURN_TOP})
    for _ in range(2):
        assert int.from_bytes(evm.call(HERE).output, "big") == 0
    assert evm.state.account(HERE).storage == {}


def test_reentering_sees_what_was_stored_transiently() -> None:
    begin = "PUSH1 0 TLOAD DUP1 PUSH1 @end JUMPI PUSH1 7 PUSH1 0 TSTORE"
    assert answer(f"{begin} {call(HERE, out=32)} POP PUSH1 0 MLOAD end: JUMPDEST") == 7


def test_a_revert_undoes_transient_writes() -> None:
    inner = "PUSH1 7 PUSH1 0 TSTORE PUSH1 0 PUSH1 0 REVERT"
    evm = machine({HERE: f"{call(OTHER, kind='DELEGATECALL')} PUSH1 0 TLOAD" + RETURN_TOP, OTHER: inner})
    assert int.from_bytes(evm.call(HERE).output, "big") == 0


# -- logs -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("topics", range(5))
def test_a_log_carries_address_topics_and_memory(topics: int) -> None:
    pushes = " ".join(f"PUSH1 {n}" for n in range(topics, 0, -1))  # topic one is taken first
    result = run(f"PUSH2 0xabcd PUSH1 0 MSTORE {pushes} PUSH1 2 PUSH1 30 LOG{topics}").check()
    assert list(result.logs) == [Log(HERE, tuple(range(1, topics + 1)), b"\xab\xcd")]


@pytest.mark.parametrize(("topics", "size", "price"), [(0, 0, 375), (0, 1, 375 + 8 + 3), (4, 33, 375 * 5 + 8 * 33 + 6)])
def test_a_log_costs_375_and_375_a_topic_and_8_a_byte(topics: int, size: int, price: int) -> None:
    assert gas_of("PUSH1 0 " * topics + f"PUSH1 {size} PUSH1 0 LOG{topics}") == 3 * (topics + 2) + price


def test_logs_of_a_callee_come_in_order_and_go_with_it_when_it_reverts() -> None:
    log = "PUSH1 {} PUSH1 0 PUSH1 0 LOG1"
    program = f"{log.format(1)} {call(OTHER)} {call(NOBODY)} {log.format(3)}"
    others = {OTHER: log.format(2), NOBODY: log.format(9) + " PUSH1 0 PUSH1 0 REVERT"}
    logs = run(program, others=others).logs
    assert [(entry.address, entry.topics) for entry in logs] == [(HERE, (1,)), (OTHER, (2,)), (HERE, (3,))]


# -- SELFDESTRUCT -----------------------------------------------------------------------------------------------------


def destroying(fork: str, balance: int, heir: bytes) -> tuple[EVM, int]:
    """A contract that destroys itself in favour of an heir; the machine afterwards, and the gas used."""
    evm = machine({HERE: f"{push(heir)} SELFDESTRUCT"}, fork)
    evm.set_balance(HERE, balance)
    return evm, evm.call(HERE).check().gas_used


@pytest.mark.parametrize(
    ("fork", "balance", "heir", "price"),
    [
        ("frontier", 5, NOBODY, 0),
        ("tangerine-whistle", 5, NOBODY, 30_000),  # EIP-150: 5,000, and 25,000 for an account that is not there
        ("tangerine-whistle", 0, NOBODY, 30_000),  # even where nothing moves
        ("tangerine-whistle", 5, CALLER, 5_000),
        ("spurious-dragon", 0, NOBODY, 5_000),  # EIP-161: only where something does
        ("spurious-dragon", 5, NOBODY, 30_000),
        ("berlin", 5, CALLER, 7_600),  # EIP-2929: a cold heir
        ("berlin", 5, NOBODY, 32_600),
        ("berlin", 0, NOBODY, 7_600),
        ("berlin", 5, HERE, 5_000),  # oneself is warm
        ("osaka", 5, NOBODY, 32_600),
    ],
)
def test_the_price_of_selfdestruct(fork: str, balance: int, heir: bytes, price: int) -> None:
    assert destroying(fork, balance, heir)[1] == 3 + price


@pytest.mark.parametrize(("fork", "refund"), [("frontier", 24_000), ("berlin", 24_000), ("london", 0)])
def test_selfdestruct_was_refunded_until_london(fork: str, refund: int) -> None:
    assert destroying(fork, 5, CALLER)[0].state.refund == refund  # EIP-3529


def test_destroying_twice_in_a_transaction_refunds_once() -> None:
    evm = machine({HERE: f"{call(OTHER)} {call(OTHER)}", OTHER: f"{push(CALLER)} SELFDESTRUCT"}, "berlin")
    evm.call(HERE).check()
    assert evm.state.refund == 24_000


@pytest.mark.parametrize("fork", ["frontier", "london", "shanghai"])
def test_until_cancun_the_account_goes(fork: str) -> None:
    evm, _ = destroying(fork, 5, NOBODY)
    assert not evm.state.exists(HERE)
    assert evm.get_balance(NOBODY) == 5


@pytest.mark.parametrize("fork", ["cancun", "osaka"])
def test_since_cancun_only_the_balance_goes(fork: str) -> None:
    evm, _ = destroying(fork, 5, NOBODY)
    assert evm.get_code(HERE) != b""
    assert (evm.get_balance(HERE), evm.get_balance(NOBODY)) == (0, 5)  # EIP-6780


@pytest.mark.parametrize(("fork", "left"), [("shanghai", 0), ("cancun", 5)])
def test_what_one_leaves_to_oneself_is_burned_until_cancun_and_kept_since(fork: str, left: int) -> None:
    evm, _ = destroying(fork, 5, HERE)
    assert evm.get_balance(HERE) == left
    assert evm.state.exists(HERE) is bool(left)


def test_what_one_leaves_to_oneself_is_gone_at_once() -> None:
    program = f"{call(OTHER)} POP {push(OTHER)} BALANCE" + RETURN_TOP
    evm = machine({HERE: program, OTHER: "ADDRESS SELFDESTRUCT"}, "shanghai")
    evm.set_balance(OTHER, 5)
    assert int.from_bytes(evm.call(HERE).output, "big") == 0


def test_destroyed_code_still_runs_until_the_transaction_ends() -> None:
    program = f"{call(OTHER)} POP {call(OTHER, value=3)} {push(OTHER)} EXTCODESIZE" + RETURN_TOP
    evm = machine({HERE: program, OTHER: f"{push(CALLER)} SELFDESTRUCT"}, "shanghai")
    evm.set_balance(HERE, 10)
    assert int.from_bytes(evm.call(HERE).output, "big") == 34
    assert not evm.state.exists(OTHER)


def test_since_cancun_a_contract_made_in_the_same_transaction_goes_altogether() -> None:
    initcode = deployer(assemble(f"{push(CALLER)} SELFDESTRUCT"))
    program = f"{store_initcode(initcode)} PUSH1 {len(initcode)} PUSH1 0 PUSH1 0 CREATE " + (
        "PUSH1 0 PUSH1 0 PUSH1 0 PUSH1 0 PUSH1 0 DUP6 GAS CALL"
    )
    evm = machine({HERE: program})
    evm.state.accounts[HERE].nonce = 1
    evm.call(HERE).check()
    assert not evm.state.exists(create_address(HERE, 1))


def test_a_reverted_selfdestruct_did_not_happen() -> None:
    outer = f"{call(OTHER)} PUSH1 0 PUSH1 0 REVERT"
    evm = machine({HERE: call(NOBODY), NOBODY: outer, OTHER: f"{push(CALLER)} SELFDESTRUCT"}, "shanghai")
    assert evm.call(HERE).ok
    assert evm.state.exists(OTHER)


def test_an_empty_heir_is_touched_and_cleared() -> None:
    evm = machine({HERE: f"{push(NOBODY)} SELFDESTRUCT"}, "byzantium")
    evm.state.accounts[NOBODY] = Account()
    evm.call(HERE).check()
    assert not evm.state.exists(NOBODY)


# -- static frames ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("program", "what"),
    [
        ("PUSH1 0 PUSH1 0 SSTORE", "SSTORE"),
        ("PUSH1 0 PUSH1 0 TSTORE", "TSTORE"),
        *((f"{'PUSH1 0 ' * (n + 2)} LOG{n}", f"LOG{n}") for n in range(5)),
        ("PUSH1 0 PUSH1 0 PUSH1 0 CREATE", "CREATE"),
        ("PUSH1 0 PUSH1 0 PUSH1 0 PUSH1 0 CREATE2", "CREATE2"),
        ("PUSH1 0 SELFDESTRUCT", "SELFDESTRUCT"),
        (call(OTHER, value=1), "CALL with value"),
    ],
)
def test_a_static_frame_may_not(program: str, what: str) -> None:
    result = run(program, static=True)
    assert result.failure is not None
    assert (result.failure.reason, result.failure.detail) == (HaltReason.STATIC_WRITE, what)


@pytest.mark.parametrize(
    "program",
    ["PUSH1 0 SLOAD", "PUSH1 0 TLOAD", call(OTHER), call(OTHER, kind="CALLCODE"), call(OTHER, kind="DELEGATECALL")],
)
def test_a_static_frame_may(program: str) -> None:
    assert run(program, static=True).status is Status.SUCCESS


@pytest.mark.parametrize("kind", ["CALL", "CALLCODE", "DELEGATECALL", "STATICCALL"])
def test_staticness_is_inherited_by_every_kind_of_call(kind: str) -> None:
    writer = "PUSH1 1 PUSH1 0 SSTORE"
    program = f"{call(NOBODY, kind='STATICCALL', out=32)} POP PUSH1 0 MLOAD" + RETURN_TOP
    middle = call(OTHER, kind=kind) + RETURN_TOP
    result = run(program, others={NOBODY: middle, OTHER: writer}).check()
    assert int.from_bytes(result.output, "big") == 0  # the innermost call failed, the middle one did not
