"""Lockstep: the reference tier beside the native one, compared wherever a section begins.

At a section's start everything native code knows is in memory: stack, gas, memory, storage. Every section knows how
many instructions it covers, counted as it was read; the reference tier takes as many steps, and both must be at
the same place and agree to the word. The first difference is reported with the instructions since the last agreement.

A fused loop was charged in bulk and is compared at its exit. The number of instructions is not
known there, but gas only falls: from the loop's header the reference tier runs until it has no more gas than native
code, and must then be at the same place.
"""

from __future__ import annotations

import ctypes
import threading
from dataclasses import replace
from typing import NamedTuple, NoReturn

from fusevm.chain.environment import Context, Message
from fusevm.chain.outcome import Disagreement, Outcome, Status
from fusevm.chain.state import State
from fusevm.evm.bytecode import jumpdests
from fusevm.evm.forks import Fork
from fusevm.evm.halts import ExceptionalHalt
from fusevm.evm.opcodes import BY_BYTE
from fusevm.native.emit.build import library
from fusevm.native.host.engine import NativeEngine
from fusevm.native.host.views import view_at
from fusevm.native.layout import SLOT_DIRTY, STACK_ALIGN, TRANSIENT, WORD, NativeFrame, StorageSlot
from fusevm.reference.frame import Frame
from fusevm.reference.hooks import Hooks
from fusevm.reference.instructions import refuse, table_of
from fusevm.reference.interpreter import execute as execute_reference
from fusevm.reference.trampoline import begin, end, outcome_of, resume
from fusevm.schedule.loops.plan import loop_plans
from fusevm.schedule.sections import sections_of
from fusevm.schedule.threading import hops_in, threaded

SHOWN = 24  # instructions since the last agreement
MOST_CODES = 4_096  # whose steps are kept


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

    def take(self, steps: int, place: tuple[int, int]) -> None:
        """Runs this many steps of the current frame, fewer if it fails; codeless frames run to their end."""
        running = self.frames[-1] if self.frames else None
        for _ in range(steps):
            if running not in self.frames[-1:]:
                break
            self.step()
        while self.frames and not self.frames[-1].message.code and self.at() != place:
            self.step()
        while self.frames and self.frames[-1].message.depth > place[0]:
            self.step()  # native code knew at its start that the block would fail

    def at(self) -> tuple[int, int]:
        """Depth and pc; (-1, -1) once all is over."""
        return (self.frames[-1].message.depth, self.frames[-1].pc) if self.frames else (-1, -1)


class Strides(NamedTuple):
    """How far native code goes in some code without a stop."""

    steps: dict[int, int]  # by a section's pc: how many instructions it covers
    hops: frozenset[int]  # sections that a JUMPI may pass over
    loops: frozenset[int]  # headers of loops that may run on a copy of theirs


