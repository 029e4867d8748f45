"""Yul as plain functions: check, optimise, compile and run it, from source text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fusevm.chain.environment import Block, Context, Message
from fusevm.chain.outcome import Failure, Status
from fusevm.chain.state import Log, State
from fusevm.codegen.yul import RUNS, CompiledObject, compile_object
from fusevm.evm.forks import LATEST, Fork
from fusevm.values import AddressLike, BytesLike, to_address, to_bytes
from fusevm.yul.execution.evm import run_message
from fusevm.yul.execution.host import Limits
from fusevm.yul.optimise import optimize as _optimised
from fusevm.yul.syntax.ast import Object
from fusevm.yul.syntax.checks import check
from fusevm.yul.syntax.dialect import Dialect, dialect_for
from fusevm.yul.syntax.errors import YulError
from fusevm.yul.syntax.printer import print_object

if TYPE_CHECKING:
    from fusevm.yul.sequence import Names

Source = str | bytes | Object
GAS = 30_000_000
CALLER, ADDRESS = bytes(19) + b"\xca", bytes(19) + b"\xc0"


def parse(source: Source, fork: str | Fork = LATEST) -> Object:
    """The program, checked. Raises `YulError` for the first mistake; `error.others` has the rest.

    >>> parse("{ sstore(0, 1) }").code.statements[0].expression.name
    'sstore'
    """
    return _checked(source, dialect_for(fork))


def _checked(source: Source, dialect: Dialect) -> Object:
    if isinstance(source, Object):
        return source
    obj, errors = check(source, dialect)
    wrong = [error for error in errors if not error.is_warning]
    if wrong:
        wrong[0].others = [error for error in errors if error is not wrong[0]]
        raise wrong[0]
    assert obj is not None
    return obj


def optimize(source: Source, fork: str | Fork = LATEST, *, runs: int = RUNS, steps: str | Names | None = None) -> str:
    """The source optimised, by solc's steps in solc's order unless `steps` says others; the text is as solc writes it.

    >>> print(optimize("{ let x := add(1, 2) sstore(0, x) }"))
    { { sstore(0, 3) } }
    """
    dialect = dialect_for(fork)
    return print_object(_optimised(_checked(source, dialect), dialect, runs, steps))


def compile(  # noqa: A001 (read as fusevm.yul.compile)
    source: Source,
    fork: str | Fork = LATEST,
    *,
    runs: int | None = RUNS,
    libraries: Mapping[str, AddressLike] | None = None,
) -> CompiledObject:
    """Bytecode: `code` is what creates the contract, `runtime.code` what is deployed.

    `runs` is how often the deployed code is expected to run; 0 asks for the smallest code, None improves nothing.

    >>> compile("{ sstore(0, add(1, 2)) }").code.hex()
    '60035f5500'
    """
    dialect = dialect_for(fork)
    given = {name: to_address(each, f"libraries[{name!r}]") for name, each in (libraries or {}).items()}
    linked = {name: int.from_bytes(address, "big") for name, address in given.items()}
    return compile_object(_checked(source, dialect), dialect, linked, runs=runs)


@dataclass(slots=True)
class YulRun:
    """How a run of Yul ended.

    >>> run("{ sstore(1, 2) }").storage
    {1: 2}
    """

    status: Status
    output: bytes
    storage: dict[int, int]
    logs: list[Log] = field(default_factory=list)
    failure: Failure | None = None

    @property
    def ok(self) -> bool:
        """Whether it succeeded."""
        return self.status is Status.SUCCESS


def run(source: Source, data: BytesLike = b"", fork: str | Fork = LATEST, *, steps: int = 10_000_000) -> YulRun:
    """Interprets the outermost code as it stands, as a contract called with this data in an empty state.

    Raises LimitReached, an Exception, after this many steps.

    >>> run("{ mstore(0, add(calldataload(0), 1)) return(0, 32) }", bytes(31) + b"\\x29").output[-1]
    42
    """
    dialect = dialect_for(fork)
    obj, payload = _checked(source, dialect), to_bytes(data)
    try:
        compiled = compile_object(obj, dialect)
        code, places = compiled.code, compiled.places
    except YulError:  # it can be run, but offsets of data are not known
        code, places = b"", {}
    state, context = State(), Context(dialect.fork, Block(), CALLER)
    state.set_code(ADDRESS, code)
    state.begin_transaction()
    message = Message(CALLER, ADDRESS, code, payload, gas=GAS, code_address=ADDRESS)
    outcome = run_message(obj, message, state, context, places, Limits(steps=steps))
    storage = {key: value for key, value in sorted(state.account(ADDRESS).storage.items()) if value}
    return YulRun(outcome.status, outcome.output, storage, list(state.logs), outcome.failure)
