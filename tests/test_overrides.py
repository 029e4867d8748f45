"""Overrides under geth's names, addresses, access lists and blob hashes on calls, estimates, raw transactions."""

from __future__ import annotations

from typing import Any

import pytest

from fusevm import EVM, BadValue, Block, EstimateFailed, ExecutionFailed, Rejected, RejectReason
from fusevm.chain.signed import sign
from fusevm.chain.transaction import Transaction
from fusevm.evm.assembly import assemble
from fusevm.evm.secp256k1 import address_of_key

A, B, C, D = b"\xa1" * 20, b"\xb0" * 20, b"\xc0" * 20, b"\xd0" * 20
TIERS = ("reference", "native", "auto", "lockstep")
LOADS = assemble("PUSH0 CALLDATALOAD SLOAD PUSH0 MSTORE PUSH1 32 PUSH0 RETURN")
TWO = assemble("PUSH1 2 PUSH0 MSTORE PUSH1 32 PUSH0 RETURN")


def machine(tier: str = "auto") -> EVM:
    evm = EVM(tier=tier)
    evm.set_code(C, LOADS)
    evm.set_storage(C, 1, 11)
    evm.set_storage(C, 2, 22)
    evm.set_balance(A, 10**18)
    return evm


def word(number: int) -> bytes:
    return number.to_bytes(32, "big")


def loaded(evm: EVM, key: int, **fields: Any) -> int:
    return int.from_bytes(evm.simulate(C, word(key), **fields).check().output, "big")


# -- accounts


@pytest.mark.parametrize("tier", TIERS)
def test_some_slots_or_all_of_them_are_overridden(tier: str) -> None:
    evm = machine(tier)
    for _ in range(3):
        some = {C: {"stateDiff": {"0x1": "0x7", word(3): 9}}}
        assert [loaded(evm, key, overrides=some) for key in (1, 2, 3)] == [7, 22, 9]
        whole = {"0x" + C.hex(): {"state": {1: 8}}}
        assert [loaded(evm, key, overrides=whole) for key in (1, 2, 3)] == [8, 0, 0]
        assert [loaded(evm, key) for key in (1, 2, 3)] == [11, 22, 0]


@pytest.mark.parametrize("tier", TIERS)
def test_code_balance_and_nonce_are_overridden_and_nothing_is_kept(tier: str) -> None:
    evm = machine(tier)
    overrides = {C: {"code": "0x" + TWO.hex(), "balance": 5, "nonce": "0x3"}}
    with evm.overridden(overrides):
        assert (evm.get_balance(C), evm.get_nonce(C)) == (5, 3)
        assert int.from_bytes(evm.call(C).output, "big") == 2
    assert (evm.get_balance(C), evm.get_nonce(C), evm.get_code(C)) == (0, 0, LOADS)
    paid = evm.simulate(B, value=77, caller=D, overrides={D: {"balance": 77}})
    assert paid.ok
    assert evm.get_balance(B) == 0