class Lockstep:
    """Runs one message on both tiers."""

    def __init__(self, engine: NativeEngine) -> None:
        self.engine = engine
        self.stepper: Stepper | None = None
        self.compared = 0
        self.loops = 0  # fused loops that were compared where they were left
        self.strides: dict[tuple[bytes, Fork], Strides] = {}
        self.owed = 0  # steps the reference must take to native code's next stop

    def execute(self, message: Message, state: State, context: Context) -> Outcome:
        twin = _twin(state)
        self.stepper = Stepper(message, twin, context)
        self.owed = 0
        halts = self.engine.halts
        halts.unsure = False
        outcome = self.engine.execute(message, state, context)
        stepper = self.stepper
        while stepper.outcome is None:
            stepper.step()
        expected = stepper.outcome
        self._equal("status", outcome.status, expected.status)
        self._equal("gas left", outcome.gas_left, expected.gas_left)
        self._equal("output", outcome.output.hex(), expected.output.hex())
        if halts.unsure and outcome.failure is not None and expected.failure is not None:
            outcome = replace(outcome, failure=expected.failure)  # in a fused loop: native code does not know where
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
        stepper = self.stepper
        assert stepper is not None
        place = (depth, view.pc)
        self.catch_up(stepper, place, view)
        frame = stepper.frames[-1]
        self.compared += 1
        self.compare_stacks(view, frame.stack, place)
        self.compare_memory(view, frame, place)
        returned = ctypes.string_at(view.returned, view.returned_size)
        self._equal("return data", returned.hex(), frame.returndata.hex(), place)
        self._compare_slots(frame.state, place)
        stepper.recent.clear()

    def catch_up(self, stepper: Stepper, place: tuple[int, int], view: NativeFrame) -> None:
        """Runs the reference tier to native code's place; it must have the same gas there."""
        gas = view.gas + view.reserve
        stepper.take(self.owed, place)
        self._pass_over(stepper, place, gas)
        if stepper.at() != place:
            self.differ(f"native code is at depth {place[0]}, pc {place[1]}; the reference is at {stepper.at()}")
        self.owed = self._strides(stepper.frames[-1]).steps[place[1]]
        self._equal("gas", gas, stepper.frames[-1].gas, place)

    def compare_memory(self, view: NativeFrame, frame: Frame, place: tuple[int, int]) -> None:
        memory = ctypes.string_at(view.memory, view.memory_size)
        self._equal("memory", memory.hex(), frame.memory.hex(), place)

    def compare_stacks(self, view: NativeFrame, wanted: list[int], place: tuple[int, int]) -> None:
        base = view.sp - view.sp % STACK_ALIGN
        raw = ctypes.string_at(base, view.sp - base)
        stack = [int.from_bytes(raw[at : at + WORD], "little") for at in range(0, len(raw), WORD)]
        self._equal("stack", [hex(word) for word in stack], [hex(word) for word in wanted], place)

    def _pass_over(self, stepper: Stepper, place: tuple[int, int], gas: int) -> None:
        """Takes the reference past hops that native code passed over, and to the end of a loop that it ran fused."""
        if not stepper.frames or stepper.at()[0] != place[0] or stepper.frames[-1].gas <= gas:
            return
        frame = stepper.frames[-1]
        strides = self._strides(frame)
        if frame.pc not in strides.hops and frame.pc not in strides.loops:
            return
        self.loops += frame.pc in strides.loops
        while stepper.frames and stepper.frames[-1] is frame and frame.gas > gas:
            stepper.step()

    def _strides(self, frame: Frame) -> Strides:
        code, fork = frame.message.code, frame.context.fork
        if (code, fork) not in self.strides:
            if len(self.strides) > MOST_CODES:
                self.strides.clear()
            dests = jumpdests(code)
            sections = threaded(sections_of(code, fork, self.engine.handlers.native, dests), dests)
            _, plans = loop_plans(sections, dests, len(code))
            steps = {section.pc: section.steps for section in sections}
            self.strides[code, fork] = Strides(steps, frozenset(hops_in(sections, dests)), frozenset(plans))
        return self.strides[code, fork]

    def _compare_slots(self, reference: State, place: tuple[int, int]) -> None:
        engine = self.engine
        for number in range(engine.tables.shared.slot_count):
            slot = view_at(StorageSlot, engine.tables.slots.address + number * StorageSlot.byte_size())
            if slot.flags & SLOT_DIRTY or slot.account & TRANSIENT:
                address, key = engine.world.addresses[slot.account & ~TRANSIENT], slot.key
                expected = reference.storage(address, key)
                if slot.account & TRANSIENT:
                    expected = reference.transient_storage(address, key)
                self._equal(f"slot {key:#x}", slot.value, expected, place)

    def _equal(self, what: str, native: object, reference: object, place: tuple[int, int] | None = None) -> None:
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


_local = threading.local()


def lockstep() -> Lockstep:
    """This thread's pair of tiers."""
    found: Lockstep | None = getattr(_local, "lockstep", None)
    if found is None:
        native = library()
        engine = NativeEngine(native, native.handlers, probes=True)
        found = _local.lockstep = Lockstep(engine)
        engine.probe = found.probe
    return found


def execute(message: Message, state: State, context: Context, hooks: Hooks | None = None) -> Outcome:
    """As the native tier, with the reference tier beside it; raises Disagreement at the first difference."""
    if hooks is not None:
        return execute_reference(message, state, context, hooks)
    return lockstep().execute(message, state, context)
