"""Loops for tests: every shape as assembly text, run by the reference tier, on a fused schedule and in regions."""

from __future__ import annotations

import random
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from fusevm.analysis.loops.metadata import LoopMetadata
from fusevm.chain.environment import Block, Context, Message
from fusevm.chain.outcome import Outcome
from fusevm.chain.state import State
from fusevm.evm.assembly import assemble
from fusevm.evm.bytecode import JUMPI, instructions
from fusevm.evm.forks import LATEST, Fork
from fusevm.evm.opcodes import BY_NAME
from fusevm.reference.interpreter import execute as execute_reference

if TYPE_CHECKING:
    from fusevm.native.host.engine import NativeEngine

HERE = bytes.fromhex("c0de" * 10)
JUMP = BY_NAME["JUMP"].byte
WORD = 1 << 256
RELATIONS = ("LT", "GT", "SLT", "SGT", "EQ", "GE", "LE", "SGE", "SLE", "NE")
_PLAIN = {"GE": "LT", "LE": "GT", "SGE": "SLT", "SLE": "SGT", "NE": "EQ"}
_MIRROR = {"LT": "GT", "GT": "LT", "SLT": "SGT", "SGT": "SLT", "EQ": "EQ"}
ANSWER = " PUSH1 0 MSTORE PUSH1 0x20 MSTORE PUSH1 0x60 PUSH1 0 RETURN "


@dataclass(frozen=True)
class Shape:
    """A counting loop over [bound, accumulator, counter], the counter on top."""

    relation: str = "LT"  # goes on while counter RELATION bound
    start: int = 0
    bound: int = 10
    step: int = 1
    literal: bool = True  # the bound is pushed in the test; else it is a stack slot
    bottom: bool = False  # tested at the bottom
    first: bool = False  # the step comes first of all, so that whatever goes on goes to the top
    mirrored: bool = False  # bound first
    subtract: bool = False  # the step is subtracted
    body: str = "DUP1 DUP3 ADD SWAP2 POP"  # accumulator += counter
    before: str = ""
    after: str = ANSWER

    def text(self) -> str:
        condition, negated = self._condition()
        step = f"PUSH {self.step % WORD:#x} ADD"
        if self.subtract:
            step = f"PUSH {-self.step % WORD:#x} SWAP1 SUB"
        start = f"{self.before} PUSH {self.bound % WORD:#x} PUSH 0 PUSH {self.start % WORD:#x} "
        if self.first:
            turned = "" if negated else "ISZERO"
            return (
                f"{start} loop: JUMPDEST {step} {condition} {turned} PUSH2 @end JUMPI {self.body} PUSH2 @loop JUMP "
                f"end: JUMPDEST {self.after}"
            )
        if self.bottom:
            turned = "ISZERO" if negated else ""
            return f"{start} loop: JUMPDEST {self.body} {step} {condition} {turned} PUSH2 @loop JUMPI {self.after}"
        turned = "" if negated else "ISZERO"
        return (
            f"{start} loop: JUMPDEST {condition} {turned} PUSH2 @end JUMPI {self.body} {step} PUSH2 @loop JUMP "
            f"end: JUMPDEST {self.after}"
        )

    def _condition(self) -> tuple[str, bool]:
        """Text that leaves a truth, and whether the loop goes on where it is false."""
        name = _PLAIN.get(self.relation, self.relation)
        bound = f"PUSH {self.bound % WORD:#x} DUP2" if self.literal else "DUP3 DUP2"
        if self.mirrored:
            bound = f"DUP1 PUSH {self.bound % WORD:#x}" if self.literal else "DUP1 DUP4"
            name = _MIRROR[name]
        return f"{bound} {name}", self.relation in _PLAIN


@cache
def _engine(name: str) -> NativeEngine:
    from fusevm.native.host.all_regions import Regions
    from fusevm.native.host.engine import NativeEngine

    return NativeEngine(regions=Regions() if name == "regions" else None)


def loops_of(code: bytes, fork: Fork = LATEST) -> list[LoopMetadata]:
    from fusevm.native.region.loops import loops_in

    return loops_in(code, fork)


