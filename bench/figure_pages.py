"""The pages that docs/figures.json becomes, from templates in `bench/pages`; and the numbers of README.md.

A template has a line `{{section}}` where tables and charts of it stand (`PARTS`). A number in README.md is replaced
where its sentence is found (`SENTENCES`). Nothing is measured here: a test compares what is written with what would be.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from figure_charts import bars
from fusevm.lab.peers.bench import GROUPS, geometric_mean

ROOT = Path(__file__).resolve().parent.parent
DOCS, TEMPLATES = ROOT / "docs", ROOT / "bench" / "pages"
FIGURES = DOCS / "figures.json"
LARGE, SHORT, _ = GROUPS
THEIRS, OURS = "solc, the better", "200 runs"  # codes in `bytecode`
MEASURES = {"bytes": "bytes", "reducible": "reducible gas", "gas": "all gas"}
LEFT = {"size": "bytes", "reducible": "reducible gas"}  # in `optimize`

Figures = dict[str, dict[str, Any]]  # by section
Row = Iterable[object]


def render(figures: Figures) -> dict[Path, str]:
    """Every file that states figures, as it should be."""
    made = {DOCS / template.name: page(template.read_text("utf-8"), figures) for template in TEMPLATES.glob("*.md")}
    if "contracts" in figures:
        made[DOCS / "images" / "against-pyrevm.svg"] = against_pyrevm(figures)
    if "bytecode" in figures:
        made[DOCS / "images" / "against-solc.svg"] = against_solc(figures)
    made[ROOT / "README.md"] = readme((ROOT / "README.md").read_text("utf-8"), figures)
    return made


def page(template: str, figures: Figures) -> str:
    """A part whose section was not measured yet says so."""

    def part(match: re.Match[str]) -> str:
        section = match[1]
        if section not in figures:
            return f"Not measured yet: `python bench/figures.py '{section}'`."
        return "\n".join(PARTS[section](figures))

    return re.sub(r"^\{\{(.+)\}\}$", part, template, flags=re.MULTILINE)


def readme(text: str, figures: Figures) -> str:
    for section, pattern, numbers in SENTENCES:
        if section in figures:
            text = _with_numbers(text, pattern, numbers(figures))
    return text


def _with_numbers(text: str, pattern: str, numbers: Iterable[str]) -> str:
    """The text with other numbers where the groups of the pattern are. Raises ValueError where it is not found."""
    found = re.search(pattern, text)
    if found is None:
        raise ValueError(f"README.md has no sentence like {pattern!r}")
    for group, number in reversed(list(enumerate(numbers, 1))):
        start, end = found.span(group)
        text = text[:start] + number + text[end:]
    return text


# -- what figures mean ------------------------------------------------------------------------------------------------


def result(figures: Figures, section: str) -> Any:
    return figures[section]["results"][0]["result"]


def times_pyrevm(figures: Figures, group: str, tier: str = "auto") -> dict[str, float]:
    """How many times as fast as pyrevm, by file."""
    rows = [row for row in result(figures, "contracts") if row["group"] == group]
    pairs = ((row["name"], row["seconds"].get("pyrevm"), row["seconds"].get(tier)) for row in rows)
    return {name: theirs / ours for name, theirs, ours in pairs if theirs and ours}


def against_solc_by(figures: Figures, measure: str) -> dict[str, float]:
    """A measure of our code relative to the better one of solc's, by contract."""
    rows = {(row["contract"], row["code"]): row[measure] for row in result(figures, "bytecode")}
    return {name: rows[name, OURS] / theirs for (name, code), theirs in rows.items() if code == THEIRS}


# -- parts ------------------------------------------------------------------------------------------------------------


def source(figures: Figures, section: str) -> str:
    """The command, and where and when it ran."""
    found = figures[section]
    commands = "; ".join(f"`{each['command']}`" for each in found["results"])
    return f"{commands}\n({found['date']}, revision {found['commit']}, {found['machine']})."


def table(head: Row, rows: Iterable[Row]) -> Iterator[str]:
    names = list(head)
    yield f"| {' | '.join(map(str, names))} |"
    yield "| --- " * len(names) + "|"
    for row in rows:
        yield f"| {' | '.join(map(str, row))} |"


def contracts(figures: Figures) -> Iterator[str]:
    yield f"{source(figures, 'contracts')}\n\n![Times pyrevm's speed, by contract](images/against-pyrevm.svg)\n"
    rows = []
    for group in GROUPS:
        auto, native = (times_pyrevm(figures, group, tier) for tier in ("auto", "native"))
        least = min(auto, key=auto.__getitem__)
        means = (f"{geometric_mean(each.values()):.2f}" for each in (auto, native))
        rows.append((group, len(auto), *means, f"{auto[least]:.2f} ({least})"))
    yield from table(("times pyrevm's speed", "files", "`auto`", "`native`", "least on `auto`"), rows)


def calls(figures: Figures) -> Iterator[str]:
    yield source(figures, "calls") + " Microseconds, the best of many short batches in one process.\n"
    rows = result(figures, "calls")
    names = [name for name in rows[0] if name != "what"]
    yield from table(("", *names), ((row["what"], *(f"{row[name]:,.2f}" for name in names)) for row in rows))


