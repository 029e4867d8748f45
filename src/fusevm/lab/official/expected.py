"""Reasons of rejection as official tests give them: one name, or several of which any will do."""

from __future__ import annotations

from fusevm.chain.reasons import InvalidBlock, Rejected

_TRANSACTION = "TransactionException."

# Names that official tests use for the same fault.
SAME_FAULT = {
    "TYPE_1_TX_PRE_FORK": ("TYPE_NOT_SUPPORTED",),
    "TYPE_2_TX_PRE_FORK": ("TYPE_NOT_SUPPORTED",),
    "TYPE_3_TX_PRE_FORK": ("TYPE_NOT_SUPPORTED", "TYPE_3_TX_ZERO_BLOBS_PRE_FORK"),
    "TYPE_4_TX_PRE_FORK": ("TYPE_NOT_SUPPORTED",),
    "TYPE_4_INVALID_AUTHORITY_SIGNATURE": (
        "TYPE_4_INVALID_AUTHORITY_SIGNATURE_S_TOO_HIGH",
        "TYPE_4_INVALID_AUTHORIZATION_FORMAT",
    ),
}


def is_expected(error: Rejected | InvalidBlock, expected: str) -> bool:
    """Whether the reason is one of those that a test gives, `A|B`."""
    wanted = expected.split("|")
    others = SAME_FAULT.get(error.reason.name, ())
    return error.official_name in wanted or any(_TRANSACTION + other in wanted for other in others)
