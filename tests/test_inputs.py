"""What is passed to the library is read at the door or refused: in one line, on every tier alike, changing nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from conftest import WHOLE
from fusevm import EVM, Authorization, BadValue, Block, Fork, Rejected, Result, UnknownFork, UnknownTier
from fusevm.chain.addresses import create2_address
from fusevm.chain.state import State
from fusevm.evm.assembly import assemble
from fusevm.values import to_access_list, to_bytes, to_number, to_word
from parameters import ALICE, BLOB, HERE, MALFORMED, NESTED, PARAMETERS, Indexed, Parameter, hexed, wrong

OTHER = b"\x0b" * 20
TIERS = ("reference", "native", "auto")
MAX = (1 << 256) - 1
BOTH = "gas_price: give it or the fees of EIP-1559 (max_fee, max_priority_fee), not both"
NO_NUMBER = "is not a number; write an int or 0x hex text"
READS_SLOT_0 = assemble("PUSH1 0 SLOAD PUSH1 0 MSTORE PUSH1 32 PUSH1 0 RETURN")


def machine(tier: str = "reference", fork: str = "osaka", block: Block | None = None) -> EVM:
    evm = EVM(fork, tier, block=block)
    evm.set_code(HERE, READS_SLOT_0)
    evm.set_balance(ALICE, 10**30)
    return evm


# -- every parameter, every wrong value -------------------------------------------------------------------------------


def said(evm: EVM, parameter: Parameter, value: Any) -> str:
    """What is raised, after a look at everything that may not have changed."""
    before = evm.state_root, evm.fork, evm.tier, evm.hooks, evm.timeout, evm.block, evm.block.version
    with pytest.raises(BadValue) as caught:
        parameter.give(evm, value)
    assert before == (evm.state_root, evm.fork, evm.tier, evm.hooks, evm.timeout, evm.block, evm.block.version)
    assert evm.call(HERE).gas_used == 2_118  # and it goes on
    return str(caught.value)


@pytest.mark.parametrize("where", PARAMETERS)
@settings(max_examples=150 if WHOLE else 50, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_a_wrong_value_for_any_parameter_is_named_in_one_line_on_every_tier(where: str, data: st.DataObject) -> None:
    parameter = data.draw(st.sampled_from(PARAMETERS[where]), "parameter")
    value = data.draw(wrong(parameter.kind), "value")
    messages = {said(machine(tier), parameter, value) for tier in TIERS}
    assert len(messages) == 1
    message = messages.pop()
    assert parameter.name in message
    assert "\n" not in message
    assert len(message) < 300


@pytest.mark.parametrize("where", PARAMETERS)
def test_every_parameter_refuses_something_of_each_sort(where: str) -> None:
    for parameter in PARAMETERS[where]:
        for value in (object(), 5.5, NESTED, b"\1" * 33):
            if parameter.kind in ("seconds", "bytes") and value in (5.5, b"\1" * 33):
                continue  # right
            if parameter.kind == "function" and value is object:
                continue
            assert said(machine(), parameter, value)


@pytest.mark.parametrize("kind", MALFORMED)
def test_what_is_wrong_inside_a_list_is_named_with_its_place(kind: str) -> None:
    parameter = next(each for each in PARAMETERS["transact"] if each.kind == f"{kind}?")
    for value in MALFORMED[kind]:
        message = said(machine(), parameter, value)
        assert message.startswith(parameter.name)
        assert message.startswith(f"{parameter.name}[0]") == isinstance(value, list), message


@settings(max_examples=150, deadline=None)
@given(st.none() | st.integers() | st.floats() | st.text() | st.binary() | st.booleans() | st.lists(st.binary()))
def test_the_tiers_make_the_same_of_whatever_is_sent_to_transact(value: Any) -> None:
    names = ("value", "gas", "nonce", "gas_price", "max_fee", "access_list", "blob_hashes", "authorizations", "data")

    def outcome(tier: str, name: str) -> tuple[object, bytes]:
        evm = machine(tier)
        try:
            return evm.transact(ALICE, HERE, **{name: value}), evm.state_root
        except (BadValue, Rejected) as error:
            return repr(error), evm.state_root

    for name in names:
        assert outcome("reference", name) == outcome("native", name) == outcome("auto", name)


# -- what is understood -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize(
    "listed",
    [
        ((HERE, (0,)),),
        [[HERE, [0]]],
        [(hexed(HERE), [0])],
        [(hexed(HERE), ["0x" + "00" * 32])],
        [(int.from_bytes(HERE, "big"), [bytes(32)])],
        [{"address": hexed(HERE), "storageKeys": ["0x" + "00" * 32]}],
        [{"address": HERE, "storageKeys": (0,)}],
    ],
    ids=["tuples", "lists", "hex address", "hex key", "number and bytes", "JSON-RPC", "JSON-RPC, own types"],
)
def test_an_access_list_warms_what_it_names_in_whatever_form(tier: str, listed: Any) -> None:
    assert machine(tier).transact(ALICE, HERE, access_list=listed).gas_used == 25_418


def test_an_access_list_may_be_a_generator_and_is_gone_through_once() -> None:
    def listed() -> Iterator[tuple[bytes, Iterator[int]]]:
        yield HERE, iter((0,))

    assert machine().transact(ALICE, HERE, access_list=listed()).gas_used == 25_418


def test_an_access_list_is_read_to_bytes_and_ints() -> None:
    assert to_access_list([(hexed(HERE), ["0x2", b"\3", 4, Indexed(5)])]) == ((HERE, (2, 3, 4, 5)),)


@pytest.mark.parametrize("key", [2, "0x2", "0x02", "0X2", b"\2", bytes(31) + b"\2", "0x" + "0" * 63 + "2", Indexed(2)])
def test_a_storage_key_is_a_number_hex_text_or_bytes(key: Any) -> None:
    evm = EVM(tier="reference")
    evm.set_storage(HERE, key, 7)
    assert evm.get_storage(HERE, 2) == evm.get_storage(HERE, key) == 7
    evm.set_storage(HERE, 3, key)
    assert evm.get_storage(HERE, 3) == 2


def test_numbers_are_understood_as_json_rpc_gives_them() -> None:
    evm = machine()
    result = evm.transact(
        hexed(ALICE), HERE, value="0x5", gas="0x186a0", nonce="0x0", max_fee="0xa", max_priority_fee="0x1"
    )
    assert result.ok
    assert evm.get_balance(HERE) == 5
    assert evm.call(HERE, caller=ALICE, value=Indexed(2), gas="0xffff", gas_price="0x1").ok
    assert evm.get_balance(HERE) == 7
    assert type(evm.state.account(HERE).balance) is int


def test_a_subclass_of_bytes_reaches_the_machine_as_bytes() -> None:
    class Hexed(bytes):
        def hex(self, *_: Any) -> str:  # type: ignore[override]
            return "0x" + super().hex()

    evm = EVM(tier="reference")
    evm.set_code(Hexed(HERE), Hexed(b"\0"))
    assert all(type(address) is bytes and type(account.code) is bytes for address, account in evm.state.items())
    assert evm.call(Hexed(HERE)).ok


def test_a_salt_is_a_word_in_any_form() -> None:
    addresses = [machine().deploy("0x00", caller=ALICE, salt=salt).address for salt in (7, "0x7", bytes(31) + b"\7")]
    assert addresses == [create2_address(ALICE, 7, b"\0")] * 3


@pytest.mark.parametrize("tier", TIERS)
def test_a_block_is_described_in_any_form(tier: str) -> None:
    block = Block(coinbase=hexed(OTHER), prev_randao=b"\1" * 32, number="0x10", hashes={15: "0x" + "22" * 32})  # type: ignore[arg-type, dict-item]
    assert (block.coinbase, block.number) == (OTHER, 16)
    evm = machine(tier, block=block)
    for program, expected in (
        ("COINBASE", OTHER.rjust(32, b"\0")),
        ("PREVRANDAO", b"\1" * 32),
        ("PUSH1 15 BLOCKHASH", b"\x22" * 32),
    ):
        evm.set_code(HERE, assemble(program + " PUSH1 0 MSTORE PUSH1 32 PUSH1 0 RETURN"))
        assert evm.call(HERE).output == expected


def test_blob_hashes_are_understood_as_hex() -> None:
    evm = machine()
    evm.set_code(HERE, assemble("PUSH1 0 BLOBHASH PUSH1 0 MSTORE PUSH1 32 PUSH1 0 RETURN"))
    assert evm.transact(ALICE, HERE, blob_hashes=[hexed(BLOB)], max_blob_fee=1).output == BLOB


@pytest.mark.parametrize("address", [HERE, hexed(HERE), int.from_bytes(HERE, "big")])
def test_an_authorization_is_read_as_it_is_made(address: Any) -> None:
    assert Authorization("0x1", address, 0, 0, b"\1", "0x2") == Authorization(1, HERE, 0, 0, 1, 2)  # type: ignore[arg-type]


def test_authorizations_may_come_from_json_rpc() -> None:
    fields = {"chainId": "0x1", "address": hexed(HERE), "nonce": "0x0", "yParity": "0x0", "r": "0x1", "s": "0x2"}
    results = [machine().transact(ALICE, HERE, authorizations=listed) for listed in (
        [fields], iter([fields]), (Authorization(1, HERE, 0, 0, 1, 2),),
    )]  # fmt: skip
    assert results[0] == results[1] == results[2]
    assert results[0].ok


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"gas_price": 1, "max_fee": 1}, BOTH),
        ({"gas_price": 1, "max_priority_fee": 1}, BOTH),
        ({"max_priority_fee": 1}, "max_priority_fee: needs a max_fee"),
        ({"max_fee": 10, "max_priority_fee": -1}, "max_priority_fee: -1 is not a number of 256 bits"),
        ({"gas_price": 1.5}, "gas_price: expected an int or 0x hex text, got float"),
        ({"max_blob_fee": 1}, "max_blob_fee: needs blob_hashes"),
        ({"access_list": [(HERE, ["q"])]}, f"access_list[0].storageKeys[0]: 'q' {NO_NUMBER}"),
        ({"access_list": [{"address": HERE}]}, "access_list[0]: no 'storageKeys'; expected address, storageKeys"),
        ({"blob_hashes": ["0x01"]}, "blob_hashes[0]: expected 32 bytes, got 1"),
        ({"authorizations": [5]}, "authorizations[0]: expected Authorization, got int"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("tier", TIERS)
def test_the_message_says_what_is_wrong(tier: str, given: dict[str, Any], message: str) -> None:
    with pytest.raises(BadValue) as caught:
        machine(tier).transact(ALICE, HERE, **given)
    assert str(caught.value) == message


def test_value_that_would_overflow_a_balance_is_refused() -> None:
    evm = machine()
    evm.set_balance(OTHER, MAX)
    with pytest.raises(BadValue, match=r"value: 0x0b.* would have more than 2\^256 - 1 wei"):
        evm.call(OTHER, caller=ALICE, value=1)
    evm.set_balance(ALICE, MAX)
    assert evm.call(ALICE, caller=ALICE, value=MAX).ok  # to oneself, nothing is added


def test_gas_defaults_to_what_the_machine_can_count_in_a_block_without_limit() -> None:
    for tier in TIERS:
        assert machine(tier, "prague", Block(gas_limit=1 << 200)).transact(ALICE, HERE).ok


def test_long_hex_text_is_read_in_linear_time() -> None:
    assert to_bytes("0x" + "00" * 5_000_000) == bytes(5_000_000)
    with pytest.raises(BadValue, match="'q' at position 10000000"):
        to_bytes("00" * 5_000_000 + "q")


@settings(max_examples=200)
@given(st.integers(0, MAX))
def test_a_word_means_the_same_in_every_form(number: int) -> None:
    raw = number.to_bytes(32, "big")
    forms = (number, hex(number), raw, raw.lstrip(b"\0"), bytearray(raw), memoryview(raw), hexed(raw), Indexed(number))
    assert {to_word(form, "word") for form in forms} == {number}
    assert to_number(hex(number), "number") == number


# -- assigning --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tier", TIERS)
def test_a_fork_that_is_assigned_takes_full_effect(tier: str) -> None:
    evm = EVM("osaka", tier)
    evm.set_code(HERE, assemble("PUSH0 POP"))
    evm.set_balance(ALICE, 10**18)
    assert evm.call(HERE).ok
    evm.fork = "london"  # type: ignore[assignment]
    assert evm.fork is Fork.LONDON
    assert evm.rules.fork is Fork.LONDON
    assert not evm.call(HERE).ok
    assert evm.transact(ALICE, HERE, gas=30_000_000).gas_used == 30_000_000  # over the cap of Osaka
    evm.fork = Fork.OSAKA
    assert evm.call(HERE).ok


def test_a_tier_that_is_assigned_takes_full_effect(monkeypatch: pytest.MonkeyPatch) -> None:
    evm = EVM(tier="native")
    evm.set_code(HERE, b"\0")
    evm.tier = "reference"
    used: list[str] = []
    monkeypatch.setattr(
        "fusevm.reference.interpreter.drive", lambda frame, run, hooks: used.append("reference") or 1 / 0
    )
    with pytest.raises(ZeroDivisionError):
        evm.call(HERE)
    assert (used, evm.tier) == (["reference"], "reference")
    evm.tier = "native"
    assert evm.call(HERE).ok


def test_what_cannot_be_assigned_changes_nothing() -> None:
    evm = EVM("cancun", "reference")
    with pytest.raises(UnknownFork, match="unknown fork 'moon'"):
        evm.fork = "moon"  # type: ignore[assignment]
    with pytest.raises(UnknownTier, match="unknown tier 'warp'"):
        evm.tier = "warp"
    assert (evm.fork, evm.tier) == (Fork.CANCUN, "reference")


def test_a_state_and_a_block_that_are_assigned_are_used() -> None:
    evm, state = EVM(tier="reference"), State()
    state.set_code(HERE, assemble("NUMBER PUSH1 0 MSTORE PUSH1 32 PUSH1 0 RETURN"))
    evm.state, evm.block = state, Block(number=77)
    result: Result = evm.call(HERE)
    assert int.from_bytes(result.output, "big") == 77
