"""The accounts and slots that code looks at, as geth's tracers find them: by the operands of instructions."""

from __future__ import annotations

from fusevm.chain.addresses import create2_address, create_address
from fusevm.chain.state import delegate_in
from fusevm.evm.opcodes import BY_NAME
from fusevm.reference.frame import Frame as Running
from fusevm.reference.instructions.environment import to_address

Slot = tuple[bytes, int]

_SLOTS = frozenset(BY_NAME[name].byte for name in ("SLOAD", "SSTORE"))
_ACCOUNTS = frozenset(BY_NAME[name].byte for name in ("BALANCE", "EXTCODECOPY", "EXTCODEHASH", "EXTCODESIZE"))
_CALLS = frozenset(BY_NAME[name].byte for name in ("CALL", "CALLCODE", "DELEGATECALL", "STATICCALL"))
_CREATE, _CREATE2, _SELFDESTRUCT = (BY_NAME[name].byte for name in ("CREATE", "CREATE2", "SELFDESTRUCT"))


class TouchWatcher:
    """Notes accounts and slots in the order of their first use; what frames that failed have used as well.

    An instruction that halts has used nothing.
    """

    watched = _SLOTS | _ACCOUNTS | _CALLS | {_CREATE, _CREATE2, _SELFDESTRUCT}

    def __init__(self) -> None:
        self.accounts: dict[bytes, None] = {}
        self.slots: dict[Slot, None] = {}
        self.created: dict[bytes, None] = {}  # addresses of creations, whatever became of them
        self._accounts: list[bytes] = []  # of the instruction that runs
        self._slot: Slot | None = None
        self._created: bytes | None = None
        self._operands: tuple[int, ...] = ()

    def enter(self, frame: Running) -> None:
        pass

    def leave(self, frame: Running) -> None:
        pass

    def before(self, frame: Running, byte: int) -> None:
        """The operands, if they are there; most are gone after the instruction."""
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
            self.created[self._created] = None
        if self._slot is not None:
            self.slots[self._slot] = None
        for address in self._accounts:
            self.accounts[address] = None

    def failed(self, frame: Running, byte: int) -> None:
        pass


def _called(frame: Running, address: bytes) -> list[bytes]:
    """The account, and the one whose code runs in its place (EIP-7702)."""
    code = frame.state.account(address).code
    delegate = delegate_in(code) if frame.context.rules.delegation else None
    return [address] if delegate is None else [address, delegate]
