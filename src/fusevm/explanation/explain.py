"""`fusevm.explain`: what became of a contract, from source to bytecode, and what its calls do."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cached_property, partial
from typing import Any

from fusevm.abi.interface import Abi
from fusevm.evm.forks import LATEST, Fork, fork_named
from fusevm.explanation.bytecode import explain_assembly, explain_bytecode, explain_code
from fusevm.explanation.collecting import uncollected
from fusevm.explanation.comparison import Comparison, compare
from fusevm.explanation.compilers import compile_solidity, compile_vyper
from fusevm.explanation.dependencies import Dependencies, dependencies_of
from fusevm.explanation.document import VERSION, Line, Made, Pane
from fusevm.explanation.graph import Graph, graph_of
from fusevm.explanation.html import Steps, panes_html
from fusevm.explanation.inputs import BadSource, SourceInput, read
from fusevm.explanation.interface import functions_in, interface_of
from fusevm.explanation.places import functions_of_lines
from fusevm.explanation.runs import CALLER, GAS, CallRunner, Run, Subject, calldata
from fusevm.explanation.schedule import schedule_pane
from fusevm.explanation.trace import MAX_STEPS
from fusevm.explanation.yul import explain_yul
from fusevm.values import AddressLike, BytesLike, Number
from fusevm.yul.sequence import Names
from fusevm.yul.syntax.dialect import dialect_for

PARTS = ("schedule", "graph", "machine")  # what takes long to make


class Explanation:
    """A contract in all its forms, side by side, with links between their lines.

    >>> from fusevm import explain
    >>> explanation = explain("{ sstore(0, add(1, 2)) }")
    >>> print(explanation.pane("bytecode"))
    0x0000  PUSH1 0x03
    0x0002  PUSH0
    0x0003  SSTORE
    0x0004  STOP
    """

    def __init__(self, source: SourceInput, made: Made, fork: Fork, runs: int, abi: Any, machine: bool) -> None:
        self.name, self.language = source.name, source.language
        self.fork, self.runs = fork, runs
        self.code: bytes = made.code
        self.objects, self.object = made.objects, made.chosen
        self.sequence, self.totals, self.folds = made.sequence, made.totals, made.folds
        self.notes: list[str] = made.notes
        self.steps = Steps(made.steps)
        self.abi: Abi = interface_of(abi, source.artifact, source.text, made.code, fork)
        self._has_interface = abi is not None or bool(source.artifact and len(source.artifact.abi.functions))
        self._source, self._made, self._with_machine = source, made, machine

    def __repr__(self) -> str:
        return f"<Explanation of {self.name}: {self.language}, {len(self.code):,} bytes at {self.fork.label}>"

    @cached_property
    @uncollected
    def panes(self) -> list[Pane]:
        """From the source to the schedule, in the order in which one became the other; machine code if asked for."""
        found = [*self._made.panes, self.schedule]
        return [*found, self.machine] if self._with_machine else found

    @cached_property
    @uncollected
    def schedule(self) -> Pane:
        """What the native tier runs: sections and fusions."""
        return schedule_pane(self.code, self.fork, self._made.lines_at)

    @cached_property
    def machine(self) -> Pane:
        """The machine code of all functions and loops; to compile them takes about a millisecond per opcode."""
        from fusevm.explanation.machine import machine_pane  # and with it LLVM

        return machine_pane(self.code, self.fork, self._made.lines_at)

    @cached_property
    @uncollected
    def graph(self) -> Graph:
        """The control flow of the final code, laid out."""
        return graph_of(self.code, self.fork, self._made.lines_at, self._made.functions_at)

    def dependencies(self, pc: int) -> Dependencies:
        """The dependency graph of the block that contains an opcode."""
        return dependencies_of(self.code, self.fork, pc)

    @cached_property
    def functions(self) -> list[dict[str, Any]]:
        """What can be called."""
        return functions_in(self.abi, self.code, self.fork, complete=self._has_interface)

    def pane(self, id: str) -> Pane:  # noqa: A002 (the name of the key)
        """One of the panes: source, yul, ir, bytecode, schedule or machine. Raises BadSource where there is none."""
        for each in self.panes:
            if each.id == id:
                return each
        raise BadSource(f"pane {id!r}: unknown; known: {', '.join(each.id for each in self.panes)}")

    # -- runs

    @cached_property
    def _runner(self) -> CallRunner:
        source = self._made.panes[0]
        texts = [line.text for line in source.lines]
        if self.language in ("bytecode", "assembly"):
            named = {
                line: function["name"]
                for function in self.graph.functions
                for block in self.graph.blocks
                if block.function == function["name"]
                for line in block.src
            }
        else:
            named = functions_of_lines(self._source.text, self.language)
        made = self._made
        creation = made.creation()
        return CallRunner(
            Subject(self.code, self.fork, self.abi, made.line_at, texts, named, creation, made.is_creation)
        )

    def run(
        self,
        call: str | BytesLike | None = None,
        arguments: Sequence[Any] = (),
        *,
        value: Number = 0,
        caller: AddressLike = CALLER,
        gas: Number = GAS,
        most_steps: int = MAX_STEPS,
    ) -> Run:
        """Calls the contract: by the name or signature of a function with its arguments, or with calldata as it is.

        State is kept from one run to the next, `reset` begins again. The trace has the first `most_steps` steps; heat
        and gas count all.

        >>> from fusevm import explain
        >>> explanation = explain("0x5f54600101805f555f5260205ff3")  # counts its calls
        >>> [int(explanation.run().output, 16) for _ in range(3)]
        [1, 2, 3]
        """
        data, function = calldata(self.abi, call, arguments)
        return self._runner.run(data, function, value, caller, gas, most_steps)

    def reset(self) -> None:
        """The state before the first run."""
        self._runner.reset()

    def compare(
        self, other: Explanation, call: str | BytesLike | None = None, arguments: Sequence[Any] = (), **options: Any
    ) -> Comparison:
        """What became of each block in another version; with a call, what it costs in both. See `compare`."""
        return compare(self, other, call, arguments, **options)

    # -- data

    @uncollected
    def to_json(self, parts: Collection[str] | None = None) -> dict[str, Any]:
        """Everything as plain data, as docs/explain.md lists it.

        `parts` says which of those that take long are among it: `schedule`, `graph`, `machine` (default: all, machine
        code if it was asked for). What is left out stands in `pending`; `part` gives it later.
        """
        wanted = parts if parts is not None else [each for each in PARTS if each != "machine" or self._with_machine]
        made = self._made
        late = [self.part(each) for each in ("schedule", "machine") if each in wanted]
        return {
            "version": VERSION,
            "name": self.name,
            "language": self.language,
            "fork": self.fork.label,
            "runs": self.runs,
            "objects": made.objects,
            "object": made.chosen,
            "sequence": made.sequence,
            "totals": made.totals.as_data(),
            "panes": [*(pane.as_data() for pane in made.panes), *late],
            "steps": [step.as_data() for step in self.steps],
            "folds": {str(number): chain for number, chain in made.folds.items()},
            "graph": self.part("graph") if "graph" in wanted else None,
            "dependencies": {},
            "lines": {str(pc): line for pc, line in made.line_at.items() if line > 0},
            "functions": self.functions,
            "deferred": made.deferred,
            "notes": [*self.notes, *(self.graph.notes if "graph" in wanted else [])],
            "pending": [each for each in PARTS if each not in wanted],
        }

    def part(self, name: str) -> dict[str, Any]:
        """One of the parts that take long, as plain data: the pane `schedule` or `machine`, or the `graph`."""
        if name not in PARTS:
            raise BadSource(f"part {name!r}: unknown; known: {', '.join(PARTS)}")
        found: Pane | Graph = getattr(self, name)
        return found.as_data()

    def _repr_html_(self) -> str:
        return panes_html(self.name, self.panes, self._made.totals, self.notes)


@uncollected
def explain(
    source: Any,
    fork: str | Fork = LATEST,
    *,
    language: str | None = None,
    name: str | None = None,
    contract: str | None = None,
    runs: int = 200,
    steps: str | Names | None = None,
    object: str | None = None,  # noqa: A002 (Yul's word)
    optimised: bool | None = None,
    abi: Any = None,
    machine: bool = False,
    compiler: str | None = None,
) -> Explanation:
    """What became of a contract: of Yul, assembly, hex, bytes, an artifact, or a file of any of these.

    Solidity is compiled to Yul by `solc`, and Vyper to bytecode by `vyper`: those on PATH, or the given `compiler`.

    - `language`, `name`, `contract`: where the text does not tell them, or there are several contracts.
    - `runs`, `steps`: as `fusevm yul optimize` takes them. `object`: which object of a Yul program is shown (default:
      what is deployed), or `creation` or `runtime` of bytecode.
    - `optimised`: whether anything is optimised (default: bytecode where it is short enough to be quick).
    - `abi`: an ABI or a list of signatures, for runs. `machine`: machine code as well, which takes a while.

    Raises BadSource, a ValueError, in one line.

    >>> explanation = explain("0x6001600201600301" + "5f5260205ff3")
    >>> print(explanation.pane("bytecode").lines[0].text)
    0x0000  PUSH1 0x06
    """
    chosen = fork_named(fork)
    given = read(source, language, name, contract)
    if given.language == "yul":
        made = explain_yul(given.text, dialect_for(chosen), runs, steps, object, as_written=optimised is False)
    elif given.language == "assembly":
        made = explain_assembly(given.text, chosen, runs, optimised)
    elif given.language == "bytecode":
        made = explain_bytecode(given.code, given.creation, chosen, runs, optimised, object)
    elif given.language == "solidity":
        solc = compile_solidity(given.text, given.name, chosen, contract, compiler)
        made = explain_yul(
            solc.yul, dialect_for(chosen), runs, steps, object, (given.text, solc.source), optimised is False
        )
        abi = solc.abi if abi is None else abi
    else:
        vyper = compile_vyper(given.text, given.name, compiler)
        lines = [Line(text, (number,)) for number, text in enumerate(given.text.split("\n"), 1)]
        made = explain_code(vyper.runtime, chosen, runs, optimised, lines, vyper.lines_at, "vyper")
        made.creation = partial(bytes, vyper.creation)
        abi = vyper.abi if abi is None else abi
    return Explanation(given, made, chosen, runs, abi, machine)
