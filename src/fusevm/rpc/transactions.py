"""Methods about transactions: looking them up, signing and sending."""

from __future__ import annotations

from typing import Any

from fusevm.chain.reasons import Rejected
from fusevm.chain.signed import SignedTransaction, decode_transaction
from fusevm.devchain import Mined
from fusevm.evm.keccak import keccak256
from fusevm.machine.estimate import EstimateFailed
from fusevm.rpc.blocks import blob_base_fee_of, found_block
from fusevm.rpc.encoding import Json, hex_data, receipt_json, signed_json, transaction_json
from fusevm.rpc.errors import SERVER, RpcError, failed, refused
from fusevm.rpc.requests import transaction_of
from fusevm.rpc.session import Session, parameters
from fusevm.values import to_address, to_bytes, to_hash, to_number


def accounts(session: Session, given: list[Any]) -> list[str]:
    return [hex_data(address) for address in session.dev.accounts]


def get_transaction(session: Session, given: list[Any]) -> Json | None:
    (asked,) = parameters(given, 1, 1)
    found = session.dev.find(to_hash(asked, "transaction hash"))
    return None if found is None else transaction_json(found)


def get_raw_transaction(session: Session, given: list[Any]) -> str | None:
    (asked,) = parameters(given, 1, 1)
    found = session.dev.find(to_hash(asked, "transaction hash"))
    return None if found is None else hex_data(found.signed.encoded)


def get_transaction_in_block(session: Session, given: list[Any]) -> Json | None:
    tag, place = parameters(given, 2, 2)
    block, index = found_block(session, tag), to_number(place, "index", bits=64)
    if block is None or index >= len(block.transactions):
        return None
    receipts = session.dev.chain.receipts(block.hash)
    return transaction_json(Mined(block.transactions[index], block, index, receipts))


def get_receipt(session: Session, given: list[Any]) -> Json | None:
    (asked,) = parameters(given, 1, 1)
    found = session.dev.find(to_hash(asked, "transaction hash"))
    if found is None or found.pending:
        return None
    return receipt_json(found, blob_base_fee_of(session, found.block))


def send_raw(session: Session, given: list[Any]) -> str:
    (raw,) = parameters(given, 1, 1)
    try:
        signed = decode_transaction(to_bytes(raw, "transaction"))
        _ = signed.sender
    except Rejected as error:
        raise refused(error) from error
    return hex_data(session.send(signed))


def send(session: Session, given: list[Any]) -> str:
    return hex_data(session.send(_signed(session, given)))


def sign_transaction(session: Session, given: list[Any]) -> Json:
    signed = _signed(session, given)
    return {"raw": hex_data(signed.encoded), "tx": signed_json(signed)}


def _signed(session: Session, given: list[Any]) -> SignedTransaction:
    (fields,) = parameters(given, 1, 1)
    tx = transaction_of(session, fields, priced=True)
    if tx.sender not in session.dev.keys:
        raise RpcError(SERVER, f"unknown account 0x{tx.sender.hex()}: send it signed, or add its key")
    if fields.get("gas") is None:
        try:
            tx.gas_limit = session.dev.estimate_gas(tx, session.dev.head.number)
        except EstimateFailed as error:
            raise failed(error.result) from error
        except Rejected as error:
            raise refused(error) from error
    return session.dev.sign(tx)


def sign_message(session: Session, given: list[Any]) -> str:
    """eth_sign: EIP-191, with the prefix of personal messages."""
    address, message = parameters(given, 2, 2)
    return _sign(session, address, message)


def personal_sign(session: Session, given: list[Any]) -> str:
    message, address, _ = parameters(given, 2, 3)
    return _sign(session, address, message)


def _sign(session: Session, address: Any, message: Any) -> str:
    from coincurve import PrivateKey

    signer, text = to_address(address, "address"), to_bytes(message, "message")
    key = session.dev.keys.get(signer)
    if key is None:
        raise RpcError(SERVER, f"unknown account 0x{signer.hex()}")
    digest = keccak256(b"\x19Ethereum Signed Message:\n" + str(len(text)).encode() + text)
    signature = PrivateKey(key).sign_recoverable(digest, hasher=None)
    return hex_data(signature[:64] + bytes([27 + signature[64]]))
