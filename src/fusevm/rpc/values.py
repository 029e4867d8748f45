"""Parameters as clients write them, and values as clients read them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from fusevm.chain.forms import data
from fusevm.chain.tree import Which
from fusevm.devchain import PENDING
from fusevm.rpc.errors import INVALID_PARAMS, RESOURCE_NOT_FOUND, SERVER_ERROR, NoSuchBlock, RpcError, invalid
from fusevm.values import shown, to_hash, to_number

if TYPE_CHECKING:
    from fusevm.rpc.session import Session

HASH_TEXT = 66  # characters of a hash, with its prefix
SETTLED = {"safe": 1, "finalized": 2}  # epochs after which a block is that
TAGS = ("latest", *SETTLED, "earliest", PENDING)


def number_of(value: Any, what: str, bits: int = 256) -> int:
    """A quantity; clients of anvil also write JSON numbers and decimal text."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 80:
        value = int(value)
    return to_number(value, what, bits)


def which_block(session: Session, tag: Any) -> Which:
    """A block by tag, number or hash (EIP-1898): its number where it is canonical. Raises NoSuchBlock."""
    if isinstance(tag, Mapping):
        if (tag.get("blockHash") is None) == (tag.get("blockNumber") is None):
            raise invalid("block: give one of blockHash and blockNumber")
        if tag.get("blockHash") is not None:
            return _by_hash(session, tag["blockHash"], bool(tag.get("requireCanonical")))
        tag = tag.get("blockNumber")
    if tag is None or tag == "latest":
        return session.dev.head.number
    if isinstance(tag, str) and tag in SETTLED:
        return max(session.dev.head.number - SETTLED[tag] * session.config.slots_in_an_epoch, session.oldest)
    if tag == PENDING:
        return PENDING
    if tag == "earliest":
        return session.oldest
    if isinstance(tag, str) and len(tag) == HASH_TEXT:
        return _by_hash(session, tag, False)
    if isinstance(tag, str) and not tag.startswith("0x") and not (tag.isascii() and tag.isdigit()):
        raise invalid(f"block: {shown(tag)} is not a number, a hash or one of {', '.join(TAGS)}")
    number = number_of(tag, "block", 64)
    if number > session.dev.head.number:
        text = f"BlockOutOfRangeError: block height is {session.dev.head.number} but requested was {number}"
        raise NoSuchBlock(INVALID_PARAMS, text)
    return number


def which_or_none(session: Session, tag: Any) -> Which | None:
    """As `which_block`; None for a block that is not there."""
    try:
        return which_block(session, tag)
    except NoSuchBlock:
        return None


def _by_hash(session: Session, text: Any, canonical: bool) -> bytes:
    """With the errors that EIP-1898 recommends."""
    found = to_hash(text, "blockHash")
    if not session.dev.chain.knows(found):
        raise NoSuchBlock(RESOURCE_NOT_FOUND, f"blockHash: no block {data(found)}")
    if canonical and not session.dev.is_canonical(session.dev.chain.block(found)):
        raise RpcError(SERVER_ERROR, f"blockHash: block {data(found)} is not of the canonical chain")
    return found