@pytest.mark.parametrize("tier", TIERS)
def test_a_precompile_moves_to_another_address(tier: str) -> None:
    evm = machine(tier)
    calls = assemble(
        "CALLDATASIZE PUSH0 PUSH0 CALLDATACOPY PUSH1 32 PUSH0 CALLDATASIZE PUSH0 PUSH0 "
        f"PUSH20 0x{D.hex()} GAS CALL POP PUSH1 32 PUSH0 RETURN"
    )
    evm.set_code(B, calls)
    hashed = evm.call(2, b"abc").output
    moved = {2: {"movePrecompileToAddress": D, "code": TWO}, 4: {"movePrecompileToAddress": b"\x44" * 20}}
    for _ in range(3):
        with evm.overridden(moved):
            assert evm.call(B, b"abc").output == hashed
            assert evm.call(D, b"abc").output == hashed
            assert int.from_bytes(evm.call(2, b"abc").output, "big") == 2
            assert evm.call(b"\x44" * 20, b"abc").output == b"abc"
            assert evm.call(4, b"abc").output == b""
        assert evm.call(2, b"abc").output == hashed
        assert evm.call(4, b"abc").output == b"abc"
        assert evm.call(D, b"abc").output == b""


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({C: {"stat": {}}}, "'stat' is not a field; expected balance"),
        ({C: {"state": {}, "stateDiff": {}}}, "state or stateDiff, not both"),
        ({C: {"balance": -1}}, "balance: -1 is not a number"),
        ({C: {"nonce": 1 << 64}}, "nonce"),
        ({C: {"state": [1]}}, "state: expected values by key"),
        ({C: 5}, "expected an object of balance"),
        ({"0x12": {}}, "address '0x12'"),
        ([C], "expected accounts by address"),
        ({C: {"movePrecompileToAddress": D}}, "is not a precompile of osaka"),
        ({2: {"movePrecompileToAddress": D}, D: {"balance": 1}}, "is overridden already"),
        ({2: {"movePrecompileToAddress": D}, 3: {"movePrecompileToAddress": D}}, "is overridden already"),
    ],
)
def test_an_override_that_cannot_be_read_is_refused_and_nothing_has_changed(overrides: Any, message: str) -> None:
    evm = machine()
    evm.set_balance(C, 1)
    with pytest.raises(BadValue, match=message):
        evm.simulate(C, overrides=overrides)
    assert (evm.get_balance(C), evm.get_storage(C, 1), evm.state.open_marks) == (1, 11, 0)
    assert evm.call(2, b"abc").ok


@pytest.mark.parametrize("tier", TIERS)
def test_the_block_is_overridden(tier: str) -> None:
    evm = machine(tier)
    names = ("NUMBER", "TIMESTAMP", "GASLIMIT", "COINBASE", "PREVRANDAO", "BASEFEE")
    stores = " ".join(f"{name} PUSH1 {32 * at} MSTORE" for at, name in enumerate(names))
    evm.set_code(B, assemble(f"{stores} PUSH1 192 PUSH0 RETURN"))
    fields = {"number": 7, "time": "0x8", "gasLimit": 9, "feeRecipient": D, "prevRandao": word(10), "baseFeePerGas": 11}
    before = evm.call(B).output
    changed = evm.simulate(B, block_overrides=fields).output
    assert changed == b"".join(map(word, (7, 8, 9, int.from_bytes(D, "big"), 10, 11)))
    assert evm.call(B).output == before
    with pytest.raises(BadValue, match="'timestamp' is not a field; expected number, time"):
        evm.simulate(B, block_overrides={"timestamp": 1})


# -- what a call may be given


@pytest.mark.parametrize("tier", TIERS)
def test_other_code_runs_in_the_place_of_an_account_s_own(tier: str) -> None:
    evm = machine(tier)
    code = assemble("PUSH1 1 SLOAD PUSH1 1 ADD DUP1 PUSH1 1 SSTORE PUSH0 MSTORE PUSH1 32 PUSH0 RETURN")
    for count in (12, 13, 14):
        assert int.from_bytes(evm.call(C, code=code).output, "big") == count
    assert (evm.get_storage(C, 1), evm.get_code(C)) == (14, LOADS)
    assert evm.call(4, b"abc", code=TWO).output == word(2)
    assert evm.call(C, code=b"").output == b""


