"""Real code in pieces: what a call of a contract runs, and a little more, as code of its own.

A whole contract takes a second to optimise, and most changes to it are never run. A piece is a tenth as long, has the
same instructions, and runs most of what it has.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Set
from functools import cache

from fusevm.chain.environment import Context, Message
from fusevm.chain.state import State
from fusevm.evm.bytecode import JUMPDEST, BasicBlock, basic_blocks, jumpdests
from fusevm.reference.hooks import Hooks, Step
from fusevm.reference.interpreter import execute

_PUSH2, _JUMP = 0x61, 0x56
_ELSEWHERE = bytes((JUMPDEST, 0x60, 0, 0x60, 0, 0xFD))  # revert(0, 0): where ways go that were left out
SHORTEST = 256  # code in which addresses are not pushed by PUSH2 is not cut


def places_run(message: Message, state: State, context: Context) -> frozenset[int]:
    """Of the message's own code."""
    found: set[int] = set()

    def on_opcode(step: Step) -> None:
        if step.address == message.address and step.depth == 1:
            found.add(step.pc)

    execute(message, state, context, Hooks(on_opcode=on_opcode))
    return frozenset(found)


def piece(code: bytes, run: Set[int], rng: random.Random, more: int = 3) -> bytes:
    """The blocks that were run, and up to so many that they may lead to.

    A PUSH2 of where a JUMPDEST is counts as its address. Where that is wrong, the piece does something else than the
    contract, which is as good a test.
    """
    if len(code) < SHORTEST:
        return code
    blocks, targets = _decoded(code)
    kept = {block.start for block in blocks if block.start in run}
    beside = {word for block in blocks if block.start in kept for word in _addresses(block, targets)} - kept
    kept |= set(rng.sample(sorted(beside), min(more, len(beside))))
    chosen = [block for block in blocks if block.start in kept]
    falls_out = {block.start for block in chosen if _falls(block) and block.end not in kept}
    places: dict[int, int] = {}
    at = 0
    for block in chosen:
        places[block.start] = at
        at += block.end - block.start + (4 if block.start in falls_out else 0)
    made = bytearray()
    for block in chosen:
        made += _moved(code, block, targets, lambda target: places.get(target, at))
        if block.start in falls_out:
            made += bytes((_PUSH2, *at.to_bytes(2, "big"), _JUMP))
    return bytes(made) + _ELSEWHERE


@cache
def _decoded(code: bytes) -> tuple[list[BasicBlock], frozenset[int]]:
    """Of the few contracts that there are, from which many pieces are cut."""
    return basic_blocks(code), jumpdests(code)


def _addresses(block: BasicBlock, targets: Set[int]) -> list[int]:
    return [
        each.push
        for each in block.instructions
        if each.byte == _PUSH2 and each.push is not None and each.push in targets
    ]


def _falls(block: BasicBlock) -> bool:
    return block.last.op is not None and not block.last.op.ends


def _moved(code: bytes, block: BasicBlock, targets: Set[int], place: Callable[[int], int]) -> bytes:
    octets = bytearray(code[block.start : block.end])
    for each in block.instructions:
        if each.byte == _PUSH2 and each.push is not None and each.push in targets and not each.truncated:
            start = each.pc - block.start + 1
            octets[start : start + 2] = place(each.push).to_bytes(2, "big")
    return bytes(octets)
