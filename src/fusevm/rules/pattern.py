"""The form of a rewrite rule: trees of opcodes over metavariables, conditions, and a result.

A rule is data. Its constants, conditions and computed constants are themselves trees of pure opcodes, so that one text
is evaluated as integers when the rule fires and as bit-vectors when it is proved, at any width. What value analysis
knows of an operand is a number too (`Fact`), together with what it says of the operand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum, Flag, auto
from functools import cached_property
from typing import Any, TypeAlias

from fusevm.evm.forks import Fork
from fusevm.evm.opcodes import BY_NAME
from fusevm.evm.words import INTEGER_MEANINGS, MEANINGS, Algebra


class VariableKind(Enum):
    """What a metavariable may stand for."""

    ANY = "any value"
    CONSTANT = "a constant"
    VARIABLE = "a value that is not a constant"
    BOOLEAN = "a value known to be zero or one"


class Tree:
    """A pattern, a condition or a result. Python's operators build the opcodes of the same name."""

    __slots__ = ()

    def __add__(self, other: Operand) -> Node:
        return ADD(self, other)

    def __sub__(self, other: Operand) -> Node:
        return SUB(self, other)

    def __rsub__(self, other: Operand) -> Node:
        return SUB(other, self)

    def __neg__(self) -> Node:
        return SUB(0, self)

    def __mul__(self, other: Operand) -> Node:
        return MUL(self, other)

    def __rmul__(self, other: Operand) -> Node:
        return MUL(other, self)

    def __floordiv__(self, other: Operand) -> Node:
        return DIV(self, other)

    def __mod__(self, other: Operand) -> Node:
        return MOD(self, other)

    def __and__(self, other: Operand) -> Node:
        return AND(self, other)

    def __or__(self, other: Operand) -> Node:
        return OR(self, other)

    def __xor__(self, other: Operand) -> Node:
        return XOR(self, other)

    def __invert__(self) -> Node:
        return NOT(self)

    def __lshift__(self, other: Operand) -> Node:
        return SHL(other, self)

    def __rlshift__(self, other: Operand) -> Node:
        return SHL(self, other)

    def __rshift__(self, other: Operand) -> Node:
        return SHR(other, self)

    def __rrshift__(self, other: Operand) -> Node:
        return SHR(self, other)

    def __lt__(self, other: Operand) -> Node:
        return LT(self, other)

    def __gt__(self, other: Operand) -> Node:
        return GT(self, other)

    def __le__(self, other: Operand) -> Node:
        return ISZERO(GT(self, other))

    def __ge__(self, other: Operand) -> Node:
        return ISZERO(LT(self, other))


Operand: TypeAlias = "Tree | int"


@dataclass(frozen=True, slots=True)
class Meta(Tree):
    """A metavariable. The same name stands for the same value wherever it occurs in a rule."""

    name: str
    kind: VariableKind


@dataclass(frozen=True, slots=True)
class Const(Tree):
    """A fixed constant, which may depend on the width."""

    text: str
    at: Callable[[int], int] = field(compare=False)


@dataclass(frozen=True, slots=True)
class Node(Tree):
    """An opcode with its operands in stack order, the top first."""

    op: str
    args: tuple[Tree, ...] = ()
    label: str | None = field(default=None, compare=False)  # how to print it where its opcodes would hide the idea


@dataclass(frozen=True, slots=True)
class Fact(Tree):
    """What value analysis knows when the rule fires, as a number: the greatest word that X can be, whether X < Y."""

    name: str
    of: tuple[Meta, ...]

    @property
    def text(self) -> str:
        return _FACTS[self.name][0].format(*[meta.name for meta in self.of])

    @property
    def meaning(self) -> Tree:
        """What is true of the values if that is the number."""
        return _FACTS[self.name][1](self, *self.of)


def tree(operand: Operand) -> Tree:
    if isinstance(operand, Tree):
        return operand
    value = int(operand)
    return Const(str(value), lambda bits: value % (1 << bits))


