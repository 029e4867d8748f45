"""Code made to keep a compiler busy, of any size: the budgets are measured and tested with it."""

from __future__ import annotations

import random
from collections.abc import Callable

from fusevm.evm.assembly import assemble
from fusevm.evm.forks import LATEST
from fusevm.lab.ir.generate import ProgramMaker


def _fill(size: int, start: str, piece: str, end: str = "STOP") -> bytes:
    first, middle, last = assemble(start), assemble(piece), assemble(end)
    return first + middle * ((size - len(first) - len(last)) // len(middle)) + last


def exp_tower(size: int) -> bytes:
    """Constant powers of powers: every step folds a 256-bit power."""
    return _fill(size, "PUSH 3", f"PUSH {2**256 - 189:#x} EXP", "PUSH 0 MSTORE STOP")


def unknown_exp_tower(size: int) -> bytes:
    return _fill(size, "PUSH 0 CALLDATALOAD", "PUSH 2 EXP", "PUSH 0 MSTORE STOP")


def straight_line(size: int) -> bytes:
    """One block of arithmetic, memory and storage, whose last words are told, so that little of it is dead."""
    maker = ProgramMaker(random.Random(size), LATEST, wild=0)
    while (missing := size - len(assemble(" ".join(maker.text))) - 200) > 0:
        maker.body(missing // 12 + 1)
        maker.level(min(maker.height, 12))
    maker.tell()
    return assemble(" ".join(maker.text))


def mixed_program(size: int) -> bytes:
    """Branches, loops, functions and straight lines, as programs have them."""
    maker = ProgramMaker(random.Random(size), LATEST, wild=0)
    maker.functions = [("f0", 2, 1), ("f1", 0, 0), ("f2", 1, 2)]
    kinds = [maker.plainly, maker.branch, maker.choice, maker.loop, maker.call, maker.call]
    while (missing := size - len(assemble(" ".join([*maker.text, "f0: f1: f2:"]))) - 1_000) > 0:
        for _ in range(missing // 400 + 1):
            maker.room = 3
            maker.rng.choice(kinds)(1)
            maker.level(min(maker.height, 8))
    maker.tell()
    for function in maker.functions:
        maker.room = 0
        maker.function(*function)
    return assemble(" ".join(maker.text))


def growing_sum(size: int) -> bytes:
    """x = x + x: every value has two uses, so a tree walk that forgets would never end."""
    return _fill(size, "PUSH 0 CALLDATALOAD", "DUP1 ADD DUP1 MUL", "PUSH 0 MSTORE STOP")


def reassociation(size: int) -> bytes:
    """Long sums with constants in between: what rules like to move."""
    return _fill(size, "CALLVALUE", "CALLER ADD PUSH 7 ADD PUSH 3 XOR", "PUSH 0 MSTORE STOP")


def jump_net(size: int) -> bytes:
    """Branches into each other, reducible or not."""
    rng, count = random.Random(size), size // 7
    pieces = [f"l{n}: JUMPDEST CALLER PUSH2 @l{rng.randrange(count)} JUMPI JUMPDEST" for n in range(count)]
    return assemble(" ".join(pieces))


def return_net(size: int) -> bytes:
    """Functions that call functions, each from many places: exponentially many call paths."""
    count = max(size // 24, 2)
    pieces = ["PUSH2 @r PUSH2 @f0 JUMP r: JUMPDEST STOP"]
    for n in range(count):
        onward = min(n + 1, count - 1)
        if onward == n:
            pieces.append(f"f{n}: JUMPDEST JUMP")
        else:
            calls = [f"PUSH2 @r{n}x{k} PUSH2 @f{onward} JUMP r{n}x{k}: JUMPDEST" for k in range(2)]
            pieces.append(f"f{n}: JUMPDEST {' '.join(calls)} JUMP")
    return assemble(" ".join(pieces))


def unknown_jumps(size: int) -> bytes:
    return _fill(size, "", "JUMPDEST PUSH 0 CALLDATALOAD JUMP")


def jumpdests(size: int) -> bytes:
    return _fill(size, "", "JUMPDEST")


def nested_loops(size: int) -> bytes:
    count = size // 7
    return assemble(
        " ".join(
            [f"l{n}: JUMPDEST" for n in range(count)] + [f"CALLER PUSH2 @l{n} JUMPI" for n in reversed(range(count))]
        )
    )


def memory_traffic(size: int) -> bytes:
    """Stores and loads that may alias, so that every load looks far back."""
    return _fill(size, "PUSH 0 CALLDATALOAD", "DUP1 DUP1 MSTORE DUP1 PUSH 32 ADD MLOAD ADD", "PUSH 0 MSTORE STOP")


def deep_stack(size: int) -> bytes:
    return _fill(size, "CALLER", "DUP1", "STOP")


HOSTILE: dict[str, Callable[[int], bytes]] = {
    "branches, loops and calls": mixed_program,
    "EXP tower, constant": exp_tower,
    "EXP tower, unknown": unknown_exp_tower,
    "straight line": straight_line,
    "doubling": growing_sum,
    "reassociation": reassociation,
    "jumps into each other": jump_net,
    "calls into each other": return_net,
    "unknown jumps": unknown_jumps,
    "JUMPDESTs": jumpdests,
    "nested loops": nested_loops,
    "may-alias memory": memory_traffic,
    "deep stack": deep_stack,
}
