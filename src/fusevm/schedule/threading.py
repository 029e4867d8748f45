"""Jump threading: a jump to a block that only jumps (a hop) goes directly to the end of the chain.

Every hop's gas is added to the section that jumps, 1 + 3 + 8 each, so nothing is free. A hop pushes its target before
it jumps; the jumping block pushed one at the same height, so the stack's bounds are checked already. A hop may also be
a JUMPI whose condition is pushed and not zero: it pushes two words, and the jumping block's bounds are widened to hold
them. A JUMPDEST with others after it is a hop as well, but it pushes nothing, and so does not jump further itself. A
hop with an invalid target fails when it is taken, as it would, and a cycle of hops is not followed: gas ends it.

A JUMPI to a hop pays for the hops only if it is taken, so their gas cannot be added to its section. `hops_in` gives
the final targets and costs of such jumps; a HOPPING handler charges that as it jumps. It has pushed two words itself,
so a hop finds room for its own.
"""

from __future__ import annotations

from collections.abc import Container
from typing import NamedTuple

from fusevm.schedule.sections import ACTIONS, UNCLEAR, Section, section_of, token_of

HOPPING = "JUMPI@HOP"  # a JUMPI@ that skips hops when it is taken
MAX_PUSHED = 2  # words that a hop pushes: a condition and a target


class Hop(NamedTuple):
    """One hop, or a chain of them."""

    gas: int
    steps: int
    target: int
    grows: int  # words it pushes before it jumps


def threaded(sections: list[Section], dests: Container[int]) -> list[Section]:
    """The sections with every static jump to a hop leading to the end of its chain."""
    jumping = [
        index
        for index, section in enumerate(sections)
        if section.tokens and section.tokens[-1].name == "JUMP@" and not section.row
    ]
    targets = {sections[index].tokens[-1].operand for index in jumping}
    hops = {
        section.pc: Hop(section.gas, section.steps, section.tokens[0].operand, section.grows)
        for section in sections
        if section.pc in targets and _is_hop(section, dests)
    }
    if not hops:
        return sections
    found = list(sections)
    chains: dict[int, Hop] = {}
    for index in jumping:
        section = sections[index]
        name, target, place, stands_for = section.tokens[-1]
        if target not in hops:
            continue
        chain = chains.get(target) or _chain(target, hops, chains)
        opening = index
        if chain.grows > 1:
            while not found[opening].opens_block:
                opening -= 1
            height = _height_after(found[opening : index + 1])
            if height is None:
                continue
            grows = max(found[opening].grows, height + chain.grows)
            found[opening] = found[opening]._replace(grows=grows)
        pc, gas, needs, grows, tokens, steps, _ = found[index]
        last = token_of((name, chain.target, place, stands_for + chain.steps))
        fields = (pc, gas + chain.gas, needs, grows, [*tokens[:-1], last], steps + chain.steps, 0)
        found[index] = section_of(fields)
    return found


def hops_in(sections: list[Section], dests: Container[int]) -> dict[int, Hop]:
    """Hops by pc, in threaded sections: each with its whole chain. Those with an invalid final target are left out."""
    found: dict[int, Hop] = {}
    for section in sections:
        tokens = section.tokens
        if len(tokens) == 1 and tokens[0][0] == "JUMP@" and _is_hop(section, dests):
            target = tokens[0].operand
            if target in dests:
                found.setdefault(section.pc, Hop(section.gas, section.steps, target, section.grows))
    return found


def _is_hop(section: Section, dests: Container[int]) -> bool:
    tokens = section.tokens
    return (
        section.needs == 0
        and len(tokens) == 1
        and tokens[0].name == "JUMP@"
        and section.grows <= MAX_PUSHED
        and section.pc in dests
    )


def _height_after(sections: list[Section]) -> int | None:
    """The change of the stack's height over a block; None if it has a SYNC, or reaches too deep."""
    height = 0
    for section in sections:
        for token in section.tokens:
            if token.name in UNCLEAR:
                return None
            height += ACTIONS[token.name].change
    return height


def _chain(start: int, hops: dict[int, Hop], chains: dict[int, Hop]) -> Hop:
    """Combines all hops from here to the end of the chain into one, and likewise for all hops in between."""
    path: list[int] = []
    on_path: set[int] = set()
    target = start
    while target in hops and target not in chains and target not in on_path:
        path.append(target)
        on_path.add(target)
        target = hops[target].target
    if target in on_path:  # a cycle: each of these hops is only itself
        for pc in path[path.index(target) :]:
            chains[pc] = hops[pc]
    rest = chains.get(target) or Hop(0, 0, target, 0)
    for pc in reversed(path):
        if pc not in chains:
            hop = hops[pc]
            grows = max(hop.grows, rest.grows)
            rest = chains[pc] = Hop(hop.gas + rest.gas, hop.steps + rest.steps, rest.target, grows)
    return chains[start]
