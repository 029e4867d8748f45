"""What straight-line code is made of: small runs of instructions, one function a kind, weighted in one table."""

from __future__ import annotations

from fusevm.lab.fuzz import constants as words
from fusevm.lab.fuzz.writer import Writer


def pure(w: Writer) -> None:
    op = w.rng.choice(w.vocabulary.pure)
    w.operands(op.pops)
    w.op(op.name)


def nullary(w: Writer) -> None:
    w.op(w.rng.choice(w.vocabulary.nullary).name)


def constant(w: Writer) -> None:
    w.push(words.word(w.rng))


def duplicate(w: Writer) -> None:
    if w.height:
        w.op(f"DUP{w.rng.randint(1, min(16, w.height))}")


def swap(w: Writer) -> None:
    """Mostly within the block; seldom it reaches below, into a loop's counter for instance."""
    depth = w.height if w.chance(0.02) else w.height - w.floor
    if depth > 1:
        w.op(f"SWAP{w.rng.randint(1, min(16, depth - 1))}")


def pop(w: Writer) -> None:
    if w.height > w.floor:
        w.op("POP")


def deep(w: Writer) -> None:
    """Enough words for the deepest DUPs and SWAPs."""
    base = w.height
    w.settle(max(base, w.floor + 17))
    for _ in range(w.rng.randint(1, 4)):
        w.op(f"{w.rng.choice(('DUP', 'SWAP'))}{w.rng.randint(5, 16)}")
    w.settle(w.floor + w.rng.randrange(4))


def mstore(w: Writer) -> None:
    w.operands(1)
    w.offset()
    w.op("MSTORE" if w.chance(0.8) else "MSTORE8")


def mload(w: Writer) -> None:
    w.offset()
    w.op("MLOAD")


def keccak(w: Writer) -> None:
    w.size()
    w.offset()
    w.op("KECCAK256")


def mcopy(w: Writer) -> None:
    w.size()
    w.offset()
    w.offset()
    w.op("MCOPY")


def copy(w: Writer) -> None:
    w.size()
    w.offset()
    w.offset()
    w.op(w.rng.choice(("CALLDATACOPY", "CODECOPY")))


def extcodecopy(w: Writer) -> None:
    w.size()
    w.offset()
    w.offset()
    address(w)
    w.op("EXTCODECOPY")


def returndata(w: Writer) -> None:
    """All of it, or a part that is mostly there."""
    if w.chance(0.9):
        w.ops("RETURNDATASIZE")
        w.push(0)
    else:
        w.push(w.rng.choice((0, 0, 1, 32, words.size(w.rng))))
        w.push(w.rng.choice((0, 0, 0, 1, words.offset(w.rng))))
    w.offset()
    w.op("RETURNDATACOPY")


def sload(w: Writer) -> None:
    w.key()
    w.op("SLOAD")


def sstore(w: Writer) -> None:
    if w.chance(0.6):
        w.push(words.slot_value(w.rng))
    else:
        w.operands(1)
    w.key()
    w.op("SSTORE")


def tload(w: Writer) -> None:
    w.key()
    w.op("TLOAD")


def tstore(w: Writer) -> None:
    w.operands(1)
    w.key()
    w.op("TSTORE")


def log(w: Writer) -> None:
    op = w.rng.choice(w.vocabulary.logs)
    w.operands(op.pops - 2)
    w.size()
    w.offset()
    w.op(op.name)


def account(w: Writer) -> None:
    """What can be asked about an account."""
    address(w)
    w.op(w.rng.choice([name for name in ("BALANCE", "EXTCODESIZE", "EXTCODEHASH") if w.has(name)]))


def blockhash(w: Writer) -> None:
    if w.chance(0.8):
        w.push(w.rng.choice((0, 1, 2, 3, 255, 256, 257, words.word(w.rng))))
        w.ops("NUMBER", "SUB")
    else:
        w.operands(1)
    w.op("BLOCKHASH")


def blobhash(w: Writer) -> None:
    w.push(w.rng.choice((0, 1, 2, words.word(w.rng))))
    w.op("BLOBHASH")


def calldata(w: Writer) -> None:
    w.push(w.rng.choice((0, 4, 32, 36, 64, words.word(w.rng))))
    w.op("CALLDATALOAD")


