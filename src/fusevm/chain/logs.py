"""The logs of LOG0 to LOG4."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from fusevm.chain.addresses import checksummed
from fusevm.chain.display import html_table, shown_bytes, shown_word
from fusevm.chain.rlp import encode
from fusevm.evm.keccak import keccak256


class Log(NamedTuple):
    """What LOG0 to LOG4 leave.

    >>> Log(bytes(20), (1,), b"data").data
    b'data'
    """

    address: bytes
    topics: tuple[int, ...]
    data: bytes

    def __repr__(self) -> str:
        topics = ", ".join(map(shown_word, self.topics))
        return f"Log({checksummed(self.address)}, topics=[{topics}], data={shown_bytes(self.data)})"

    def _repr_html_(self) -> str:
        rows = [("address", checksummed(self.address)), ("topics", [*map(shown_word, self.topics)])]
        return html_table("Log", [*rows, ("data", shown_bytes(self.data))])


def log_json(log: Log) -> dict[str, Any]:
    return {
        "address": "0x" + log.address.hex(),
        "topics": [f"0x{topic:064x}" for topic in log.topics],
        "data": "0x" + log.data.hex(),
    }


def logs_hash(logs: Sequence[Log]) -> bytes:
    """keccak(rlp(logs)), as state tests compare them."""
    return keccak256(encode([[log.address, [t.to_bytes(32, "big") for t in log.topics], log.data] for log in logs]))
