"""JSON-RPC methods asked directly, without a server: what each answers, and how errors look to clients."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest

from fusevm.chain.checks import Checks
from fusevm.chain.signed import sign
from fusevm.chain.transaction import Transaction
from fusevm.evm.assembly import assemble
from fusevm.rpc import Config, RpcError, Session
from fusevm.rpc.dispatch import answer
from fusevm.rpc.mnemonic import TEST_MNEMONIC, keys_of

NOW = 1_800_000_000
ALICE, BOB = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266", "0x70997970c51812dc3a010c7d01b50e0d17dc79c8"
STRANGER = "0x" + "99" * 20
# Returns storage[0] to an empty call; else stores the first word there, logs it with topic 7, and returns it.
KEEPER = "36600c575f545f5260205ff35b5f355f555f355f52600760205fa160205ff3"
REVERTS = "6308c379a060e01b5f526020600452600260245261686960f01b60445260645ffd"  # Error("hi")


@pytest.fixture
def session() -> Session:
    return Session(Config(timestamp=NOW), now=lambda: NOW)


def deploy(session: Session, runtime: str) -> str:
    code = bytes.fromhex(runtime)
    initcode = bytes.fromhex(f"60{len(code):02x}600c60003960{len(code):02x}6000f3") + code
    sent = session.request("eth_sendTransaction", [{"from": ALICE, "data": "0x" + initcode.hex()}])
    receipt = session.request("eth_getTransactionReceipt", [sent])
    assert receipt["status"] == "0x1"
    return str(receipt["contractAddress"])


def send(session: Session, **fields: Any) -> Any:
    form = {"from": ALICE, **{("from" if name == "sender" else name): each for name, each in fields.items()}}
    return session.request("eth_getTransactionReceipt", [session.request("eth_sendTransaction", [form])])


def word(number: int) -> str:
    return f"0x{number:064x}"


def refused(session: Session, method: str, *params: Any) -> RpcError:
    with pytest.raises(RpcError) as caught:
        session.request(method, params)
    return caught.value


# -- accounts


def test_the_first_account_is_that_of_anvils_mnemonic() -> None:
    assert keys_of(TEST_MNEMONIC, 2)[1].hex().startswith("59c6995e998f97a5")


def test_a_new_chain_has_ten_funded_accounts(session: Session) -> None:
    listed = session.request("eth_accounts")
    assert listed[:2] == [ALICE, BOB]
    assert len(listed) == 10
    assert session.request("eth_getBalance", [BOB, "latest"]) == hex(10_000 * 10**18)


def test_personal_sign_and_recover_agree(session: Session) -> None:
    signature = session.request("personal_sign", ["0x68656c6c6f", ALICE])
    assert session.request("personal_ecRecover", ["hello", signature]) == ALICE


def test_typed_data_is_signed_as_in_the_example_of_eip_712(session: Session) -> None:
    from fusevm.rpc.typed_data import typed_hash

    person = [{"name": "name", "type": "string"}, {"name": "wallet", "type": "address"}]
    parts = [("from", "Person"), ("to", "Person"), ("contents", "string")]
    domain = [("name", "string"), ("version", "string"), ("chainId", "uint256"), ("verifyingContract", "address")]
    document = {
        "types": {
            "EIP712Domain": [{"name": name, "type": kind} for name, kind in domain],
            "Person": person,
            "Mail": [{"name": name, "type": kind} for name, kind in parts],
        },
        "primaryType": "Mail",
        "domain": {
            "name": "Ether Mail",
            "version": "1",
            "chainId": 1,
            "verifyingContract": "0xCcCCccccCCCCcCCCCCCcCcCccCcCCCcCcccccccC",
        },
        "message": {
            "from": {"name": "Cow", "wallet": "0xCD2a3d9F938E13CD947Ec05AbC7FE734Df8DD826"},
            "to": {"name": "Bob", "wallet": "0xbBbBBBBbbBBBbbbBbbBbbbbBBbBbbbbBbBbbBBbB"},
            "contents": "Hello, Bob!",
        },
    }
    assert typed_hash(document).hex() == "be609aee343fb3c4b28e1df9e632fca64fcfaede20f02e86244efddf30957bd2"
    assert len(session.request("eth_signTypedData_v4", [ALICE, json.dumps(document)])) == 132


def test_an_account_without_a_key_cannot_sign(session: Session) -> None:
    assert "no key" in refused(session, "eth_sign", STRANGER, "0x00").message


# -- transactions


def test_a_transaction_is_mined_at_once(session: Session) -> None:
    receipt = send(session, to=BOB, value="0x5")
    assert (receipt["status"], receipt["blockNumber"], receipt["gasUsed"]) == ("0x1", "0x1", "0x5208")
    assert session.request("eth_getBalance", [BOB]) == hex(10_000 * 10**18 + 5)
    block = session.request("eth_getBlockByNumber", ["latest", True])
    assert block["transactions"][0]["hash"] == receipt["transactionHash"]
    assert block["transactions"][0]["input"] == "0x"


def test_a_raw_transaction_is_mined_at_once(session: Session) -> None:
    key = keys_of(TEST_MNEMONIC, 1)[0]
    tx = Transaction(b"", b"\x02" * 20, value=1, gas_limit=21_000, nonce=0, max_fee=10**10, max_priority_fee=1)
    signed = sign(tx, key, 31337)
    assert session.request("eth_sendRawTransaction", ["0x" + signed.encoded.hex()]) == "0x" + signed.hash.hex()
    found = session.request("eth_getTransactionByHash", ["0x" + signed.hash.hex()])
    assert (found["from"], found["blockNumber"]) == (ALICE, "0x1")


def test_a_transaction_for_another_chain_is_refused_in_gets_words(session: Session) -> None:
    tx = Transaction(b"", b"\x02" * 20, gas_limit=21_000, nonce=0, max_fee=10**10)
    signed = sign(tx, keys_of(TEST_MNEMONIC, 1)[0], 1)
    error = refused(session, "eth_sendRawTransaction", "0x" + signed.encoded.hex())
    assert (error.code, "invalid chain id" in error.message) == (-32003, True)


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"nonce": "0x0"}, "nonce too low"),
        ({"value": hex(10**30), "gas": "0x5208"}, "Insufficient funds for gas * price + value"),
        (
            {"maxFeePerGas": "0x1", "maxPriorityFeePerGas": "0x1", "gas": "0x5208"},
            "max fee per gas less than block base fee",
        ),
    ],
)
def test_what_cannot_be_mined_is_refused_in_words_that_clients_match(session: Session, fields: Any, text: str) -> None:
    send(session, to=BOB)
    error = refused(session, "eth_sendTransaction", {"from": ALICE, "to": BOB, **fields})
    assert text in error.message
    assert error.code == -32003


@pytest.mark.parametrize(
    ("gas", "text"), [(20_999, "intrinsic gas too low"), (30_000_001, "tx.gas_limit > env.block.gas_limit")]
)
def test_a_gas_limit_that_no_block_can_have_is_refused_with_anvils_code(session: Session, gas: int, text: str) -> None:
    error = refused(session, "eth_sendTransaction", {"from": ALICE, "to": BOB, "gas": hex(gas)})
    assert (error.code, text in error.message) == (-32000, True)


def test_the_gas_limit_of_one_transaction_is_osakas_only_where_that_is_asked_for() -> None:
    most, checks = hex(16_777_217), Checks(eoa=False)
    asked = {"from": ALICE, "to": BOB, "gas": most}
    assert Session(Config(timestamp=NOW)).request("eth_sendTransaction", [asked])
    error = refused(Session(Config(timestamp=NOW, checks=checks)), "eth_sendTransaction", asked)
    assert (error.code, error.message) == (
        -32000,
        "intrinsic gas too high -- TxGasLimitGreaterThanCap (16777217 of 16777216)",
    )


def test_without_automine_transactions_wait_for_a_block(session: Session) -> None:
    session.request("evm_setAutomine", [False])
    first = session.request("eth_sendTransaction", [{"from": ALICE, "to": BOB}])
    second = session.request("eth_sendTransaction", [{"from": ALICE, "to": BOB}])
    assert session.request("eth_getTransactionReceipt", [first]) is None
    assert session.request("eth_getTransactionByHash", [first])["blockNumber"] is None
    assert session.request("eth_getTransactionCount", [ALICE, "pending"]) == "0x2"
    assert session.request("txpool_status") == {"pending": "0x2", "queued": "0x0"}
    assert len(session.request("eth_getBlockByNumber", ["pending", False])["transactions"]) == 2
    session.request("evm_mine")
    assert session.request("eth_getTransactionReceipt", [second])["transactionIndex"] == "0x1"


def test_a_transaction_waits_for_the_nonce_before_it(session: Session) -> None:
    later = session.request("eth_sendTransaction", [{"from": ALICE, "to": BOB, "nonce": "0x1"}])
    assert session.request("eth_blockNumber") == "0x0"
    assert session.request("txpool_status") == {"pending": "0x0", "queued": "0x1"}
    send(session, to=BOB, nonce="0x0")
    assert session.request("eth_getTransactionReceipt", [later])["blockNumber"] == "0x1"


def test_a_pending_transaction_is_replaced_at_a_higher_price_alone(session: Session) -> None:
    session.request("evm_setAutomine", [False])
    common = {"from": ALICE, "to": BOB, "nonce": "0x0", "gas": "0x5208"}
    session.request("eth_sendTransaction", [{**common, "gasPrice": hex(2 * 10**9)}])
    error = refused(session, "eth_sendTransaction", {**common, "gasPrice": hex(2 * 10**9 + 1)})
    assert error.message == "replacement transaction underpriced"
    session.request("eth_sendTransaction", [{**common, "gasPrice": hex(3 * 10**9)}])
    assert session.request("txpool_status")["pending"] == "0x1"


def test_a_dropped_transaction_is_never_mined(session: Session) -> None:
    session.request("evm_setAutomine", [False])
    sent = session.request("eth_sendTransaction", [{"from": ALICE, "to": BOB}])
    assert session.request("anvil_dropTransaction", [sent]) == sent
    session.request("evm_mine")
    assert session.request("eth_getTransactionByHash", [sent]) is None


# -- calls


def test_a_call_reads_and_changes_nothing(session: Session) -> None:
    keeper = deploy(session, KEEPER)
    send(session, to=keeper, data=word(42))
    assert session.request("eth_call", [{"to": keeper}, "latest"]) == word(42)
    assert session.request("eth_call", [{"to": keeper, "data": word(1)}]) == word(1)
    assert session.request("eth_getStorageAt", [keeper, "0x0", "latest"]) == word(42)


def test_a_call_at_an_older_block_sees_the_state_there(session: Session) -> None:
    keeper = deploy(session, KEEPER)
    send(session, to=keeper, data=word(42))
    assert session.request("eth_call", [{"to": keeper}, "0x1"]) == word(0)


def test_a_call_under_overrides_sees_them_and_they_are_gone_after(session: Session) -> None:
    keeper = deploy(session, KEEPER)
    diff = {keeper: {"stateDiff": {word(0): word(9)}}}
    assert session.request("eth_call", [{"to": keeper}, "latest", diff]) == word(9)
    assert session.request("eth_call", [{"to": keeper}, "latest"]) == word(0)


def test_a_reverted_call_is_error_3_with_its_data(session: Session) -> None:
    error = refused(session, "eth_call", {"to": deploy(session, REVERTS)}, "latest")
    assert (error.code, error.message) == (3, "execution reverted: hi")
    assert error.data.startswith("0x08c379a0")


def test_an_estimate_of_what_reverts_is_error_3(session: Session) -> None:
    error = refused(session, "eth_estimateGas", {"to": deploy(session, REVERTS)})
    assert (error.code, error.message) == (3, "execution reverted: hi")


def test_an_estimate_is_enough_and_not_one_unit_too_much(session: Session) -> None:
    keeper = deploy(session, KEEPER)
    limit = int(session.request("eth_estimateGas", [{"from": ALICE, "to": keeper, "data": word(1)}]), 16)
    with_less = send(session, to=keeper, data=word(1), gas=hex(limit - 1))
    assert with_less["status"] == "0x0"
    assert send(session, to=keeper, data=word(1), gas=hex(limit))["status"] == "0x1"


def test_a_call_that_never_ends_is_cut_off_by_gas(session: Session) -> None:
    error = refused(session, "eth_call", {"to": deploy(session, "5b600056")})
    assert (error.code, error.message) == (-32603, "EVM error OutOfGas")


def test_a_call_that_takes_too_long_is_cut_off_by_time() -> None:
    session = Session(Config(timestamp=NOW, gas_limit=10**15), call_seconds=0.2)
    session.request("anvil_setCode", [STRANGER, "0x5b600056"])
    error = refused(session, "eth_call", {"to": STRANGER})
    assert (error.code, error.message) == (-32000, "the time limit is reached")


def test_simulated_blocks_build_on_each_other(session: Session) -> None:
    keeper = deploy(session, KEEPER)
    calls = [{"calls": [{"from": ALICE, "to": keeper, "data": word(3)}]}, {"calls": [{"to": keeper}]}]
    first, second = session.request("eth_simulateV1", [{"blockStateCalls": calls}, "latest"])
    assert second["calls"][0]["returnData"] == word(3)
    assert (first["number"], second["number"]) == ("0x2", "0x3")
    assert first["calls"][0]["logs"][0]["topics"] == [word(7)]
    assert session.request("eth_call", [{"to": keeper}]) == word(0)


# -- logs


def test_logs_are_found_by_address_and_topic(session: Session) -> None:
    keeper = deploy(session, KEEPER)
    send(session, to=keeper, data=word(5))
    span = {"fromBlock": "0x0", "toBlock": "latest"}
    (log,) = session.request("eth_getLogs", [{**span, "address": keeper, "topics": [word(7)]}])
    assert (log["data"], log["blockNumber"], log["logIndex"]) == (word(5), "0x2", "0x0")
    assert session.request("eth_getLogs", [{**span, "topics": [[word(7), word(8)]]}]) == [log]
    assert session.request("eth_getLogs", [{**span, "topics": [word(8)]}]) == []
    assert session.request("eth_getLogs", [{**span, "topics": [None, word(7)]}]) == []
    assert session.request("eth_getLogs", [{**span, "address": STRANGER}]) == []
    assert session.request("eth_getLogs", [{"blockHash": log["blockHash"]}]) == [log]


def test_filters_tell_what_is_new_once(session: Session) -> None:
    keeper = deploy(session, KEEPER)
    logs = session.request("eth_newFilter", [{"address": keeper}])
    blocks = session.request("eth_newBlockFilter")
    sent = send(session, to=keeper, data=word(5))
    assert [each["data"] for each in session.request("eth_getFilterChanges", [logs])] == [word(5)]
    assert session.request("eth_getFilterChanges", [logs]) == []
    assert session.request("eth_getFilterChanges", [blocks]) == [sent["blockHash"]]
    assert len(session.request("eth_getFilterLogs", [logs])) == 1
    assert session.request("eth_uninstallFilter", [logs]) is True
    assert refused(session, "eth_getFilterChanges", logs).message == "filter not found"


# -- by hand


def test_what_is_set_by_hand_is_seen_from_the_latest_block_on(session: Session) -> None:
    session.request("evm_mine")
    session.request("anvil_setBalance", [STRANGER, "0x7"])
    session.request("anvil_setStorageAt", [STRANGER, "0x1", word(8)])
    session.request("anvil_setNonce", [STRANGER, "0x3"])
    session.request("evm_mine")
    assert session.request("eth_getBalance", [STRANGER, "latest"]) == "0x7"
    assert session.request("eth_getBalance", [STRANGER, "0x1"]) == "0x7"
    assert session.request("eth_getBalance", [STRANGER, "0x0"]) == "0x0"
    assert session.request("eth_getStorageAt", [STRANGER, "0x1"]) == word(8)
    assert session.request("eth_getTransactionCount", [STRANGER]) == "0x3"


def test_a_snapshot_brings_back_what_was_set_by_hand(session: Session) -> None:
    session.request("anvil_setBalance", [STRANGER, "0x7"])
    kept = session.request("evm_snapshot")
    session.request("anvil_setBalance", [STRANGER, "0x8"])
    session.request("evm_mine")
    session.request("anvil_setBalance", [STRANGER, "0x9"])
    assert session.request("evm_revert", [kept]) is True
    assert session.request("eth_getBalance", [STRANGER]) == "0x7"
    assert session.request("eth_blockNumber") == "0x0"
    assert session.request("evm_revert", [kept]) is False


def test_an_impersonated_contract_sends_transactions(session: Session) -> None:
    keeper = deploy(session, KEEPER)
    form = {"from": keeper, "to": BOB, "value": "0x1"}
    session.request("anvil_setBalance", [keeper, hex(10**18)])
    assert "impersonate" in refused(session, "eth_sendTransaction", form).message
    session.request("anvil_impersonateAccount", [keeper])
    assert session.request("eth_accounts")[10:] == [keeper], "where ethers looks for a signer"
    receipt = send(session, sender=keeper, to=BOB, value="0x1")
    assert (receipt["status"], receipt["from"]) == ("0x1", keeper)
    traced = session.request("debug_traceTransaction", [receipt["transactionHash"], {"tracer": "callTracer"}])
    assert traced["from"] == keeper


def test_an_unsigned_transaction_needs_neither_key_nor_impersonation(session: Session) -> None:
    session.request("anvil_setBalance", [STRANGER, hex(10**18)])
    sent = session.request("eth_sendUnsignedTransaction", [{"from": STRANGER, "to": BOB, "value": "0x1"}])
    receipt = session.request("eth_getTransactionReceipt", [sent])
    assert (receipt["status"], receipt["from"]) == ("0x1", STRANGER)
    assert "'from'" in refused(session, "eth_sendUnsignedTransaction", {"to": BOB}).message


def test_a_transfer_is_estimated_whatever_its_sender_has(session: Session) -> None:
    form = {"from": STRANGER, "to": BOB, "value": hex(10**30)}
    assert session.request("eth_estimateGas", [form]) == hex(21_000)
    assert refused(session, "eth_estimateGas", {**form, "data": "0x00"}).code == -32003
    assert refused(session, "eth_estimateGas", {**form, "to": deploy(session, KEEPER)}).code == -32003
    assert refused(session, "eth_createAccessList", form).code == -32003


def test_a_block_to_come_has_a_bloom(session: Session) -> None:
    pending = session.request("eth_getBlockByNumber", ["pending"])
    assert (pending["hash"], pending["nonce"], pending["miner"]) == (None, None, None)
    assert len(pending["logsBloom"]) == 2 + 2 * 256


def test_no_access_list_is_made_for_a_call_that_fails(session: Session) -> None:
    session.request("anvil_setCode", [STRANGER, "0x63deadbeef5f526004601cfd"])
    error = refused(session, "eth_createAccessList", {"from": ALICE, "to": STRANGER})
    assert (error.code, error.data) == (3, "0xdeadbeef")


def test_two_impersonated_accounts_have_transactions_of_different_hashes(session: Session) -> None:
    session.request("anvil_autoImpersonateAccount", [True])
    hashes = set()
    for who in ("0x" + "77" * 20, "0x" + "88" * 20):
        session.request("anvil_setBalance", [who, hex(10**18)])
        hashes.add(send(session, sender=who, to=BOB)["transactionHash"])
    assert len(hashes) == 2


def test_the_next_block_has_the_time_base_fee_and_coinbase_that_were_set(session: Session) -> None:
    session.request("evm_setNextBlockTimestamp", [NOW + 500])
    session.request("anvil_setNextBlockBaseFeePerGas", ["0x5"])
    session.request("anvil_setCoinbase", [STRANGER])
    session.request("evm_setBlockGasLimit", [hex(50_000_000)])
    session.request("evm_mine")
    block = session.request("eth_getBlockByNumber", ["latest"])
    assert (block["timestamp"], block["baseFeePerGas"]) == (hex(NOW + 500), "0x5")
    assert (block["miner"], block["gasLimit"]) == (STRANGER, hex(50_000_000))


def test_time_goes_on_from_where_it_was_set(session: Session) -> None:
    session.request("evm_increaseTime", [3600])
    session.request("evm_mine")
    assert session.request("eth_getBlockByNumber", ["latest"])["timestamp"] == hex(NOW + 3600)
    error = refused(session, "evm_setNextBlockTimestamp", NOW)
    assert "lower than or equal to previous block's timestamp" in error.message


def test_time_is_increased_from_a_head_that_is_ahead_of_the_clock(session: Session) -> None:
    session.request("anvil_mine", ["0xa"])
    assert session.request("eth_getBlockByNumber", ["latest"])["timestamp"] == hex(NOW + 10)
    session.request("evm_increaseTime", [100])
    session.request("evm_mine")
    assert session.request("eth_getBlockByNumber", ["latest"])["timestamp"] == hex(NOW + 110)


def test_blocks_are_mined_at_intervals_of_time(session: Session) -> None:
    session.request("anvil_mine", ["0x3", "0x3c"])
    times = [int(session.request("eth_getBlockByNumber", [hex(at)])["timestamp"], 16) for at in (1, 2, 3)]
    assert [later - before for before, later in pairwise(times)] == [60, 60]


def test_a_rollback_forgets_blocks_and_a_reorg_puts_others_in_their_place(session: Session) -> None:
    sent = send(session, to=BOB, value="0x5")
    session.request("anvil_rollback", [1])
    assert session.request("eth_getTransactionReceipt", [sent["transactionHash"]]) is None
    session.request("anvil_mine", ["0x2"])
    before = session.request("eth_getBlockByNumber", ["0x2"])["hash"]
    session.request("anvil_reorg", [1, [[{"from": ALICE, "to": BOB, "value": "0x6"}, 0]]])
    after = session.request("eth_getBlockByNumber", ["0x2"])
    assert after["hash"] != before
    assert len(after["transactions"]) == 1


def test_a_dumped_state_is_loaded_again(session: Session) -> None:
    keeper = deploy(session, KEEPER)
    send(session, to=keeper, data=word(5))
    dumped = session.request("anvil_dumpState")
    other = Session(Config(timestamp=NOW))
    assert other.request("anvil_loadState", [dumped]) is True
    assert other.request("eth_call", [{"to": keeper}]) == word(5)


def test_reset_begins_anew(session: Session) -> None:
    send(session, to=BOB)
    session.request("hardhat_reset")
    assert session.request("eth_blockNumber") == "0x0"
    assert session.request("eth_getTransactionCount", [ALICE]) == "0x0"


# -- tracing


def test_flat_traces_have_the_place_of_every_call(session: Session) -> None:
    keeper = deploy(session, KEEPER)
    calls = assemble(f"PUSH0 PUSH0 PUSH0 PUSH0 PUSH0 PUSH20 {keeper} GAS CALL PUSH0 PUSH0 REVERT")
    receipt = send(session, to=deploy(session, calls.hex()), gas=hex(100_000))
    top, below = session.request("trace_transaction", [receipt["transactionHash"]])
    assert (top["traceAddress"], top["subtraces"], top["error"]) == ([], 1, "Reverted")
    assert (below["traceAddress"], below["action"]["to"]) == ([0], keeper)
    assert session.request("trace_block", [receipt["blockNumber"]]) == [top, below]


def test_a_traced_call_has_struct_logs(session: Session) -> None:
    traced = session.request("debug_traceCall", [{"to": deploy(session, "600160020100")}, "latest", {}])
    assert [each["op"] for each in traced["structLogs"]] == ["PUSH1", "PUSH1", "ADD", "STOP"]


# -- dispatch


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("{", -32700),
        ("[]", -32600),
        ("[1]", -32600),
        ('{"id": 1}', -32600),
        ('{"id": true, "method": "eth_chainId"}', -32600),
        ('{"id": 1, "method": "eth_nothing"}', -32601),
        ('{"id": 1, "method": "eth_getBalance", "params": []}', -32602),
        ('{"id": 1, "method": "eth_getBalance", "params": ["0x12"]}', -32602),
        ('{"id": 1, "method": "eth_getBalance", "params": {"a": 1}}', -32602),
        ('{"id": 1, "method": "eth_getBalance", "params": ["0x' + "99" * 20 + '", "0x100"]}', -32602),
    ],
)
def test_what_is_not_a_request_has_its_code(session: Session, body: str, code: int) -> None:
    found = answer(body, session.request)
    assert (found[0] if isinstance(found, list) else found)["error"]["code"] == code


def test_a_batch_is_answered_in_order_without_its_notifications(session: Session) -> None:
    asked = [
        {"jsonrpc": "2.0", "id": "a", "method": "eth_chainId"},
        {"jsonrpc": "2.0", "method": "evm_mine"},
        {"jsonrpc": "2.0", "id": 2, "method": "eth_blockNumber"},
    ]
    found = answer(json.dumps(asked), session.request)
    assert [(each["id"], each["result"]) for each in found] == [("a", "0x7a69"), (2, "0x1")]


def test_a_pinned_session_is_not_touched_by_calls_on_the_chain_after_it() -> None:
    """The block that calls on the head see is made once: whoever goes on elsewhere has one of its own."""
    from fusevm.rpc.pinned import pinned

    session, target = Session(), "0x" + "c0" * 20
    session.request("anvil_setCode", [target, "0x485f5260205ff3"])  # returns the base fee
    priced = [{"from": session.request("eth_accounts")[0], "to": target, "gasPrice": hex(10**10)}, "latest"]
    expected = session.request("eth_call", priced)
    assert int(expected, 16) > 0
    twin = pinned(session, priced)
    with session.dev.at(session.dev.head.number) as (_, block, _):
        block.base_fee = 0  # as a call without a price does while it runs
        assert twin.request("eth_call", priced) == expected
