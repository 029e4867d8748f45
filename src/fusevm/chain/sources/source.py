"""What a source of accounts answers, and how it fails."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol, TypeAlias

Place: TypeAlias = tuple[bytes, int]  # an address and a storage key


class Facts(NamedTuple):
    """An account without its storage."""

    nonce: int
    balance: int
    code: bytes


class Source(Protocol):
    """Accounts and storage of one block, which do not change. Each question is one batch.

    A source raises `SourceError` where it cannot answer: then the whole batch is unknown, and the call that asked
    leaves the state as it was. To be pickled with its state, it must be picklable itself.
    """

    name: str  # for messages

    def accounts(self, addresses: Sequence[bytes]) -> Sequence[Facts | None]:
        """One answer per address; None for an account that does not exist."""

    def slots(self, places: Sequence[Place]) -> Sequence[int]:
        """One word for each place; zero where nothing was stored."""

    def block_hash(self, number: int) -> bytes:
        """The hash of a block before the one whose state this is."""


class SourceError(RuntimeError):
    """A source cannot answer. The call that needed the answer has not happened.

    >>> from fusevm import SourceUnavailable
    >>> issubclass(SourceUnavailable, SourceError)
    True
    """


class SourceUnavailable(SourceError):
    """It does not answer at all: the node is gone, refuses, or takes too long.

    >>> from fusevm import EVM
    >>> try:
    ...     EVM.fork_from("http://127.0.0.1:9", cache=False, retries=0)  # nobody listens there
    ... except SourceUnavailable as error:
    ...     "127.0.0.1:9" in str(error)
    True
    """


class PartialState(RuntimeError):
    """What needs all accounts was asked of a state that has only those it was asked for.

    >>> from fusevm import EVM, State
    >>> class Nothing:
    ...     name = "a chain without accounts"
    >>> try:
    ...     EVM(state=State(source=Nothing())).state_root
    ... except PartialState as error:
    ...     print(error)
    state root: the root needs all accounts; of a chain without accounts only 0 are loaded
    """
