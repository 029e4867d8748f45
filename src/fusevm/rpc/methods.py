"""The table of methods, and answering a request with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fusevm.chain.outcome import EngineLimit
from fusevm.chain.reasons import InvalidBlock
from fusevm.rpc import blocks, control, logs, state, transactions
from fusevm.rpc.errors import INTERNAL, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, SERVER, RpcError
from fusevm.rpc.session import Session
from fusevm.values import BadValue

Method = Callable[[Session, list[Any]], Any]

METHODS: dict[str, Method] = {
    # the node
    "web3_clientVersion": control.client_version,
    "web3_sha3": control.sha3,
    "net_version": control.network_version,
    "net_listening": control.yes,
    "net_peerCount": control.none,
    "eth_syncing": control.no,
    "eth_mining": control.yes,
    "eth_hashrate": control.none,
    "eth_coinbase": control.coinbase,
    # blocks
    "eth_chainId": blocks.chain_id,
    "eth_blockNumber": blocks.block_number,
    "eth_gasPrice": blocks.gas_price,
    "eth_maxPriorityFeePerGas": blocks.max_priority_fee,
    "eth_blobBaseFee": blocks.blob_base_fee,
    "eth_feeHistory": blocks.fee_history,
    "eth_getBlockByNumber": blocks.get_block_by_number,
    "eth_getBlockByHash": blocks.get_block_by_hash,
    "eth_getBlockReceipts": blocks.block_receipts,
    "eth_getBlockTransactionCountByNumber": blocks.transaction_count,
    "eth_getBlockTransactionCountByHash": blocks.transaction_count,
    "eth_getUncleCountByBlockNumber": blocks.uncle_count,
    "eth_getUncleCountByBlockHash": blocks.uncle_count,
    "debug_getRawBlock": blocks.get_raw_block,
    # transactions
    "eth_accounts": transactions.accounts,
    "eth_getTransactionByHash": transactions.get_transaction,
    "eth_getTransactionByBlockNumberAndIndex": transactions.get_transaction_in_block,
    "eth_getTransactionByBlockHashAndIndex": transactions.get_transaction_in_block,
    "eth_getRawTransactionByHash": transactions.get_raw_transaction,
    "eth_getTransactionReceipt": transactions.get_receipt,
    "eth_sendTransaction": transactions.send,
    "eth_sendRawTransaction": transactions.send_raw,
    "eth_signTransaction": transactions.sign_transaction,
    "eth_sign": transactions.sign_message,
    "personal_sign": transactions.personal_sign,
    # state
    "eth_getBalance": state.get_balance,
    "eth_getTransactionCount": state.get_nonce,
    "eth_getCode": state.get_code,
    "eth_getStorageAt": state.get_storage,
    "eth_call": state.call,
    "eth_estimateGas": state.estimate_gas,
    # logs and filters
    "eth_getLogs": logs.get_logs,
    "eth_newFilter": logs.new_filter,
    "eth_newBlockFilter": logs.new_block_filter,
    "eth_newPendingTransactionFilter": logs.new_transaction_filter,
    "eth_getFilterChanges": logs.filter_changes,
    "eth_getFilterLogs": logs.filter_logs,
    "eth_uninstallFilter": logs.uninstall_filter,
    # driving the chain
    "evm_mine": control.mine,
    "anvil_mine": control.mine_many,
    "hardhat_mine": control.mine_many,
    "evm_setAutomine": control.set_automine,
    "anvil_getAutomine": control.get_automine,
    "evm_increaseTime": control.increase_time,
    "evm_setNextBlockTimestamp": control.set_next_timestamp,
    "evm_snapshot": control.snapshot,
    "anvil_snapshot": control.snapshot,
    "evm_revert": control.revert,
    "anvil_revert": control.revert,
}


def result_of(session: Session, method: str, given: Any = None) -> Any:
    """What a method gives. Raises RpcError, whatever went wrong."""
    found = METHODS.get(method)
    if found is None:
        raise RpcError(METHOD_NOT_FOUND, f"the method {method} does not exist or is not available")
    if given is None:
        given = []
    if not isinstance(given, list | tuple):
        raise RpcError(INVALID_PARAMS, f"params: expected a list, got {type(given).__name__}")
    try:
        return found(session, list(given))
    except BadValue as error:
        raise RpcError(INVALID_PARAMS, str(error)) from error
    except InvalidBlock as error:
        raise RpcError(SERVER, str(error)) from error
    except EngineLimit as error:
        raise RpcError(INTERNAL, str(error)) from error


def answer(session: Session, request: Any) -> dict[str, Any]:
    """The answer to a request, both as JSON-RPC 2.0 has them."""
    if not isinstance(request, dict) or not isinstance(request.get("method"), str):
        body: dict[str, Any] = {"error": RpcError(INVALID_REQUEST, "invalid request").as_json()}
        return {"jsonrpc": "2.0", "id": request.get("id") if isinstance(request, dict) else None, **body}
    try:
        body = {"result": result_of(session, request["method"], request.get("params"))}
    except RpcError as error:
        body = {"error": error.as_json()}
    return {"jsonrpc": "2.0", "id": request.get("id"), **body}
