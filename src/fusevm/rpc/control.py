"""Methods that drive a development chain: mining, time, snapshots; and what a client asks about the node itself."""

from __future__ import annotations

from typing import Any

from fusevm.evm.keccak import keccak256
from fusevm.rpc.encoding import hex_data
from fusevm.rpc.errors import INVALID_PARAMS, RpcError
from fusevm.rpc.session import Session, parameters
from fusevm.values import to_bytes, to_number
from fusevm.version import __version__


def client_version(session: Session, given: list[Any]) -> str:
    return f"fusevm/{__version__}"


def sha3(session: Session, given: list[Any]) -> str:
    (data,) = parameters(given, 1, 1)
    return hex_data(keccak256(to_bytes(data)))


def network_version(session: Session, given: list[Any]) -> str:
    return str(session.dev.chain_id)


def no(session: Session, given: list[Any]) -> bool:
    return False


def yes(session: Session, given: list[Any]) -> bool:
    return True


def none(session: Session, given: list[Any]) -> str:
    return "0x0"


def coinbase(session: Session, given: list[Any]) -> str:
    return hex_data(session.dev.coinbase)


def mine(session: Session, given: list[Any]) -> str:
    """evm_mine: a block, at a time where one is given."""
    (when,) = parameters(given, 0, 1)
    if isinstance(when, dict):
        when = when.get("timestamp")
    if when is not None:
        _set_time(session, to_number(when, "timestamp", bits=64))
    session.mine()
    return "0x0"


def mine_many(session: Session, given: list[Any]) -> None:
    """anvil_mine, hardhat_mine: so many blocks, so many seconds apart."""
    count, interval = parameters(given, 0, 2)
    seconds = None if interval is None else to_number(interval, "interval", bits=64)
    for place in range(1 if count is None else to_number(count, "blocks", bits=64)):
        if place and seconds:
            session.dev.next_timestamp = session.dev.head.header.timestamp + seconds
        session.mine()


def set_automine(session: Session, given: list[Any]) -> bool:
    (flag,) = parameters(given, 1, 1)
    session.automine = bool(flag)
    return True


def get_automine(session: Session, given: list[Any]) -> bool:
    return session.automine


def set_next_timestamp(session: Session, given: list[Any]) -> None:
    (when,) = parameters(given, 1, 1)
    _set_time(session, to_number(when, "timestamp", bits=64))


def increase_time(session: Session, given: list[Any]) -> str:
    """The next block is so many seconds later than it would be."""
    (seconds,) = parameters(given, 1, 1)
    by = to_number(seconds, "seconds", bits=64)
    session.dev.increase_time(by)
    return hex(by)


def _set_time(session: Session, when: int) -> None:
    head = session.dev.head.header.timestamp
    if when <= head:
        raise RpcError(INVALID_PARAMS, f"timestamp {when} is not after the head's, {head}")
    session.dev.next_timestamp = when


def snapshot(session: Session, given: list[Any]) -> str:
    return hex(session.snapshot())


def revert(session: Session, given: list[Any]) -> bool:
    (number,) = parameters(given, 1, 1)
    return session.revert(number)
