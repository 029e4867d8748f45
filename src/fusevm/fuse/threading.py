"""Jump threading: a jump to a block that only jumps on goes straight to the end of the chain.

Every hop's gas is added to the section that jumps, 1 + 3 + 8 each, so nothing is free. A hop pushes its target before
it jumps; the jumping block pushed one at the same height, so the stack's bounds are checked already. A JUMPDEST with
others behind it is a hop as well, but it pushes nothing, and so does not jump further itself. A hop to nowhere fails
when it is taken, as it would, and a chain that bites its own tail is followed only so far: gas ends it.
"""

from __future__ import annotations

from collections.abc import Container

from fusevm.fuse.sections import SECTION_LIMIT, Section, Token

MOST_HOPS = 16


def threaded(sections: list[Section], dests: Container[int]) -> list[Section]:
    jumping = [
        index
        for index, section in enumerate(sections)
        if section.tokens and section.tokens[-1].name == "JUMP@" and not section.row
    ]
    targets = {sections[index].tokens[-1].operand for index in jumping}
    hops = {
        section.pc: (section.gas, section.steps, section.tokens[0])
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
    for index in jumping:
        found[index] = _threaded(sections[index], hops)
    return found


def _threaded(section: Section, hops: dict[int, tuple[int, int, Token]]) -> Section:
    last = section.tokens[-1]
    if last.operand not in hops:
        return section
    gas, steps, target = section.gas, section.steps, last.operand
    for _ in range(MOST_HOPS):
        if target not in hops or gas > SECTION_LIMIT:
            break
        hop_gas, hop_steps, hop = hops[target]
        gas += hop_gas
        steps += hop_steps
        target = hop.operand
    last = last._replace(operand=target, steps=last.steps + steps - section.steps)
    return section._replace(gas=gas, steps=steps, tokens=[*section.tokens[:-1], last])
