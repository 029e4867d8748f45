"""Many calls at once: packed, run in one native loop where the tier has one, each as if it were made by itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import nullcontext

from fusevm.chain.environment import DEFAULT_CALLER
from fusevm.chain.outcome import Executor
from fusevm.chain.outcomes import CallFailed, Outcomes
from fusevm.chain.packed import NOTHING_SPECIAL, CallKind, CallLike, Common, PackedCalls, Pieces, ReadsLike, Special
from fusevm.chain.processing import top_message
from fusevm.chain.result import Result
from fusevm.machine.batch import Batch, ColumnMemory
from fusevm.machine.messages import DEFAULT_GAS
from fusevm.machine.tracing import Tracing
from fusevm.machine.turns import WrongThread, in_turn, refuse
from fusevm.tiers import many_calls_for
from fusevm.values import AddressLike, BadValue, Number, shown

WINDOW = 1 << 16  # calls that are packed at once: what they take does not grow with the number of calls
FEW = 8  # calls that the native loop has done before one needs Python: with fewer it does not pay
MAX_SINGLE = 64  # calls that are then made one by one before the loop is tried again
ERRORS = ("raise", "keep")
_WORD = 32
_NOTHING_COMMON = Common(None, DEFAULT_CALLER, 0, 0)
NativeLoop = Callable[[], Executor | None]


class Batches(Tracing):
    """Runs many calls."""

    def simulate_many(
        self,
        calls: Iterable[CallLike] | PackedCalls,
        to: AddressLike | None = None,
        *,
        value: Number = 0,
        caller: AddressLike = DEFAULT_CALLER,
        gas: Number = DEFAULT_GAS,
        errors: str = "raise",
        reads: ReadsLike = (),
    ) -> Batch:
        """As `simulate` for each call, all on the state as it is: nothing is kept.

        A call is its data (then `to` says who is called), a pair of target and data, or a `Call` (or a dict of its
        fields) that may say more: caller, value, gas, slots and fields of the block that are other for this call
        alone. A matrix of bytes (a NumPy array, say) is the data of one call per row.

        `reads` are pairs of an address and a slot: what they hold after each call is in `Batch.reads`. Such calls are
        made one by one.

        A call that ends in an exception ends all with `CallFailed`, which names its number; with `errors="keep"` the
        others are done, and `Batch.errors` has it.

        >>> from fusevm import EVM
        >>> evm, target = EVM(), "0x" + "c0" * 20
        >>> evm.set_code(target, "0x5f3560010160005260206000f3")  # return data + 1
        >>> evm.simulate_many([bytes(32), b"\\0" * 31 + b"\\5"], target).words()
        [1, 6]
        """
        return self._run_many(calls, Common.read(to, caller, value, gas, reads), keep=False, errors=errors)

    def call_many(
        self,
        calls: Iterable[CallLike] | PackedCalls,
        to: AddressLike | None = None,
        *,
        value: Number = 0,
        caller: AddressLike = DEFAULT_CALLER,
        gas: Number = DEFAULT_GAS,
        errors: str = "raise",
        reads: ReadsLike = (),
    ) -> Batch:
        """As `call` for one after another: what each changes is kept if it succeeds, and seen by the next.

        Calls are written as for `simulate_many`. Slots cannot be other for one call: `set_storage` sets them.

        >>> from fusevm import EVM
        >>> evm, counter = EVM(), "0x" + "c0" * 20
        >>> evm.set_code(counter, "0x5f546001015f55")  # storage[0] += 1
        >>> batch = evm.call_many([b""] * 3, counter)
        >>> evm.get_storage(counter, 0)
        3
        """
        return self._run_many(calls, Common.read(to, caller, value, gas, reads), keep=True, errors=errors)

    def _run_many(
        self,
        calls: Iterable[CallLike] | PackedCalls,
        common: Common,
        *,
        keep: bool,
        errors: str,
        room: ColumnMemory | None = None,
    ) -> Batch:
        if errors not in ERRORS:
            raise BadValue(f"errors: expected {' or '.join(map(repr, ERRORS))}, got {shown(errors)}")
        batch = Batch(room)
        pieces = Pieces(calls, common)
        while (packed := pieces.take(WINDOW)) is not None:
            found = batch.room_for(packed.count)
            _Window(self, packed, found, keep, errors, len(batch)).run()
            batch.add(found)
        return batch


class _Window:
    """Calls that were packed together, on one machine."""

    def __init__(
        self, machine: Batches, calls: PackedCalls, found: Outcomes, keep: bool, errors: str, first: int
    ) -> None:
        self._machine = machine
        self._calls = calls
        self._found = found
        self._keep = keep
        self._errors = errors
        self._first = first
        self._single = 0  # calls to be made one by one
        self._next_single = 1  # how many, the next time the loop does not pay

    def run(self) -> None:
        natively = self._native_loop()
        while self._found.done < self._calls.count:
            try:
                if natively is None or self._single:
                    self._single = max(0, self._single - 1)
                    self._found.add(self._run_one())
                else:
                    self._run_natively(natively)
            except WrongThread:
                raise
            except Exception as error:
                failed = CallFailed(self._first + self._found.done, f"{error}" or type(error).__name__)
                if self._errors == "raise":
                    raise failed from error
                self._found.add_error(failed)
                self._found.reads += bytes(_WORD * len(self._calls.reads))

    def _native_loop(self) -> NativeLoop | None:
        """The tier's, where it has one: what is watched or limited in time is made call by call."""
        machine = self._machine
        if machine._direct is None or machine.session is not None or machine.timeout is not None or self._calls.reads:
            return None
        context = machine._context
        if context.gas_price or context.block is not machine.block:
            context = machine._context = machine._new_context(DEFAULT_CALLER, 0)
        return many_calls_for(machine.tier)(machine.state, context, self._calls, self._found, self._keep)

    def _run_natively(self, natively: NativeLoop) -> None:
        """Until one call needs Python, and that one."""
        gone_on = in_turn(self._machine, refuse, self._loop, natively)
        if not gone_on and self._found.done < self._calls.count:  # one that is not for the native loop
            self._found.add(self._run_one())

    def _loop(self, natively: NativeLoop) -> bool:
        """In a turn: whether a call needed Python after those of the native loop, and was made."""
        found, first = self._found, self._found.done
        resume = natively()
        if resume is None:
            return False
        self._note_pay(found.done - first)
        kind, data = self._calls.kind(found.done), self._calls.data_of(found.done)
        message = top_message(kind.caller, kind.to, data, gas=kind.gas)
        found.add(self._machine._go_on(resume, message, keep=self._keep))
        return True

    def _note_pay(self, done: int) -> None:
        """One call needed Python after this many: if that happens repeatedly, single calls are faster."""
        if done < FEW:
            self._single = self._next_single
            self._next_single = min(2 * self._next_single, MAX_SINGLE)
        else:
            self._next_single = 1

    def _run_one(self) -> Result:
        """The next call, by itself."""
        machine, number = self._machine, self._found.done
        kind, data = self._calls.kind(number), self._calls.data_of(number)
        special = self._calls.special.get(number, NOTHING_SPECIAL)
        if not self._calls.reads:
            return self._done(kind, data, special, keep=self._keep)
        with nullcontext() if self._keep else machine.snapshot():
            result = self._done(kind, data, special, keep=True)
            words = [machine.state.storage(*slot).to_bytes(_WORD, "big") for slot in self._calls.reads]
        self._found.reads += b"".join(words)
        return result

    def _done(self, kind: CallKind, data: bytes, special: Special, *, keep: bool) -> Result:
        machine = self._machine
        if special is NOTHING_SPECIAL:
            direct = machine._call_directly(kind.caller, kind.to, data, kind.gas, False, keep)
            if direct is not None:
                return direct
        if self._keep and special.slots:
            raise BadValue("storage: only simulate_many has slots that are other for one call; use set_storage")
        restore_block = machine.block.keep()
        try:
            with nullcontext() if keep else machine.snapshot():
                for name, field in special.block:
                    setattr(machine.block, name, field)
                for slot in special.slots:
                    machine.state.set_storage(*slot)
                return machine._message(top_message(kind.caller, kind.to, data), special.value, kind.gas, 0, None)
        finally:
            restore_block()


def simulate_packed(evm: Batches, calls: PackedCalls, memory: memoryview | None = None) -> Batch:
    """As `simulate_many` with errors kept, for packed calls; results are written to that memory as far as they fit."""
    room = None if memory is None else ColumnMemory.of(memory, calls.count)
    return evm._run_many(calls, _NOTHING_COMMON, keep=False, errors="keep", room=room)
