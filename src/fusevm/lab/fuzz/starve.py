"""Running short of gas at every point of a run: the gas limit that just gets past an instruction, and one less."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from random import Random

from fusevm.chain.environment import Message
from fusevm.chain.outcome import Outcome
from fusevm.chain.transaction import floor_gas, intrinsic_gas_of
from fusevm.evm.forks import rules_of
from fusevm.evm.opcodes import BY_BYTE, MEMORY
from fusevm.lab.fuzz.differential import EngineDifference, compare
from fusevm.lab.peers.ours import OurTier
from fusevm.lab.peers.work import PeerEngine, PeerWork
from fusevm.reference.hooks import Hooks, Step

# From gas a frame could do without to gas the transaction could; None where they do not hang together.
Saving = Callable[[int], int | None]


def critical_gas(work: PeerWork) -> list[int]:
    """The limits at which the reference run just gets past each of its instructions, and one less than each.

    They are exact in the outermost frame, and in inner ones if each call on the path gave all it could (all but a
    64th since EIP-150) and the code does not read its gas otherwise. Frames given a fixed amount add none.
    """
    return traced(work)[0]


def traced(work: PeerWork) -> tuple[list[int], frozenset[int]]:
    """As `critical_gas`; and the places of all instructions that were run, whosever code they are in."""
    trace = _Trace(work)
    OurTier("reference", Hooks(on_opcode=trace.step, on_call=trace.call, on_return=trace.back)).run(work)
    edges = {gas for limit in trace.limits for gas in (limit, limit - 1)}
    least, most = least_gas(work), work.transaction.gas_limit
    critical = sorted(gas for gas in edges if least <= gas <= most)
    return critical, frozenset(trace.places)


def random_gas(work: PeerWork, rng: Random, count: int) -> list[int]:
    """A few limits between what the transaction costs before it runs and what it was given, most of them low."""
    least = least_gas(work)
    spread = max(work.transaction.gas_limit - least, 0)
    return [least + int(spread * rng.random() ** 3) for _ in range(count)]


def least_gas(work: PeerWork) -> int:
    rules = rules_of(work.fork)
    return max(intrinsic_gas_of(work.transaction, rules), floor_gas(rules, work.transaction.data))


def compare_starved(work: PeerWork, engines: Sequence[PeerEngine], limits: Iterable[int]) -> EngineDifference | None:
    for gas in limits:
        difference = compare(work.with_gas(gas), engines)
        if difference is not None:
            difference.gas = gas
            return difference
    return None


# A creation hands nothing back.
_CALLS = frozenset(byte for byte, known in BY_BYTE.items() if known.calls and known.writes & MEMORY)


class _Trace:
    """Follows a run, and notes for each instruction the limit that would have left no gas after it."""

    def __init__(self, work: PeerWork) -> None:
        self.limits: set[int] = set()
        self.places: set[int] = set()
        self._limit = work.transaction.gas_limit
        self._all_but_64th = rules_of(work.fork).all_but_64th
        self._stipend = rules_of(work.fork).call_stipend
        self._frames: list[Saving] = []
        self._pending: Step | None = None  # an instruction is noted when it is known whether it began a call

    def step(self, step: Step) -> None:
        self._flush()
        self.places.add(step.pc)
        self._pending = step

    def call(self, message: Message) -> None:
        step, self._pending = self._pending, None
        if step is None or not self._frames:
            self._frames.append(lambda spare: spare)
            return
        sends_value = step.name in ("CALL", "CALLCODE") and step.stack[-3]
        given = message.gas - (self._stipend if sends_value else 0)
        had = step.gas - step.gas_cost + (0 if message.creates else given)  # a creation's cost is without it
        self._note(had)
        self._frames.append(self._saving(self._frames[-1], had, given))

    def back(self, message: Message, outcome: Outcome) -> None:
        self._flush()
        self._frames.pop()

    def _flush(self) -> None:
        step, self._pending = self._pending, None
        if step is None or step.error is not None or step.op in _CALLS:
            return  # a call that made no frame got back what it handed down, and does not say how much that was
        self._note(step.gas - step.gas_cost)
        if step.name == "SSTORE":
            self._note(step.gas - (self._stipend + 1))  # EIP-2200: with no more than the stipend left it fails

    def _note(self, spare: int) -> None:
        saved = self._frames[-1](spare) if spare >= 0 else None
        if saved is not None:
            self.limits.add(self._limit - saved)

    def _saving(self, parent: Saving, had: int, given: int) -> Saving:
        if not self._all_but_64th:
            return parent
        if given != had - had // 64:
            return lambda spare: None

        def saving(spare: int) -> int | None:
            needed = given - spare
            if needed < 0:  # the stipend pays for it
                return None
            least = needed * 64 // 63
            while least - least // 64 >= needed and least:
                least -= 1
            while least - least // 64 < needed:
                least += 1
            return parent(had - least)

        return saving
