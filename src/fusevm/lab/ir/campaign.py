"""Random blocks, lifted and folded, and programs run from the functions that become native code, held to the reference.

python -m fusevm.lab.ir.campaign blocks 200000 --seed 1
python -m fusevm.lab.ir.campaign programs 20000 --seed 1
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from dataclasses import dataclass, field, fields, replace
from functools import partial

from fusevm.chain.environment import Block as ChainBlock
from fusevm.chain.environment import Context, Message
from fusevm.chain.outcome import Executor, Status
from fusevm.chain.processing import process
from fusevm.chain.reasons import Rejected
from fusevm.chain.state import Account, State
from fusevm.evm import bytecode
from fusevm.evm.assembly import assemble, disassemble
from fusevm.evm.bytecode import basic_blocks
from fusevm.evm.forks import LATEST, Fork
from fusevm.evm.halts import ExceptionalHalt, HaltReason
from fusevm.evm.opcodes import NONE
from fusevm.ir.fold.block import fold_block
from fusevm.ir.fold.stages import EVERYTHING, Mode, Stage
from fusevm.ir.lift import lift_block
from fusevm.ir.ordering import schedule
from fusevm.lab.ir.evaluate import BrokenPromise, Ending, call, run_block
from fusevm.lab.ir.functions import functions_of
from fusevm.lab.ir.generate import BlockMaker, ProgramMaker
from fusevm.lab.ir.region_tier import RegionTier
from fusevm.lab.peers.work import Observation, PeerWork
from fusevm.native.region.build import Choose
from fusevm.native.region.choice import every_block, functions_and_loops
from fusevm.reference.frame import Frame
from fusevm.reference.instructions import refuse, table_of
from fusevm.reference.interpreter import execute

OWN = bytes.fromhex("c0" * 20)
CALLER = bytes.fromhex("ca" * 20)
# The callees: one that returns its storage, then changes it and logs; one that reverts with what it was called
# with; one that only tells its storage; one that tells its transient storage.
NEIGHBOURS = {
    0x1234: "PUSH 0 SLOAD PUSH 0 MSTORE PUSH 0 CALLDATALOAD DUP1 PUSH 0 SSTORE PUSH 32 MSTORE "
    "PUSH 64 PUSH 0 LOG0 PUSH 64 PUSH 0 RETURN",
    0x1235: "CALLDATASIZE PUSH 0 PUSH 0 CALLDATACOPY CALLDATASIZE PUSH 0 REVERT",
    0x1236: "PUSH 0 SLOAD PUSH 0 MSTORE PUSH 1 SLOAD PUSH 32 MSTORE PUSH 64 PUSH 0 RETURN",
    0x1237: "PUSH 0 TLOAD PUSH 0 MSTORE PUSH 1 TLOAD PUSH 32 MSTORE PUSH 64 PUSH 0 RETURN",
}
# Without PUSH0, so that old forks run it; TLOAD they refuse, as they should.
NEIGHBOUR_CODES = {
    number.to_bytes(20, "big"): assemble(text.replace("PUSH 0 ", "PUSH1 0 ")) for number, text in NEIGHBOURS.items()
}
STAGE_SETS = (
    EVERYTHING,
    EVERYTHING & ~Stage.RANGES,
    EVERYTHING & ~Stage.FACTS,
    EVERYTHING & ~Stage.FOLD,
    EVERYTHING & ~Stage.CSE,
    EVERYTHING & ~Stage.FWD,
    EVERYTHING & ~Stage.DSE,
)


def world() -> State:
    state = State()
    state.accounts[OWN] = Account(1, 10**18, b"\xfe", {0: 1, 1: 0xFF, 2: 1 << 200})
    for address, code in NEIGHBOUR_CODES.items():
        state.accounts[address] = Account(1, 5, code, {0: 7})
    state.accounts[CALLER] = Account(3, 10**18)
    state.begin_transaction()
    state.warm_address(OWN)
    state.warm_address(CALLER)
    return state


def context(fork: Fork) -> Context:
    block = ChainBlock(number=1000, timestamp=1_700_000_000, coinbase=b"\xcb" * 20, base_fee=7, prev_randao=1 << 255)
    return Context(fork, block, origin=CALLER, gas_price=9)


def frame_for(code: bytes, data: bytes, gas: int, fork: Fork, static: bool = False) -> Frame:
    message = Message(CALLER, OWN, code, data, gas=gas, static=static, code_address=OWN)
    frame = Frame(message, world(), context(fork))
    frame.mark = frame.state.mark()
    return frame


@dataclass(slots=True)
class Sight:
    """Everything observable of a run."""

    halted: bool
    ended: bool = False
    reverted: bool = False
    target: int | None = None
    gas: int = 0
    stack: tuple[int, ...] = ()
    memory: bytes = b""
    memory_size: int = 0
    output: bytes = b""
    returndata: bytes = b""
    state: object = None
    starved: bool = field(default=False, compare=False)  # it halted for want of gas

    def without_gas(self) -> Sight:
        """What a caller sees where gas may fall: the size of memory and what is warm are a matter of gas too."""
        state = self.state[:4] if isinstance(self.state, tuple) else None
        return replace(self, gas=0, memory=self.memory.rstrip(b"\0"), memory_size=0, state=state)

    def differs_from(self, other: Sight) -> str:
        """The fields that are not equal, cut to a readable length."""
        pairs = [(each.name, getattr(other, each.name), getattr(self, each.name)) for each in fields(self)]
        return "\n".join(
            f"{name}: expected {str(wanted)[:600]}\n{' ' * len(name)}  found    {str(found)[:600]}"
            for name, wanted, found in pairs
            if wanted != found
        )


def seen_state(state: State) -> tuple[object, ...]:
    accounts = {
        address: (account.nonce, account.balance, account.code, tuple(sorted(account.storage.items())))
        for address, account in sorted(state.accounts.items())
    }
    return (
        accounts, tuple(state.logs), dict(state.transient), frozenset(state.destroyed),
        state.refund, frozenset(state.warm_addresses), frozenset(state.warm_slots),
    )  # fmt: skip


def sight_of(frame: Frame, ending: Ending | None, stack: list[int]) -> Sight:
    if ending is None:
        frame.state.revert(frame.mark)
        return Sight(True, state=seen_state(frame.state))
    ended = ending.target is None
    if ended and frame.reverted:
        frame.state.revert(frame.mark)
    if ended:  # memory, stack and return data are gone with the frame
        return Sight(False, True, frame.reverted, gas=frame.gas, output=frame.output, state=seen_state(frame.state))
    return Sight(
        False, False, False, ending.target, frame.gas, tuple(stack), bytes(frame.memory), len(frame.memory), b"",
        frame.returndata, seen_state(frame.state),
    )  # fmt: skip


def reference_block(block: bytecode.BasicBlock, frame: Frame, stack: list[int]) -> Sight:
    """The block by the reference tier, instruction by instruction, a jump at its end only looked at."""
    frame.stack[:] = stack
    try:
        ending = _step_through(block, frame)
    except ExceptionalHalt as halt:
        sight = sight_of(frame, None, [])
        sight.starved = halt.reason is HaltReason.OUT_OF_GAS
        return sight
    return sight_of(frame, ending, frame.stack)


def _step_through(block: bytecode.BasicBlock, frame: Frame) -> Ending:
    table = table_of(frame.context.fork)
    for instruction in block.instructions:
        run, gas, needs, room = table[instruction.byte]
        if gas > frame.gas or not needs <= len(frame.stack) <= room:
            refuse(frame, gas, needs)
        frame.gas -= gas
        frame.pc = instruction.pc + 1
        if instruction.name == "JUMP":
            return Ending(frame.stack.pop(), True)
        if instruction.name == "JUMPI":
            target, condition = frame.stack.pop(), frame.stack.pop()
            return Ending(target, True) if condition else Ending(instruction.next_pc)
        event = run(frame)
        if event is frame:
            return Ending(None)
        if event is not None:
            call(frame, event)
    return Ending(block.end)


@dataclass(slots=True)
class IrCase:
    code: bytes
    stack: list[int]
    data: bytes
    gas: int
    static: bool
    fork: Fork
    stages: Stage
    mode: Mode
    inline: bool

    def __str__(self) -> str:
        words = " ".join(map(hex, self.stack))
        return (
            f"{disassemble(self.code, self.fork)}code {self.code.hex()}\nstack {words}\ndata {self.data.hex()}\n"
            f"gas {self.gas}, static {self.static}, {self.fork.label}, {self.stages}, {self.mode}, inline {self.inline}"
        )


FORKS = (LATEST, LATEST, Fork.CANCUN, Fork.BERLIN, Fork.BYZANTIUM)


def random_case(rng: random.Random) -> IrCase:
    mode = Mode.OPTIMISATION if rng.random() < 0.3 else Mode.EXECUTION
    fork = rng.choice(FORKS)
    maker = BlockMaker(rng, fork, gas_matters=mode is Mode.EXECUTION)
    code, stack = maker.block()
    gas = 10_000_000 if mode is Mode.OPTIMISATION or rng.random() < 0.8 else rng.randrange(0, 60_000)
    return IrCase(
        code, stack, rng.randbytes(rng.choice([0, 4, 36, 100])), gas, rng.random() < 0.1, fork,
        rng.choice(STAGE_SETS) if rng.random() < 0.5 else EVERYTHING, mode, rng.random() < 0.3,
    )  # fmt: skip


def check_block(case: IrCase) -> str | None:
    """What differs from the reference tier, plain and folded, or None."""
    block = basic_blocks(case.code, case.fork)[0]
    expected = reference_block(block, frame_for(case.code, case.data, case.gas, case.fork, case.static), case.stack)
    plain = lift_block(block, case.fork)
    folded, _ = fold_block(plain, case.fork, case.mode, case.stages)
    for name, lifted, mode in (("lifted", plain, Mode.EXECUTION), ("folded", folded, case.mode)):
        frame = frame_for(case.code, case.data, case.gas, case.fork, case.static)
        order = schedule(lifted, NONE if mode is Mode.OPTIMISATION else None, case.inline)
        try:
            ending, stack = run_block(lifted, frame, list(case.stack), order, metered=mode is Mode.EXECUTION)
            found = sight_of(frame, ending, stack)
        except ExceptionalHalt:
            found = sight_of(frame, None, [])
        except (BrokenPromise, KeyError) as broken:
            return f"{name} breaks a promise: {broken!r}\n{case}"
        wanted = expected
        if mode is Mode.OPTIMISATION:
            if wanted.starved:
                continue  # with less gas to pay it may go on
            wanted, found = wanted.without_gas(), found.without_gas()
        if found != wanted:
            return f"{name} differs:\n{case}\n{found.differs_from(wanted)}"
    return None


# -- programs -----------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class ProgramCase:
    code: bytes
    data: bytes
    gas: int
    static: bool
    fork: Fork
    stages: Stage | None  # None: as the functions were found, not folded
    choose: Choose = every_block

    def __str__(self) -> str:
        return (
            f"{disassemble(self.code, self.fork)}code {self.code.hex()}\ndata {self.data.hex()}\ngas {self.gas}, "
            f"static {self.static}, {self.fork.label}, {self.stages}, {self.choose.__name__}"
        )

    def tier(self) -> RegionTier:
        return RegionTier(partial(functions_of, choose=self.choose, stages=self.stages))

    def message(self) -> Message:
        return Message(CALLER, OWN, self.code, self.data, gas=self.gas, static=self.static, code_address=OWN)


def random_program_case(rng: random.Random) -> ProgramCase:
    fork = rng.choice(FORKS)
    code = ProgramMaker(rng, fork, gas_matters=True).program()
    gas = rng.choice([100_000, 400_000]) if rng.random() < 0.6 else rng.randrange(60_000)
    return ProgramCase(
        code, rng.randbytes(rng.choice([0, 4, 36, 100])), gas, rng.random() < 0.1, fork,
        rng.choice([*STAGE_SETS, None]) if rng.random() < 0.5 else EVERYTHING,
        rng.choice([every_block, functions_and_loops]),
    )  # fmt: skip


def outcome_seen(case: ProgramCase, executor: Executor) -> Sight:
    state = world()
    outcome = executor(case.message(), state, context(case.fork))
    halted = outcome.status is Status.HALT
    starved = outcome.failure is not None and outcome.failure.reason is HaltReason.OUT_OF_GAS
    return Sight(
        halted, True, outcome.status is Status.REVERT, gas=outcome.gas_left, output=outcome.output,
        state=seen_state(state), starved=starved,
    )  # fmt: skip


def check_program(case: ProgramCase) -> str | None:
    wanted = outcome_seen(case, execute)
    try:
        found = outcome_seen(case, case.tier())
    except (BrokenPromise, KeyError, AssertionError) as broken:
        return f"breaks a promise: {broken!r}\n{case}"
    return None if found == wanted else f"differs:\n{case}\n{found.differs_from(wanted)}"


def check_transaction(seed: str, fork: Fork, stages: Stage | None) -> str | None:
    """A whole transaction of the general generator, every frame by the IR."""
    from fusevm.lab.fuzz.differential import differences
    from fusevm.lab.fuzz.generator import program

    work = program(seed, fork).work()

    wanted = _observed(work, execute)
    try:
        found = _observed(work, RegionTier(partial(functions_of, stages=stages)))
    except (BrokenPromise, KeyError, AssertionError) as broken:
        return f"{seed}/{fork.label}/{stages} breaks a promise: {broken!r}"
    unequal = list(differences(wanted, found))
    return f"{seed}/{fork.label}/{stages} differs: {str(unequal)[:2000]}" if unequal else None


def _observed(work: PeerWork, executor: Executor) -> Observation:
    state = work.state()
    try:
        done = process(work.transaction, state, work.block, work.fork, executor)
    except Rejected as rejected:
        return Observation("rejected", accounts=state.accounts, reason=str(rejected))
    return Observation(
        done.status.value, done.gas_used, done.gas_refunded, done.output, list(done.logs), state.accounts
    )


# -- the command --------------------------------------------------------------------------------------------------


def check(kind: str, seed: int, number: int) -> str | None:
    rng = random.Random(f"{kind}/{seed}/{number}")
    if kind == "blocks":
        return check_block(random_case(rng))
    if kind == "programs":
        return check_program(random_program_case(rng))
    stages = rng.choice([*STAGE_SETS, EVERYTHING, EVERYTHING, None])
    return check_transaction(f"ir/{seed}/{number}", rng.choice(list(Fork)), stages)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m fusevm.lab.ir.campaign", description=__doc__.splitlines()[0])
    parser.add_argument("kind", choices=["blocks", "programs", "transactions"])
    parser.add_argument("count", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--most", type=int, default=3, help="stop after so many failures")
    chosen = parser.parse_args()
    began, failures, done = time.perf_counter(), 0, 0
    for number in range(chosen.first, chosen.first + chosen.count):
        problem = check(chosen.kind, chosen.seed, number)
        done += 1
        if problem is not None:
            failures += 1
            print(f"--- case {number}\n{problem}")
            if failures >= chosen.most:
                break
    seconds = time.perf_counter() - began
    print(f"{done} {chosen.kind}, {failures} failures, seed {chosen.seed}, {seconds:.0f} s")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
