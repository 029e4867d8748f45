"""Blob transactions as clients send them, with their blobs, which a development chain keeps for requests."""

from __future__ import annotations

from collections import OrderedDict
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from fusevm.chain.forms import data
from fusevm.chain.rlp import Item
from fusevm.rpc.errors import invalid
from fusevm.values import to_hash

if TYPE_CHECKING:
    from fusevm.rpc.session import Session

BLOB_BYTES = 131_072
VERSIONED = b"\x01"  # how the hash of a KZG commitment begins (EIP-4844)
MAX_KEPT = 512  # blobs: 64 MB


class BlobStore:
    """Blobs by versioned hash, the latest ones."""

    def __init__(self) -> None:
        self._kept: OrderedDict[bytes, bytes] = OrderedDict()

    def add(self, found: dict[bytes, bytes]) -> None:
        self._kept.update(found)
        while len(self._kept) > MAX_KEPT:
            self._kept.popitem(last=False)

    def get(self, versioned_hash: bytes) -> bytes | None:
        return self._kept.get(versioned_hash)


def blobs_of(parts: list[Item]) -> dict[bytes, bytes]:
    """The blobs that came with a transaction, by versioned hash.

    Commitments are held against the transaction's hashes; proofs are not checked.
    """
    blobs, commitments = (_pieces(each) for each in parts[-3:-1])
    hashes = [VERSIONED + sha256(each).digest()[1:] for each in commitments]
    body = parts[0]
    assert not isinstance(body, bytes)  # see `network_parts`
    if len(blobs) != len(hashes) or len(body) < 11 or list(_pieces(body[10])) != hashes:
        raise invalid("blobs: their commitments are not those of the transaction's blob hashes")
    if any(len(blob) != BLOB_BYTES for blob in blobs):
        raise invalid(f"blobs: one has not {BLOB_BYTES} bytes")
    return dict(zip(hashes, blobs, strict=True))


def _pieces(item: Item) -> list[bytes]:
    if isinstance(item, bytes) or not all(isinstance(each, bytes) for each in item):
        raise invalid("blobs: expected lists of blobs, commitments and proofs")
    return [bytes(each) for each in item if isinstance(each, bytes)]


def by_hash(session: Session, versioned_hash: Any) -> Any:
    found = session.blobs.get(to_hash(versioned_hash, "versioned hash"))
    return None if found is None else data(found)


def of_transaction(session: Session, transaction: Any) -> Any:
    mined = session.dev.find_mined(to_hash(transaction, "transaction hash"))
    if mined is None or not mined.signed.blob_hashes:
        return None
    found = [session.blobs.get(each) for each in mined.signed.blob_hashes]
    return None if None in found else [data(each) for each in found if each is not None]


METHODS = {"anvil_getBlobByHash": by_hash, "anvil_getBlobsByTransactionHash": of_transaction}
