"""Blocks and time by hand: mining, snapshots, the clock, fields of the next block, going back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from fusevm.chain.forms import data
from fusevm.rpc.blocks import by_number
from fusevm.rpc.errors import invalid
from fusevm.rpc.fees import suggested_tip
from fusevm.rpc.network import CLIENT
from fusevm.rpc.transactions import read_raw, signed_request
from fusevm.rpc.values import number_of
from fusevm.values import shown, to_address, to_hash

if TYPE_CHECKING:
    from fusevm.rpc.session import Session

MAX_BLOCKS = 100_000  # that one request may mine


def mine(session: Session, count: Any = None, interval: Any = None) -> None:
    """Mines `count` blocks, `interval` seconds apart."""
    wanted = 1 if count is None else number_of(count, "number of blocks", 64)
    if wanted > MAX_BLOCKS:
        raise invalid(f"mine: {wanted} blocks; at most {MAX_BLOCKS} at once")
    apart = None if interval is None else number_of(interval, "interval", 64)
    for place in range(wanted):
        if place and apart is not None:
            session.dev.next_timestamp = session.dev.head.header.timestamp + max(apart, 1)
        session.mine()


def evm_mine(session: Session, options: Any = None) -> str:
    """A block; at a time that is given, or several."""
    blocks, time = 1, options
    if isinstance(options, Mapping):
        blocks, time = number_of(options.get("blocks") or 1, "blocks", 64), options.get("timestamp")
    if time is not None:
        set_next_timestamp(session, time)
    mine(session, blocks)
    return "0x0"


def mine_detailed(session: Session, options: Any = None) -> list[Any]:
    first = session.dev.head.number + 1
    evm_mine(session, options)
    return [by_number(session, hex(number), True) for number in range(first, session.dev.head.number + 1)]


def get_automine(session: Session) -> bool:
    return session.automine


def set_automine(session: Session, wanted: Any) -> None:
    if not isinstance(wanted, bool):
        raise invalid(f"setAutomine: expected true or false, got {shown(wanted)}")
    session.automine = wanted
    if wanted:
        session.interval = None


def set_interval(session: Session, seconds: Any) -> None:
    """Blocks at intervals from now on; with zero, none but those that are asked for."""
    found = number_of(seconds, "interval", 64)
    session.automine = False
    session.interval = float(found) or None


def get_interval(session: Session) -> Any:
    return None if session.interval is None else int(session.interval)


# -- snapshots


def snapshot(session: Session) -> str:
    return hex(session.snapshot())


def revert(session: Session, number: Any) -> bool:
    return session.revert(number_of(number, "snapshot", 64))


# -- time


def set_next_timestamp(session: Session, time: Any) -> None:
    found, last = number_of(time, "timestamp", 64), session.dev.head.header.timestamp
    if found <= last:
        raise invalid(f"Timestamp error: {found} is lower than or equal to previous block's timestamp {last}")
    session.dev.next_timestamp = found
    session.time_offset = found - int(session.now())


def increase_time(session: Session, seconds: Any) -> int:
    """The clock is moved on from the head's time, which many blocks within a second have carried ahead of it."""
    added = number_of(seconds, "seconds", 64)
    ahead = session.dev.head.header.timestamp - int(session.now())
    session.time_offset = max(session.time_offset, ahead) + added
    return session.time_offset


def set_time(session: Session, time: Any) -> int:
    """The clock stands at this time now; seconds, or JavaScript's milliseconds. How far forward that was."""
    found = number_of(time, "timestamp", 64)
    if found > 10**11:
        found //= 1000
    before = int(session.now()) + session.time_offset
    session.time_offset = found - int(session.now())
    return max(found - before, 0)


def set_block_interval(session: Session, seconds: Any) -> None:
    session.block_interval = max(number_of(seconds, "seconds", 64), 1)


def remove_block_interval(session: Session) -> bool:
    found, session.block_interval = session.block_interval, None
    return found is not None


# -- the next block


def set_base_fee(session: Session, fee: Any) -> None:
    session.dev.next_base_fee = number_of(fee, "base fee")


def set_gas_limit(session: Session, limit: Any) -> bool:
    session.dev.gas_limit = number_of(limit, "gas limit", 63)
    return True