@pytest.mark.parametrize("tier", TIERS)
def test_an_access_list_warms_and_is_not_charged(tier: str) -> None:
    evm = machine(tier)
    cold = evm.call(C, word(1)).gas_used
    assert evm.call(C, word(1), access_list=[(C, [1])]).gas_used == cold - 2_000
    assert evm.call(C, word(2), access_list=[(C, [1])]).gas_used == cold
    assert evm.call(C, word(1)).gas_used == cold
    charged = evm.call(C, word(1), access_list=[(C, [1]), (B, [])], charge_access_list=True)
    assert charged.gas_used == cold - 2_000 + 2 * 2_400 + 1_900
    with pytest.raises(BadValue, match="gas: 4000 does not pay for the access list, which costs 4300"):
        evm.call(C, gas=4_000, access_list=[(C, [1])], charge_access_list=True)
    init = assemble(f"PUSH20 0x{B.hex()} BALANCE PUSH0 PUSH0 RETURN")
    assert evm.deploy(init).gas_used == evm.deploy(init, access_list=[(B, [])]).gas_used + 2_500


@pytest.mark.parametrize("tier", TIERS)
def test_blob_hashes_are_seen(tier: str) -> None:
    evm = machine(tier)
    evm.set_code(B, assemble("PUSH1 1 BLOBHASH PUSH0 MSTORE PUSH1 32 PUSH0 RETURN"))
    hashes = [b"\x01" + bytes(31), b"\x01" * 32]
    for _ in range(2):
        assert evm.call(B, blob_hashes=hashes).output == hashes[1]
        assert evm.call(B).output == word(0)


@pytest.mark.parametrize("tier", TIERS)
def test_a_contract_is_deployed_where_it_is_wanted(tier: str) -> None:
    evm = machine(tier)
    init = assemble("ADDRESS PUSH0 MSTORE PUSH1 32 PUSH0 RETURN")
    result = evm.deploy(init, address=D, caller=A).check()
    assert (result.address, evm.get_code(D), evm.get_nonce(A)) == (D, bytes(12) + D, 1)
    assert evm.deploy(init, address=D).error == f"halted: address collision at pc 0 (0x{D.hex()})"
    with pytest.raises(BadValue, match="address: give it or a salt, not both"):
        evm.deploy(init, address=D, salt=1)


# -- estimates


def works_with(evm: EVM, gas: int, to: bytes | None, data: bytes = b"", value: int = 0) -> bool:
    with evm.snapshot():
        try:
            return evm.transact(A, to, data, value=value, gas=gas).ok
        except Rejected:
            return False


GAS_HUNGRY = {
    "a payment": b"",
    "storage": assemble("PUSH1 1 PUSH0 SSTORE STOP"),
    "a refund": assemble("PUSH0 PUSH1 1 SSTORE PUSH0 PUSH1 2 SSTORE STOP"),
    "half of a call": assemble(
        f"PUSH0 PUSH0 PUSH0 PUSH0 PUSH0 PUSH20 0x{D.hex()} GAS CALL ISZERO PUSH1 @bad JUMPI STOP bad: JUMPDEST INVALID"
    ),
    "gas asked for": assemble("PUSH3 0x010000 GAS LT PUSH1 @bad JUMPI STOP bad: JUMPDEST INVALID"),
}


@pytest.mark.parametrize("tier", ["reference", "native", "auto"])
@pytest.mark.parametrize("what", GAS_HUNGRY)
def test_an_estimate_is_the_least_that_works(tier: str, what: str) -> None:
    evm = machine(tier)
    evm.set_code(B, GAS_HUNGRY[what])
    evm.set_storage(B, 1, 1)
    evm.set_storage(B, 2, 1)
    evm.set_code(D, assemble("PUSH1 5 PUSH0 SSTORE PUSH1 6 PUSH1 1 SSTORE STOP"))
    estimate = evm.estimate_gas(B, b"\1\0\1", caller=A)
    assert works_with(evm, estimate, B, b"\1\0\1")
    assert not works_with(evm, estimate - 1, B, b"\1\0\1")
    near = evm.estimate_gas(B, b"\1\0\1", caller=A, error_ratio=0.015)
    assert estimate <= near <= estimate * 1.016
    assert evm.get_storage(B, 0) == evm.get_nonce(A) == 0


