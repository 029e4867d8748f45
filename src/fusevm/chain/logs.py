"""What LOG0 to LOG4 leave."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from fusevm.chain.rlp import encode
from fusevm.evm.keccak import keccak256


class Log(NamedTuple):
    address: bytes
    topics: tuple[int, ...]
    data: bytes


def logs_hash(logs: Sequence[Log]) -> bytes:
    """keccak(rlp(logs)), as state tests compare them."""
    return keccak256(encode([[log.address, [t.to_bytes(32, "big") for t in log.topics], log.data] for log in logs]))
