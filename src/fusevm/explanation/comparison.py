"""Two versions of a contract, block by block: which became which, what each weighs, and what a call costs in each."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple

from fusevm.explanation.graph import GraphBlock
from fusevm.explanation.runs import Run

if TYPE_CHECKING:
    from fusevm.explanation.explain import Explanation

MAX_PAIRS = 200_000  # that are looked at
_ADDRESS = re.compile(r"^0x[0-9a-f]+\s+")  # at the beginning of a line of disassembly


class Matched(NamedTuple):
    """A block of the one and of the other; None where it has no counterpart."""

    before: GraphBlock | None
    after: GraphBlock | None
    gas: tuple[int, int] | None = None  # that a run spent in them

    def as_data(self) -> dict[str, Any]:
        """As JSON has it."""
        one, other = self.before, self.after
        data: dict[str, Any] = {
            "a": None if one is None else one.id,
            "b": None if other is None else other.id,
            "bytes": {"before": _bytes(one), "after": _bytes(other)},
            "gas": {"before": one.gas if one else 0, "after": other.gas if other else 0},
            "src": {"a": list(one.src) if one else [], "b": list(other.src) if other else []},
        }
        return data if self.gas is None else data | {"run": {"before": self.gas[0], "after": self.gas[1]}}


def _bytes(block: GraphBlock | None) -> int:
    return 0 if block is None else block.end - block.id


@dataclass(slots=True)
class Comparison:
    """Blocks of two explanations side by side; static gas is that of every instruction, counted once.

    >>> from fusevm import explain
    >>> one, other = explain("{ sstore(0, add(1, 2)) }", steps=":"), explain("{ sstore(0, 4) }")
    >>> one.compare(other).blocks[0].as_data()["bytes"]
    {'before': 5, 'after': 5}
    """

    blocks: list[Matched]
    bytes: tuple[int, int]
    gas: tuple[int, int]
    runs: tuple[Run, Run] | None = None
    notes: list[str] = field(default_factory=list)

    def as_data(self) -> dict[str, Any]:
        """As JSON has it."""
        data: dict[str, Any] = {
            "blocks": [each.as_data() for each in self.blocks],
            "totals": {
                "bytes": {"before": self.bytes[0], "after": self.bytes[1]},
                "gas": {"before": self.gas[0], "after": self.gas[1]},
            },
            "notes": self.notes,
        }
        if self.runs is not None:
            one, other = self.runs
            data["run"] = {
                "gas": {"before": one.gas_used, "after": other.gas_used},
                "status": {"before": one.status, "after": other.status},
                "same_output": one.output == other.output,
            }
        return data

    def _repr_html_(self) -> str:
        rows = "".join(
            "<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in _cells(each)) + "</tr>" for each in self.blocks
        )
        heads = ("before", "after", "bytes", "gas", "gas of the run")
        return f"<table><tr>{''.join(f'<th>{head}</th>' for head in heads)}</tr>{rows}</table>"


def _cells(each: Matched) -> list[str]:
    data = each.as_data()
    places = ["" if data[key] is None else f"{data[key]:#06x}" for key in ("a", "b")]
    figures = [f"{data[key]['before']:,} → {data[key]['after']:,}" for key in ("bytes", "gas", "run") if key in data]
    return [*places, *figures, *[""] * (3 - len(figures))]


def compare(
    one: Explanation, other: Explanation, call: Any = None, arguments: Sequence[Any] = (), **options: Any
) -> Comparison:
    """What became of each block of the one in the other; with a call, what it costs in both.

    Blocks belong together if they come from the same lines of source, by their text; the rest by its order in functions
    of the same name. `options` are those of `Explanation.run`.
    """
    pairs = _paired(one, other)
    runs: tuple[Run, Run] | None = None
    if call is not None or options:
        runs = one.run(call, arguments, **options), other.run(call, arguments, **options)
        before, after = runs[0].blocks, runs[1].blocks
        pairs = [
            pair._replace(
                gas=(
                    before.get(pair.before.id, (0, 0))[1] if pair.before else 0,
                    after.get(pair.after.id, (0, 0))[1] if pair.after else 0,
                )
            )
            for pair in pairs
        ]
    weights = [(len(each.code), sum(block.gas for block in each.graph.blocks)) for each in (one, other)]
    notes = [*one.graph.notes, *other.graph.notes]
    return Comparison(pairs, (weights[0][0], weights[1][0]), (weights[0][1], weights[1][1]), runs, notes)


def _paired(one: Explanation, other: Explanation) -> list[Matched]:
    found: dict[int, GraphBlock] = {}  # blocks of the one, by number, to those of the other
    taken: set[int] = set()
    mine, others = one.graph.blocks, other.graph.blocks
    for first, second in (*_by_lines(one, other), *_by_order(mine, others)):
        if first.id not in found and second.id not in taken:
            found[first.id] = second
            taken.add(second.id)
    pairs = [Matched(each, found.get(each.id)) for each in mine]
    return pairs + [Matched(None, each) for each in others if each.id not in taken]


def _by_lines(one: Explanation, other: Explanation) -> list[tuple[GraphBlock, GraphBlock]]:
    """Pairs that share lines, those that share most of them first."""
    mine, others = _texts(one), _texts(other)
    by_text: dict[str, list[int]] = {}
    for at, (_, texts) in enumerate(others):
        for text in texts:
            by_text.setdefault(text, []).append(at)
    scores: dict[tuple[int, int], int] = {}
    looked_at = 0
    for at, (_, texts) in enumerate(mine):
        for text in texts:
            for match in by_text.get(text, ()):
                looked_at += 1
                if looked_at > MAX_PAIRS:
                    break
                scores[at, match] = scores.get((at, match), 0) + 1
    order = sorted(
        scores,
        key=lambda pair: (
            -scores[pair] / max(1, len(mine[pair[0]][1] | others[pair[1]][1])),
            abs(pair[0] - pair[1]),
            pair,
        ),
    )
    return [(mine[first][0], others[second][0]) for first, second in order]


def _texts(explanation: Explanation) -> list[tuple[GraphBlock, set[str]]]:
    lines = [_ADDRESS.sub("", line.text).strip() for line in explanation.pane("source").lines]
    return [(block, {lines[number - 1] for number in block.src} - {""}) for block in explanation.graph.blocks]


def _by_order(mine: list[GraphBlock], others: list[GraphBlock]) -> list[tuple[GraphBlock, GraphBlock]]:
    """The first block of a function with the first of the function of that name, and so on."""
    by_function: dict[str | None, list[GraphBlock]] = {}
    for block in others:
        by_function.setdefault(block.function, []).append(block)
    count: dict[str | None, int] = {}
    found: list[tuple[GraphBlock, GraphBlock]] = []
    for block in mine:
        at = count[block.function] = count.get(block.function, -1) + 1
        same = by_function.get(block.function, ())
        if at < len(same):
            found.append((block, same[at]))
    return found