def outcome(engine: str, code: bytes, gas: int, data: bytes = b"", fork: Fork = LATEST) -> tuple[Any, ...]:
    """Everything a caller can see: status, gas, output, refund, storage, logs."""
    state = State()
    state.set_code(HERE, code)
    message = Message(HERE, HERE, code, data, gas=gas)
    context = Context(fork, Block())
    if engine == "reference":
        found: Outcome = execute_reference(message, state, context)
    else:
        native = _engine(engine)
        found = native.execute(message, state, context)
        assert native.reruns == 0, f"another engine had to run it again: gas {gas}, {code.hex()}"
    state.settle()
    storage = dict(state.account(HERE).storage)
    logs = [(log.address, tuple(log.topics), log.data) for log in state.logs]
    return found.status, found.gas_left, found.output, state.refund, storage, logs, found.failure


def agreed(code: bytes | str, gas: int = 1_000_000, data: bytes = b"") -> tuple[Any, ...]:
    """What all three say."""
    code = assemble(code) if isinstance(code, str) else code
    expected = outcome("reference", code, gas, data)
    for engine in ("schedule", "regions"):
        found = outcome(engine, code, gas, data)
        assert found == expected, f"{engine}, gas {gas}, {code.hex()}: {found} instead of {expected}"
    return expected


def agreed_at_boundaries(code: bytes | str, gas: int = 1_000_000, data: bytes = b"", most: int = 60) -> tuple[Any, ...]:
    """Also with exactly the gas it needs, one less, and less at many points in between."""
    code = assemble(code) if isinstance(code, str) else code
    expected = agreed(code, gas, data)
    used = gas - expected[1]
    spread = random.Random(used)
    limits = {used, used - 1, used + 1, *(spread.randrange(used + 1) for _ in range(most))}
    for limit in sorted(each for each in limits if each >= 0):
        agreed(code, limit, data)
    return expected


# -- random loops --------------------------------------------------------------------------------------------------

# Each leaves [bound, accumulator, counter] as it is, but for the accumulator.
BODIES = (
    "DUP1 DUP3 ADD SWAP2 POP",
    "DUP2 PUSH 3 MUL DUP2 XOR SWAP2 POP",
    "DUP1 PUSH 5 SHL DUP2 SWAP1 MSTORE",
    "DUP1 PUSH 5 SHL MLOAD DUP3 ADD SWAP2 POP",
    "DUP2 PUSH 0 MSTORE PUSH 0x40 PUSH 0 KECCAK256 SWAP2 POP",
    "DUP1 SLOAD DUP3 ADD SWAP2 POP",
    "DUP1 DUP1 SSTORE",
    "GAS DUP3 ADD SWAP2 POP",
    "GAS on{n}: JUMPDEST DUP3 ADD SWAP2 POP",
    "DUP1 DUP1 SSTORE on{n}: JUMPDEST",
    "PUSH 0 PUSH 0 PUSH 0 PUSH 0 PUSH 0 PUSH 0 PUSH 700 CALL on{n}: JUMPDEST POP",
    "DUP1 DUP2 EXP DUP3 ADD SWAP2 POP",
    "DUP1 CALLDATALOAD DUP3 ADD SWAP2 POP",
    "DUP1 PUSH 1 AND PUSH2 @odd{n} JUMPI DUP2 PUSH 7 ADD SWAP2 POP odd{n}: JUMPDEST",
    "DUP1 PUSH 1 AND PUSH2 @odd{n} JUMPI PUSH 9 DUP3 ADD SWAP2 POP PUSH2 @on{n} JUMP "
    "odd{n}: JUMPDEST DUP2 SWAP2 POP on{n}: JUMPDEST",
    "DUP1 PUSH {k} AND PUSH2 @loop JUMPI",  # continue; where the step comes last, perhaps for ever
    "DUP1 PUSH {k} EQ PUSH2 @loop JUMPI",
    "DUP1 PUSH {k} EQ PUSH2 @out JUMPI",  # break
    "CALLVALUE ISZERO PUSH2 @out JUMPI",  # at once
    "CALLDATASIZE PUSH2 @odd{n} JUMPI PUSH 1 PUSH 1 POP POP PUSH 1 PUSH 1 POP POP odd{n}: JUMPDEST",
    "DUP1 PUSH {k} EQ PUSH2 @bad JUMPI",  # revert
    "DUP2 PUSH {k} LT PUSH2 @invalid JUMPI",
    "PUSH2 @back{n} PUSH2 @double JUMP back{n}: JUMPDEST",
    "PUSH 0 PUSH {k} inner{n}: JUMPDEST PUSH 1 SWAP1 SUB DUP1 PUSH2 @inner{n} JUMPI POP POP",
    "PUSH 0 inner{n}: JUMPDEST PUSH {k} DUP2 LT ISZERO PUSH2 @done{n} JUMPI DUP3 PUSH 1 ADD SWAP3 POP PUSH 1 ADD "
    "PUSH2 @inner{n} JUMP done{n}: JUMPDEST POP",
    "PC POP MSIZE POP",
    "DUP3 PUSH 3 AND MLOAD POP",
)
LEAVING = (
    ANSWER + "out: JUMPDEST GAS PUSH 0 SSTORE STOP bad: JUMPDEST PUSH 0 MSTORE PUSH 0x20 PUSH 0 REVERT "
    "invalid: JUMPDEST INVALID double: JUMPDEST DUP3 DUP1 ADD SWAP3 POP JUMP"
)
EDGES = (0, 1, 2, 3, 17, 40, 255, 1 << 64, (1 << 64) - 1, 1 << 255, (1 << 255) - 3, WORD - 1, WORD - 2, WORD - 40)


