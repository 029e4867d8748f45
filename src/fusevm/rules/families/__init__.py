"""The one rule base, one file per family. The fold engine and Yul's ExpressionSimplifier read their parts of it."""

from __future__ import annotations

from collections.abc import Iterable

from fusevm.evm.forks import LATEST, Fork
from fusevm.rules.families.addition import ADDITION
from fusevm.rules.families.bits import BITWISE
from fusevm.rules.families.booleans import BOOLEANS
from fusevm.rules.families.commutativity import COMMUTATIVITY
from fusevm.rules.families.comparisons import COMPARISONS
from fusevm.rules.families.constants import CONSTANTS
from fusevm.rules.families.counting import COUNTING
from fusevm.rules.families.division import DIVISION
from fusevm.rules.families.environment import ENVIRONMENT
from fusevm.rules.families.multiplication import MULTIPLICATION
from fusevm.rules.families.narrowing import NARROWING
from fusevm.rules.families.ranges import RANGES
from fusevm.rules.families.reassociation import REASSOCIATION
from fusevm.rules.families.shifts import SHIFTS
from fusevm.rules.pattern import ENGINE, NATIVE, YUL, Rule, Use

# The order in which the engine tries them: what ends the work first, what only moves things last.
RULES: tuple[Rule, ...] = (
    CONSTANTS + ADDITION + MULTIPLICATION + DIVISION + BITWISE + BOOLEANS + COMPARISONS + NARROWING + SHIFTS
    + COUNTING + ENVIRONMENT + COMMUTATIVITY + REASSOCIATION + RANGES
)  # fmt: skip

FAMILIES: dict[str, tuple[Rule, ...]] = {
    name: tuple(rule for rule in RULES if rule.family == name) for name in dict.fromkeys(rule.family for rule in RULES)
}


def engine_rules(fork: Fork = LATEST, native: bool = True) -> tuple[Rule, ...]:
    """For the fold engine; without `native` only those that cost no more gas as bytecode."""
    wanted = ENGINE | NATIVE if native else ENGINE
    return tuple(rule for rule in RULES if rule.use & wanted and rule.since <= fork)


def range_rules() -> tuple[Rule, ...]:
    """For the fold engine with value analysis, besides those; no fork lacks what they need."""
    return tuple(rule for rule in RULES if rule.use & Use.RANGES)


def yul_rules(fork: Fork = LATEST) -> tuple[Rule, ...]:
    """solc's, in solc's order."""
    chosen = (rule for rule in RULES if rule.use & YUL and rule.since <= fork)
    return tuple(sorted(chosen, key=lambda rule: rule.solc or 0))


def by_root(rules: Iterable[Rule]) -> dict[str, tuple[Rule, ...]]:
    """The rules for each outermost opcode, in the order given: the first that matches wins."""
    roots: dict[str, list[Rule]] = {}
    for rule in rules:
        roots.setdefault(rule.pattern.op, []).append(rule)
    return {op: tuple(each) for op, each in roots.items()}
