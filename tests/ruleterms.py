"""Terms to try the rules on: random ones, instances of patterns, and single steps of rewriting."""

from __future__ import annotations

import random
from itertools import pairwise, product

from fusevm.evm.opcodes import BY_NAME
from fusevm.evm.words import MEANINGS
from fusevm.rules.pattern import LT, MAX, Const, Meta, Node, Rule, Tree, VariableKind, metas, tree
from plainmatching import Match, Trees, match, rewrite

TREES = Trees()
EDGES = (0, 1, 2, 7, 8, 31, 32, 33, 255, 256, 257, 1 << 160, (1 << 160) - 1, 1 << 255, (1 << 255) - 1, (1 << 256) - 1)
LEAVES = tuple(Meta(name, VariableKind.ANY) for name in ("p", "q", "r", "s"))
TRUTHS = tuple(LT(left, right) for left, right in pairwise(LEAVES))

Roots = dict[str, tuple[Rule, ...]]


def first_match(term: Tree, roots: Roots) -> Rule | None:
    if not isinstance(term, Node):
        return None
    return next((each for each in roots.get(term.op, ()) if match(each, term, TREES)), None)


def numbers(root: Tree) -> Tree:
    """The tree with numbers spelt as the maker spells them."""
    if isinstance(root, Const):
        return tree(root.at(256))
    return Node(root.op, tuple(numbers(arg) for arg in root.args)) if isinstance(root, Node) else root


def random_word(dice: random.Random) -> int:
    return dice.choice((*EDGES, dice.getrandbits(256), dice.getrandbits(8)))


def random_term(dice: random.Random, depth: int, patterns: list[Node]) -> Tree:
    """Half of it random opcodes, half what the patterns look for."""
    if depth == 0 or dice.random() < 0.2:
        return dice.choice((*LEAVES, tree(random_word(dice))))
    if dice.random() < 0.5:
        pattern = dice.choice(patterns)
        return instance(pattern, {meta.name: random_value(meta, dice, depth - 1, patterns) for meta in metas(pattern)})
    op = dice.choice(tuple(MEANINGS))
    return Node(op, tuple(random_term(dice, depth - 1, patterns) for _ in range(BY_NAME[op].pops)))


def random_value(meta: Meta, dice: random.Random, depth: int, patterns: list[Node]) -> Tree:
    if meta.kind is VariableKind.CONSTANT:
        return tree(random_word(dice))
    return dice.choice(TRUTHS) if meta.kind is VariableKind.BOOLEAN else random_term(dice, depth, patterns)


def places(term: Tree) -> list[tuple[int, ...]]:
    """The paths of all instructions in the term."""
    if not isinstance(term, Node):
        return []
    return [(), *((place, *path) for place, arg in enumerate(term.args) for path in places(arg))]


def at(term: Tree, path: tuple[int, ...]) -> Tree:
    for place in path:
        assert isinstance(term, Node)
        term = term.args[place]
    return term


def replaced(term: Tree, path: tuple[int, ...], part: Tree) -> Tree:
    if not path:
        return part
    assert isinstance(term, Node)
    args = list(term.args)
    args[path[0]] = replaced(args[path[0]], path[1:], part)
    return Node(term.op, tuple(args))


def random_step(term: Tree, roots: Roots, dice: random.Random) -> tuple[Tree, Rule] | None:
    """Some rule that matches somewhere, applied there."""
    paths = places(term)
    dice.shuffle(paths)
    for path in paths:
        part = at(term, path)
        assert isinstance(part, Node)
        rules = list(roots.get(part.op, ()))
        dice.shuffle(rules)
        for each in rules:
            found = rewrite(each, part, TREES)
            if found is not None:
                return replaced(term, path, found), each
    return None


def instance(pattern: Tree, values: dict[str, Tree]) -> Tree:
    if isinstance(pattern, Meta):
        return values[pattern.name]
    if isinstance(pattern, Const):
        return tree(pattern.at(256))
    assert isinstance(pattern, Node)
    return Node(pattern.op, tuple(instance(arg, values) for arg in pattern.args))


def candidates(each: Rule, dice: random.Random) -> list[dict[str, int]]:
    """Constants that may meet the condition: edges, powers and masks, and pairs that add up to a word's bytes."""
    names = sorted({meta.name for meta in metas(each.pattern) if meta.kind is VariableKind.CONSTANT})
    shapes = [1 << dice.randrange(256) for _ in range(8)] + [(1 << dice.randrange(257)) - 1 for _ in range(8)]
    words = [*EDGES, 4, 5, 16, 24, 30, 64, 248, *shapes, dice.getrandbits(256), MAX.at(256) - 5]
    words += [MAX.at(256) ^ word for word in shapes]
    pairs = [dict(zip(names, (a, 256 - 8 * (a + 1)), strict=False)) for a in (3, 15)] if len(names) == 2 else []
    every = [dict(zip(names, values, strict=True)) for values in product(words, repeat=len(names))]
    dice.shuffle(every)
    return pairs + every[:2500]


def reachable(each: Rule, roots: Roots, dice: random.Random) -> bool:
    values: dict[str, Tree] = {}
    leaves, truths = list(LEAVES), list(TRUTHS)
    for meta in {meta.name: meta for meta in metas(each.pattern)}.values():
        values[meta.name] = truths.pop() if meta.kind is VariableKind.BOOLEAN else leaves.pop(0)
    for constants in candidates(each, dice):
        if each.holds(constants):
            term = instance(each.pattern, values | {name: tree(number) for name, number in constants.items()})
            if first_match(term, roots) is each and operands_irreducible(term, roots):
                return True
    return False


def operands_irreducible(term: Tree, roots: Roots) -> bool:
    return all(first_match(at(term, path), roots) is None for path in places(term) if path)


def example(each: Rule) -> Match[Tree]:
    found: Match[Tree] = Match(each)
    for meta in metas(each.pattern):
        if meta.kind is VariableKind.CONSTANT:
            found.constants[meta.name] = 1
        else:
            found.values[meta.name] = meta
    return found
