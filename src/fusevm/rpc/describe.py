"""Blocks as people read them: calls, events and errors by name, where their signatures are known."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fusevm.abi import Abi, BadAbi, CannotDecode
from fusevm.chain.addresses import create_address
from fusevm.chain.forms import data, word
from fusevm.chain.sealed import SealedBlock
from fusevm.chain.state import Log
from fusevm.rpc.errors import invalid, revert_message
from fusevm.rpc.values import which_block
from fusevm.values import BadValue

if TYPE_CHECKING:
    from fusevm.rpc.session import Session

MAX_LISTED = 200  # transactions of a block that are described
LONGEST = 400  # characters of one description
KNOWN = (
    "function transfer(address to, uint256 amount) returns (bool)",
    "function transferFrom(address from, address to, uint256 amount) returns (bool)",
    "function approve(address spender, uint256 amount) returns (bool)",
    "function mint(address to, uint256 amount)",
    "function burn(uint256 amount)",
    "function deposit()",
    "function withdraw(uint256 amount)",
    "function safeTransferFrom(address from, address to, uint256 id)",
    "function setApprovalForAll(address operator, bool approved)",
    "function transferOwnership(address owner)",
    "function permit(address owner, address spender, uint256 value, uint256 deadline, uint8 v, bytes32 r, bytes32 s)",
    "function multicall(bytes[] data)",
    "event Transfer(address indexed from, address indexed to, uint256 amount)",
    "event Approval(address indexed owner, address indexed spender, uint256 amount)",
    "event OwnershipTransferred(address indexed before, address indexed after)",
    "event Deposit(address indexed to, uint256 amount)",
    "event Withdrawal(address indexed from, uint256 amount)",
)


def describe_block(session: Session, tag: Any) -> Any:
    """number, hash, time, gas, and for each transaction what was called and what it logged."""
    which = which_block(session, tag)
    return described(session, session.dev.head if which == "pending" else session.dev.chain.block(which))


def described(session: Session, block: SealedBlock) -> dict[str, Any]:
    receipts = session.dev.chain.receipts(block.hash)
    header = block.header
    listed = list(zip(block.transactions, receipts, strict=True))[:MAX_LISTED]
    return {
        "number": header.number,
        "hash": data(header.hash),
        "timestamp": header.timestamp,
        "gasUsed": header.gas_used,
        "gasLimit": header.gas_limit,
        "baseFee": str(header.base_fee or 0),
        "count": len(block.transactions),
        "transactions": [
            {
                "hash": data(signed.hash),
                "from": data(signed.sender),
                "to": data(create_address(signed.sender, signed.nonce) if signed.to is None else signed.to),
                "value": str(signed.value),
                "gasUsed": receipt.gas_used,
                "succeeded": receipt.succeeded,
                "call": "creation" if signed.to is None else call_text(session.abi, signed.data),
                "error": "" if receipt.succeeded else shortened(revert_message(receipt.output)),
                "events": [event_text(session.abi, log) for log in receipt.logs[:MAX_LISTED]],
            }
            for signed, receipt in listed
        ],
    }


def call_text(abi: Abi, payload: bytes) -> str:
    if not payload:
        return "transfer of ether"
    try:
        return shortened(repr(abi.decode_call(payload)))
    except (BadValue, CannotDecode, ValueError):
        return shortened(data(payload))


def event_text(abi: Abi, log: Log) -> str:
    try:
        found = abi.decode_log(log)
    except (BadValue, CannotDecode, ValueError):
        found = None
    if found is not None:
        return shortened(repr(found))
    return shortened(" ".join([*(word(topic) for topic in log.topics), data(log.data)]))


def shortened(text: str) -> str:
    return text if len(text) <= LONGEST else text[:LONGEST] + "…"


def add_abi(session: Session, entries: Any) -> bool:
    """Signatures by which calls and events are named from now on: an ABI, or a list of texts."""
    if not isinstance(entries, list):
        raise invalid("abi: expected a list of entries or signatures")
    try:
        session.abi = Abi(entries) + session.abi
    except (BadAbi, BadValue) as error:
        raise invalid(f"abi: {error}") from None
    return True


METHODS = {"fusevm_describeBlock": describe_block, "fusevm_addAbi": add_abi}
