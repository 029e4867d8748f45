"""geth's `callTracer`: the tree of calls, with gas, output and error of each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from fusevm.chain.outcome import Status
from fusevm.chain.result import Result
from fusevm.chain.state import State
from fusevm.evm.halts import HaltReason
from fusevm.tracing.errors import REVERTED, error_text, revert_text
from fusevm.tracing.recording import FrameKind, LogEvent, RecordedFrame, Wanted
from fusevm.tracing.requests import Json, Run, TracedMachine, TraceRequest, flag, recorded, undone

OPTIONS = ("onlyTopCall", "withLog")


class CallTracer(NamedTuple):
    only_top: bool = False
    logs: bool = False

    @classmethod
    def configured(cls, config: Mapping[str, Any]) -> CallTracer:
        return cls(*(flag(config, name) for name in OPTIONS))

    def run(self, machine: TracedMachine, state: State, request: TraceRequest, run: Run) -> Json:
        with undone(state), recorded(machine, Wanted(calls=True, logs=self.logs)) as recording:
            result = run()
            top = recording.frames[0] if recording.frames else _unbegun(request, result)
            texts = _ErrorTexts(state)
            form = _form(top, texts.of(top, result.failure.detail if result.failure else ""))
            form["gas"], form["gasUsed"] = hex(request.gas), hex(result.gas_used)
            self._add_events(form, top, texts, request.first_log)
        return _ordered(form)

    def _add_events(self, form: Json, top: RecordedFrame, texts: _ErrorTexts, first_log: int) -> None:
        """Calls and logs of all frames; without recursion, since calls may be 1,024 deep."""
        number = first_log
        waiting: list[tuple[Json, RecordedFrame, int]] = [(form, top, 0)]  # with the next event to look at
        while waiting:
            into, frame, at = waiting.pop()
            if at == len(frame.events):
                continue
            waiting.append((into, frame, at + 1))
            event = frame.events[at]
            if isinstance(event, RecordedFrame) and not self.only_top:
                below = _form(event, texts.of(event))
                into.setdefault("calls", []).append(below)
                waiting.append((below, event, 0))
            elif isinstance(event, LogEvent) and not frame.undone:
                into.setdefault("logs", []).append(_log(event, number, len(into.get("calls", ()))))
                number += 1


def _form(frame: RecordedFrame, error: str | None) -> Json:
    delegates = frame.kind in (FrameKind.DELEGATECALL, FrameKind.CALLCODE)
    form: Json = {
        "from": _hex(frame.address if delegates else frame.caller),
        "gas": hex(frame.gas),
        "gasUsed": hex(frame.gas_used),
        "input": _hex(frame.input),
        "type": frame.kind.value,
    }
    if not (error and frame.kind.creates):
        form["to"] = _hex(frame.code_address if delegates else frame.address)
    if frame.output and (error is None or error == REVERTED):
        form["output"] = _hex(frame.output)
    if error is not None:
        form["error"] = error
        reason = revert_text(frame.output) if error == REVERTED else None
        if reason:
            form["revertReason"] = reason
    if frame.kind is not FrameKind.STATICCALL:
        form["value"] = hex(frame.value)
    return form


_ORDER = ("from", "gas", "gasUsed", "to", "input", "output", "error", "revertReason", "calls", "logs", "value", "type")


def _ordered(form: Json) -> Json:
    """Keys in geth's order, in all frames."""
    done: Json = {}
    waiting = [(form, done)]
    while waiting:
        old, new = waiting.pop()
        for key in _ORDER:
            if key == "calls" and key in old:
                new[key] = [{} for _ in old[key]]
                waiting += zip(old[key], new[key], strict=True)
            elif key in old:
                new[key] = old[key]
    return done


def _log(event: LogEvent, number: int, position: int) -> Json:
    """`index` counts the logs of the block that are kept, `position` the calls that its frame has made before."""
    return {
        "address": _hex(event.address),
        "topics": [f"0x{topic:064x}" for topic in event.topics],
        "data": _hex(event.data),
        "index": hex(number),
        "position": hex(position),
    }


class _ErrorTexts:
    """What geth calls the failure of a frame. The state is as the call has left it."""

    def __init__(self, state: State) -> None:
        self._state = state

    def of(self, frame: RecordedFrame, detail: str = "") -> str | None:
        if frame.status is Status.REVERT:
            return REVERTED
        if frame.failure is None:
            return None
        if frame.kind.creates and frame.failure is HaltReason.OUT_OF_GAS and self._was_for_code(frame):
            return "contract creation code storage out of gas"
        return error_text(frame.failure, self._opcode(frame), detail)

    def _opcode(self, frame: RecordedFrame) -> int | None:
        code = self._code_of(frame)
        at = frame.failed_at
        return code[at] if at is not None and at < len(code) else None

    def _code_of(self, frame: RecordedFrame) -> bytes:
        return frame.input if frame.kind.creates else self._state.account(frame.delegate or frame.code_address).code

    def _was_for_code(self, frame: RecordedFrame) -> bool:
        """Whether the gas was short for keeping the code: init code that has returned has ended well."""
        return self._opcode(frame) == _RETURN


_RETURN = 0xF3


def _unbegun(request: TraceRequest, result: Result) -> RecordedFrame:
    """A creation by a transaction at an address that is taken: no frame began."""
    kind = FrameKind.CREATE if request.creates else FrameKind.CALL
    reason = None if result.failure is None else result.failure.reason
    where, value, gas = request.to, request.value, request.gas
    return RecordedFrame(
        kind, request.caller, where, where, value, gas, request.data, 0, status=result.status, failure=reason
    )  # fmt: skip


def _hex(data: bytes) -> str:
    return "0x" + data.hex()
