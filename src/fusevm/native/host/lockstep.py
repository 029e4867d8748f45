"""Lockstep: the reference tier beside the native one, compared wherever native code can be stopped.

That is at every section's start, by probes in the schedule, where stack, gas, memory and storage are in memory. Gas
only falls, so it is the clock: the reference tier runs until its frames together have as much gas as native code's, and
both must then be at the same place and agree to the word. The first difference is reported with the instructions since
the last agreement.

Regions run on where there would be probes. They are compared as they are left, and as they fail: a region that fails
leaves the frame as it was at an anchor, from which everything can be repeated. The reference must have been there, with
the same stack, and the same gas except for warm accesses.
"""

from __future__ import annotations

import ctypes
from typing import NoReturn

from fusevm.chain.environment import Context, Message
from fusevm.chain.outcome import Disagreement, Outcome, Status
from fusevm.chain.state import State
from fusevm.evm.forks import Rules
from fusevm.evm.gas import cold_account_cost, cold_slot_cost, memory_cost
from fusevm.evm.halts import ExceptionalHalt
from fusevm.evm.opcodes import BY_BYTE
from fusevm.native.host.engine import NativeEngine
from fusevm.native.host.views import view_at
from fusevm.native.layout import SLOT_DIRTY, STACK_ALIGN, TRANSIENT, WORD, NativeFrame, StorageSlot
from fusevm.reference.frame import Frame
from fusevm.reference.instructions import refuse, table_of
from fusevm.reference.trampoline import begin, end, outcome_of, resume

SHOWN = 24  # instructions since the last agreement
Place = tuple[int, int]  # depth and pc


class Stepper:
    """The reference tier, one instruction at a time."""

    def __init__(self, message: Message, state: State, context: Context) -> None:
        self.table = table_of(context.fork)
        self.frames: list[Frame] = []
        self.recent: list[str] = []
        self.outcome: Outcome | None = None
        self._enter(Frame(message, state, context))

    def _enter(self, frame: Frame) -> None:
        self.frames.append(frame)
        if begin(frame):
            self._leave()

    def _leave(self) -> None:
        frame = self.frames.pop()
        end(frame)
        if self.frames:
            resume(self.frames[-1], frame)
        else:
            self.outcome = outcome_of(frame)

    def step(self) -> None:
        frame = self.frames[-1]
        byte = frame.code[frame.pc]
        self.recent.append(f"{frame.message.depth}:{frame.pc} {BY_BYTE[byte].name if byte in BY_BYTE else hex(byte)}")
        instruction, gas, needs, room = self.table[byte]
        frame.pc += 1
        try:
            if gas > frame.gas or not needs <= len(frame.stack) <= room:
                refuse(frame, gas, needs)
            frame.gas -= gas
            event = instruction(frame)
        except ExceptionalHalt as halt:
            frame.halt(halt)
            event = frame
        if event is frame:
            self._leave()
        elif event is not None:
            self._enter(event)

    def at(self) -> Place:
        """Depth and pc; (-1, -1) once all is over."""
        return (self.frames[-1].message.depth, self.frames[-1].pc) if self.frames else (-1, -1)


