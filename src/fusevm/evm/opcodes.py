"""The one table of opcodes: byte, name, stack, gas by fork, first fork, what each reads and writes, and where.

Purity, Yul's movability, common subexpressions, load forwarding, dead stores, gas sections and the legality of loop
fusion are all derived from this table and never listed again. What it does not have is the meaning of an opcode: words
have theirs in `words`, everything else in `reference.instructions`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum, Flag, auto
from functools import cache
from typing import NamedTuple

from fusevm.evm.forks import Fork, rules_of


class Effect(Flag):
    """A part of the world an instruction can read or write."""

    NONE = 0
    MEMORY = auto()  # the bytes of memory
    MSIZE = auto()  # how far memory has grown: every memory access may grow it
    STORAGE = auto()
    TRANSIENT = auto()
    ACCOUNTS = auto()  # balances, nonces, existence
    CODE = auto()  # the code of accounts
    ACCESS = auto()  # the warm sets of EIP-2929
    REFUND = auto()  # the refund counter
    RETURNDATA = auto()
    LOGS = auto()
    GAS = auto()  # the gas counter: a reader sees what was charged before it
    OUTSIDE = auto()  # runs other code


MEMORY, MSIZE, STORAGE, TRANSIENT = Effect.MEMORY, Effect.MSIZE, Effect.STORAGE, Effect.TRANSIENT
ACCOUNTS, CODE, ACCESS, REFUND = Effect.ACCOUNTS, Effect.CODE, Effect.ACCESS, Effect.REFUND
RETURNDATA, LOGS, GAS, OUTSIDE = Effect.RETURNDATA, Effect.LOGS, Effect.GAS, Effect.OUTSIDE
NONE = Effect.NONE
WORLD = STORAGE | TRANSIENT | ACCOUNTS | CODE | ACCESS | REFUND | LOGS


class Immediate(Enum):
    """What the bytes after an opcode are to it."""

    NONE = auto()
    WORD = auto()  # the word it pushes; such bytes are not code, and no jump can land there
    SHAPE = auto()  # one byte that says which words of the stack it arranges (`variants`)


class Span(NamedTuple):
    """A range of memory: the operand that is its offset, and the one that is its size."""

    offset: int
    size: int  # a negative one is that many bytes, whatever the operands


class Price(NamedTuple):
    """A price per unit of an operand: `unit` bytes of the range whose size it is or, where that is 0, its own bytes."""

    rule: str  # the field of `forks.Rules` that holds the price
    operand: int
    unit: int


@dataclass(frozen=True, slots=True)
class Opcode:
    byte: int
    name: str
    pops: int  # how deep it looks: DUP3 pops 3 and pushes 4
    pushes: int
    gas: int  # the static part, at its first fork
    since: Fork = Fork.FRONTIER
    reads: Effect = NONE  # except memory, which is in `reads_at` and `writes_at`
    writes: Effect = NONE
    halts: bool = False  # may halt exceptionally for other reasons than gas and stack bounds
    ends: bool = False  # control never falls through
    immediate: int = 0  # bytes after it that belong to it
    carries: Immediate = Immediate.NONE  # what they are
    repriced: tuple[tuple[Fork, int], ...] = ()
    commutes: bool = False  # its first two operands can change places
    copies: int = 0  # DUP: the depth of the word that it copies, 1 being the top
    swaps: tuple[int, int] = (0, 0)  # SWAP: how deep the two words are that change places
    reads_at: tuple[Span, ...] = ()  # where it reads memory
    writes_at: tuple[Span, ...] = ()  # where it writes memory
    prices: tuple[Price, ...] = ()  # besides memory growth and access
    word: str = ""  # the word it pushes, as attributes of the running frame: `context.block.number`
    variants: tuple[Opcode | None, ...] = ()  # by the immediate byte; None where the instruction is invalid

    def __post_init__(self) -> None:
        """Memory is read and written where that is said, and whatever touches it may grow it."""
        reads = MEMORY if self.reads_at else NONE
        writes = (MEMORY if self.writes_at else NONE) | (MSIZE if self.touches else NONE)
        object.__setattr__(self, "reads", self.reads | reads)
        object.__setattr__(self, "writes", self.writes | writes)

    @property
    def dynamic(self) -> bool:
        """Its gas has a part that depends on operands or state."""
        return bool(self.prices or self.touches or self.writes & ACCESS)

    @property
    def pure(self) -> bool:
        """Its result depends on its operands and what is fixed for the frame, and nothing else happens."""
        return not (self.reads or self.writes or self.halts or self.ends) and self.pushes == 1 and not self.is_stack

    @property
    def is_push(self) -> bool:
        return self.carries is Immediate.WORD

    @property
    def is_dup(self) -> bool:
        return self.copies > 0

    @property
    def is_swap(self) -> bool:
        return self.swaps != (0, 0)

    @property
    def is_stack(self) -> bool:
        """It only arranges the stack: PUSHn, POP, DUPn, SWAPn."""
        return self.carries is not Immediate.NONE or self.is_dup or self.is_swap or self.name == "POP"

    @property
    def is_log(self) -> bool:
        return bool(self.writes & LOGS) and not self.calls

    @property
    def calls(self) -> bool:
        """It runs other code: calls and creations."""
        return bool(self.writes & OUTSIDE)

    @property
    def acts_outside(self) -> bool:
        """It runs other code or changes accounts, which native code may need Python for."""
        return bool(self.writes & (OUTSIDE | ACCOUNTS))

    @property
    def touches(self) -> tuple[Span, ...]:
        """Where it reads or writes memory, which grows to hold it."""
        return self.reads_at + self.writes_at

    @property
    def is_long(self) -> bool:
        """It can take long for what it costs, or lead to what does: the clock is looked at before."""
        return bool(self.prices and self.touches) or self.acts_outside or self.name in ("JUMP", "JUMPI")

    @property
    def observes_gas(self) -> bool:
        return bool(self.reads & GAS)

    def gas_at(self, fork: Fork) -> int:
        gas = self.gas
        for since, price in self.repriced:
            if fork >= since:
                gas = price
        return gas


def arranged_by_immediate(op: Opcode, arrange: Callable[[Opcode, int], Opcode | None]) -> Opcode:
    """An opcode like DUPN, SWAPN or EXCHANGE of EIP-8024: what it does to the stack depends on the byte after it.

    That byte may be neither a JUMPDEST nor a PUSH, because jumps are told from code without regard to it.
    """
    formed = replace(op, immediate=1, carries=Immediate.SHAPE)
    variants = tuple(arrange(formed, byte) for byte in range(256))
    for byte in (0x5B, *range(0x60, 0x80)):
        if variants[byte] is not None:
            raise ValueError(f"{op.name}: 0x{byte:02x} cannot be an immediate; let it be invalid")
    return replace(formed, variants=variants)


def copying(op: Opcode, depth: int) -> Opcode:
    return replace(op, pops=depth, pushes=depth + 1, copies=depth)


def swapping(op: Opcode, one: int, other: int) -> Opcode:
    deepest = max(one, other)
    return replace(op, pops=deepest, pushes=deepest, swaps=(one, other))


_HOME, _TANG, _BYZ = Fork.HOMESTEAD, Fork.TANGERINE_WHISTLE, Fork.BYZANTIUM
_CONST, _IST, _BER = Fork.CONSTANTINOPLE, Fork.ISTANBUL, Fork.BERLIN
_LON, _SHA, _CAN, _OSA = Fork.LONDON, Fork.SHANGHAI, Fork.CANCUN, Fork.OSAKA
_WARM = rules_of(_BER).warm_access
_CALL_PRICES = ((_TANG, 700), (_BER, _WARM))
_HASHED = (Price("keccak_word", 1, 32),)
_COPIED = (Price("copy_word", 2, 32),)
_LOGGED = (Price("log_byte", 1, 1),)
_CREATED = (Price("initcode_word", 2, 32),)
_FIRST = (Span(0, 1),)  # a range whose offset and size are on top
_TARGET = (Span(0, 2),)  # of a copy

OPCODES_TABLE = (
    Opcode(0x00, "STOP", 0, 0, 0, ends=True),
    Opcode(0x01, "ADD", 2, 1, 3, commutes=True),
    Opcode(0x02, "MUL", 2, 1, 5, commutes=True),
    Opcode(0x03, "SUB", 2, 1, 3),
    Opcode(0x04, "DIV", 2, 1, 5),
    Opcode(0x05, "SDIV", 2, 1, 5),
    Opcode(0x06, "MOD", 2, 1, 5),
    Opcode(0x07, "SMOD", 2, 1, 5),
    Opcode(0x08, "ADDMOD", 3, 1, 8, commutes=True),
    Opcode(0x09, "MULMOD", 3, 1, 8, commutes=True),
    Opcode(0x0A, "EXP", 2, 1, 10, prices=(Price("exp_byte", 1, 0),)),
    Opcode(0x0B, "SIGNEXTEND", 2, 1, 5),
    Opcode(0x10, "LT", 2, 1, 3),
    Opcode(0x11, "GT", 2, 1, 3),
    Opcode(0x12, "SLT", 2, 1, 3),
    Opcode(0x13, "SGT", 2, 1, 3),
    Opcode(0x14, "EQ", 2, 1, 3, commutes=True),
    Opcode(0x15, "ISZERO", 1, 1, 3),
    Opcode(0x16, "AND", 2, 1, 3, commutes=True),
    Opcode(0x17, "OR", 2, 1, 3, commutes=True),
    Opcode(0x18, "XOR", 2, 1, 3, commutes=True),
    Opcode(0x19, "NOT", 1, 1, 3),
    Opcode(0x1A, "BYTE", 2, 1, 3),
    Opcode(0x1B, "SHL", 2, 1, 3, _CONST),
    Opcode(0x1C, "SHR", 2, 1, 3, _CONST),
    Opcode(0x1D, "SAR", 2, 1, 3, _CONST),
    Opcode(0x1E, "CLZ", 1, 1, 5, _OSA),
    Opcode(0x20, "KECCAK256", 2, 1, 30, reads_at=_FIRST, prices=_HASHED),
    Opcode(0x30, "ADDRESS", 0, 1, 2, word="message.address"),
    Opcode(0x31, "BALANCE", 1, 1, 20, reads=ACCOUNTS | ACCESS, writes=ACCESS,
           repriced=((_TANG, 400), (_IST, 700), (_BER, _WARM))),
    Opcode(0x32, "ORIGIN", 0, 1, 2, word="context.origin"),
    Opcode(0x33, "CALLER", 0, 1, 2, word="message.caller"),
    Opcode(0x34, "CALLVALUE", 0, 1, 2, word="message.value"),
    Opcode(0x35, "CALLDATALOAD", 1, 1, 3),
    Opcode(0x36, "CALLDATASIZE", 0, 1, 2),
    Opcode(0x37, "CALLDATACOPY", 3, 0, 3, writes_at=_TARGET, prices=_COPIED),
    Opcode(0x38, "CODESIZE", 0, 1, 2),
    Opcode(0x39, "CODECOPY", 3, 0, 3, writes_at=_TARGET, prices=_COPIED),
    Opcode(0x3A, "GASPRICE", 0, 1, 2, word="context.gas_price"),
    Opcode(0x3B, "EXTCODESIZE", 1, 1, 20, reads=CODE | ACCESS, writes=ACCESS, repriced=_CALL_PRICES),
    Opcode(0x3C, "EXTCODECOPY", 4, 0, 20, reads=CODE | ACCESS, writes=ACCESS,
           repriced=_CALL_PRICES, writes_at=(Span(1, 3),), prices=(Price("copy_word", 3, 32),)),
    Opcode(0x3D, "RETURNDATASIZE", 0, 1, 2, _BYZ, reads=RETURNDATA),
    Opcode(0x3E, "RETURNDATACOPY", 3, 0, 3, _BYZ, reads=RETURNDATA, halts=True, writes_at=_TARGET, prices=_COPIED),
    Opcode(0x3F, "EXTCODEHASH", 1, 1, 400, _CONST, reads=CODE | ACCOUNTS | ACCESS, writes=ACCESS,
           repriced=((_IST, 700), (_BER, _WARM))),
    Opcode(0x40, "BLOCKHASH", 1, 1, 20),
    Opcode(0x41, "COINBASE", 0, 1, 2, word="context.block.coinbase"),
    Opcode(0x42, "TIMESTAMP", 0, 1, 2, word="context.block.timestamp"),
    Opcode(0x43, "NUMBER", 0, 1, 2, word="context.block.number"),
    Opcode(0x44, "PREVRANDAO", 0, 1, 2, word="context.prev_randao"),
    Opcode(0x45, "GASLIMIT", 0, 1, 2, word="context.block.gas_limit"),
    Opcode(0x46, "CHAINID", 0, 1, 2, _IST, word="context.block.chain_id"),
    Opcode(0x47, "SELFBALANCE", 0, 1, 5, _IST, reads=ACCOUNTS),
    Opcode(0x48, "BASEFEE", 0, 1, 2, _LON, word="context.block.base_fee"),
    Opcode(0x49, "BLOBHASH", 1, 1, 3, _CAN),
    Opcode(0x4A, "BLOBBASEFEE", 0, 1, 2, _CAN, word="context.blob_base_fee"),
    Opcode(0x50, "POP", 1, 0, 2),
    Opcode(0x51, "MLOAD", 1, 1, 3, reads_at=(Span(0, -32),)),
    Opcode(0x52, "MSTORE", 2, 0, 3, writes_at=(Span(0, -32),)),
    Opcode(0x53, "MSTORE8", 2, 0, 3, writes_at=(Span(0, -1),)),
    Opcode(0x54, "SLOAD", 1, 1, 50, reads=STORAGE | ACCESS, writes=ACCESS,
           repriced=((_TANG, 200), (_IST, 800), (_BER, _WARM))),
    Opcode(0x55, "SSTORE", 2, 0, 0, reads=STORAGE | ACCESS | GAS, writes=STORAGE | ACCESS | REFUND, halts=True),
    Opcode(0x56, "JUMP", 1, 0, 8, halts=True, ends=True),
    Opcode(0x57, "JUMPI", 2, 0, 10, halts=True),
    Opcode(0x58, "PC", 0, 1, 2),
    Opcode(0x59, "MSIZE", 0, 1, 2, reads=MSIZE),
    Opcode(0x5A, "GAS", 0, 1, 2, reads=GAS),
    Opcode(0x5B, "JUMPDEST", 0, 0, 1),
    Opcode(0x5C, "TLOAD", 1, 1, 100, _CAN, reads=TRANSIENT),
    Opcode(0x5D, "TSTORE", 2, 0, 100, _CAN, writes=TRANSIENT, halts=True),
    Opcode(0x5E, "MCOPY", 3, 0, 3, _CAN, reads_at=(Span(1, 2),), writes_at=_TARGET, prices=_COPIED),
    Opcode(0x5F, "PUSH0", 0, 1, 2, _SHA, carries=Immediate.WORD),
    *(Opcode(0x5F + n, f"PUSH{n}", 0, 1, 3, immediate=n, carries=Immediate.WORD) for n in range(1, 33)),
    *(Opcode(0x7F + n, f"DUP{n}", n, n + 1, 3, copies=n) for n in range(1, 17)),
    *(Opcode(0x8F + n, f"SWAP{n}", n + 1, n + 1, 3, swaps=(1, n + 1)) for n in range(1, 17)),
    *(Opcode(0xA0 + n, f"LOG{n}", n + 2, 0, 375 + 375 * n, writes=LOGS, halts=True, reads_at=_FIRST, prices=_LOGGED)
      for n in range(5)),
    Opcode(0xF0, "CREATE", 3, 1, 32_000, reads=WORLD | GAS, writes=WORLD | RETURNDATA | OUTSIDE,
           halts=True, reads_at=(Span(1, 2),), prices=_CREATED),
    Opcode(0xF1, "CALL", 7, 1, 40, reads=WORLD | GAS, writes=WORLD | RETURNDATA | OUTSIDE,
           halts=True, repriced=_CALL_PRICES, reads_at=(Span(3, 4),), writes_at=(Span(5, 6),)),
    Opcode(0xF2, "CALLCODE", 7, 1, 40, reads=WORLD | GAS, writes=WORLD | RETURNDATA | OUTSIDE, repriced=_CALL_PRICES,
           reads_at=(Span(3, 4),), writes_at=(Span(5, 6),)),
    Opcode(0xF3, "RETURN", 2, 0, 0, ends=True, reads_at=_FIRST),
    Opcode(0xF4, "DELEGATECALL", 6, 1, 40, _HOME, reads=WORLD | GAS,
           writes=WORLD | RETURNDATA | OUTSIDE, repriced=_CALL_PRICES, reads_at=(Span(2, 3),), writes_at=(Span(4, 5),)),
    Opcode(0xF5, "CREATE2", 4, 1, 32_000, _CONST, reads=WORLD | GAS, writes=WORLD | RETURNDATA | OUTSIDE, halts=True,
           reads_at=(Span(1, 2),), prices=(*_CREATED, Price("keccak_word", 2, 32))),
    Opcode(0xFA, "STATICCALL", 6, 1, 700, _BYZ, reads=WORLD | GAS,
           writes=ACCESS | RETURNDATA | OUTSIDE, repriced=((_BER, _WARM),),
           reads_at=(Span(2, 3),), writes_at=(Span(4, 5),)),
    Opcode(0xFD, "REVERT", 2, 0, 0, _BYZ, ends=True, reads_at=_FIRST),
    Opcode(0xFE, "INVALID", 0, 0, 0, halts=True, ends=True),
    Opcode(0xFF, "SELFDESTRUCT", 1, 0, 0, reads=ACCOUNTS | ACCESS, writes=ACCOUNTS | ACCESS | REFUND | CODE,
           halts=True, ends=True, repriced=((_TANG, 5_000),)),
)  # fmt: skip

BY_BYTE: dict[int, Opcode] = {op.byte: op for op in OPCODES_TABLE}
BY_NAME: dict[str, Opcode] = {op.name: op for op in OPCODES_TABLE}
BY_NAME |= {
    "SHA3": BY_NAME["KECCAK256"],
    "DIFFICULTY": BY_NAME["PREVRANDAO"],
    "RANDOM": BY_NAME["PREVRANDAO"],
    "SUICIDE": BY_NAME["SELFDESTRUCT"],
}
# What native code keeps of the block and the transaction, by opcode.
CONTEXT_WORDS: dict[str, str] = {
    op.name: op.word.rpartition(".")[2] for op in OPCODES_TABLE if op.word.startswith("context.")
}


@cache
def opcodes_of(fork: Fork) -> tuple[Opcode | None, ...]:
    """256 entries: the opcode of each byte, or None where the fork has none."""
    table = (BY_BYTE.get(byte) for byte in range(256))
    return tuple(op if op is not None and op.since <= fork else None for op in table)
