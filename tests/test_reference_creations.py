"""The reference interpreter on CREATE and CREATE2: what they leave, what they cost, and how they fail."""

from __future__ import annotations

import pytest

from fusevm import EVM, HaltReason, Hooks
from fusevm.chain.addresses import create2_address, create_address
from fusevm.chain.environment import Message
from fusevm.chain.outcome import Outcome
from fusevm.chain.state import Account
from fusevm.evm.assembly import assemble
from programs import CALLER, HERE, RETURN_TOP, deployer, machine, push, run, store_initcode


def number(data: bytes) -> int:
    return int.from_bytes(data, "big")


def creating(initcode: bytes, *, kind: str = "CREATE", value: int = 0, salt: int = 0) -> str:
    """Text that creates a contract and leaves its address."""
    last = f"PUSH1 {salt}" if kind == "CREATE2" else ""
    return f"{store_initcode(initcode)} {last} PUSH2 {len(initcode)} PUSH1 0 PUSH1 {value} {kind} "


def creator(program: str, fork: str = "osaka", balance: int = 0) -> EVM:
    evm = machine({HERE: program}, fork)
    evm.set_nonce(HERE, 1)
    evm.set_balance(HERE, balance)
    return evm


def test_create_leaves_code_nonce_and_value_at_the_address_it_pushes() -> None:
    evm = creator(creating(deployer(b"\x01\x02"), value=3) + RETURN_TOP, balance=5)
    address = evm.call(HERE).check().output[12:]
    assert address == create_address(HERE, 1)
    assert (evm.get_code(address), evm.get_nonce(address), evm.get_balance(address)) == (b"\x01\x02", 1, 3)
    assert (evm.get_nonce(HERE), evm.get_balance(HERE)) == (2, 2)


def test_create2_leaves_it_at_an_address_of_salt_and_code() -> None:
    initcode = deployer(b"\x01\x02")
    evm = creator(creating(initcode, kind="CREATE2", salt=9) + RETURN_TOP)
    assert evm.call(HERE).check().output[12:] == create2_address(HERE, 9, initcode)
    assert evm.get_nonce(HERE) == 2


def test_init_code_sees_its_own_address_no_calldata_and_no_code_there_yet() -> None:
    for question, expected in (
        ("ADDRESS", number(create_address(HERE, 1))),
        ("CALLDATASIZE", 0),
        ("ADDRESS EXTCODESIZE", 0),
        ("CALLER", number(HERE)),
        ("CODESIZE", None),
    ):
        initcode = assemble(f"{question} PUSH1 0 SSTORE")
        evm = creator(creating(initcode))
        evm.call(HERE).check()
        wanted = len(initcode) if expected is None else expected
        assert evm.get_storage(create_address(HERE, 1), 0) == wanted, question


# PUSH2 and three PUSH1 (or two), then CREATE: 32,000, a word of memory (3 for MSTORE's) and what init code does.
@pytest.mark.parametrize(
    ("fork", "kind", "price"),
    [
        ("paris", "CREATE", 32_000),
        ("shanghai", "CREATE", 32_000 + 2),  # EIP-3860: 2 a word of init code
        ("paris", "CREATE2", 32_000 + 6),  # EIP-1014: hashing it
        ("osaka", "CREATE2", 32_000 + 6 + 2),
    ],
)
def test_the_price_of_a_creation(fork: str, kind: str, price: int) -> None:
    program = creating(b"\x00", kind=kind)  # init code that stops
    storing, operands = 3 + 3 + 3 + 3, 3 * (4 if kind == "CREATE2" else 3)
    assert creator(program, fork).call(HERE).check().gas_used == storing + operands + price


def test_each_byte_of_deployed_code_costs_200() -> None:
    initcode = assemble("PUSH1 10 PUSH1 0 RETURN")
    gas = creator(creating(initcode)).call(HERE).check().gas_used
    empty = creator(creating(assemble("PUSH1 0 PUSH1 0 RETURN"))).call(HERE).check().gas_used
    assert gas - empty == 10 * 200 + 3  # and the memory it was returned from


def test_init_code_gets_all_but_a_64th() -> None:
    evm = creator(creating(assemble("GAS PUSH1 0 SSTORE")))
    evm.call(HERE, gas=1_000_000).check()
    left = 1_000_000 - 12 - 9 - 32_000 - 2
    assert evm.get_storage(create_address(HERE, 1), 0) == left - left // 64 - 2


def outcome_of_creation(initcode: bytes, fork: str = "osaka") -> tuple[int, list[Outcome], EVM]:
    """The word CREATE left, how the init code's frame ended, and the machine."""
    evm = creator(creating(initcode) + RETURN_TOP, fork)
    ended: list[tuple[Message, Outcome]] = []
    evm.hooks = Hooks(on_return=lambda message, outcome: ended.append((message, outcome)))
    output = evm.call(HERE).check().output
    return number(output), [outcome for message, outcome in ended if message.creates], evm


