"""`fusevm.explain`: what became of a contract, from source to bytecode."""

from __future__ import annotations

from typing import Any

from fusevm.evm.forks import LATEST, Fork, fork_named
from fusevm.explanation.bytecode import explain_assembly, explain_bytecode
from fusevm.explanation.document import VERSION, Made, Pane
from fusevm.explanation.inputs import BadSource, Source, read
from fusevm.explanation.yul import explain_yul
from fusevm.yul.sequence import Names
from fusevm.yul.syntax.dialect import dialect_for


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

    def __init__(self, source: Source, made: Made, fork: Fork, runs: int) -> None:
        self.name, self.language = source.name, source.language
        self.fork, self.runs = fork, runs
        self.code = made.code
        self.panes: list[Pane] = made.panes
        self.notes: list[str] = made.notes
        self.steps = made.steps
        self._source, self._made = source, made

    def pane(self, id: str) -> Pane:  # noqa: A002 (the name of the key)
        """One of the panes: source, yul, ir, bytecode, schedule or machine.

        Raises BadSource where there is none.
        """
        for each in self.panes:
            if each.id == id:
                return each
        raise BadSource(f"there is no pane {id!r}; there are {', '.join(each.id for each in self.panes)}")

    def to_json(self) -> dict[str, Any]:
        """Everything as plain data, as docs/explain.md lists it."""
        made = self._made
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
            "panes": [pane.as_data() for pane in self.panes],
            "steps": [step.as_data() for step in self.steps],
            "folds": made.folds,
            "notes": self.notes,
        }


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
) -> Explanation:
    """What became of a contract: of Yul, assembly, hex, bytes, an artifact, or a file of any of these.

    `steps` are the Yul optimiser's, as `fusevm yul optimize --steps` takes them; `object` says which object of a Yul
    program is shown (default: what is deployed). `optimised` says whether bytecode is optimised (default: where it is
    short enough to be quick). Raises BadSource, a ValueError, in one line.

    >>> explanation = explain("0x6001600201600301" + "5f5260205ff3")
    >>> print(explanation.pane("bytecode").lines[0].text)
    0x0000  PUSH1 0x06
    """
    chosen = fork_named(fork)
    given = read(source, language, name, contract)
    if given.language == "yul":
        made = explain_yul(given.text, dialect_for(chosen), runs, steps, object)
    elif given.language == "assembly":
        made = explain_assembly(given.text, chosen, runs, optimised)
    elif given.language == "bytecode":
        made = explain_bytecode(given.code, chosen, runs, optimised)
    else:
        raise BadSource(f"{given.language} is not explained yet")
    return Explanation(given, made, chosen, runs)