class Lockstep:
    """Runs one message on both tiers."""

    def __init__(self, engine: NativeEngine) -> None:
        self.engine = engine
        engine.probe, engine.halting.watch = self.probe, self.failed
        self.stepper: Stepper | None = None
        self.compared = 0
        self.failures = 0  # of regions, that were compared

    def execute(self, message: Message, state: State, context: Context) -> Outcome:
        twin = _twin(state)
        self.stepper = Stepper(message, twin, context)
        outcome = self.engine.execute(message, state, context)
        stepper = self.stepper
        while stepper.outcome is None:
            stepper.step()
        expected = stepper.outcome
        self._equal("status", outcome.status, expected.status)
        self._equal("gas left", outcome.gas_left, expected.gas_left)
        self._equal("output", outcome.output.hex(), expected.output.hex())
        self._equal("failure", outcome.failure, expected.failure)
        self._equal("refund", state.refund, twin.refund)
        self._equal("logs", list(state.logs), list(twin.logs))
        if context.carries and outcome.status is Status.SUCCESS:
            self._equal("transient storage", state.transient, twin.transient)
            self._equal("warm slots", state.warm_slots, twin.warm_slots)
            self._equal("warm addresses", set(state.warm_addresses), set(twin.warm_addresses))
        for address in {*state.accounts, *twin.accounts}:
            ours, theirs = state.account(address), twin.account(address)
            state.settle()
            self._equal(f"storage of 0x{address.hex()}", ours.storage, theirs.storage)
            self._equal(f"balance of 0x{address.hex()}", ours.balance, theirs.balance)
            self._equal(f"nonce of 0x{address.hex()}", ours.nonce, theirs.nonce)
            self._equal(f"code of 0x{address.hex()}", ours.code, theirs.code)
        return outcome

    def probe(self, depth: int, view: NativeFrame) -> None:
        """Native code is at a section's start."""
        place = (depth, view.pc)
        stack = self._catch_up(place, view)
        assert self.stepper is not None
        frame = self.stepper.frames[-1]
        self.compared += 1
        self._compare_stacks(view, stack, place)
        memory = ctypes.string_at(view.memory, view.memory_size)
        size = len(memory) if self.engine.codes.maker.regions is not None else 0
        self._equal("memory", memory.hex(), frame.memory.ljust(size, b"\0").hex(), place)
        returned = ctypes.string_at(view.returned, view.returned_size)
        self._equal("return data", returned.hex(), frame.returndata.hex(), place)
        self._compare_slots(frame.state, place)
        self.stepper.recent.clear()

    def failed(self, depth: int, view: NativeFrame) -> None:
        """A region failed: the frame goes on from the state it left."""
        place = (depth, view.pc)
        stack = self._catch_up(place, view, failed=True)
        assert self.stepper is not None
        self.failures += 1
        self._compare_stacks(view, stack, place)
        self.stepper.recent.clear()

    def _catch_up(self, place: Place, view: NativeFrame, *, failed: bool = False) -> list[int]:
        """Runs the reference tier to native code's place; its stack there. Where native code `failed` it has paid,
        since then, for what is cold: the reference may have more gas, and is taken to its own failure to know."""
        stepper, passed = self.stepper, list[tuple[int, list[int]]]()
        assert stepper is not None
        gas = view.gas + view.reserve
        above = sum(frame.gas for frame in self.engine.frames[: place[0]])
        while stepper.frames and not (failed and passed and len(stepper.frames) <= place[0]):
            frame = stepper.frames[-1]
            if stepper.at() == place:
                left = frame.gas - self._growth(view, frame)
                if left == gas:
                    return frame.stack
                passed.append((left, list(frame.stack)))
                rules = frame.context.rules
            if sum(each.gas for each in stepper.frames) < above + gas:
                break
            stepper.step()
        if not passed:
            self.differ(f"native code is at depth {place[0]}, pc {place[1]}; the reference is at {stepper.at()}")
        if not (failed and _is_for_cold(passed[-1][0] - gas, rules)):
            nearest = min((left for left, _ in passed), key=lambda left: abs(left - gas))
            self._equal("gas", gas, nearest, place)
        return passed[-1][1]

    def _growth(self, view: NativeFrame, frame: Frame) -> int:
        """What memory cost that native code has already and the reference does not: a region may have let it grow, and
        have been left to the start of the block that will use it."""
        if self.engine.codes.maker.regions is None:
            return 0
        return max(memory_cost(view.memory_size // WORD) - memory_cost(len(frame.memory) // WORD), 0)

    def _compare_stacks(self, view: NativeFrame, wanted: list[int], place: Place) -> None:
        base = view.sp - view.sp % STACK_ALIGN
        raw = ctypes.string_at(base, view.sp - base)
        stack = [int.from_bytes(raw[at : at + WORD], "little") for at in range(0, len(raw), WORD)]
        self._equal("stack", [hex(word) for word in stack], [hex(word) for word in wanted], place)

    def _compare_slots(self, reference: State, place: Place) -> None:
        engine = self.engine
        for number in range(engine.tables.shared.slot_count):
            slot = view_at(StorageSlot, engine.tables.slots.address + number * StorageSlot.byte_size())
            if slot.flags & SLOT_DIRTY or slot.account & TRANSIENT:
                address, key = engine.world.addresses[slot.account & ~TRANSIENT], slot.key
                expected = reference.storage(address, key)
                if slot.account & TRANSIENT:
                    expected = reference.transient_storage(address, key)
                self._equal(f"slot {key:#x}", slot.value, expected, place)

    def _equal(self, what: str, native: object, reference: object, place: Place | None = None) -> None:
        if native != reference:
            where = "" if place is None else f" at depth {place[0]}, pc {place[1]}"
            self.differ(f"{what} differs{where}\n  native    {native}\n  reference {reference}")

    def differ(self, what: str) -> NoReturn:
        recent = self.stepper.recent[-SHOWN:] if self.stepper else []
        raise Disagreement(f"{what}\n  since the last agreement: {', '.join(recent) or 'nothing'}")


def _twin(state: State) -> State:
    """A copy to run the same transaction on: accounts, and what the transaction has kept so far."""
    twin = state.copy()
    twin.refund = state.refund
    twin.logs = list(state.logs)
    twin.warm_addresses = set(state.warm_addresses)
    twin.always_warm = state.always_warm
    twin.warm_slots = set(state.warm_slots)
    twin.original = dict(state.original)
    twin.transient = dict(state.transient)
    twin.created = set(state.created)
    twin.destroyed = set(state.destroyed)
    twin.touched = set(state.touched)
    return twin


def _is_for_cold(gas: int, rules: Rules) -> bool:
    """Whether this amount is the extra cost of some number of cold accounts and slots."""
    account, slot = int(cold_account_cost(rules)), int(cold_slot_cost(rules))
    return rules.access_sets and gas >= 0 and any((gas - each) % slot == 0 for each in range(0, gas + 1, account))