def test_an_estimate_of_a_deployment_and_of_data_that_pays_the_floor() -> None:
    evm = machine()
    init = assemble("PUSH2 0x1000 PUSH0 RETURN")
    estimate = evm.estimate_gas(None, init, caller=A)
    assert works_with(evm, estimate, None, init)
    assert not works_with(evm, estimate - 1, None, init)
    assert evm.estimate_gas(B, b"\xff" * 1_000, caller=A) == 21_000 + 40_000


def test_an_estimate_that_fails_at_the_limit_says_why() -> None:
    evm = machine()
    evm.set_code(B, assemble("PUSH1 42 PUSH0 MSTORE PUSH1 32 PUSH0 REVERT"))
    with pytest.raises(EstimateFailed, match=f"no estimate: reverted: 0x{word(42).hex()} with the most gas") as raised:
        evm.estimate_gas(B)
    assert raised.value.result.output == word(42)
    assert isinstance(raised.value, ExecutionFailed)
    evm.set_code(B, assemble("loop: JUMPDEST PUSH0 JUMP"))
    with pytest.raises(EstimateFailed, match=r"out of gas .* 100000"):
        evm.estimate_gas(B, gas=100_000)
    with pytest.raises(Rejected):
        evm.estimate_gas(B, value=1, caller=D)


def test_a_price_limits_the_gas_to_what_the_sender_can_pay() -> None:
    evm = machine()
    evm.set_code(B, assemble("loop: JUMPDEST PUSH0 JUMP"))
    evm.set_balance(D, 500_000)
    with pytest.raises(EstimateFailed, match="250000"):
        evm.estimate_gas(B, caller=D, gas_price=2)


def test_an_estimate_takes_overrides() -> None:
    evm = machine()
    plain = evm.estimate_gas(B, caller=A)
    stores = {B: {"code": GAS_HUNGRY["storage"]}}
    assert evm.estimate_gas(B, caller=A, overrides=stores) == plain + 22_100 + 5
    assert evm.get_code(B) == b""


# -- raw transactions

KEY = bytes(31) + b"\x05"
SENDER = address_of_key(KEY)


@pytest.mark.parametrize(
    "fields",
    [
        {"gas_price": 7},
        {"gas_price": 7, "access_list": ((C, (1,)),)},
        {"max_fee": 9, "max_priority_fee": 1},
        {"max_fee": 9, "blob_hashes": (b"\x01" * 32,), "max_blob_fee": 5},
    ],
)
def test_a_raw_transaction_does_what_the_transaction_does(fields: dict[str, Any]) -> None:
    signed = sign(Transaction(b"", C, word(1), 0, 90_000, 3, **fields), KEY, chain_id=1)
    evms = [machine(), machine(), machine()]
    for evm in evms:
        evm.set_balance(SENDER, 10**18)
        evm.set_nonce(SENDER, 3)
    results = [
        evms[0].send_raw(signed.encoded),
        evms[1].send_raw("0x" + signed.encoded.hex()),
        evms[2].transact(SENDER, C, word(1), gas=90_000, nonce=3, **fields),
    ]
    assert results[0] == results[1] == results[2]
    assert [evm.get_nonce(SENDER) for evm in evms] == [4, 4, 4]
    assert evms[0].state_root == evms[2].state_root


def test_a_raw_transaction_that_is_not_one_or_not_for_this_chain_is_rejected() -> None:
    evm = machine()
    evm.set_balance(SENDER, 10**18)
    signed = sign(Transaction(b"", C, gas_limit=90_000, nonce=0, gas_price=1), KEY, chain_id=5)
    for raw, reason in ((signed.encoded, RejectReason.INVALID_CHAINID), (b"\x09", RejectReason.TYPE_NOT_SUPPORTED)):
        with pytest.raises(Rejected) as raised:
            evm.send_raw(raw)
        assert raised.value.reason is reason
    evm.block = Block(chain_id=5)
    assert evm.send_raw(signed).ok
    with pytest.raises(BadValue, match="transaction"):
        evm.send_raw("0xzz")
