"""Proofs of the rules from the word meanings, by z3: at 256 bits where it answers in time, else at narrower widths.

A rule is proved at a width when no values meet its condition and distinguish pattern and result. Where a shift count,
a byte number, a power of two or a mask is free, the proof goes case by case: there are few of each, and with the
count known a shift is only wiring.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import product
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any, NamedTuple

from fusevm.evm.words import Integers
from fusevm.rules.families.notation import low_mask, power_of_two
from fusevm.rules.pattern import Meta, Node, Rule, VariableKind, evaluate, metas, nodes

if TYPE_CHECKING:
    from fusevm.rules.domains import Circuits, IntegerDomain

FULL = 256
NARROW = (8, 16, 32)
MAX_CASES = 5_000  # more of them take longer than they are worth
PATIENCE = 30.0  # processor seconds for all cases of a rule: a proof that will not make it is given up early

MAX_MEGABYTES = 1_500  # in each process
TASKS_PER_PROCESS = 60  # z3 keeps what it grew
STEPS_PER_SECOND = 4_000_000  # z3's own count: on a busy machine the same rules are proved, only later

Values = dict[str, int]
Case = dict[str, int | None]  # None: none of the split's numbers


@dataclass(frozen=True, slots=True)
class Proof:
    """What is known about a rule.

    >>> Proof("add-zero", "proved", (256,)).holds
    True
    """

    name: str
    verdict: str  # "proved", "axiom", "refuted" or "undecided"
    widths: tuple[int, ...] = ()  # where it was proved or refuted
    how: str = ""  # the domain that proved it (one of them, where widths differ)
    counterexample: Values | None = None
    seconds: float = 0.0

    @property
    def holds(self) -> bool:
        return self.verdict in ("proved", "axiom")

    @property
    def text(self) -> str:
        at = f"{self.verdict} at {', '.join(map(str, self.widths))}" if self.widths else self.verdict
        if self.counterexample is None:
            return at
        return f"{at} by " + ", ".join(f"{name} = {value:#x}" for name, value in self.counterexample.items())


class Split(NamedTuple):
    """The numbers to try for a metavariable, one by one. The rest is greater than all, or (`complete`) is nothing."""

    numbers: tuple[int, ...]
    complete: bool


Splits = dict[str, Split]


class Refuted(Exception):
    def __init__(self, bits: int, values: Values) -> None:
        super().__init__(bits, values)
        self.bits = bits
        self.values = values


class Undecided(Exception):
    """z3 did not answer in time, or the domain cannot put the question."""


def prove(rule: Rule, timeout: float = 3.0) -> Proof:
    """The strongest thing z3 says, at `timeout` seconds per question."""
    start = time.perf_counter()

    def proof(verdict: str, **found: Any) -> Proof:
        return Proof(rule.name, verdict, seconds=time.perf_counter() - start, **found)

    if rule.axiom is not None:
        return proof("axiom")
    try:
        how = prove_at(rule, FULL, timeout)
        if how is not None:
            return proof("proved", widths=(FULL,), how=how)
        hows = {bits: prove_at(rule, bits, 3 * timeout) for bits in NARROW}
    except Refuted as refuted:
        return proof("refuted", widths=(refuted.bits,), counterexample=refuted.values)
    proved = {bits: how for bits, how in hows.items() if how is not None}
    return proof("proved", widths=tuple(proved), how=max(proved.values())) if proved else proof("undecided")


def prove_at(rule: Rule, bits: int, timeout: float = 3.0) -> str | None:
    """The domain in which the rule is proved at that width, None where none proves it in time; raises Refuted."""
    splits = _splits(rule, bits)
    for domain in domains_for(rule):
        cases = [{}] if domain == "Laws" else _cases(rule, bits, splits)  # laws are slow, and know no numbers
        start = time.process_time()
        try:
            for done, case in enumerate(cases, 1):
                _ask(rule, bits, case, splits, timeout, domain)
                spent = time.process_time() - start
                if spent > timeout and spent * len(cases) > PATIENCE * done:
                    raise Undecided(rule.name)
        except Undecided:
            continue
        return domain
    return None


def prove_all(rules: tuple[Rule, ...], timeout: float = 3.0, workers: int = 2) -> Iterator[tuple[Rule, Proof]]:
    """Proves rules of the table in as many processes; yields in the order in which the proofs end."""
    if workers < 2:
        yield from ((rule, prove(rule, timeout)) for rule in rules)
        return
    named = {rule.name: rule for rule in rules}
    tasks = [(rule.name, timeout) for rule in rules]
    with get_context("spawn").Pool(workers, _start, maxtasksperchild=TASKS_PER_PROCESS) as pool:
        for proof in pool.imap_unordered(_task, tasks):
            yield named[proof.name], proof


def _start() -> None:
    """Ctrl-C is for the process that started this one, which then ends it."""
    import signal

    import z3

    signal.signal(signal.SIGINT, signal.SIG_IGN)

    z3.set_param("memory_max_size", MAX_MEGABYTES)


def _task(task: tuple[str, float]) -> Proof:
    """Rules do not travel between processes, their names do."""
    name, timeout = task
    return prove(_table()[name], timeout)


@cache
def _table() -> dict[str, Rule]:
    from fusevm.rules.families import RULES

    return {rule.name: rule for rule in RULES}


# -- one question -------------------------------------------------------------------------------------------------


def domains_for(rule: Rule) -> tuple[str, ...]:
    """Which to try, the likeliest first."""
    ops = {node.op for tree in (rule.pattern, rule.result, *rule.assumed) for node in nodes(tree)}
    if ops & {"DIV", "MOD", "SDIV", "SMOD", "ADDMOD", "MULMOD"}:
        powers = any(tree == power_of_two(meta) for tree in rule.when for meta in metas(tree))
        if powers:
            return ("Circuits",)
        return ("IntegerDomain", "Laws", "Circuits") if "MULMOD" in ops else ("Laws", "IntegerDomain", "Circuits")
    if "MUL" in ops and "SHL" in ops:
        return ("Products", "Circuits")
    if ops <= {"ADD", "SUB", "EQ", "ISZERO", "LT", "GT"}:
        return ("IntegerDomain", "Circuits")
    return ("Circuits",)


def _ask(rule: Rule, bits: int, case: Case, splits: Splits, timeout: float, domain: str) -> None:
    """Are there values that distinguish the two sides?"""
    import z3

    from fusevm.rules import domains

    algebra: Circuits | IntegerDomain = getattr(domains, domain)(bits)
    try:
        values = _values(rule, case, splits, algebra)
        question = z3.simplify(_question(rule, case, splits, algebra, values))
        if z3.is_false(question):
            return
        solver = algebra.solver()
        solver.set("rlimit", int(timeout * STEPS_PER_SECOND))
        solver.set("timeout", int(timeout * 10_000))  # milliseconds, generously: z3 does not count every kind of step
        solver.add(question, *algebra.laws)
        answer = solver.check()
    except (domains.Unsupported, z3.Z3Exception) as error:  # z3's: out of memory
        raise Undecided(f"{rule.name}: {domain}: {error}") from None
    if answer == z3.sat and domain == "Circuits":
        model = solver.model()
        found = {name: model.eval(each, model_completion=True).as_long() for name, each in values.items()}
        raise Refuted(bits, found)
    if answer != z3.unsat:
        raise Undecided(rule.name)


def _values(rule: Rule, case: Case, splits: Splits, algebra: Circuits | IntegerDomain) -> dict[str, Any]:
    """A word for each fact and metavariable. One that must cover some bits is written as itself with those bits set."""
    values: dict[str, Any] = {fact.text: algebra.word(fact.text) for fact in rule.facts}
    for meta in set(metas(rule.pattern)):
        name, number = meta.name, case.get(meta.name)
        least = max(splits[name].numbers) + 1 if name in case and not splits[name].complete else 0
        if number is not None:
            values[name] = algebra.const(number)
        else:
            values[name] = algebra.truth(name) if meta.kind is VariableKind.BOOLEAN else algebra.word(name, least)
    for tree in rule.when:
        match tree:
            case Node("ISZERO", (Node("AND", (bits, Node("NOT", (Meta(name),)))),)):
                if case.get(name) is None and name not in {meta.name for meta in metas(bits)}:
                    values[name] = values[name] | evaluate(bits, algebra, values)
    return values


def _question(rule: Rule, case: Case, splits: Splits, algebra: Circuits | IntegerDomain, values: dict[str, Any]) -> Any:
    import z3

    facts = [z3.Not(algebra.eq(evaluate(tree, algebra, values), algebra.const(0))) for tree in rule.assumed]
    missed = [name for name, number in case.items() if number is None and splits[name].complete]
    if missed:  # no other number can meet the condition, whatever the two sides say
        facts += [
            z3.Not(algebra.eq(values[name], algebra.const(each))) for name in missed for each in splits[name].numbers
        ]
        return z3.And(*facts)
    left, right = evaluate(rule.pattern, algebra, values), evaluate(rule.result, algebra, values)
    equal = algebra.eq(left, right)
    if equal.arg(0).eq(equal.arg(1)):  # the same term: nothing to ask
        return z3.BoolVal(False)
    return z3.And(*facts, z3.Not(equal))


# -- cases --------------------------------------------------------------------------------------------------------

_COUNTS_BITS = ("SHL", "SHR", "SAR")  # by their first operand
_COUNTS_BYTES = ("BYTE", "SIGNEXTEND")


def _splits(rule: Rule, bits: int) -> Splits:
    """The metavariables worth fixing."""
    splits: Splits = {}
    for node in nodes(rule.pattern):
        if node.op in _COUNTS_BITS + _COUNTS_BYTES and isinstance(node.args[0], Meta):
            most = bits if node.op in _COUNTS_BITS else bits // 8
            splits[node.args[0].name] = Split(tuple(range(most + 1)), complete=False)
    for tree in rule.when:
        for meta in metas(tree):
            if tree == power_of_two(meta):
                splits[meta.name] = Split(tuple(1 << place for place in range(bits)), complete=True)
            if tree == low_mask(meta) and not splits:
                splits[meta.name] = Split(tuple((1 << place) - 1 for place in range(bits + 1)), complete=True)
    return splits


def _cases(rule: Rule, bits: int, splits: Splits) -> list[Case]:
    """Every combination the condition does not already rule out, with what is left over as a case of its own."""
    integers = Integers(bits)
    conditions = [(tree, {meta.name for meta in metas(tree)}) for tree in rule.when]
    conditions = [(tree, names) for tree, names in conditions if names <= set(splits)]
    choices: list[tuple[int | None, ...]] = [(*split.numbers, None) for split in splits.values()]
    cases: list[Case] = []
    for numbers in product(*choices):
        case: Case = dict(zip(splits, numbers, strict=True))
        known = {name: number for name, number in case.items() if number is not None}
        if all(evaluate(tree, integers, known) for tree, names in conditions if names <= set(known)):
            cases.append(case)
        if len(cases) > MAX_CASES:
            return [{}]
    return cases
