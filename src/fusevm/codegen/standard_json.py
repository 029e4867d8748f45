"""solc's standard JSON interface for `language: "Yul"`.

Keys, error types and messages are solc's, so that tools which call solc with Yul can call this. Differences: source
maps point into the given source, where solc's point into a text it printed; errors have a code; functions have debug
data; `ast` is left out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NoReturn

from fusevm.codegen.listing import listing
from fusevm.codegen.source_map import debug_data
from fusevm.codegen.yul import RUNS, CompiledObject, compile_object
from fusevm.evm.assembler import ADDRESS_BYTES, WORD_BYTES
from fusevm.evm.bytecode import instructions
from fusevm.evm.forks import Fork, UnknownFork, fork_named
from fusevm.evm.keccak import keccak256
from fusevm.evm.source_map import compressed
from fusevm.yul.optimise import optimize
from fusevm.yul.sequence import SequenceError, read_sequences
from fusevm.yul.syntax.ast import Object
from fusevm.yul.syntax.checks import check
from fusevm.yul.syntax.dialect import Dialect, dialect_for
from fusevm.yul.syntax.errors import YulError
from fusevm.yul.syntax.printer import print_object

Json = dict[str, Any]

_KEYS = ("auxiliaryInput", "language", "settings", "sources")
_SETTINGS = (
    "debug", "evmVersion", "experimental", "libraries", "metadata", "modelChecker", "optimizer", "outputSelection",
    "parserErrorRecovery", "remappings", "stopAfter", "viaIR", "viaSSACFG",
)  # fmt: skip
_OPTIMIZER = ("details", "enabled", "runs")
_DETAILS = (
    "constantOptimizer", "cse", "deduplicate", "inliner", "jumpdestRemover", "orderLiterals", "peephole",
    "simpleCounterForLoopUncheckedIncrement", "yul", "yulDetails",
)  # fmt: skip
_YUL_DETAILS = ("optimizerSteps", "stackAllocation")
_BYTECODE = ("functionDebugData", "immutableReferences", "linkReferences", "object", "opcodes", "sourceMap")


class InputRefused(Exception):
    """The input cannot be compiled; carries the entries of `errors`."""

    def __init__(self, *errors: Json) -> None:
        super().__init__(errors)
        self.errors = list(errors)


MAX_DEPTH = 200
_STRINGS = re.compile(r'"(?:[^"\\]|\\.)*"')
_BRACKETS = re.compile(r"[][{}]")


def compile_text(text: str | bytes) -> str:
    """Standard JSON to standard JSON; deterministic."""
    try:
        if _depth(text) > MAX_DEPTH:  # the decoder recurses on the machine stack
            raise RecursionError
        request = json.loads(text)
    except (ValueError, RecursionError) as error:  # not JSON, not text, or a number too long for Python to read
        where = f" at line {error.lineno}, column {error.colno}" if isinstance(error, json.JSONDecodeError) else ""
        reason = (
            error.msg
            if isinstance(error, json.JSONDecodeError)
            else "not text, nested too deeply, or a number too long"
        )
        return json.dumps({"errors": [entry("JSONError", f"parse error{where}: {reason}")]})
    return json.dumps(compile_request(request), sort_keys=True)


def _depth(text: str | bytes) -> int:
    """The nesting depth of brackets outside strings."""
    if isinstance(text, bytes):
        text = text.decode("utf-8")
    depth = deepest = 0
    for bracket in _BRACKETS.findall(_STRINGS.sub("", text)):
        depth += 1 if bracket in "[{" else -1
        deepest = max(deepest, depth)
    return deepest


def compile_request(request: object) -> Json:
    try:
        job = _read(request)
    except InputRefused as refused:
        return {"errors": refused.errors}
    tree, found = check(job.content, job.dialect)
    errors = [_of_source(error, job) for error in found]
    if tree is None or any(not error.is_warning for error in found):
        return {"errors": errors}
    name = tree.name or "object"
    wanted = _Selection(request, job.file, name)
    if not wanted.anything:
        return {"errors": errors}
    try:
        contract = _contract(job, tree, wanted)
    except YulError as error:
        return {"errors": [*errors, _of_source(error, job)]}
    return {"contracts": {job.file: {name: contract}}, "errors": errors} if contract else {"errors": errors}


# -- input ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Job:
    file: str
    content: str
    dialect: Dialect
    runs: int | None  # None: no optimisation
    steps: str | None  # the optimiser's steps, if given
    libraries: dict[str, int]

    @property
    def fork(self) -> Fork:
        return self.dialect.fork


class _Selection:
    """What `outputSelection` requests for one contract."""

    def __init__(self, request: Any, file: str, contract: str) -> None:
        selection = request.get("settings", {}).get("outputSelection", {})
        self.names = {
            name
            for each in ("*", file)
            for key, names in selection.get(each, {}).items()
            if key in ("*", contract)
            for name in names
        }

    @property
    def anything(self) -> bool:
        return bool(self.names)

    def __contains__(self, artifact: str) -> bool:
        """Whether it was requested by name, or as a part of something requested."""
        parts = artifact.split(".")
        return "*" in self.names or any(".".join(parts[:count]) in self.names for count in range(1, len(parts) + 1))


def _read(request: object) -> _Job:
    if not isinstance(request, dict):
        _refuse("JSONError", "Input is not a JSON object.")
    _only(request, _KEYS)
    sources = request.get("sources")
    if not isinstance(sources, dict) or not sources:
        _refuse("JSONError", "No input sources specified.")
    if request.get("language") != "Yul":
        _refuse("JSONError", 'Only "Yul" is supported as a language.')
    settings = _object(request, "settings", _SETTINGS)
    dialect = _dialect(settings)
    libraries = dict(_libraries(settings))
    _check_selection(settings)
    runs, steps = _optimizer(settings)
    file, content = _source(sources)
    return _Job(file, content, dialect, runs, steps, libraries)


def _source(sources: Json) -> tuple[str, str]:
    errors: list[Json] = []
    contents: dict[str, str] = {}
    for name, source in sources.items():
        if not isinstance(source, dict):
            _refuse("JSONError", f'Source input is not a JSON object: "{name}"')
        content = source.get("content")
        if isinstance(content, str):
            given = source.get("keccak256")
            if given is not None and given != "0x" + keccak256(_bytes_of(content)).hex():
                errors.append(entry("IOError", f'Mismatch between content and supplied hash for "{name}"'))
            else:
                contents[name] = content
        elif isinstance(source.get("urls"), list):
            for url in source["urls"]:
                errors.append(entry("IOError", f'Cannot import url ("{url}"): give the source as "content"'))
        else:
            errors.append(entry("JSONError", f'Source "{name}" has no "content".'))
    if len(contents) != 1:
        raise InputRefused(*errors, entry("JSONError", "Yul mode only supports exactly one input file."))
    return next(iter(contents.items()))


def _bytes_of(content: str) -> bytes:
    """JSON can contain lone surrogates, which are not valid text but must reach the lexer."""
    return content.encode("utf-8", "surrogatepass")


def _dialect(settings: Json) -> Dialect:
    version = settings.get("evmVersion")
    if version is None:
        return dialect_for()
    try:
        return dialect_for(fork_named(version)) if isinstance(version, str) else _refuse_version()
    except UnknownFork:
        _refuse_version()


def _refuse_version() -> NoReturn:
    _refuse("JSONError", "Invalid EVM version requested.")


def _libraries(settings: Json) -> Iterator[tuple[str, int]]:
    for file, libraries in _object(settings, "libraries", None).items():
        if not isinstance(libraries, dict):
            _refuse("JSONError", "Library entry is not a JSON object.")
        for name, address in libraries.items():
            if not isinstance(address, str) or not address.startswith("0x"):
                _refuse("JSONError", 'Library address is not prefixed with "0x".')
            if len(address) != 2 + 2 * ADDRESS_BYTES:
                _refuse("JSONError", "Library address is of invalid length.")
            try:
                value = int.from_bytes(bytes.fromhex(address[2:]), "big")
            except ValueError:
                _refuse("JSONError", f'Invalid library address ("{address}") supplied.')
            yield (f"{file}:{name}" if file else name), value


def _check_selection(settings: Json) -> None:
    for file in _object(settings, "outputSelection", None).values():
        if not isinstance(file, dict):
            _refuse("JSONError", '"settings.outputSelection.<file>" must be an object')
        for names in file.values():
            if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
                _refuse("JSONError", '"settings.outputSelection.<file>.<contract>" must be a string array')


def _optimizer(settings: Json) -> tuple[int | None, str | None]:
    """The expected number of runs, None without optimisation; and the optimiser steps."""
    optimizer = _object(settings, "optimizer", _OPTIMIZER)
    details = _object(optimizer, "details", _DETAILS)
    yul_details = _object(details, "yulDetails", _YUL_DETAILS)
    runs = optimizer.get("runs", RUNS)
    if not isinstance(runs, int) or isinstance(runs, bool) or runs < 0:
        _refuse("JSONError", 'The "runs" setting must be an unsigned number.')
    enabled = details.get("yul", optimizer.get("enabled", False))
    if not isinstance(enabled, bool):
        _refuse("JSONError", 'The "enabled" setting must be a Boolean.')
    steps = yul_details.get("optimizerSteps")
    if steps is None:
        return (runs if enabled else None), None
    if not enabled:
        _refuse("JSONError", '"Providing yulDetails requires Yul optimizer to be enabled.')
    try:
        if not isinstance(steps, str):
            raise SequenceError("it is not a string")
        read_sequences(steps)
    except SequenceError as error:
        place = '"settings.optimizer.details.optimizerSteps"'
        _refuse("JSONError", f"Invalid optimizer step sequence in {place}: {error}")
    return runs, steps


def _object(parent: Json, key: str, known: tuple[str, ...] | None) -> Json:
    """An optional object; unknown keys in it are refused."""
    found = parent.get(key, {})
    if not isinstance(found, dict):
        _refuse("JSONError", f'"{key}" must be a JSON object')
    if known is not None:
        _only(found, known)
    return found


def _only(found: Json, known: tuple[str, ...]) -> None:
    for key in sorted(found):
        if key not in known:
            _refuse("JSONError", f'Unknown key "{key}"')


# -- output -----------------------------------------------------------------------------------------------------------


def _contract(job: _Job, tree: Object, wanted: _Selection) -> Json:
    contract: Json = {}
    optimised = tree
    if job.runs is not None and "irOptimized" in wanted:
        optimised = optimize(tree, job.dialect, job.runs, job.steps)
    if "ir" in wanted:
        contract["ir"] = _printed(tree)
    if "irOptimized" in wanted:
        contract["irOptimized"] = _printed(optimised)
    evm = _evm(job, tree, wanted)
    if evm:
        contract["evm"] = evm
    return contract


def _printed(tree: Object) -> str:
    """Printed as an object, even if it is only a block."""
    text = print_object(tree)
    if tree.name or tree.children:
        return text + "\n"
    inner = "\n".join("    " + line for line in f"code {text}".splitlines())
    return f'object "object" {{\n{inner}\n}}\n'


def _evm(job: _Job, tree: Object, wanted: _Selection) -> Json:
    parts = [f"evm.{which}.{key}" for which in ("bytecode", "deployedBytecode") for key in _BYTECODE]
    if not any(part in wanted for part in ("evm.assembly", *parts)):
        return {}
    exact = job.steps is not None
    compiled = compile_object(tree, job.dialect, job.libraries, runs=job.runs, steps=job.steps, exact=exact)
    evm: Json = {}
    if "evm.assembly" in wanted:
        evm["assembly"] = listing(compiled, job.fork) + "\n"
    for which, code in (("bytecode", compiled), ("deployedBytecode", compiled.runtime)):
        if code is not None:
            described = _bytecode(code, job.fork, deployed=which != "bytecode")
            kept = {key: value for key, value in described.items() if f"evm.{which}.{key}" in wanted}
            if kept:
                evm[which] = kept
    return evm


def _bytecode(code: CompiledObject, fork: Fork, deployed: bool) -> Json:
    described: Json = {
        "functionDebugData": debug_data(code.functions),
        "linkReferences": _link_references(code),
        "object": code.placeholder_hex(),
        "opcodes": opcodes_text(code.code, fork),
        "sourceMap": compressed(code.locations.values()),
    }
    if deployed:
        described["immutableReferences"] = {
            name: [{"length": WORD_BYTES, "start": place} for place in places]
            for name, places in code.immutables.items()
        }
    return described


def _link_references(code: CompiledObject) -> Json:
    references: dict[str, dict[str, list[Json]]] = {}
    for library, places in code.libraries.items():
        file, _, name = library.rpartition(":")
        references.setdefault(file, {})[name] = [{"length": ADDRESS_BYTES, "start": place} for place in places]
    return references


def opcodes_text(code: bytes, fork: Fork) -> str:
    """All bytes as instructions, including data, each followed by a space."""
    words: list[str] = []
    for each in instructions(code, fork):
        words.append(each.name if each.op is not None else f"0x{each.byte:X}")
        if each.op is not None and each.op.immediate:
            words.append(f"0x{each.push or 0:X}")
    return "".join(word + " " for word in words)


# -- errors -----------------------------------------------------------------------------------------------------------


def entry(kind: str, message: str) -> Json:
    """An error without a source location."""
    return {
        "component": "general",
        "formattedMessage": message,
        "message": message,
        "severity": "error",
        "type": kind,
    }


def _refuse(kind: str, message: str) -> NoReturn:
    raise InputRefused(entry(kind, message))


def _of_source(error: YulError, job: _Job) -> Json:
    severity = "warning" if error.is_warning else "error"
    found = entry(error.kind.value, error.message)
    found |= {"severity": severity, "errorCode": str(error.code), "formattedMessage": _formatted(error, job)}
    if error.location.start >= 0:
        found["sourceLocation"] = {"end": error.location.end, "file": job.file, "start": error.location.start}
    return found


def _formatted(error: YulError, job: _Job) -> str:
    """The message with the source line, and markers below the error."""
    head = f"{error.kind.value}: {error.message}\n"
    if not error.line:
        return head + "\n"
    line = _bytes_of(job.content).split(b"\n")[error.line - 1].decode(errors="replace")
    number = str(error.line)
    blank = " " * len(number)
    length = max(1, min(error.location.end - error.location.start, len(line) - error.column + 1))
    marks = " " * (error.column - 1) + "^" * length
    return f"{head}{blank}--> {job.file}:{number}:{error.column}:\n{blank} |\n{number} | {line}\n{blank} | {marks}\n\n"
