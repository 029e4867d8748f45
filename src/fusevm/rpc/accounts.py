"""Accounts that the node has keys of, and what it signs with them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from fusevm.chain.forms import data
from fusevm.evm import secp256k1
from fusevm.evm.keccak import keccak256
from fusevm.rpc.errors import invalid
from fusevm.rpc.typed_data import typed_hash
from fusevm.values import to_address, to_bytes

if TYPE_CHECKING:
    from fusevm.rpc.session import Session


def accounts(session: Session) -> list[str]:
    """Those that can send: with the impersonated ones, among which ethers looks for a signer."""
    return [data(address) for address in dict.fromkeys((*session.dev.accounts, *session.impersonated))]


def coinbase(session: Session) -> str:
    return data(session.dev.coinbase)


def personal_hash(message: bytes) -> bytes:
    """EIP-191: of a message that cannot be a transaction."""
    return keccak256(b"\x19Ethereum Signed Message:\n" + str(len(message)).encode() + message)


def _signed(session: Session, address: Any, digest: bytes) -> str:
    key = session.dev.keys.get(to_address(address, "address"))
    if key is None:
        raise invalid(f"No Signer available: no key for {address}")
    parity, r, s = secp256k1.sign(digest, key)
    return data(r.to_bytes(32, "big") + s.to_bytes(32, "big") + bytes((27 + parity,)))


def _message(given: Any) -> bytes:
    """Hex is bytes; other text is signed as it is."""
    if isinstance(given, str) and not given.startswith("0x"):
        try:
            return given.encode()
        except UnicodeEncodeError as error:
            raise invalid(f"message: half of a surrogate pair at position {error.start}; it is not text") from None
    return to_bytes(given, "message")


def sign(session: Session, address: Any, message: Any) -> str:
    return _signed(session, address, personal_hash(_message(message)))


def personal_sign(session: Session, message: Any, address: Any, password: Any = None) -> str:
    return sign(session, address, message)


def personal_recover(session: Session, message: Any, signature: Any) -> str:
    raw = to_bytes(signature, "signature")
    if len(raw) != 65:
        raise invalid(f"signature: expected 65 bytes, got {len(raw)}")
    parity = raw[64] - 27 if raw[64] >= 27 else raw[64]
    r, s = int.from_bytes(raw[:32], "big"), int.from_bytes(raw[32:64], "big")
    found = secp256k1.recover_address(personal_hash(_message(message)), r, s, parity) if parity in (0, 1) else None
    if found is None:
        raise invalid("signature: no key has signed this")
    return data(found)


def sign_typed(session: Session, address: Any, document: Any) -> str:
    if isinstance(document, str):
        try:
            document = json.loads(document)
        except (ValueError, RecursionError) as error:
            raise invalid(f"typed data: not JSON: {error}") from None
    return _signed(session, address, typed_hash(document))


METHODS = {
    "eth_accounts": accounts,
    "eth_requestAccounts": accounts,
    "personal_listAccounts": accounts,
    "eth_coinbase": coinbase,
    "eth_sign": sign,
    "personal_sign": personal_sign,
    "personal_ecRecover": personal_recover,
    "eth_signTypedData": sign_typed,
    "eth_signTypedData_v3": sign_typed,
    "eth_signTypedData_v4": sign_typed,
}
