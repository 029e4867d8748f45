"""Jump threading: a jump to a block that only jumps on goes straight to the end of the chain.

Every hop's gas is added to the section that jumps, 1 + 3 + 8 each, so nothing is free. A hop pushes its target before
it jumps; the jumping block pushed one at the same height, so the stack's bounds are checked already. A JUMPDEST with
others behind it is a hop as well, but it pushes nothing, and so does not jump further itself. A hop to nowhere fails
when it is taken, as it would, and a chain that bites its own tail is not followed round it: gas ends it.
"""

from __future__ import annotations

from collections.abc import Container
from typing import NamedTuple

from fusevm.schedule.sections import Section, section_of, token_of


class _Hops(NamedTuple):
    gas: int
    steps: int
    target: int


def threaded(sections: list[Section], dests: Container[int]) -> list[Section]:
    jumping = [
        index
        for index, section in enumerate(sections)
        if section.tokens and section.tokens[-1].name == "JUMP@" and not section.row
    ]
    targets = {sections[index].tokens[-1].operand for index in jumping}
    hops = {
        section.pc: _Hops(section.gas, section.steps, section.tokens[0].operand)
        for section in sections
        if section.pc in targets
        and section.needs == 0
        and section.grows <= 1  # a JUMPI of a known condition pushes two
        and len(section.tokens) == 1
        and section.tokens[0].name == "JUMP@"
        and section.pc in dests
    }
    if not hops:
        return sections
    found = list(sections)
    chains: dict[int, _Hops] = {}
    for index in jumping:
        section = sections[index]
        pc, gas, grows, tokens, steps = section.pc, section.gas, section.grows, section.tokens, section.steps
        name, target, place, stands_for = tokens[-1]
        if target in hops:
            chain = chains.get(target) or _chain(target, hops, chains)
            last = token_of((name, chain.target, place, stands_for + chain.steps))
            fields = (pc, gas + chain.gas, section.needs, grows, [*tokens[:-1], last], steps + chain.steps, 0)
            found[index] = section_of(fields)
    return found


def _chain(start: int, hops: dict[int, _Hops], chains: dict[int, _Hops]) -> _Hops:
    """All the hops from here to the end of the chain as one, and so for all hops on the way."""
    path: list[int] = []
    on_path: set[int] = set()
    target = start
    while target in hops and target not in chains and target not in on_path:
        path.append(target)
        on_path.add(target)
        target = hops[target].target
    if target in on_path:  # round and round: each of these hops is only itself
        for pc in path[path.index(target) :]:
            chains[pc] = hops[pc]
    rest = chains.get(target) or _Hops(0, 0, target)
    for pc in reversed(path):
        if pc not in chains:
            hop = hops[pc]
            rest = chains[pc] = _Hops(hop.gas + rest.gas, hop.steps + rest.steps, rest.target)
    return chains[start]