def _opcode(name: str) -> Callable[..., Node]:
    pops = BY_NAME[name].pops

    def build(*operands: Operand) -> Node:
        if len(operands) != pops:
            raise ValueError(f"{name} takes {pops} operands, not {len(operands)}")
        return Node(name, tuple(tree(each) for each in operands))

    return build


ADD, MUL, SUB, DIV, SDIV = _opcode("ADD"), _opcode("MUL"), _opcode("SUB"), _opcode("DIV"), _opcode("SDIV")
MOD, SMOD, ADDMOD, MULMOD = _opcode("MOD"), _opcode("SMOD"), _opcode("ADDMOD"), _opcode("MULMOD")
EXP, SIGNEXTEND, BYTE, CLZ = _opcode("EXP"), _opcode("SIGNEXTEND"), _opcode("BYTE"), _opcode("CLZ")
LT, GT, SLT, SGT = _opcode("LT"), _opcode("GT"), _opcode("SLT"), _opcode("SGT")
EQ, ISZERO = _opcode("EQ"), _opcode("ISZERO")
AND, OR, XOR, NOT = _opcode("AND"), _opcode("OR"), _opcode("XOR"), _opcode("NOT")
SHL, SHR, SAR = _opcode("SHL"), _opcode("SHR"), _opcode("SAR")
ADDRESS, BALANCE, SELFBALANCE = _opcode("ADDRESS"), _opcode("BALANCE"), _opcode("SELFBALANCE")
EXTCODESIZE, EXTCODEHASH = _opcode("EXTCODESIZE"), _opcode("EXTCODEHASH")
CALLER, ORIGIN, COINBASE = _opcode("CALLER"), _opcode("ORIGIN"), _opcode("COINBASE")

X, Y, Z = Meta("X", VariableKind.ANY), Meta("Y", VariableKind.ANY), Meta("Z", VariableKind.ANY)
A, B, C = Meta("A", VariableKind.CONSTANT), Meta("B", VariableKind.CONSTANT), Meta("C", VariableKind.CONSTANT)
V = Meta("V", VariableKind.VARIABLE)
P, Q = Meta("P", VariableKind.BOOLEAN), Meta("Q", VariableKind.BOOLEAN)

