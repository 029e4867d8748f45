"""The interface of a contract: all its functions, events and errors, from a JSON ABI or from signatures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Generic, TypeVar

from fusevm.abi.codec import CannotDecode
from fusevm.abi.entries import Constructor, CustomError, Entry, Event, Function
from fusevm.abi.records import DecodedLog, Values
from fusevm.abi.signatures import parse_entry
from fusevm.abi.types import Array, BadAbi, Parameter, Tuple, Type, UnknownType, scalar
from fusevm.chain.result import revert_reason
from fusevm.chain.state import Log
from fusevm.values import BadValue
from fusevm.values import shown as quoted

Named = TypeVar("Named", bound=Function | Event | CustomError)
_OTHERS = ("fallback", "receive")  # entries without arguments or names
_DEEPEST = 32


class Entries(Generic[Named]):
    """Functions, events or errors: by signature, or by name where one alone has it.

    >>> abi = Abi(["function get(uint256)", "function get()", "function put(uint256)"])
    >>> abi.functions.put.signature, len(abi.functions), abi.functions["get()"].signature
    ('put(uint256)', 3, 'get()')
    """

    def __init__(self, entries: Iterable[Named], what: str) -> None:
        self._by_signature: dict[str, Named] = {each.signature: each for each in entries}
        self._what = what

    def named(self, name: str) -> list[Named]:
        """All of this name."""
        return [each for each in self._by_signature.values() if each.name == name]

    def __getitem__(self, key: str) -> Named:
        """By signature, in any spelling, or by name."""
        found = self._by_signature.get(key)
        if found is None and "(" in key:
            found = self._by_signature.get(_canonical(key))
        if found is not None:
            return found
        same = self.named(key)
        if len(same) > 1:
            listed = ", ".join(each.signature for each in same)
            raise BadValue(f"{key} is the name of {len(same)} {self._what}s: say which by signature: {listed}")
        if not same:
            raise BadValue(f"no {self._what} {quoted(key)} in the ABI; it has {self._listed()}")
        return same[0]

    def __getattr__(self, name: str) -> Named:
        if name.startswith("_") and not vars(self).get("_by_signature"):
            raise AttributeError(name)
        if not self.named(name):
            raise AttributeError(f"no {self._what} {name!r} in the ABI; it has {self._listed()}")
        return self[name]

    def _listed(self) -> str:
        return ", ".join(sorted({each.name for each in self})[:20]) or "none"

    def __contains__(self, key: object) -> bool:
        return key in self._by_signature or any(each.name == key for each in self)

    def __iter__(self) -> Iterator[Named]:
        return iter(self._by_signature.values())

    def __len__(self) -> int:
        return len(self._by_signature)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *(each.name for each in self)]

    def __repr__(self) -> str:
        return "\n".join(map(str, self)) or f"no {self._what}s"


class Abi:
    """The interface of a contract.

    >>> abi = Abi(["function balanceOf(address) view returns (uint256)", "error Broke(uint256 needed)"])
    >>> abi.functions.balanceOf.selector.hex()
    '70a08231'
    >>> abi.explain_revert(abi.errors.Broke.encode(7))
    'Broke(needed=7)'
    """

    def __init__(self, entries: Iterable[str | Mapping[str, Any] | Entry] = ()) -> None:
        """From the entries of a JSON ABI, from signatures as people write them, or from entries of another Abi."""
        if isinstance(entries, str | bytes | Mapping) or not isinstance(entries, Iterable):
            raise BadAbi(f"an ABI is a list of entries or signatures, not {type(entries).__name__}")
        found = [each for at, entry in enumerate(entries) if (each := _entry(entry, f"ABI entry {at}")) is not None]
        self.functions = Entries([each for each in found if isinstance(each, Function)], "function")
        self.events = Entries([each for each in found if isinstance(each, Event)], "event")
        self.errors = Entries([each for each in found if isinstance(each, CustomError)], "error")
        constructors = [each for each in found if isinstance(each, Constructor)]
        self.constructor = constructors[0] if constructors else Constructor("", ())
        self._by_topic = {(each.topic, each.indexed): each for each in self.events if not each.anonymous}
        self._by_selector = {each.selector: each for each in self.functions}
        self._errors = {each.selector: each for each in self.errors}

    def __iter__(self) -> Iterator[Entry]:
        yield self.constructor
        yield from self.functions
        yield from self.events
        yield from self.errors

    def __add__(self, other: Abi) -> Abi:
        """Both together: a contract that passes on the errors of another, say. The constructor is the left one's."""
        return Abi([*self, *(each for each in other if not isinstance(each, Constructor))])

    def __repr__(self) -> str:
        return f"<Abi: {len(self.functions)} functions, {len(self.events)} events, {len(self.errors)} errors>"

    def decode_call(self, data: bytes) -> Values:
        """Which function some calldata calls, and with what. Raises CannotDecode if none of these."""
        function = self._by_selector.get(data[:4])
        if function is None:
            raise CannotDecode(f"no function has the selector 0x{data[:4].hex()}")
        return function.decode_arguments(data)

    def decode_error(self, data: bytes) -> Values | None:
        """The custom error in a revert's data; None where it is none of these."""
        error = self._errors.get(data[:4])
        try:
            return None if error is None else error.decode(data)
        except CannotDecode:
            return None

    def explain_revert(self, data: bytes) -> str | None:
        """The custom error, `Error("…")`, `Panic(0x11: …)`, or hex; None for a revert without data."""
        found = self.decode_error(data)
        return revert_reason(data) if found is None else repr(found)

    def decode_log(self, log: Log) -> DecodedLog | None:
        """The event that a log is; None where it is none of these."""
        event = self._by_topic.get((log.topics[0], len(log.topics) - 1)) if log.topics else None
        candidates = [event] if event is not None else [each for each in self.events if each.anonymous]
        for each in candidates:
            try:
                return each.decode(log)
            except CannotDecode:
                continue
        return None

    def decode_logs(self, logs: Iterable[Log]) -> list[DecodedLog]:
        """Those of the logs that are events of this interface."""
        return [found for log in logs if (found := self.decode_log(log)) is not None]


