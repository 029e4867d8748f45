"""The notation of the tables of rules: one line per rule, its operand orders, and the vocabulary of conditions."""

from __future__ import annotations

# ruff: noqa: F403, F405
from collections.abc import Iterable, Iterator
from dataclasses import replace

from fusevm.evm.opcodes import OPCODES_TABLE
from fusevm.rules.pattern import *

COMMUTATIVE = frozenset(op.name for op in OPCODES_TABLE if op.commutes)  # in their first two operands


def rule(
    name: str,
    pattern: Node,
    result: Operand,
    *when: Tree,
    solc: int | None = None,
    use: Use | None = None,
    axiom: str | None = None,
) -> Rule:
    """One equation, for the engine, and for the exact Yul mode too where solc has it."""
    if use is None:
        use = ENGINE if solc is None else ENGINE | YUL
    return Rule(name, pattern, tree(result), when, use, solc, axiom)


def ranged(name: str, pattern: Node, result: Operand, *conditions: Tree) -> Rule:
    """A rule with conditions on facts, for the engine with value analysis."""
    given = tuple(each for each in conditions if any(facts(each)))
    when = tuple(each for each in conditions if each not in given)
    return Rule(name, pattern, tree(result), when, Use.RANGES, given=given)


def yul(name: str, pattern: Node, result: Operand, *when: Tree, solc: int) -> Rule:
    """A rule of solc's that the engine covers in another way, or goes against its direction."""
    return rule(name, pattern, result, *when, solc=solc, use=YUL)


def mirrored(name: str, pattern: Node, result: Operand, *when: Tree, solc: tuple[int, ...] = ()) -> list[Rule]:
    """The rule, and the same with the outermost operands exchanged."""
    return _numbered(name, [pattern, _swapped(pattern)], tree(result), when, solc)


def orders(name: str, pattern: Node, result: Operand, *when: Tree, solc: tuple[int, ...] = ()) -> list[Rule]:
    """The rule with the operands of every commutative opcode in either order, the outermost exchanged last."""
    variants = [each for each in _orders(pattern) if isinstance(each, Node)]
    return _numbered(name, variants, tree(result), when, solc)


def family(name: str, *parts: Rule | Iterable[Rule]) -> tuple[Rule, ...]:
    flat = [each for part in parts for each in ([part] if isinstance(part, Rule) else part)]
    return tuple(replace(each, family=name) for each in flat)


def _numbered(
    name: str, patterns: list[Node], result: Tree, when: tuple[Tree, ...], solc: tuple[int, ...]
) -> list[Rule]:
    rules: list[Rule] = []
    seen: set[str] = set()
    ranks = iter(solc)
    for pattern in patterns:
        shape = _shape(pattern)
        if shape in seen:
            continue
        seen.add(shape)
        rank = next(ranks, None)
        use = (Use(0) if _constant_left(pattern) else ENGINE) | (YUL if rank is not None else Use(0))
        if use:
            number = len(rules) + 1
            rules.append(Rule(name if number == 1 else f"{name}.{number}", pattern, result, when, use, rank))
    return rules


def _swapped(node: Node) -> Node:
    left, right, *rest = node.args
    return Node(node.op, (right, left, *rest))


def _orders(root: Tree) -> Iterator[Tree]:
    if not isinstance(root, Node):
        yield root
        return
    operands: list[tuple[Tree, ...]] = [()]
    for arg in root.args:
        operands = [(*before, each) for before in operands for each in _orders(arg)]
    made = [Node(root.op, args) for args in operands]
    yield from made
    if root.op in COMMUTATIVE:
        yield from (_swapped(each) for each in made)


def _shape(pattern: Node) -> str:
    """The pattern's text with its metavariables named by first occurrence: equal shapes match the same terms."""
    names: dict[str, str] = {}

    def renamed(root: Tree) -> Tree:
        if isinstance(root, Meta):
            return Meta(names.setdefault(root.name, f"{root.kind.name}{len(names)}"), root.kind)
        return Node(root.op, tuple(renamed(arg) for arg in root.args)) if isinstance(root, Node) else root

    return text(renamed(pattern))


def _constant_left(root: Tree) -> bool:
    """Whether a constant stands where the engine's canonical order never leaves one."""
    if not isinstance(root, Node):
        return False
    here = root.op in COMMUTATIVE and is_constant(root.args[0]) and not is_constant(root.args[1])
    return here or any(_constant_left(arg) for arg in root.args)