def fold(w: Writer) -> None:
    """Consecutive constants under consecutive operations, as compilers' masks and shifts are."""
    for _ in range(w.rng.randint(2, 4)):
        w.push(words.word(w.rng))
    for _ in range(w.rng.randint(1, 3)):
        op = w.rng.choice(w.vocabulary.pure)
        if op.pops <= w.height - w.floor:
            w.op(op.name)


# How compilers write things. `#` pushes any word, `@` an offset, other numbers themselves.
IDIOMS = tuple(
    tuple(text.split())
    for text in (
        "# # # POP POP POP",
        "# # POP POP",
        "# DUP1 ADD",
        "# DUP2 ADD",
        "# DUP2 SWAP1 SUB",
        "# @ DUP2 MSTORE #",
        "# SWAP1 POP",
        "# # SWAP2 POP",
        "# # # SWAP3 SWAP1 POP",
        "# NOT AND",
        "# ISZERO ISZERO",
        "64 MLOAD",
        "128 64 MSTORE",
        "64 MLOAD DUP1 # DUP2 ADD 64 MSTORE",
        "1 1 160 SHL SUB AND",
        "0 CALLDATALOAD 224 SHR",
        "# @ MSTORE 32 @ KECCAK256 SLOAD",
        "# 0 MSTORE # 32 MSTORE 64 0 KECCAK256",
        "# DUP1 DUP3 LT ISZERO",
        "# # # ADDMOD",
        "# # GT # # SLT AND ISZERO",
        "PC POP MSIZE POP",
    )
)


def idiom(w: Writer) -> None:
    """A run of instructions that compilers are fond of."""
    words_of = w.rng.choice(IDIOMS)
    if not all(word in "#@" or word.isdigit() or w.has(word) for word in words_of):
        return
    if w.height == w.floor:
        w.operand()
    for word in words_of:
        if word == "#":
            w.push(words.word(w.rng))
        elif word == "@":
            w.push(words.offset(w.rng))
        elif word.isdigit():
            w.push(int(word))
        else:
            w.op(word)


def jumpdest(w: Writer) -> None:
    """A target that no jump uses."""
    w.label(w.new_label())


def careless(w: Writer) -> None:
    """Any opcode at all, whatever the stack holds, or a byte that is none."""
    if w.chance(0.2):
        w.data(bytes((w.rng.choice(w.vocabulary.undefined),)))
        return
    op = w.rng.choice(w.vocabulary.any)
    if op.immediate or op.ends:
        return
    w.op(op.name)
    w.height = max(w.height, 0)


def address(w: Writer) -> None:
    """Pushes an address: mostly one of the world, sometimes with dirt above its 20 bytes."""
    kind = w.rng.random()
    if kind < 0.72:
        w.push(w.rng.choice(w.around.targets))
    elif kind < 0.78:
        w.push(w.rng.choice(w.around.targets) | 0xDEAD << 160)
    elif kind < 0.86:
        w.op("ADDRESS")
    elif kind < 0.92:
        w.op(w.rng.choice(("CALLER", "ORIGIN", "COINBASE")))
    elif kind < 0.97:
        w.push(w.rng.choice(w.around.precompiles))
    else:
        w.operand()


# weight, statement, an opcode the fork must have for it
STRAIGHT = (
    (20.0, pure, "ADD"),
    (4.0, fold, "ADD"),
    (4.0, idiom, "ADD"),
    (3.0, nullary, "ADDRESS"),
    (4.0, constant, "PUSH1"),
    (4.0, duplicate, "DUP1"),
    (4.0, swap, "SWAP1"),
    (2.0, pop, "POP"),
    (0.8, deep, "DUP16"),
    (6.0, mstore, "MSTORE"),
    (3.0, mload, "MLOAD"),
    (2.0, keccak, "KECCAK256"),
    (2.0, mcopy, "MCOPY"),
    (2.0, copy, "CODECOPY"),
    (0.8, extcodecopy, "EXTCODECOPY"),
    (1.5, returndata, "RETURNDATACOPY"),
    (2.0, sload, "SLOAD"),
    (3.0, sstore, "SSTORE"),
    (1.0, tload, "TLOAD"),
    (1.5, tstore, "TSTORE"),
    (1.5, log, "LOG0"),
    (1.5, account, "BALANCE"),
    (0.5, blockhash, "BLOCKHASH"),
    (0.5, blobhash, "BLOBHASH"),
    (1.5, calldata, "CALLDATALOAD"),
    (0.7, jumpdest, "JUMPDEST"),
    (0.08, careless, "INVALID"),
)  # fmt: skip
