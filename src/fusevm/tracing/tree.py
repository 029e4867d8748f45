"""Trees of frames: how events make one, and how one is printed."""

from __future__ import annotations

from collections.abc import Iterator

from fusevm.chain.outcome import Status
from fusevm.chain.result import revert_reason
from fusevm.tracing.recording import Event, FrameKind, Keccak, LogEvent, RecordedFrame, StorageRead

SHOWN = 68  # characters of data in a printed tree


class TreeBuilder:
    """Frames that begin and end, one inside the other, and what happens in them."""

    def __init__(self) -> None:
        self.open: list[RecordedFrame] = []

    def enter(self, frame: RecordedFrame) -> None:
        if self.open:
            self.open[-1].events.append(frame)
        self.open.append(frame)

    def add(self, event: Event) -> None:
        self.open[-1].events.append(event)

    def leave(self) -> RecordedFrame | None:
        """Ends the innermost frame; which is returned if it is the call from outside."""
        frame = self.open.pop()
        waiting = [] if frame.ok else [frame]
        while waiting:
            undone = waiting.pop()
            undone.undone = True
            waiting += [each for each in undone.calls if not each.undone]
        return None if self.open else frame


def lines_of(frame: RecordedFrame) -> Iterator[str]:
    """The tree of a frame and what is below it, a line for each event."""
    waiting: list[tuple[Event, str, str]] = [(frame, "", "")]
    while waiting:
        event, lead, below = waiting.pop()
        yield lead + _line(event)
        if not isinstance(event, RecordedFrame):
            continue
        last = len(event.events) - 1
        waiting += reversed(
            [
                (each, below + ("└─ " if at == last else "├─ "), below + ("   " if at == last else "│  "))
                for at, each in enumerate(event.events)
            ]
        )


def _line(event: Event) -> str:
    if isinstance(event, RecordedFrame):
        return frame_line(event)
    if isinstance(event, LogEvent):
        topics = ", ".join(f"0x{topic:x}" for topic in event.topics)
        return f"LOG{len(event.topics)} ({_short(topics)}) {_data(event.data)}"
    if isinstance(event, Keccak):
        return f"KECCAK256 {_data(event.data)} = 0x{event.hash.hex()}"
    kind = "T" if event.transient else "S"
    if isinstance(event, StorageRead):
        return f"{kind}LOAD 0x{event.key:x} = 0x{event.value:x}"
    return f"{kind}STORE 0x{event.key:x} = 0x{event.value:x} (was 0x{event.previous:x})"


def frame_line(frame: RecordedFrame) -> str:
    """A frame without its events."""
    if frame.kind is FrameKind.SELFDESTRUCT:
        return f"SELFDESTRUCT 0x{frame.caller.hex()} → 0x{frame.address.hex()} {frame.value} wei"
    to = frame.address if frame.kind.creates else frame.code_address
    parts = [f"{frame.kind.value} 0x{to.hex()}"]
    if frame.delegate is not None:
        parts.append(f"(code of 0x{frame.delegate.hex()})")
    if frame.value and frame.kind is not FrameKind.DELEGATECALL:
        parts.append(f"{frame.value} wei")
    parts.append(f"{_data(frame.input)} → {_ending(frame)}")
    if frame.failure is None or frame.gas_used:
        parts.append(f"[{frame.gas_used} gas]")
    return " ".join(parts)


def _ending(frame: RecordedFrame) -> str:
    if frame.failure is not None:
        at = "" if frame.failed_at is None else f" at pc {frame.failed_at}"
        return f"{frame.failure.value}{at}"
    if frame.status is Status.REVERT:
        reason = revert_reason(frame.output)
        return f"reverted: {_short(reason)}" if reason else "reverted"
    return f"{len(frame.output)} bytes of code" if frame.kind.creates else _data(frame.output)


def _data(data: bytes) -> str:
    return _short("0x" + data[:SHOWN].hex()) if data else "()"


def _short(text: str) -> str:
    return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"