@pytest.mark.parametrize(
    ("fork", "returned", "reason"),
    [
        ("berlin", b"\xef", None),
        ("london", b"\xef", HaltReason.CODE_STARTS_WITH_EF),  # EIP-3541
        ("london", b"\xfe\xef", None),
        ("tangerine-whistle", bytes(24_577), None),
        ("spurious-dragon", bytes(24_577), HaltReason.CODE_TOO_LARGE),  # EIP-170
        ("osaka", bytes(24_576), None),
    ],
)
def test_which_code_may_be_deployed(fork: str, returned: bytes, reason: HaltReason | None) -> None:
    first = f"PUSH32 0x{returned[:32].ljust(32, b'0')[:32].hex()} PUSH1 0 MSTORE" if any(returned) else ""
    initcode = assemble(f"{first} PUSH3 {len(returned)} PUSH1 0 RETURN")
    word, (outcome,), evm = outcome_of_creation(initcode, fork)
    if reason is None:
        assert len(evm.get_code(create_address(HERE, 1))) == len(returned)
    else:
        assert word == 0
        assert outcome.failure is not None
        assert outcome.failure.reason is reason
        assert evm.get_code(create_address(HERE, 1)) == b""


@pytest.mark.parametrize(("fork", "made"), [("frontier", True), ("homestead", False)])
def test_too_little_gas_for_the_deposit_fails_the_creation_since_homestead(fork: str, made: bool) -> None:
    """In Frontier the contract came into being without code, and kept its gas."""
    evm = machine({}, fork)
    result = evm.deploy(assemble("PUSH2 1000 PUSH1 0 RETURN"), caller=CALLER, gas=200_000)
    assert result.ok is made
    assert result.gas_used == (6 + 3 * 32 + 2 if made else 200_000)
    assert evm.state.exists(create_address(CALLER, 0)) is made
    assert evm.get_code(create_address(CALLER, 0)) == b""


def test_init_code_over_the_limit_halts_the_creator_since_shanghai() -> None:
    program = "PUSH3 49153 PUSH1 0 PUSH1 0 CREATE"
    failure = run(program, "shanghai").failure
    assert failure is not None
    assert (failure.reason, failure.detail) == (HaltReason.INITCODE_TOO_LARGE, "49153 bytes")
    assert run(program, "paris").ok
    assert run("PUSH3 49152 PUSH1 0 PUSH1 0 CREATE", "shanghai").ok


def test_a_failed_creation_hands_back_revert_data_and_a_successful_one_nothing() -> None:
    size = " POP RETURNDATASIZE" + RETURN_TOP
    assert number(creator(creating(assemble("PUSH1 7 PUSH1 0 REVERT")) + size).call(HERE).output) == 7
    assert number(creator(creating(assemble("PUSH1 7 PUSH1 0 RETURN")) + size).call(HERE).output) == 0
    assert number(creator(creating(b"\xfe") + size).call(HERE).output) == 0


def test_a_failed_creation_keeps_the_creators_nonce_counted_but_not_the_value_moved() -> None:
    evm = creator(creating(b"\xfe", value=3) + RETURN_TOP, balance=5)
    assert number(evm.call(HERE).output) == 0
    assert (evm.get_nonce(HERE), evm.get_balance(HERE)) == (2, 5)
    assert not evm.state.exists(create_address(HERE, 1))


def test_a_creation_one_cannot_pay_for_never_begins() -> None:
    evm = creator(creating(b"\x00", value=6) + RETURN_TOP, balance=5)
    assert number(evm.call(HERE).check().output) == 0
    assert evm.get_nonce(HERE) == 1


def test_a_creator_at_the_greatest_nonce_cannot_create() -> None:
    evm = creator(creating(b"\x00") + RETURN_TOP)
    evm.set_nonce(HERE, 2**64 - 1)
    assert number(evm.call(HERE).check().output) == 0
    assert evm.get_nonce(HERE) == 2**64 - 1


@pytest.mark.parametrize("there", [Account(nonce=1), Account(code=b"\x00"), Account(storage={1: 1})])
def test_a_collision_takes_the_gas_given_and_counts_the_nonce(there: Account) -> None:
    evm = creator(creating(b"\x00") + RETURN_TOP)
    evm.state.accounts[create_address(HERE, 1)] = there
    result = evm.call(HERE, gas=1_000_000).check()
    left = 1_000_000 - 12 - 9 - 32_000 - 2
    assert number(result.output) == 0
    assert result.gas_used == 1_000_000 - left // 64 + 12  # RETURN_TOP: memory is there already
    assert evm.get_nonce(HERE) == 2


def test_a_balance_at_the_address_is_no_collision_and_is_kept() -> None:
    evm = creator(creating(b"\x00", value=3) + RETURN_TOP, balance=5)
    evm.set_balance(create_address(HERE, 1), 10)
    assert number(evm.call(HERE).output) != 0
    assert evm.get_balance(create_address(HERE, 1)) == 13


def test_the_created_address_is_warm() -> None:
    program = creating(b"\x00") + "BALANCE"
    plain = creator(creating(b"\x00")).call(HERE).gas_used
    assert creator(program).call(HERE).gas_used == plain + 100


def test_init_code_may_destroy_itself() -> None:
    initcode = assemble(f"{push(CALLER)} SELFDESTRUCT")
    word, _, evm = outcome_of_creation(initcode)
    assert word != 0
    assert not evm.state.exists(create_address(HERE, 1))
