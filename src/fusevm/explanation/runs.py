"""Runs of an explained contract: calls one after another in one EVM, each with heat, gas by family, flame and trace."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

from fusevm.abi.codec import CannotDecode
from fusevm.abi.entries import Function
from fusevm.abi.interface import Abi
from fusevm.abi.types import BadAbi
from fusevm.api import EVM
from fusevm.chain.outcome import EngineLimit, Status
from fusevm.chain.result import Result
from fusevm.evm.bytecode import basic_blocks
from fusevm.evm.forks import Fork
from fusevm.explanation.arguments import typed
from fusevm.explanation.families import OTHER, by_family
from fusevm.explanation.inputs import BadSource
from fusevm.explanation.trace import Enough, StepTracer
from fusevm.tracing.recording import Recording
from fusevm.values import AddressLike, BadValue, BytesLike, Number, to_address, to_bytes

GAS = 10_000_000
CALLER = b"\xca" * 20
ADDRESS = b"\xc0" * 20
MAX_LOGS = 200
MAX_OUTPUT = 1 << 16  # bytes
Heat = dict[int, tuple[int, int]]  # how often an instruction began, and the gas it took, by pc


@dataclass(slots=True)
class Run:
    """What one call did.

    >>> from fusevm import explain
    >>> run = explain("{ mstore(0, add(calldataload(0), 1)) return(0, 32) }").run(bytes(31) + b"\\x29")
    >>> run.status, int(run.output, 16), run.gas_used
    ('success', 42, 24)
    """

    call: dict[str, Any]
    status: str
    reason: str | None
    output: str
    decoded: str | None
    gas_used: int
    logs: list[dict[str, Any]]
    families: list[dict[str, Any]]
    heat: Heat
    blocks: Heat
    flame: dict[str, Any]
    trace: list[dict[str, Any]]
    notes: list[str] = field(default_factory=list)

    def __repr__(self) -> str:
        return f"<Run: {self.status}, {self.gas_used:,} gas, {len(self.trace):,} steps>"

    def as_data(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "call": self.call,
            "status": self.status,
            "reason": self.reason,
            "output": self.output,
            "decoded": self.decoded,
            "gas_used": self.gas_used,
            "logs": self.logs,
            "families": self.families,
            "heat": {str(pc): list(each) for pc, each in self.heat.items()},
            "blocks": {str(pc): list(each) for pc, each in self.blocks.items()},
            "flame": self.flame,
            "trace": self.trace,
            "notes": self.notes,
        }

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{escape(each['name'])}</td><td>{each['count']:,}</td><td>{each['gas']:,}</td></tr>"
            for each in self.families
        )
        head = escape(f"{self.status}, {self.gas_used:,} gas" + (f": {self.reason}" if self.reason else ""))
        return f"<p>{head}</p><table><tr><th>family</th><th>count</th><th>gas</th></tr>{rows}</table>"


@dataclass(frozen=True, slots=True)
class Subject:
    """What is run: the code with everything known about it."""

    code: bytes
    fork: Fork
    abi: Abi
    line_at: Mapping[int, int]
    texts: Sequence[str]  # of the source's lines
    functions_of_lines: Mapping[int, str]  # the function that a line of the source stands in
    creation: bytes = b""  # what deploys it, where there is any
    is_creation: bool = False  # the code itself is creation code


class CallRunner:
    """One EVM with the contract deployed. A call's changes are visible to the next."""

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self.notes: list[str] = []
        self.evm = self._fresh()

    def reset(self) -> None:
        """The state as it was before the first call."""
        self.notes.clear()
        self.evm = self._fresh()

    def _fresh(self) -> EVM:
        evm, subject = EVM(fork=self.subject.fork), self.subject
        evm.set_balance(CALLER, 10**24)
        if subject.creation:
            result = evm.deploy(subject.creation, caller=CALLER, address=ADDRESS)
            if not result.ok:
                self.notes.append(f"constructor: not run: {result.error}")
        if not subject.is_creation and not _same_but_filled(evm.get_code(ADDRESS), subject.code):
            evm.set_code(ADDRESS, subject.code)
        return evm

    def run(
        self, data: bytes, function: Function | None, value: Number, caller: AddressLike, gas: Number, most: int
    ) -> Run:
        sender = to_address(caller, "caller")
        if self.evm.get_balance(sender) < int(value):
            self.evm.set_balance(sender, int(value) + 10**18)
        tracer = StepTracer(most)
        try:
            with self.evm.snapshot():
                self._traced(tracer, data, value, sender, gas)
            with self.evm.record(coverage=True, gas=True) as recording:
                result = self._called(data, value, sender, gas)
        except EngineLimit as error:
            raise BadSource(f"run: {error}") from None
        call = {"data": "0x" + data.hex(), "value": int(value), "caller": "0x" + sender.hex()}
        if function is not None:
            call["function"] = function.signature
        heat = self._heat(recording)
        return Run(
            call,
            {Status.SUCCESS: "success", Status.REVERT: "revert"}.get(result.status, "halt"),
            self._reason(result),
            "0x" + result.output[:MAX_OUTPUT].hex(),
            _decoded(function, result),
            result.gas_used,
            self._logs(result),
            self._families(heat, result.gas_used),
            heat,
            blocks_of(self.subject, heat),
            flame_of(self.subject, heat, function.name if function is not None else "call", result.gas_used),
            tracer.steps,
            [*self.notes, *tracer.notes],
        )

    def _traced(self, tracer: StepTracer, data: bytes, value: Number, sender: bytes, gas: Number) -> None:
        """The same call once before, on the reference tier; it is undone."""
        hooks, self.evm.hooks = self.evm.hooks, tracer.hooks()
        try:
            self._called(data, value, sender, gas)
        except Enough:
            pass
        finally:
            self.evm.hooks = hooks

    def _called(self, data: bytes, value: Number, sender: bytes, gas: Number) -> Result:
        if self.subject.is_creation:
            return self.evm.deploy(self.subject.code + data, value=value, caller=sender, gas=gas, address=ADDRESS)
        return self.evm.call(ADDRESS, data, value=value, caller=sender, gas=gas)

    def _heat(self, recording: Recording) -> Heat:
        """Of the contract's own code: immutables are filled in where it is deployed."""
        heat: Heat = {}
        for key, counted in recording.coverage.items():
            if _same_but_filled(counted.code[: len(self.subject.code)], self.subject.code):
                gas = recording.gas.get(key, {})
                for pc, count in sorted(counted.hits.items()):
                    before = heat.get(pc, (0, 0))
                    heat[pc] = before[0] + count, before[1] + gas.get(pc, 0)
        return heat

    def _families(self, heat: Heat, used: int) -> list[dict[str, Any]]:
        found = by_family(self.subject.code, self.subject.fork, heat)
        listed = [{"name": name, "gas": gas, "count": count} for name, (count, gas) in found.items()]
        rest = used - sum(gas for _, gas in found.values())
        return [*listed, {"name": OTHER, "gas": rest, "count": 0}] if rest else listed

    def _reason(self, result: Result) -> str | None:
        if result.ok:
            return None
        return self.subject.abi.explain_revert(result.output) or (str(result.error) if result.error else None)

    def _logs(self, result: Result) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        for log in result.logs[:MAX_LOGS]:
            try:
                decoded = self.subject.abi.decode_log(log)
            except (BadAbi, CannotDecode):
                decoded = None
            found.append(
                {
                    "address": "0x" + log.address.hex(),
                    "topics": [f"0x{topic:064x}" for topic in log.topics],
                    "data": "0x" + log.data[:MAX_OUTPUT].hex(),
                    "decoded": None if decoded is None else str(decoded),
                }
            )
        return found