# -- the vocabulary of conditions and computed constants -------------------------------------------------------------


def _named(node: Node, label: str) -> Node:
    return replace(node, label=label)


def anew(a: Tree) -> Node:
    """The constant is computed, not copied: solc then prints the literal again, which shows in Yul texts."""
    return _named(OR(a, 0), text(a))


def non_zero(a: Tree) -> Node:
    return _named(ISZERO(ISZERO(a)), f"{text(a, nested=True)} ≠ 0")


def both(left: Tree, right: Tree) -> Node:
    """For truths, which are zero or one."""
    return _named(AND(left, right), f"({text(left)} and {text(right)})")


def either(left: Tree, right: Tree) -> Node:
    """For truths."""
    return _named(OR(left, right), f"({text(left)} or {text(right)})")


def power_of_two(a: Tree) -> Node:
    return _named(LT(a & (a - 1), ISZERO(ISZERO(a))), f"{text(a)} = 2^k")


def low_mask(a: Tree) -> Node:
    return _named(ISZERO(a & (a + 1)), f"{text(a)} = 2^k-1")


def covers(a: Tree, b: Tree) -> Node:
    """Every bit of b is in a."""
    return _named(ISZERO(b & ~a), f"{text(b, nested=True)} ⊆ {text(a, nested=True)}")


def apart(a: Tree, b: Tree) -> Node:
    return _named(ISZERO(a & b), f"{text(a, nested=True)} & {text(b, nested=True)} = 0")


def lowest(a: Tree) -> Node:
    """Its lowest bit alone."""
    return _named(a & -a, f"lowest({text(a)})")


def multiple_of_8(a: Tree) -> Node:
    return _named(ISZERO(a & 7), f"8 divides {text(a)}")


def sum_below(a: Tree, b: Tree, bound: Tree) -> Node:
    """For a small bound: neither operand nor their sum reaches it, so the sum does not wrap either."""
    return _named(LT(a, bound) & LT(b, bound) & LT(a + b, bound), f"{text(a)} + {text(b)} < {text(bound)}")


def sum_reaches(a: Tree, b: Tree, bound: Tree) -> Node:
    return _named(ISZERO(sum_below(a, b, bound)), f"{text(a)} + {text(b)} ≥ {text(bound)}")


def low(x: Meta) -> Fact:
    """The least word that x can be."""
    return Fact("low", (x,))


def high(x: Meta) -> Fact:
    """The greatest word that x can be."""
    return Fact("high", (x,))


def bits(x: Meta) -> Fact:
    """The bits of x that may be set."""
    return Fact("bits", (x,))


def less(x: Meta, y: Meta) -> Fact:
    """x is known to be less than y: that follows from a branch, or from how they were computed."""
    return Fact("less", (x, y))


def not_greater(x: Meta, y: Meta) -> Fact:
    """x is known to be less than y, or equal."""
    return Fact("not_greater", (x, y))


def log2(a: Tree) -> Node:
    """Of a power of two."""
    return _named(TOP - CLZ(a), f"log2 {text(a)}")


def minimum(a: Tree, b: Tree) -> Node:
    """b, or a where that is less: the difference is taken in by a mask of all ones or none."""
    return _named(b ^ ((a ^ b) & -LT(a, b)), f"min({text(a)}, {text(b)})")


def product_fits(a: Tree, b: Tree) -> Node:
    return _named(ISZERO(ISZERO(a)) & (b <= MAX // a), f"{text(a)} · {text(b)} fits")


def shift_fits(count: Tree, a: Tree) -> Node:
    """a << count loses no bits."""
    return _named(LT(count, BITS) & EQ(SHR(count, SHL(count, a)), a), f"{text(a)} << {text(count)} fits")


def low_bytes(k: Tree) -> Node:
    """The mask of what SIGNEXTEND(k, _) reads, k less than the number of bytes."""
    return _named(SHR(BITS - 8 - (k << 3), MAX), f"low_bytes({text(k)})")


def low_sign(k: Tree) -> Node:
    """The bit that SIGNEXTEND(k, _) copies, k less than the number of bytes."""
    return _named(SHL((k << 3) + 7, tree(1)), f"low_sign({text(k)})")
