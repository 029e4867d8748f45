"""A recording: what calls and transactions did, as a tree of frames with their events in order.

Plain data, the same whatever tier ran the calls. Frames that failed are kept and marked.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from operator import attrgetter
from typing import Any, NamedTuple, Protocol

from fusevm.chain.outcome import EngineLimit, Status
from fusevm.evm.halts import HaltReason
from fusevm.evm.keccak import keccak256
from fusevm.values import BadValue, to_flag


class FrameKind(Enum):
    CALL = "CALL"
    CALLCODE = "CALLCODE"
    DELEGATECALL = "DELEGATECALL"
    STATICCALL = "STATICCALL"
    CREATE = "CREATE"
    CREATE2 = "CREATE2"
    SELFDESTRUCT = "SELFDESTRUCT"

    @property
    def creates(self) -> bool:
        return self in (FrameKind.CREATE, FrameKind.CREATE2)


class Refusal(Enum):
    """Why a call or creation did not begin. Its caller continues and keeps the gas."""

    DEPTH = "more than 1,024 calls deep"
    BALANCE = "not enough balance for the value"
    NONCE = "the creator's nonce is 2^64 - 1"


@dataclass(slots=True)
class LogEvent:
    address: bytes
    topics: tuple[int, ...]
    data: bytes


@dataclass(slots=True)
class StorageRead:
    """SLOAD, or TLOAD where `transient`."""

    address: bytes
    key: int
    value: int
    transient: bool = False


@dataclass(slots=True)
class StorageWrite:
    """SSTORE, or TSTORE where `transient`; also where the value stays the same."""

    address: bytes
    key: int
    value: int
    previous: int
    transient: bool = False


@dataclass(slots=True)
class Keccak:
    """KECCAK256 of some memory."""

    data: bytes
    hash: bytes


@dataclass(slots=True, eq=False, repr=False)
class RecordedFrame:
    """One call or creation, or a SELFDESTRUCT, which sends the balance of `caller` to `address`."""

    kind: FrameKind
    caller: bytes
    address: bytes  # whose storage and balance the code sees as its own; zeros where a creation is refused
    code_address: bytes  # the account that was named: of DELEGATECALL and CALLCODE not the one at `address`
    value: int  # what CALLVALUE answers; of DELEGATECALL its parent's, which does not move
    gas: int  # given to it, with the stipend
    input: bytes  # or init code
    depth: int  # 0 for the call from outside
    pc: int | None = None  # of the instruction that called; None for the call from outside
    static: bool = False
    delegate: bytes | None = None  # the account whose code ran in place of that of `code_address` (EIP-7702)
    gas_used: int = 0  # before any refund
    output: bytes = b""  # of a creation that succeeded, the contract's code
    status: Status = Status.SUCCESS
    failure: HaltReason | Refusal | None = None  # why it halted, or did not begin
    failed_at: int | None = None  # pc of the instruction that reverted or halted; None where no code ran
    created: bytes | None = None  # the address of the contract, where one was created
    undone: bool = False  # this frame failed, or one that it was called from: nothing it did is kept
    events: list[Event] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        return self.status is Status.SUCCESS

    @property
    def calls(self) -> list[RecordedFrame]:
        """The frames among the events."""
        return [event for event in self.events if isinstance(event, RecordedFrame)]

    def walk(self) -> Iterator[RecordedFrame]:
        """This frame and all below it, in the order in which they began."""
        waiting = [self]
        while waiting:
            frame = waiting.pop()
            yield frame
            waiting += reversed(frame.calls)

    def __eq__(self, other: object) -> bool:
        """Of all fields and events. Frames can be 1,024 deep, so there is no recursion."""
        if not isinstance(other, RecordedFrame):
            return NotImplemented
        waiting = [(self, other)]
        while waiting:
            one, another = waiting.pop()
            if _FIELDS(one) != _FIELDS(another) or len(one.events) != len(another.events):
                return False
            for left, right in zip(one.events, another.events, strict=True):
                if isinstance(left, RecordedFrame) and isinstance(right, RecordedFrame):
                    waiting.append((left, right))
                elif left != right:
                    return False
        return True

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        from fusevm.tracing.tree import frame_line

        return f"<{frame_line(self)}, {len(self.events)} events>"

    def __str__(self) -> str:
        from fusevm.tracing.tree import lines_of  # which needs these classes

        return "\n".join(lines_of(self))


_FIELDS = attrgetter(*(name for name in RecordedFrame.__dataclass_fields__ if name != "events"))
Event = RecordedFrame | LogEvent | StorageRead | StorageWrite | Keccak


@dataclass(slots=True)
class CodeCoverage:
    """What ran of one code."""

    code: bytes
    hits: dict[int, int] = field(default_factory=dict)  # by pc: how often the instruction began; it may have failed
    taken: dict[int, int] = field(default_factory=dict)  # by pc of a JUMPI: how often it jumped
    passed: dict[int, int] = field(default_factory=dict)  # by pc of a JUMPI: how often it did not

    @property
    def executed(self) -> set[int]:
        return set(self.hits)


MOST = 1 << 30  # bytes of input, output, logs and hashed data that are recorded of one call from outside


class RecordingLimit(EngineLimit):
    """Gas does not bound what a recording takes: a large input can be passed on again and again."""

    def __init__(self, size: int = MOST) -> None:
        super().__init__(size)
        self.size = size

    def __str__(self) -> str:
        return f"recording: more than {self.size >> 20:,} MiB of events in one call; record less of it"


class Wanted(NamedTuple):
    """What a recording asks for. Logs, storage and hashes are events of frames, so they need `calls`."""

    calls: bool = True
    logs: bool = True
    storage: bool = False
    keccak: bool = False
    coverage: bool = False
    gas: bool = False

    def checked(self) -> Wanted:
        for name, value in zip(self._fields, self, strict=True):
            if value is not True and value is not False:
                to_flag(value, name)
        for name in () if self.calls else ("storage", "keccak"):
            if getattr(self, name):
                raise BadValue(f"{name}: needs calls=True, since it is recorded in the tree of calls")
        return self if self.calls else self._replace(logs=False)


Decode = Callable[[Any], Iterable[RecordedFrame]]


class Countable(Protocol):
    """What was counted, in a form of its own."""

    def add_to(self, recording: Recording) -> None: ...


class Recording:
    """Fills while calls run; may be read at any time between two of them.

    What native code noted is decoded when it is first looked at.
    """

    def __init__(self, wanted: Wanted | None = None) -> None:
        self.wanted = Wanted() if wanted is None else wanted
        self._frames: list[RecordedFrame] = []
        self._undecoded: deque[tuple[Decode, Any]] = deque()
        self._coverage: dict[bytes, CodeCoverage] = {}
        self._gas: dict[bytes, dict[int, int]] = {}
        self._flushes: list[Callable[[], None]] = []  # what is noted elsewhere comes here
        self._uncounted: deque[Countable] = deque()
        self.codes: dict[bytes, bytes] = {}  # by hash, where coverage or gas was asked for

    def __getstate__(self) -> dict[str, Any]:
        """To pickle and to copy: everything recorded so far, on its own."""
        kept = {"_frames": self.frames, "_coverage": self.coverage, "_gas": self.gas, "_flushes": []}
        return {**vars(self), **kept}

    # -- reading

    @property
    def frames(self) -> list[RecordedFrame]:
        """The calls from outside, in order."""
        self.flush()
        while self._undecoded:
            decode, raw = self._undecoded[0]
            self._frames += decode(raw)
            self._undecoded.popleft()
        return self._frames

    @property
    def coverage(self) -> dict[bytes, CodeCoverage]:
        """By hash of the code, init code included."""
        self._take_counts()
        return self._coverage

    @property
    def gas(self) -> dict[bytes, dict[int, int]]:
        """By hash of the code, and by pc: the gas that instructions took themselves, all runs together.

        A call's own is without what the callee's code used, and with what a callee without code used, a precompile. The
        instruction that halts a frame takes all gas left. The last one of a creation pays for the new code. So the
        sum over all is the gas that the calls used, before refunds.
        """
        self._take_counts()
        return self._gas

    def walk(self) -> Iterator[RecordedFrame]:
        """All frames, in the order in which they began."""
        for frame in self.frames:
            yield from frame.walk()

    def __str__(self) -> str:
        return "\n".join(map(str, self.frames))

    def __repr__(self) -> str:
        return f"<Recording of {len(self.frames)} calls>"

    # -- being filled

    def add(self, frame: RecordedFrame) -> None:
        self.frames.append(frame)

    def add_later(self, decode: Decode, raw: Any) -> None:
        """Adds calls from outside that are decoded lazily."""
        self._undecoded.append((decode, raw))

    def count_later(self, counts: Countable) -> None:
        """Adds counts to coverage and gas, evaluated lazily."""
        self._uncounted.append(counts)

    def on_reading(self, flush: Callable[[], None]) -> None:
        """To be called before anything is read."""
        self._flushes.append(flush)

    def flush(self) -> None:
        """Takes what was noted, as it is."""
        for flush in self._flushes:
            flush()

    def close(self) -> None:
        """Ends the recording, and drops all references to the recorder."""
        self.flush()
        self._flushes = []

    def _take_counts(self) -> None:
        self.flush()
        while self._uncounted:
            self._uncounted[0].add_to(self)
            self._uncounted.popleft()

    def coverage_of(self, code: bytes) -> CodeCoverage:
        """To add to."""
        key = self._key(code)
        found = self._coverage.get(key)
        if found is None:
            found = self._coverage[key] = CodeCoverage(code)
        return found

    def gas_of(self, code: bytes) -> dict[int, int]:
        """To add to."""
        return self._gas.setdefault(self._key(code), {})

    def _key(self, code: bytes) -> bytes:
        key = keccak256(code)
        self.codes.setdefault(key, code)
        return key
