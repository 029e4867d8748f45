"""Decoded values with the names that the ABI gives them: arguments, results, structs, events, errors."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from fusevm.chain.addresses import Address, checksummed
from fusevm.chain.display import html_table, shown_bytes
from fusevm.chain.state import Log


class Values(tuple[Any, ...]):
    """A tuple whose members can also be reached by name, as attribute or as item.

    A name that tuples or this class have already (`index`, `count`, `names`, `title`) is an item alone.

    >>> pair = Values([1, True], ["amount", ""], "Deposit")
    >>> pair.amount, pair["amount"], pair[1]
    (1, 1, True)
    >>> pair
    Deposit(amount=1, True)
    """

    names: tuple[str, ...]
    title: str

    def __new__(cls, values: Iterable[Any], names: Iterable[str], title: str = "") -> Values:
        made = super().__new__(cls, values)
        made.names = tuple(names)
        made.title = title
        return made

    def __getitem__(self, key: Any) -> Any:
        return super().__getitem__(self._place(key) if isinstance(key, str) else key)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name not in vars(self).get("names", ()):
            raise AttributeError(f"{self.title or 'these values'} has no member {name!r}")
        return self[name]

    def _place(self, name: str) -> int:
        if name not in self.names:
            raise KeyError(name)
        return self.names.index(name)

    def as_dict(self) -> dict[str, Any]:
        """By name; a member without a name is under its position."""
        return {name or str(at): value for at, (name, value) in enumerate(zip(self.names, self, strict=True))}

    def __repr__(self) -> str:
        members = (
            f"{name}={shown(value)}" if name else shown(value) for name, value in zip(self.names, self, strict=True)
        )
        return f"{self.title}({', '.join(members)})"

    def _repr_html_(self) -> str:
        return html_table(self.title, [(name, shown(value)) for name, value in self.as_dict().items()])

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (tuple(self), self.names, self.title)


class DecodedLog(Values):
    """A log as the event that it is: its arguments, and the contract that wrote it.

    An argument named `address` or `log` is an item alone: `event["address"]`.

    >>> from fusevm.abi import Event
    >>> paid = Event.parse("event Paid(uint256 amount)")
    >>> event = paid.decode(Log(b"\\xc0" * 20, (paid.topic,), (7).to_bytes(32, "big")))
    >>> event, event.amount, event.title
    (Paid(amount=7), 7, 'Paid')
    """

    log: Log

    @property
    def address(self) -> Address:
        """Of the contract that wrote it."""
        return Address(self.log.address)

    @classmethod
    def of(cls, log: Log, values: Iterable[Any], names: Iterable[str], title: str) -> DecodedLog:
        made = cls(values, names, title)
        assert isinstance(made, DecodedLog)
        made.log = log
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return DecodedLog.of, (self.log, tuple(self), self.names, self.title)


def shown(value: object) -> str:
    """A decoded value as people read it: addresses and bytes in hex, text in quotes."""
    if isinstance(value, Address):
        return checksummed(value)
    if isinstance(value, bytes):
        return shown_bytes(value)
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, list):
        return "[" + ", ".join(map(shown, value)) + "]"
    return repr(value)