def set_coinbase(session: Session, address: Any) -> None:
    session.dev.coinbase = to_address(address, "coinbase")


def set_randao(session: Session, value: Any) -> bool:
    session.dev.next_randao = to_hash(value, "prevRandao")
    return True


def set_logging(session: Session, wanted: Any) -> None:
    if not isinstance(wanted, bool):
        raise invalid(f"setLoggingEnabled: expected true or false, got {shown(wanted)}")
    session.logs = wanted


def set_min_gas_price(session: Session, price: Any) -> None:
    """Where there is a base fee it is the least price; before, no transaction is held against one."""
    number_of(price, "gas price")
    if session.dev.upcoming()[0].base_fee is not None:
        raise invalid("setMinGasPrice is not supported when EIP-1559 is active; setNextBlockBaseFeePerGas is")


def set_rpc_url(session: Session, url: Any) -> None:
    """Accepted, without effect: anvil_reset changes the fork."""


# -- what is pending


def drop(session: Session, transaction: Any) -> Any:
    wanted = to_hash(transaction, "transaction hash")
    pending = session.dev.chain.pending
    if not any(each.hash == wanted for each in pending):
        return None
    session.dev.chain.pending = [each for each in pending if each.hash != wanted]
    return data(wanted)


def drop_all(session: Session) -> None:
    session.dev.chain.pending = []


def drop_of(session: Session, address: Any) -> None:
    sender = to_address(address, "address")
    session.dev.chain.pending = [each for each in session.dev.chain.pending if each.sender != sender]


# -- going back


def _back(session: Session, depth: int) -> None:
    chain, target = session.dev.chain, session.dev.head.number - depth
    if depth < 0 or target < chain.genesis.block.number:
        raise invalid(
            f"depth: {depth} is over the {session.dev.head.number - chain.genesis.block.number} blocks there are"
        )
    chain.set_head(target)
    chain.return_to(chain.bookmark())
    session.snapshots = {
        each: kept for each, kept in session.snapshots.items() if kept[0].bookmark.number <= target
    }  # fmt: skip
    session.moved()


def rollback(session: Session, depth: Any = None) -> None:
    _back(session, 1 if depth is None else number_of(depth, "depth", 64))


def reorg(session: Session, depth: Any, transactions: Any = None) -> None:
    """Other blocks in the place of the last ones; each transaction is given with the place of its block."""
    count = number_of(depth, "depth", 64)
    listed = [] if transactions is None else transactions
    if not isinstance(listed, list):
        raise invalid(f"reorg: expected a list of pairs of a transaction and a place, got {shown(transactions)}")
    for each in listed:
        if not isinstance(each, list) or len(each) != 2 or number_of(each[1], "block", 64) >= count:
            raise invalid(f"reorg: expected pairs of a transaction and a place below {count}")
    _back(session, count)
    session.dev.chain.pending = []
    for place in range(count):
        for given, at in listed:
            if number_of(at, "block", 64) == place:
                raw = isinstance(given, str)
                signed = read_raw(session, given) if raw else signed_request(session, given)
                session.dev.check(signed, gaps=True)
                session.dev.chain.submit(signed)
        session.mine()


def reset(session: Session, options: Any = None) -> None:
    """The chain from its start, or on another node's block."""
    given = options or {}
    if not isinstance(given, Mapping):
        raise invalid(f"reset: expected an object, got {shown(options)}")
    forking = given.get("forking", given)
    config = replace(session.config, fork_url=None, fork_block="latest")
    if isinstance(forking, Mapping) and forking.get("jsonRpcUrl") is not None:
        number = forking.get("blockNumber")
        block = "latest" if number is None else number_of(number, "blockNumber", 64)
        config = replace(config, fork_url=str(forking["jsonRpcUrl"]), fork_block=block)
    elif session.config.fork_url is not None and isinstance(forking, Mapping) and forking.get("blockNumber"):
        config = replace(session.config, fork_block=number_of(forking["blockNumber"], "blockNumber", 64))
    session.begin(config)
    session.moved()


def set_chain_id(session: Session, number: Any) -> None:
    chain = session.dev.chain
    chain.schedule = replace(chain.schedule, chain_id=number_of(number, "chain id", 64))