def lives(figures: Figures) -> Iterator[str]:
    yield source(figures, "lives") + "\n"
    head = ("life", "`native`, µs", "`regions`, µs", "`auto`, µs", "first second", "settled", "whole", "counting")
    yield from table(head, (_life(row) for row in result(figures, "lives")))


def _life(row: dict[str, Any]) -> Row:
    times = (f"{row[tier] * 1e6:,.1f}" for tier in ("native", "regions", "auto"))
    ratios = (f"{row[each]:.2f}" for each in ("first_second", "settled", "whole"))
    return row["life"].replace("_", " "), *times, *ratios, f"{row['counting']:.1%}"


def bytecode(figures: Figures) -> Iterator[str]:
    yield source(figures, "bytecode")
    yield "\n![Bytes and gas relative to solc's, by contract](images/against-solc.svg)\n"
    rows = []
    for measure, name in MEASURES.items():
        ratios = against_solc_by(figures, measure)
        worst = max(ratios, key=ratios.__getitem__)
        rows.append((name, f"{geometric_mean(ratios.values()):.3f}", f"{ratios[worst]:.3f} ({worst})"))
    yield from table(("relative to the better of solc's", "mean", "worst contract"), rows)


def optimize(figures: Figures) -> Iterator[str]:
    yield source(figures, "optimize") + "\n"
    rows = result(figures, "optimize")
    ratios = ((name, [row[measure] for row in rows]) for measure, name in LEFT.items())
    yield from table(
        ("left of solc's codes", "mean", "worst", "best"),
        ((name, f"{geometric_mean(each):.3f}", f"{max(each):.3f}", f"{min(each):.3f}") for name, each in ratios),
    )


def node(figures: Figures) -> Iterator[str]:
    yield source(figures, "node") + " Milliseconds, the best of several.\n"
    found = result(figures, "node")
    rows = ((name, *(f"{each[who]:.2f}" for who in ("fusevm", "anvil"))) for name, each in found.items())
    yield from table(("", "fusevm", "anvil"), rows)


def runs(section: str) -> Callable[[Figures], Iterator[str]]:
    """Commands, and how each ended."""

    def show(figures: Figures) -> Iterator[str]:
        found = figures[section]
        yield f"{found['date']}, revision {found['commit']}, {found['machine']}.\n"
        yield from table(("command", "result"), ((f"`{each['command']}`", each["result"]) for each in found["results"]))

    return show


SUITES = "state tests", "blockchain tests", "programs against peers", "programs on all tiers", "compilers", "rules"
PARTS: dict[str, Callable[[Figures], Iterator[str]]] = {
    **{each.__name__: each for each in (contracts, calls, lives, bytecode, optimize, node)},
    **{name: runs(name) for name in SUITES},
}


# -- sentences of README.md -------------------------------------------------------------------------------------------


def headline(figures: Figures) -> tuple[str, ...]:
    large, short = (times_pyrevm(figures, group) for group in (LARGE, SHORT))
    return f"{geometric_mean(large.values()):.1f}", str(len(large)), f"{geometric_mean(short.values()):.1f}"


def beside_solc(figures: Figures) -> tuple[str, ...]:
    return tuple(f"{geometric_mean(against_solc_by(figures, measure).values()):.2f}" for measure in MEASURES)


def least_gained(figures: Figures) -> Iterator[str]:
    for measure in MEASURES:
        ratios = against_solc_by(figures, measure)
        worst = max(ratios, key=ratios.__getitem__)
        yield f"{ratios[worst]:.2f}"
        yield worst


def codes_left(figures: Figures) -> tuple[str, ...]:
    rows = result(figures, "optimize")
    unchanged = sum(row["size"] == row["reducible"] == 1.0 for row in rows)
    means = (f"{geometric_mean(row[measure] for row in rows):.2f}" for measure in LEFT)
    return str(len(rows)), str(unchanged), *means


SENTENCES: tuple[tuple[str, str, Callable[[Figures], Iterable[str]]], ...] = (
    ("contracts", r"\*\*([\d.]+) times pyrevm's speed\*\*[^.]*?over (\d+) contracts \(([\d.]+) times", headline),
    (
        "optimize",
        r"of solc's (\d+) codes for the same contracts (\d+); over all of them ([\d.]+) of the\s+bytes and ([\d.]+)",
        codes_left,
    ),
    (
        "bytecode",
        r"least it gains: ([\d.]+) of the bytes \((\w+)\), ([\d.]+) of the reducible gas \((\w+)\), "
        r"([\d.]+) of all gas \((\w+),",
        least_gained,
    ),
    ("bytecode", r"([\d.]+) of the bytes, ([\d.]+) of the gas that a compiler can change and ([\d.]+) of", beside_solc),
)


# -- charts -----------------------------------------------------------------------------------------------------------


def against_pyrevm(figures: Figures) -> str:
    found = times_pyrevm(figures, LARGE)
    rows = [(name, [found[name]]) for name in sorted(found, key=found.__getitem__, reverse=True)]
    return bars("Times pyrevm's speed, hot code compiled", rows, ["fusevm"])


def against_solc(figures: Figures) -> str:
    found = {name: against_solc_by(figures, measure) for measure, name in MEASURES.items() if measure != "gas"}
    rows = [(contract, [each[contract] for each in found.values()]) for contract in next(iter(found.values()))]
    return bars("Relative to the better of solc's codes", rows, list(found))
