"""Why rewriting ends: every rule lowers one well-founded order on terms, whatever the order the rules are tried in.

The order is Knuth and Bendix's, in three steps. A term's *cost* is a weight for each opcode and one for each leaf;
opcodes that repeat an operand when they are expanded count that operand as often. Terms of equal cost are distinguished
by how many constants are added or subtracted that are negative. Terms equal in that too compare by the rank of their
outermost opcode, then by their operands from the right: a constant is less than anything else, and of two constants
the smaller one. A rule holds to it for every value of its metavariables: no metavariable may weigh more in the result
than in the pattern, and the comparison itself never asks what a metavariable stands for, except that V is
not a constant.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product

from fusevm.evm.forks import LATEST, rules_of
from fusevm.evm.opcodes import BY_NAME
from fusevm.evm.words import Integers
from fusevm.rules.pattern import Meta, Node, Rule, Tree, VariableKind, evaluate, is_constant, metas, nodes

CONSTANT = 1  # no term is lighter
LEAF = 2  # a value from outside

# About what an opcode costs a processor: between 2 and 5 as gas has it, but division is long and EXP is a loop.
WEIGHTS: dict[str, int] = {
    "ISZERO": 2, "MUL": 5, "SIGNEXTEND": 5, "CLZ": 5,
    "DIV": 25, "MOD": 25, "SDIV": 30, "SMOD": 30, "ADDMOD": 27, "MULMOD": 28, "EXP": 60,
    "BALANCE": 100, "EXTCODESIZE": 100, "EXTCODEHASH": 100, "SELFBALANCE": 5,
    "ADDRESS": 2, "CALLER": 2, "ORIGIN": 2, "COINBASE": 2,
}  # fmt: skip
PLAIN = 3  # every other opcode

# How often an operand counts, where a rule may write it more than once
TIMES: dict[str, tuple[int, ...]] = {"EXP": (4, 2), "SDIV": (2, 1), "SMOD": (3, 1)}

# For terms of equal cost, the later is less; opcodes in one group rank the same, the unnamed are above all
RANKS: tuple[tuple[str, ...], ...] = (
    ("SGT",), ("GT",), ("SLT",), ("MUL",), ("BYTE",), ("SAR",), ("SHL",), ("SHR",), ("SIGNEXTEND",), ("ADD", "SUB"),
    ("AND",), ("OR",), ("XOR",), ("NOT",), ("LT",), ("EQ",), ("ISZERO",),
)  # fmt: skip


@dataclass(frozen=True)
class RuleOrder:
    """One such order: the engine's, or the exact Yul mode's, which turns every subtraction of a constant into an
    addition and so must weigh the two separately instead of counting negative constants."""

    weights: Mapping[str, int] = field(default_factory=lambda: WEIGHTS)
    counts_negatives: bool = True

    def weight(self, op: str) -> int:
        return self.weights.get(op, PLAIN)


ENGINE_ORDER = RuleOrder()
YUL_ORDER = RuleOrder(WEIGHTS | {"SUB": 4}, counts_negatives=False)


class Grows(Exception):
    """The rule does not lower the order; says why."""


def check(rule: Rule, order: RuleOrder) -> str:
    """What the rule lowers: "cost", "negatives" or "order". Raises Grows where it lowers nothing."""
    pattern, result = _Cost.of_call(rule.pattern, order), _Cost.of(rule.result, order)
    heavier = [meta.name for meta, times in result.times.items() if times > pattern.times.get(meta, 0)]
    if heavier:
        raise Grows(f"{rule.name}: {', '.join(heavier)} weighs more in the result")
    if pattern.least != result.least:
        if pattern.least < result.least:
            raise Grows(f"{rule.name}: the result costs more")
        return "cost"
    if order.counts_negatives and _negatives_fall(rule):
        return "negatives"
    if _Comparison(rule, order).greater(rule.pattern, rule.result):
        return "order"
    raise Grows(f"{rule.name}: equal in cost, and the result is not less")


# -- cost ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Cost:
    """A linear form: what is fixed, and how often each metavariable counts."""

    fixed: int
    times: dict[Meta, int]

    @staticmethod
    def of(root: Tree, order: RuleOrder) -> _Cost:
        if is_constant(root):
            return _Cost(CONSTANT, {})
        if isinstance(root, Meta):
            return _Cost(0, {root: 1})
        assert isinstance(root, Node)
        return _Cost.of_call(root, order)

    @staticmethod
    def of_call(root: Node, order: RuleOrder) -> _Cost:
        fixed, times = order.weight(root.op), dict[Meta, int]()
        factors = TIMES.get(root.op, (1,) * len(root.args))
        for factor, arg in zip(factors, root.args, strict=True):
            cost = _Cost.of(arg, order)
            fixed += factor * cost.fixed
            for meta, count in cost.times.items():
                times[meta] = times.get(meta, 0) + factor * count
        return _Cost(fixed, times)

    @property
    def least(self) -> int:
        """With the lightest term for each metavariable: there two costs differ least, as long as none of them weighs
        more in the lesser."""
        lightest = (
            times * (LEAF if meta.kind is VariableKind.VARIABLE else CONSTANT) for meta, times in self.times.items()
        )
        return self.fixed + sum(lightest)


# -- negative constants -------------------------------------------------------------------------------------------


def _negatives_fall(rule: Rule) -> bool:
    """Whether the result has fewer of them for all constants; Grows where it has more for some."""
    if not any(node.op in SIGNED for node in nodes(rule.result)):
        return False
    differences = {_negatives(rule.pattern, case) - _negatives(rule.result, case) for case in constants_of(rule)}
    if min(differences) < 0:
        raise Grows(f"{rule.name}: more negative constants are added or subtracted")
    return min(differences) > 0


SIGNED = ("ADD", "SUB")


def _negatives(root: Tree, values: dict[str, int]) -> int:
    words = Integers(8)

    def negative(arg: Tree) -> bool:
        known = is_constant(arg) or (isinstance(arg, Meta) and arg.name in values)
        return known and evaluate(arg, words, values) > words.sign

    added = (arg for node in nodes(root) if node.op in SIGNED and not is_constant(node) for arg in node.args)
    return sum(negative(arg) for arg in added)


def constants_of(rule: Rule) -> Iterator[dict[str, int]]:
    """Choices of constants that meet the condition, at eight bits: all, or where there are several, the telling ones.
    A metavariable for any value may be a constant too."""
    words = Integers(8)
    named = {meta.name: meta for meta in metas(rule.pattern)}
    several = sum(meta.kind is VariableKind.CONSTANT for meta in named.values()) > 1
    choices: dict[str, Iterable[int | None]] = {}
    for name, meta in named.items():
        if meta.kind is VariableKind.CONSTANT:
            choices[name] = TELLING if several else range(256)
        elif meta.kind is VariableKind.ANY:
            choices[name] = (None, 0x01, 0xFF)
    for values in product(*choices.values()):
        case = {name: value for name, value in zip(choices, values, strict=True) if value is not None}
        if all(evaluate(tree, words, case) for tree in rule.when):
            yield case


TELLING = sorted({*range(10), *range(0, 256, 8), *range(0x7C, 0x84), *range(0xF8, 0x100)})


# -- rank and operands --------------------------------------------------------------------------------------------


class _Comparison:
    """Whether one side is greater for every value of the metavariables."""

    def __init__(self, rule: Rule, order: RuleOrder) -> None:
        self.rule = rule
        self.order = order

    def greater(self, left: Tree, right: Tree) -> bool:
        if left == right:
            return False
        if is_constant(left):
            return is_constant(right) and self._exceeds(left, right)
        if isinstance(left, Meta):
            return left.kind is VariableKind.VARIABLE and is_constant(right)
        if is_constant(right):
            return True
        assert isinstance(left, Node)
        return self._node_greater(left, right)

    def _node_greater(self, left: Node, right: Tree) -> bool:
        if isinstance(right, Meta):
            return right in metas(left)
        assert isinstance(right, Node)
        before, after = _Cost.of(left, self.order), _Cost.of(right, self.order)
        if any(times > before.times.get(meta, 0) for meta, times in after.times.items()):
            return False
        if before.least != after.least:
            return before.least > after.least
        if rank(left.op) != rank(right.op):
            return rank(left.op) > rank(right.op)
        return self._operands_greater(left, right)

    def _operands_greater(self, left: Node, right: Node) -> bool:
        """From the right, the first that differ decide."""
        for one, other in zip(reversed(left.args), reversed(right.args), strict=True):
            if one != other:
                return self.greater(one, other)
        return False

    def _exceeds(self, left: Tree, right: Tree) -> bool:
        words = Integers(8)
        return all(evaluate(left, words, case) > evaluate(right, words, case) for case in constants_of(self.rule))


def rank(op: str) -> int:
    for place, group in enumerate(RANKS):
        if op in group:
            return len(RANKS) - place
    return len(RANKS) + 1


# -- gas ----------------------------------------------------------------------------------------------------------

PUSH, DUP = BY_NAME["PUSH1"].gas, BY_NAME["DUP1"].gas
EXP_GAS = BY_NAME["EXP"].gas + rules_of(LATEST).exp_byte  # with an exponent of one byte


def gas(root: Tree) -> int:
    """What the tree costs as bytecode: opcodes, a push for each constant, a copy for each further use of a value."""
    total = 0
    seen: set[str] = set()
    stack = [root]
    while stack:
        each = stack.pop()
        if is_constant(each):
            total += PUSH
        elif isinstance(each, Meta):
            total += DUP if each.name in seen else 0
            seen.add(each.name)
        elif isinstance(each, Node):
            total += EXP_GAS if each.op == "EXP" else BY_NAME[each.op].gas
            stack.extend(each.args)
    return total