# -- about the node


def node_info(session: Session) -> Any:
    header, step = session.dev.upcoming()
    fork = None if session.upstream is None else session.upstream
    return {
        "currentBlockNumber": hex(session.dev.head.number),
        "currentBlockTimestamp": session.dev.head.header.timestamp,
        "currentBlockHash": data(session.dev.head.hash),
        "hardFork": step.name.capitalize(),
        "transactionOrder": "fifo",
        "environment": {
            "baseFee": hex(header.base_fee or 0),
            "chainId": session.dev.chain_id,
            "gasLimit": hex(header.gas_limit),
            "gasPrice": hex((header.base_fee or 0) + suggested_tip(session)),
        },
        "forkConfig": {
            "forkUrl": None if fork is None else fork.url,
            "forkBlockNumber": None if fork is None else fork.number,
            "forkRetryBackoff": None,
        },
    }


def metadata(session: Session) -> Any:
    return {
        "clientVersion": CLIENT,
        "chainId": session.dev.chain_id,
        "instanceId": data(session.dev.chain.genesis.block.hash),
        "latestBlockNumber": session.dev.head.number,
        "latestBlockHash": data(session.dev.head.hash),
        "forkedNetwork": None,
        "snapshots": {
            hex(number): [kept.bookmark.number, data(kept.bookmark.hash)]
            for number, (kept, _) in session.snapshots.items()
        },
    }


METHODS = {
    **dict.fromkeys(("anvil_mine", "hardhat_mine"), mine),
    "evm_mine": evm_mine,
    **dict.fromkeys(("anvil_mine_detailed", "evm_mine_detailed"), mine_detailed),
    **dict.fromkeys(("anvil_getAutomine", "hardhat_getAutomine"), get_automine),
    **dict.fromkeys(("anvil_setAutomine", "evm_setAutomine"), set_automine),
    **dict.fromkeys(("anvil_setIntervalMining", "evm_setIntervalMining"), set_interval),
    "anvil_getIntervalMining": get_interval,
    **dict.fromkeys(("anvil_snapshot", "evm_snapshot"), snapshot),
    **dict.fromkeys(("anvil_revert", "evm_revert"), revert),
    **dict.fromkeys(("anvil_setNextBlockTimestamp", "evm_setNextBlockTimestamp"), set_next_timestamp),
    **dict.fromkeys(("anvil_increaseTime", "evm_increaseTime"), increase_time),
    **dict.fromkeys(("anvil_setTime", "evm_setTime"), set_time),
    **dict.fromkeys(("anvil_setBlockTimestampInterval", "evm_setBlockTimestampInterval"), set_block_interval),
    **dict.fromkeys(("anvil_removeBlockTimestampInterval", "evm_removeBlockTimestampInterval"), remove_block_interval),
    **dict.fromkeys(("anvil_setNextBlockBaseFeePerGas", "hardhat_setNextBlockBaseFeePerGas"), set_base_fee),
    **dict.fromkeys(("anvil_setBlockGasLimit", "evm_setBlockGasLimit"), set_gas_limit),
    **dict.fromkeys(("anvil_setCoinbase", "hardhat_setCoinbase"), set_coinbase),
    **dict.fromkeys(("anvil_setPrevRandao", "hardhat_setPrevRandao"), set_randao),
    **dict.fromkeys(("anvil_setLoggingEnabled", "hardhat_setLoggingEnabled"), set_logging),
    **dict.fromkeys(("anvil_setMinGasPrice", "hardhat_setMinGasPrice"), set_min_gas_price),
    "anvil_setRpcUrl": set_rpc_url,
    **dict.fromkeys(("anvil_dropTransaction", "hardhat_dropTransaction"), drop),
    **dict.fromkeys(("anvil_dropAllTransactions", "hardhat_dropAllTransactions"), drop_all),
    "anvil_removePoolTransactions": drop_of,
    "anvil_rollback": rollback,
    "anvil_reorg": reorg,
    **dict.fromkeys(("anvil_reset", "hardhat_reset"), reset),
    "anvil_setChainId": set_chain_id,
    "anvil_nodeInfo": node_info,
    **dict.fromkeys(("anvil_metadata", "hardhat_metadata"), metadata),
}