def _canonical(signature: str) -> str:
    try:
        entry = parse_entry(signature)
    except BadAbi:
        return signature
    return entry.signature


def _entry(entry: str | Mapping[str, Any] | Entry, what: str) -> Entry | None:
    if isinstance(entry, str):
        return None if entry.split("(")[0].split()[:1] in ([each] for each in _OTHERS) else parse_entry(entry)
    if isinstance(entry, Mapping):
        return _from_json(entry, what)
    return entry


def _from_json(entry: Mapping[str, Any], what: str) -> Entry | None:
    kind, name = entry.get("type", "function"), entry.get("name", "")
    if kind in _OTHERS:
        return None
    if not isinstance(name, str) or not (name or kind == "constructor"):
        raise BadAbi(f"{what}: no name")
    if not name.isprintable():
        raise BadAbi(f"{what}: {quoted(name)} is not a name")
    what = f"{what} ({name or kind})"
    inputs = _parameters(entry.get("inputs", ()), what)
    if kind == "function":
        return Function(name, inputs, _parameters(entry.get("outputs") or (), what), _mutability(entry))
    if kind == "constructor":
        return Constructor("", inputs, _mutability(entry))
    if kind == "event":
        return Event(name, inputs, bool(entry.get("anonymous", False)))
    if kind == "error":
        return CustomError(name, inputs)
    raise BadAbi(f"{what}: {quoted(kind)} is not a kind of entry")


def _mutability(entry: Mapping[str, Any]) -> str:
    """Before Solidity 0.5 there were two flags instead."""
    old = "view" if entry.get("constant") else "payable" if entry.get("payable") else "nonpayable"
    return str(entry.get("stateMutability", old))


def _parameters(listed: Any, what: str, depth: int = 0) -> tuple[Parameter, ...]:
    if not isinstance(listed, list | tuple) or not all(isinstance(each, Mapping) for each in listed):
        raise BadAbi(f"{what}: the parameters are not a list of objects")
    return tuple(
        Parameter(str(each.get("name") or ""), _type(each, what, depth), bool(each.get("indexed", False)))
        for each in listed
    )


def _type(parameter: Mapping[str, Any], what: str, depth: int) -> Type:
    text = parameter.get("type")
    if not isinstance(text, str):
        raise BadAbi(f"{what}: a parameter without a type")
    base, *sizes = text.replace("]", "").split("[")
    if depth + len(sizes) > _DEEPEST:
        raise BadAbi(f"{what}: tuples or arrays nested too deeply")
    try:
        if base == "tuple":
            found: Type = Tuple(_parameters(parameter.get("components", ()), what, depth + 1))
        else:
            found = scalar(base)
        for size in sizes:
            found = Array(found, _size(size, text))
    except UnknownType as error:
        raise BadAbi(f"{what}: {error}") from None
    return found


def _size(digits: str, text: str) -> int | None:
    if not digits:
        return None
    if not digits.isdecimal() or len(digits) > 9:
        raise UnknownType(f"{quoted(text)} is not a type")
    return int(digits)
