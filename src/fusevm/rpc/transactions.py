"""Transactions: sent, signed or not; found again; and their receipts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from fusevm.api import EVM
from fusevm.chain.forms import Mined, data, receipt_form, transaction_form
from fusevm.chain.reasons import Rejected
from fusevm.chain.rlp import encode
from fusevm.chain.signed import SignedTransaction, decode_transaction, network_parts, sent_by, sign
from fusevm.chain.transaction import Transaction
from fusevm.devchain import PENDING
from fusevm.rpc.blobs import blobs_of
from fusevm.rpc.blocks import blob_fee
from fusevm.rpc.errors import SERVER_ERROR, RpcError, invalid
from fusevm.rpc.requests import filled, read_request
from fusevm.rpc.values import number_of, which_or_none
from fusevm.values import to_address, to_bytes, to_hash

if TYPE_CHECKING:
    from fusevm.rpc.session import Session


# -- sending


def send_raw(session: Session, raw: Any) -> str:
    """Text, or a transaction that was read before."""
    return data(session.submit(raw if isinstance(raw, SignedTransaction) else read_raw(session, raw)))


def read_raw(session: Session, raw: Any) -> SignedTransaction:
    """A transaction as clients send it; its blobs are kept. Raises RpcError for what is none."""
    plain = to_bytes(raw, "transaction")
    parts = network_parts(plain)
    if parts is not None:
        session.blobs.add(blobs_of(parts))
        plain = plain[:1] + encode(parts[0])
    try:
        return decode_transaction(plain)
    except Rejected as error:
        raise invalid(f"failed to decode signed transaction: {error.reason.value} ({error.detail})") from None


def send(session: Session, form: Any) -> str:
    return data(session.submit(signed_request(session, form)))


def send_unsigned(session: Session, form: Any) -> str:
    """Whoever it is from, without a key and without `anvil_impersonateAccount`."""
    if isinstance(form, Mapping) and form.get("from") is None:
        raise invalid("No Signer available: transaction has no 'from'")
    return data(session.submit(_unsigned(request_of(session, form, may_fail=True), session.dev.chain_id)))


def send_raw_and_wait(session: Session, raw: Any) -> Any:
    return _receipt_now(session, to_hash(send_raw(session, raw), "transaction"))


def send_and_wait(session: Session, form: Any) -> Any:
    return _receipt_now(session, to_hash(send(session, form), "transaction"))


def _receipt_now(session: Session, found: bytes) -> Any:
    mined = session.dev.find_mined(found)
    if mined is None:
        raise RpcError(SERVER_ERROR, f"transaction {data(found)} was added, but no block has it yet: ask for it later")
    return receipt_form(mined, blob_fee(session, mined.block))


def sign_transaction(session: Session, form: Any) -> Any:
    return data(signed_request(session, form, impersonate=False).encoded)


def fill(session: Session, form: Any) -> Any:
    """What would be sent, unsigned."""
    unsigned = _unsigned(request_of(session, form), session.dev.chain_id, r=0, s=0)
    return {"raw": data(unsigned.encoded), "tx": transaction_form(unsigned)}


def _sender(session: Session, form: Mapping[str, Any]) -> bytes:
    """Without one that is named, the first account."""
    if form.get("from") is not None:
        return to_address(form["from"], "transaction.from")
    if not session.dev.accounts:
        raise invalid("transaction: no 'from', and the node has no account of its own")
    return session.dev.accounts[0]


def request_of(session: Session, form: Any, *, may_fail: bool = False) -> Transaction:
    fields = read_request(form)
    fields["sender"] = _sender(session, form)
    if form.get("chainId") is not None and number_of(form["chainId"], "chainId") != session.dev.chain_id:
        raise invalid(f"transaction: chainId {form['chainId']} is not that of this chain, {session.dev.chain_id}")
    found = filled(session, fields, form, may_fail=may_fail)
    sender, to, payload = found.pop("sender"), found.pop("to"), found.pop("data")
    return EVM("osaka", "reference").read_transaction(sender, to, payload, **found)


def signed_request(session: Session, form: Any, *, impersonate: bool = True) -> SignedTransaction:
    """A request signed by its account's key; or, for an account that is impersonated, not signed at all."""
    sender = read_request(form)["sender"] if not isinstance(form, Mapping) else _sender(session, form)
    key = session.dev.keys.get(sender)
    if key is None and not (impersonate and (session.impersonates_all or sender in session.impersonated)):
        raise invalid(f"No Signer available: no key for {data(sender)}; impersonate it first")
    tx = request_of(session, form, may_fail=True)
    return _unsigned(tx, session.dev.chain_id) if key is None else sign(tx, key, session.dev.chain_id)


