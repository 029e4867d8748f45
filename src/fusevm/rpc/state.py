"""Balances, nonces, code, storage and proofs, at any block."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from fusevm.chain.forms import data, word
from fusevm.chain.state import State
from fusevm.devchain import PENDING
from fusevm.rpc.errors import invalid
from fusevm.rpc.values import which_block
from fusevm.values import shown, to_address, to_word

if TYPE_CHECKING:
    from fusevm.rpc.session import Session

MAX_SLOTS = 1_024  # of one request


def _read(session: Session, method: str, params: list[Any], tag: Any, read: Callable[[State], Any]) -> Any:
    """What is read from the state after a block; of a block before the fork, what the other node says."""
    which = which_block(session, tag)
    if (upstream := session.upstream_for(which)) is not None:
        return upstream.ask(method, *params, hex(which))  # type: ignore[arg-type]
    if which == session.dev.head.number:
        return read(session.dev.chain.state)
    with session.dev.at(which) as (state, _, _):
        return read(state)


def balance(session: Session, address: Any, tag: Any = None) -> str:
    where = to_address(address, "address")
    found: str = _read(session, "eth_getBalance", [address], tag, lambda state: hex(state.account(where).balance))
    return found


def nonce(session: Session, address: Any, tag: Any = None) -> str:
    where = to_address(address, "address")
    if tag == PENDING:
        return hex(session.dev.next_nonce(where))
    params = [address]
    found: str = _read(
        session, "eth_getTransactionCount", params, tag, lambda state: hex(state.account(where).nonce)
    )  # fmt: skip
    return found


def code(session: Session, address: Any, tag: Any = None) -> str:
    where = to_address(address, "address")
    found: str = _read(session, "eth_getCode", [address], tag, lambda state: data(state.account(where).code))
    return found


def storage(session: Session, address: Any, key: Any, tag: Any = None) -> str:
    where, slot = to_address(address, "address"), slot_of(key)
    found: str = _read(
        session, "eth_getStorageAt", [address, key], tag, lambda state: word(state.storage(where, slot))
    )  # fmt: skip
    return found


def storages(session: Session, wanted: Any, tag: Any = None) -> Any:
    """Many slots of many accounts."""
    if not isinstance(wanted, Mapping) or not all(isinstance(keys, list) for keys in wanted.values()):
        raise invalid(f"storage: expected lists of slots by address, got {shown(wanted)}")
    if sum(map(len, wanted.values())) > MAX_SLOTS:
        raise invalid(f"storage: more than {MAX_SLOTS} slots")
    slots = {where: (to_address(where, "address"), [slot_of(key) for key in keys]) for where, keys in wanted.items()}

    def read(state: State) -> Any:
        return {
            where: [word(state.storage(address, slot)) for slot in keys] for where, (address, keys) in slots.items()
        }

    return _read(session, "eth_getStorageValues", [wanted], tag, read)


def slot_of(key: Any) -> int:
    if not isinstance(key, str | int) or isinstance(key, bool):
        raise invalid(f"storage key: expected a number or hex text, got {shown(key)}")
    return to_word(key, "storage key")


def account(session: Session, address: Any, tag: Any = None) -> Any:
    """balance, nonce, code hash and storage root, without the proof."""
    proof = prove(session, address, [], tag)
    return {name: proof[name] for name in ("balance", "nonce", "codeHash")} | {"storageRoot": proof["storageHash"]}


def account_info(session: Session, address: Any, tag: Any = None) -> Any:
    where = to_address(address, "address")

    def read(state: State) -> Any:
        found = state.account(where)
        return {"balance": hex(found.balance), "nonce": hex(found.nonce), "code": data(found.code)}

    return _read(session, "eth_getAccountInfo", [address], tag, read)


def prove(session: Session, address: Any, keys: Any = None, tag: Any = None) -> Any:
    where = to_address(address, "address")
    if keys is not None and not isinstance(keys, list):
        raise invalid(f"storage keys: expected a list, got {shown(keys)}")
    slots = [slot_of(key) for key in keys or []]
    return _read(session, "eth_getProof", [address, keys or []], tag, lambda state: state.proof(where, slots))


METHODS = {
    "eth_getBalance": balance,
    "eth_getTransactionCount": nonce,
    "eth_getCode": code,
    "eth_getStorageAt": storage,
    "eth_getStorageValues": storages,
    "eth_getProof": prove,
    "eth_getAccount": account,
    "eth_getAccountInfo": account_info,
}