def random_shape(seed: int) -> Shape:
    """A loop that ends within a few dozen iterations, or runs out of gas."""
    dice = random.Random(seed)
    step = dice.choice((1, 1, 1, 2, 3, 7, 32, -1, -1, -2, -5, -32))
    start = dice.choice(EDGES) if dice.random() < 0.4 else dice.randrange(50)
    count = dice.randrange(30)
    bound = start + step * count + dice.choice((0, 0, 0, 1, -1, 2))
    if dice.random() < 0.1:
        bound = dice.choice(EDGES)
    falling = ("GT", "GE", "SGT", "SGE", "NE", "EQ")
    rising = ("LT", "LE", "SLT", "SLE", "NE", "EQ")
    relation = dice.choice(falling if step < 0 else rising) if dice.random() < 0.9 else dice.choice(RELATIONS)
    body = " ".join(
        dice.choice(BODIES).replace("{n}", str(number)).replace("{k}", str(dice.randrange(1, 40)))
        for number in range(dice.randrange(4))
    )
    return Shape(
        relation=relation, start=start, bound=bound, step=step, body=body, literal=dice.random() < 0.5,
        bottom=dice.random() < 0.5, first=dice.random() < 0.3, mirrored=dice.random() < 0.5,
        subtract=dice.random() < 0.5, after=LEAVING,
    )  # fmt: skip


def misdirected(code: bytes, dice: random.Random) -> bytes:
    """One of the static jumps goes elsewhere: behind a JUMPI, into the middle of an instruction, or anywhere."""
    jumps = [each for each in instructions(code) if each.name == "PUSH2" and code[each.next_pc] in (JUMP, JUMPI)]
    jump = dice.choice(jumps)
    behind = [each.next_pc + 1 for each in jumps]
    target = dice.choice([jump.next_pc + 1, dice.choice(behind), dice.choice(behind) + 1, dice.randrange(len(code))])
    return code[: jump.pc + 1] + target.to_bytes(2, "big") + code[jump.next_pc :]


def check_random(seed: int) -> list[LoopMetadata]:
    """Compares the engines on a random loop at full gas, starved, and at the exact need."""
    code = assemble(random_shape(seed).text())
    dice = random.Random(~seed)
    if dice.random() < 0.3:
        code = misdirected(code, dice)
    data = dice.randbytes(dice.choice((0, 40)))
    found = agreed(code, 200_000, data)
    used = 200_000 - found[1]
    for gas in {used, max(used - 1, 0), used + 1, dice.randrange(used + 1), dice.randrange(used + 1), 20_000}:
        agreed(code, gas, data)
    return loops_of(code)