def _unsigned(tx: Transaction, chain_id: int, r: int | None = None, s: int = 1) -> SignedTransaction:
    """A transaction of an account without a known key. The address is in its signature, so that transactions of
    different accounts have different hashes."""
    made = sign(tx, bytes(31) + b"\x01", chain_id)
    r = (int.from_bytes(tx.sender, "big") or 1) if r is None else r
    return sent_by(replace(made, r=r, s=s, y_parity=0), tx.sender)


# -- finding


def by_hash(session: Session, transaction: Any) -> Any:
    wanted = to_hash(transaction, "transaction hash")
    mined = session.dev.find_mined(wanted)
    if mined is not None:
        return transaction_form(mined.signed, mined)
    for signed in session.dev.chain.pending:
        if signed.hash == wanted:
            return transaction_form(signed)
    if session.upstream is not None:
        return session.upstream.ask("eth_getTransactionByHash", transaction)
    return None


def raw_by_hash(session: Session, transaction: Any) -> Any:
    wanted = to_hash(transaction, "transaction hash")
    mined = session.dev.find_mined(wanted)
    listed = session.dev.chain.pending if mined is None else [mined.signed]
    return next((data(each.encoded) for each in listed if each.hash == wanted), None)


def _at(session: Session, tag: Any, index: Any) -> Mined | None:
    which = which_or_none(session, tag)
    if which is None:
        return None
    if which == PENDING:
        with session.dev.pending_block() as (block, receipts):
            place = number_of(index, "index", 64)
            signed = block.transactions[place] if place < len(block.transactions) else None
            return None if signed is None else Mined(signed, block, place, receipts, pending=True)
    block, place = session.dev.chain.block(which), number_of(index, "index", 64)
    if place >= len(block.transactions):
        return None
    return Mined(block.transactions[place], block, place, session.dev.chain.receipts(block.hash))


def by_place(session: Session, tag: Any, index: Any) -> Any:
    which = which_or_none(session, tag)
    if (upstream := session.upstream_for(which, tag)) is not None:
        named = ("Hash", tag) if which is None else ("Number", hex(int(which)))
        return upstream.ask(f"eth_getTransactionByBlock{named[0]}AndIndex", named[1], index)
    mined = _at(session, tag, index)
    return None if mined is None else transaction_form(mined.signed, mined)


def raw_by_place(session: Session, tag: Any, index: Any) -> Any:
    mined = _at(session, tag, index)
    return None if mined is None else data(mined.signed.encoded)


def by_sender_and_nonce(session: Session, sender: Any, nonce: Any) -> Any:
    wanted, number = to_bytes(sender, "sender"), number_of(nonce, "nonce", 64)
    for signed in session.dev.chain.pending:
        if (signed.sender, signed.nonce) == (wanted, number):
            return transaction_form(signed)
    chain = session.dev.chain
    for at in range(session.dev.head.number, chain.genesis.block.number, -1):
        places = [index for index, each in enumerate(chain.senders(at)) if each == wanted]
        for index in places:
            block = chain.block(at)
            if block.transactions[index].nonce == number:
                mined = Mined(block.transactions[index], block, index, chain.receipts(block.hash))
                return transaction_form(mined.signed, mined)
    return None


def receipt(session: Session, transaction: Any) -> Any:
    mined = session.dev.find_mined(to_hash(transaction, "transaction hash"))
    if mined is not None:
        return receipt_form(mined, blob_fee(session, mined.block))
    if session.upstream is not None:
        return session.upstream.ask("eth_getTransactionReceipt", transaction)
    return None


def pending(session: Session) -> Any:
    return [transaction_form(each) for each in session.dev.chain.pending]


METHODS = {
    "eth_sendRawTransaction": send_raw,
    "eth_sendTransaction": send,
    "eth_sendRawTransactionSync": send_raw_and_wait,
    "eth_sendTransactionSync": send_and_wait,
    "eth_sendUnsignedTransaction": send_unsigned,
    "eth_signTransaction": sign_transaction,
    "eth_fillTransaction": fill,
    "eth_getTransactionByHash": by_hash,
    "eth_getRawTransactionByHash": raw_by_hash,
    "eth_getTransactionByBlockNumberAndIndex": by_place,
    "eth_getTransactionByBlockHashAndIndex": by_place,
    "eth_getRawTransactionByBlockNumberAndIndex": raw_by_place,
    "eth_getRawTransactionByBlockHashAndIndex": raw_by_place,
    "eth_getTransactionBySenderAndNonce": by_sender_and_nonce,
    "eth_getTransactionReceipt": receipt,
    "eth_pendingTransactions": pending,
}