def _same_but_filled(deployed: bytes, code: bytes) -> bool:
    """Equal except for immutables, which are zero in the code."""
    if len(deployed) != len(code):
        return False
    return all(not code[at] for at, (one, other) in enumerate(zip(deployed, code, strict=True)) if one != other)


def blocks_of(subject: Subject, heat: Heat) -> Heat:
    """How often each block began, and the gas that its instructions took."""
    found: Heat = {}
    for block in basic_blocks(subject.code, subject.fork):
        ran = [heat[each.pc] for each in block.instructions if each.pc in heat]
        if ran:
            found[block.start] = ran[0][0], sum(gas for _, gas in ran)
    return found


def flame_of(subject: Subject, heat: Heat, name: str, used: int) -> dict[str, Any]:
    """Gas by function of the source and by line in it. Inlined functions are included."""
    functions: dict[str, dict[str, int]] = {}
    for pc, (_, gas) in heat.items():
        line = subject.line_at.get(pc, 0)
        function = subject.functions_of_lines.get(line, "code")
        text = f"{line}: {subject.texts[line - 1].strip()[:120]}" if line else "no line"
        by_line = functions.setdefault(function, {})
        by_line[text] = by_line.get(text, 0) + gas
    children: list[dict[str, Any]] = []
    for function, by_line in functions.items():
        below = [{"name": text, "gas": gas, "children": []} for text, gas in _dearest(by_line)]
        children.append({"name": function, "gas": sum(by_line.values()), "children": below})
    children.sort(key=lambda each: -each["gas"])
    rest = used - sum(each["gas"] for each in children)
    if rest:
        children.append({"name": OTHER, "gas": rest, "children": []})
    return {"name": name, "gas": used, "children": children}


def _dearest(by_line: Mapping[str, int]) -> list[tuple[str, int]]:
    return sorted(by_line.items(), key=lambda item: -item[1])


def calldata(abi: Abi, call: str | BytesLike | None, arguments: Sequence[Any]) -> tuple[bytes, Function | None]:
    """A name or a signature with its arguments, or the bytes as they are."""
    if call is None:
        return b"", None
    if not isinstance(call, str) or call.startswith("0x") or not call:
        data = to_bytes(call, "calldata")
        return data, next((each for each in abi.functions if data[:4] == each.selector), None)
    try:
        function = abi.functions[call] if call in abi.functions else Function.parse(call)
        given = zip(function.inputs, arguments, strict=False)
        read = [typed(each.type, value, f"argument {at}") for at, (each, value) in enumerate(given, 1)]
        return function.encode(*read, *arguments[len(read) :]), function
    except BadValue as error:
        raise BadSource(f"call {call!r}: {error}") from None


def _decoded(function: Function | None, result: Result) -> str | None:
    if function is None or not result.ok or not function.outputs:
        return None
    try:
        return str(function.decode(result.output))
    except (BadAbi, CannotDecode):
        return None
