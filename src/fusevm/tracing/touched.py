"""The accounts and slots that code accesses, as geth's tracers find them: by the operands of instructions.

A recording has them all, except the accounts that BALANCE and similar opcodes read. Where code that ran has such an
instruction, it is run again on the reference tier, watched.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from fusevm.chain.addresses import create2_address, create_address
from fusevm.chain.result import Result
from fusevm.chain.state import State, delegate_in
from fusevm.evm.bytecode import without_pushes
from fusevm.evm.code_cache import CodeMemo
from fusevm.evm.opcodes import BY_NAME
from fusevm.reference.frame import Frame as Running
from fusevm.reference.hooks import Hooks
from fusevm.reference.instructions.environment import to_address
from fusevm.tracing.recording import FrameKind, RecordedFrame, Recording, Refusal, StorageRead, StorageWrite, Wanted
from fusevm.tracing.requests import Run, TracedMachine, hooked, recorded, undone

Slot = tuple[bytes, int]

_SLOTS = frozenset(BY_NAME[name].byte for name in ("SLOAD", "SSTORE"))
_ACCOUNTS = frozenset(BY_NAME[name].byte for name in ("BALANCE", "EXTCODECOPY", "EXTCODEHASH", "EXTCODESIZE"))
_CALLS = frozenset(BY_NAME[name].byte for name in ("CALL", "CALLCODE", "DELEGATECALL", "STATICCALL"))
_CREATE, _CREATE2, _SELFDESTRUCT = (BY_NAME[name].byte for name in ("CREATE", "CREATE2", "SELFDESTRUCT"))

_reads_accounts = CodeMemo(lambda code: not _ACCOUNTS.isdisjoint(without_pushes(code)), lambda _: 1, 1 << 16)


@dataclass(slots=True)
class Touched:
    """In the order of first use; what frames that failed have used as well. An instruction that halts uses nothing."""

    accounts: dict[bytes, None] = field(default_factory=dict)
    slots: dict[Slot, None] = field(default_factory=dict)
    created: dict[bytes, None] = field(default_factory=dict)  # addresses of creations, whatever became of them


@contextmanager
def touching(machine: TracedMachine, state: State, run: Run) -> Iterator[tuple[Result, Touched]]:
    """Runs something. In the `with` block it has happened; then it is undone."""
    with undone(state):
        with recorded(machine, Wanted(calls=True, logs=False, storage=True)) as recording:
            result = run()
            found = touched_by(recording, state)
        if found is not None:
            yield result, found
            return
    watcher = TouchWatcher()
    with undone(state):
        with hooked(machine, Hooks(watcher=watcher)):
            result = run()
        yield result, watcher.found


def touched_by(recording: Recording, state: State) -> Touched | None:
    """What a recording with storage tells; None where that may not be all. The state is as the calls have left it."""
    found, made = Touched(), set[bytes]()  # codes of contracts that were created, kept or not
    for frame in recording.walk():
        if not _is_complete(frame, state, made):
            return None
        if frame.kind.creates:
            made.add(frame.output)
            if frame.depth:
                found.created[frame.address] = None
        elif frame.kind is FrameKind.SELFDESTRUCT:
            found.accounts[frame.address] = None
        elif frame.depth:
            found.accounts[frame.code_address] = None
            if frame.delegate is not None:
                found.accounts[frame.delegate] = None
        for event in frame.events:
            if isinstance(event, StorageRead | StorageWrite) and not event.transient:
                found.slots[event.address, event.key] = None
    return found


def _is_complete(frame: RecordedFrame, state: State, made: set[bytes]) -> bool:
    """Whether the code that a frame may have run reads no accounts. Of a refused creation the address is not known."""
    if frame.kind.creates:
        return not isinstance(frame.failure, Refusal) and not _reads_accounts(frame.input)
    if frame.kind is FrameKind.SELFDESTRUCT:
        return True
    where = frame.delegate or frame.code_address
    if where in state.destroyed:  # its code is gone
        return False
    return not any(_reads_accounts(code) for code in (state.account(where).code, *made))


class TouchWatcher:
    """Notes what the reference tier's instructions use."""

    watched = _SLOTS | _ACCOUNTS | _CALLS | {_CREATE, _CREATE2, _SELFDESTRUCT}

    def __init__(self) -> None:
        self.found = Touched()
        self._accounts: list[bytes] = []  # of the instruction that runs
        self._slot: Slot | None = None
        self._created: bytes | None = None
        self._operands: tuple[int, ...] = ()

    def enter(self, frame: Running) -> None:
        pass

    def leave(self, frame: Running) -> None:
        pass

    def before(self, frame: Running, byte: int) -> None:
        """The operands, if they are available; most are gone after the instruction."""
        self._accounts, self._slot, self._created = [], None, None
        stack, own = frame.stack, frame.message.address
        if byte in _SLOTS:
            self._slot = (own, stack[-1]) if stack else None
        elif byte in _CALLS:
            if len(stack) > 1:
                self._accounts = _called(frame, to_address(stack[-2]))
        elif byte == _CREATE:
            self._created = create_address(own, frame.state.account(own).nonce)
        elif byte == _CREATE2:
            self._operands = tuple(stack[-4:])  # its init code may be in memory that is yet to be paid for
        elif stack:
            self._accounts = [to_address(stack[-1])]

    def after(self, frame: Running, byte: int, called: Running | None) -> None:
        own = frame.message.address
        if byte == _CREATE2:
            salt, size, offset, _ = self._operands
            self._created = create2_address(own, salt, frame.read(offset, size))
        if self._created is not None:
            self.found.created[self._created] = None
        if self._slot is not None:
            self.found.slots[self._slot] = None
        for address in self._accounts:
            self.found.accounts[address] = None

    def failed(self, frame: Running, byte: int) -> None:
        pass


def _called(frame: Running, address: bytes) -> list[bytes]:
    """The account, and the one whose code runs in its place (EIP-7702)."""
    code = frame.state.account(address).code
    delegate = delegate_in(code) if frame.context.rules.delegation else None
    return [address] if delegate is None else [address, delegate]