BITS = Const("bits", lambda bits: bits)  # 256
BYTES = Const("bytes", lambda bits: bits // 8)  # 32
TOP = Const("bits-1", lambda bits: bits - 1)  # the highest bit's number
LAST = Const("bytes-1", lambda bits: bits // 8 - 1)  # the lowest byte's number, as BYTE counts
MAX = Const("~0", lambda bits: (1 << bits) - 1)
SIGN = Const("sign", lambda bits: 1 << (bits - 1))  # only the top bit: the least signed number
SMAX = Const("~sign", lambda bits: (1 << (bits - 1)) - 1)  # the greatest signed number


_FACTS: dict[str, tuple[str, Callable[..., Tree]]] = {  # how each is written, and its meaning
    "low": ("low({})", lambda fact, x: x >= fact),
    "high": ("high({})", lambda fact, x: x <= fact),
    "bits": ("bits({})", lambda fact, x: ISZERO(x & ~fact)),
    "less": ("{} < {}", lambda fact, x, y: fact <= LT(x, y)),
    "not_greater": ("{} ≤ {}", lambda fact, x, y: fact <= (x <= y)),
}


class Use(Flag):
    """The users of a rule."""

    YUL = auto()  # solc has it: the exact mode of the Yul ExpressionSimplifier reads it by rank
    ENGINE = auto()  # the fold engine, in every mode
    NATIVE = auto()  # the fold engine if gas is charged separately: faster on the machine, more expensive as bytecode
    RANGES = auto()  # the fold engine with value analysis: the rule has conditions on facts


YUL, ENGINE, NATIVE = Use.YUL, Use.ENGINE, Use.NATIVE


@dataclass(frozen=True)
class Rule:
    """`pattern` is `result` whenever every tree of `when` (on constants) and `given` (on facts) is not zero.

    >>> from fusevm.rules import RULES
    >>> rule = next(rule for rule in RULES if rule.name == "sub-zero")
    >>> rule.equation, rule.family
    ('SUB(X, 0) → X', 'addition')
    """

    name: str
    pattern: Node
    result: Tree
    when: tuple[Tree, ...] = ()
    use: Use = ENGINE
    solc: int | None = None  # its place among solc's 212 rules; two rows share one where solc computes which result
    axiom: str | None = None  # why it holds, where no word arithmetic can say so: an EIP
    family: str = ""
    given: tuple[Tree, ...] = ()

    @cached_property
    def equation(self) -> str:
        condition = " and ".join(text(each) for each in (*self.when, *self.given))
        return f"{call_text(self.pattern)} → {text(self.result)}" + (f"  if {condition}" if condition else "")

    @property
    def equation_name(self) -> str:
        """Shared by the operand orders of one equation: "xor-cancels.3" is "xor-cancels"."""
        return self.name.split(".")[0]

    @cached_property
    def since(self) -> Fork:
        """The first fork that has every opcode of the result the pattern does not already show to be there."""
        shown = {node.op for node in nodes(self.pattern)}
        made = [node.op for node in nodes(self.result) if node.op not in shown and not is_constant(node)]
        return max((BY_NAME[name].since for name in made), default=Fork.FRONTIER)

    @cached_property
    def made(self) -> int:
        """How many new instructions the result has. More than one pays only if the pattern's inner values die."""
        return sum(not is_constant(node) for node in nodes(self.result))

    @cached_property
    def facts(self) -> tuple[Fact, ...]:
        """Each that a condition asks for, once."""
        return tuple(dict.fromkeys(fact for each in self.given for fact in facts(each)))

    @property
    def assumed(self) -> tuple[Tree, ...]:
        """What a proof may assume: the conditions, and what the facts in them mean."""
        return (*self.when, *self.given, *(fact.meaning for fact in self.facts))

    @cached_property
    def holds(self) -> Callable[[Mapping[str, int]], bool]:
        """Whether the condition holds for these constants, as 256-bit words; compiled once."""
        if not self.when:
            return lambda constants: True
        return _compiled(" and ".join(python(each) for each in self.when))

    def number(self, root: Tree, constants: Mapping[str, int]) -> int:
        """What a computed constant of the result is, as a 256-bit word."""
        code = self._numbers.get(root)
        if code is None:
            code = self._numbers[root] = _compiled(python(root))
        return int(code(constants))

    @cached_property
    def _numbers(self) -> dict[Tree, Callable[[Mapping[str, int]], Any]]:
        return {}


# -- reading trees ------------------------------------------------------------------------------------------------


def nodes(root: Tree) -> Iterator[Node]:
    """Every opcode of the tree, outermost first."""
    if isinstance(root, Node):
        yield root
        for arg in root.args:
            yield from nodes(arg)


def metas(root: Tree) -> Iterator[Meta]:
    """Every occurrence of a metavariable, left to right."""
    if isinstance(root, Meta):
        yield root
    elif isinstance(root, Node):
        for arg in root.args:
            yield from metas(arg)


def facts(root: Tree) -> Iterator[Fact]:
    """Every occurrence of a fact, left to right."""
    if isinstance(root, Fact):
        yield root
    elif isinstance(root, Node):
        for arg in root.args:
            yield from facts(arg)


def is_constant(root: Tree) -> bool:
    """Known when the rule fires: made of constants, facts and pure opcodes alone."""
    if isinstance(root, Node):
        return root.op in MEANINGS and all(is_constant(arg) for arg in root.args)
    return isinstance(root, Const | Fact) or (isinstance(root, Meta) and root.kind is VariableKind.CONSTANT)


def evaluate(root: Tree, algebra: Algebra, values: dict[str, Any]) -> Any:
    """The tree's word in that domain; `values` holds one for each metavariable's name and each fact's text."""
    match root:
        case Meta(name):
            return values[name]
        case Fact():
            return values[root.text]
        case Const():
            return algebra.const(root.at(algebra.bits))
        case Node(op, args):
            return MEANINGS[op](algebra, *(evaluate(arg, algebra, values) for arg in args))
    raise TypeError(f"not a tree: {root!r}")


_DIRECT = {  # what integers do without a call; everything else asks the word meanings
    "ADD": "({} + {} & MAX)", "SUB": "({} - {} & MAX)", "MUL": "({} * {} & MAX)", "AND": "({} & {})",
    "OR": "({} | {})", "XOR": "({} ^ {})", "NOT": "({} ^ MAX)", "LT": "({} < {})", "GT": "({} > {})",
    "EQ": "({} == {})", "ISZERO": "({} == 0)",
}  # fmt: skip
PYTHON_NAMES: dict[str, Any] = {"MAX": (1 << 256) - 1, **INTEGER_MEANINGS}


def python(root: Tree, known: Mapping[str, str] | None = None) -> str:
    """The tree as an expression of Python's; `known` has those of constants and facts, else all are in `c`."""
    match root:
        case Meta(name) | Fact(text=name):
            return f"c[{name!r}]" if known is None else known[name]
        case Const():
            return hex(root.at(256))
        case Node(op, args):
            parts = [python(arg, known) for arg in args]
            return _DIRECT[op].format(*parts) if op in _DIRECT else f"{op}({', '.join(parts)})"
    raise TypeError(f"not a tree: {root!r}")


def _compiled(expression: str) -> Callable[[Mapping[str, int]], Any]:
    code: Callable[[Mapping[str, int]], Any] = eval(f"lambda c: {expression}", PYTHON_NAMES)
    return code


# -- writing trees ------------------------------------------------------------------------------------------------

_INFIX = {
    "ADD": "+", "SUB": "-", "MUL": "·", "DIV": "/", "MOD": "mod", "AND": "&", "OR": "|", "XOR": "^",
    "LT": "<", "GT": ">", "EQ": "=",
}  # fmt: skip
_NEGATED = {"LT": "≥", "GT": "≤", "EQ": "≠"}


def text(root: Tree, nested: bool = False) -> str:
    """Instructions as calls, arithmetic on constants as arithmetic."""
    match root:
        case Meta(name):
            return name
        case Const(name) | Fact(text=name):
            return name
        case Node(label=str(label)):
            return label
        case Node() if is_constant(root):
            arithmetic = _arithmetic(root)
            return f"({arithmetic})" if nested and " " in arithmetic else arithmetic
        case Node():
            return call_text(root)
    raise TypeError(f"not a tree: {root!r}")


def call_text(node: Node) -> str:
    return f"{node.op}({', '.join(text(arg) for arg in node.args)})"


def _arithmetic(node: Node) -> str:
    args = [text(arg, nested=True) for arg in node.args]
    match node:
        case Node("SUB", (Const("0"), _)):
            return f"-{args[1]}"
        case Node("NOT"):
            return f"~{args[0]}"
        case Node("SHL"):
            return f"{args[1]} << {args[0]}"
        case Node("SHR"):
            return f"{args[1]} >> {args[0]}"
        case Node("ISZERO", (Node(op, (left, right)),)) if op in _NEGATED:
            return f"{text(left, nested=True)} {_NEGATED[op]} {text(right, nested=True)}"
        case Node("ISZERO"):
            return f"{args[0]} = 0"
        case Node(op) if op in _INFIX:
            return f"{args[0]} {_INFIX[op]} {args[1]}"
    return call_text(node)
