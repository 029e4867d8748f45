"""eth_subscribe: what a WebSocket's client subscribes to, and the messages for a block or a transaction."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from fusevm.chain.forms import data, header_form, transaction_form
from fusevm.chain.receipts import BlockReceipt
from fusevm.chain.sealed import SealedBlock
from fusevm.chain.signed import SignedTransaction
from fusevm.rpc.errors import invalid
from fusevm.rpc.filters import LogQuery
from fusevm.values import shown

KINDS = ("newHeads", "logs", "newPendingTransactions", "syncing", "fusevm_head")
MOST = 1_000  # subscriptions of one client
Wanted = tuple[str, Any]  # a kind, and which of it: logs by a query, whole transactions or their hashes
Encode = Callable[[Any], bytes]


class Told(NamedTuple):
    """One result for several subscriptions of a client. Their messages are made when they are sent."""

    numbers: tuple[str, ...]
    result: bytes

    def messages(self) -> Iterator[str]:
        end = b',"result":' + self.result + b"}}"
        for number in self.numbers:
            begin = f'{{"jsonrpc":"2.0","method":"eth_subscription","params":{{"subscription":"{number}"'
            yield begin + end.decode()


class News:
    """What there is to tell of a block or a transaction, made once for all who want the same."""

    def __init__(self, make: Callable[[Wanted], Iterator[Any]], encode: Encode) -> None:
        self._make, self._encode = make, encode
        self._made: dict[Wanted, list[bytes]] = {}

    def of(self, wanted: Wanted) -> list[bytes]:
        found = self._made.get(wanted)
        if found is None:
            found = self._made[wanted] = [self._encode(each) for each in self._make(wanted)]
        return found


def of_block(block: SealedBlock, receipts: tuple[BlockReceipt, ...], encode: Encode) -> News:
    def make(wanted: Wanted) -> Iterator[Any]:
        kind, which = wanted
        if kind in ("newHeads", "fusevm_head"):
            yield header_form(block.header)
        elif kind == "logs":
            yield from which.found_in(block, receipts)

    return News(make, encode)


def of_head(block: SealedBlock, encode: Encode) -> News:
    """For those who follow the head wherever it goes: it has gone back, or the chain has begun anew."""
    return News(lambda wanted: iter([header_form(block.header)] if wanted[0] == "fusevm_head" else []), encode)


def of_transaction(signed: SignedTransaction, encode: Encode) -> News:
    def make(wanted: Wanted) -> Iterator[Any]:
        kind, whole = wanted
        if kind == "newPendingTransactions":
            yield transaction_form(signed) if whole else data(signed.hash)

    return News(make, encode)


class Subscriptions:
    """Those of one client: the numbers of all that want the same."""

    def __init__(self) -> None:
        self._wanted: dict[str, Wanted] = {}
        self._numbers: dict[Wanted, tuple[str, ...]] = {}

    def subscribe(self, params: Any) -> str:
        kind = params[0] if isinstance(params, list) and params else None
        option = params[1] if isinstance(params, list) and len(params) > 1 else None
        if kind not in KINDS:
            raise invalid(f"eth_subscribe: {shown(kind)} is not one of {', '.join(KINDS)}")
        if len(self._wanted) >= MOST:
            raise invalid(f"eth_subscribe: this client has {MOST} subscriptions already; end some by eth_unsubscribe")
        wanted: Wanted = (kind, LogQuery.read(option or {}) if kind == "logs" else option is True)
        number = "0x" + secrets.token_hex(16)
        self._wanted[number] = wanted
        self._numbers[wanted] = (*self._numbers.get(wanted, ()), number)
        return number

    def unsubscribe(self, params: Any) -> bool:
        number = params[0] if isinstance(params, list) and params else None
        wanted = self._wanted.pop(number, None) if isinstance(number, str) else None
        if wanted is None:
            return False
        left = tuple(each for each in self._numbers[wanted] if each != number)
        if left:
            self._numbers[wanted] = left
        else:
            del self._numbers[wanted]
        return True

    def told(self, news: News) -> list[Told]:
        """To be called on any thread."""
        return [Told(numbers, result) for wanted, numbers in list(self._numbers.items()) for result in news.of(wanted)]
