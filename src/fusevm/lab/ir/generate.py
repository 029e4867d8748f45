"""Random bytecode for the IR's own campaigns: blocks that mean something, programs with branches, calls and loops."""

from __future__ import annotations

import random

from fusevm.evm.assembly import assemble
from fusevm.evm.forks import Fork
from fusevm.evm.opcodes import BY_NAME, Opcode, opcodes_of

WORDS = [
    0, 1, 2, 3, 4, 5, 7, 8, 16, 31, 32, 33, 64, 96, 127, 128, 255, 256, 257, 0xFFFF, 0x10000, 0xFFFFFFFF,
    (1 << 64) - 1, 1 << 64, (1 << 128) - 1, 1 << 128, (1 << 160) - 1, 1 << 160, (1 << 255) - 1, 1 << 255,
    (1 << 255) + 1, (1 << 256) - 1, (1 << 256) - 2, (1 << 256) - 32, 0xFF << 248, 0xFFFFFFFF << 224,
    int("55" * 32, 16), int("0123456789abcdef" * 4, 16),
]  # fmt: skip
OFFSETS = [0, 0, 0x20, 0x20, 0x40, 0x40, 0x60, 0x80, 0x80, 0xA0, 1, 31, 33, 0x3F, 0x100]
SIZES = [0, 1, 4, 31, 32, 32, 33, 64, 64, 96]
KEYS = [0, 0, 1, 1, 2, 3, (1 << 256) - 1]
ADDRESSES = [
    0x1234,
    0x1234,
    0x1235,
    0x1236,
    0x1237,
    0x04,
    0xDEAD,
    int.from_bytes(b"\xc0" * 20, "big"),
    0x1234 | 1 << 200,
]
BASES = [0x80, 0x80, 0xA0, 0xC0, 0x20, 0x0, 0x7F]

ARITHMETIC = [
    "ADD", "MUL", "SUB", "DIV", "SDIV", "MOD", "SMOD", "ADDMOD", "MULMOD", "EXP", "SIGNEXTEND", "LT", "GT", "SLT",
    "SGT", "EQ", "ISZERO", "ISZERO", "AND", "AND", "OR", "XOR", "NOT", "BYTE", "SHL", "SHR", "SAR", "CLZ",
]  # fmt: skip
ENVIRONMENT = [
    "ADDRESS", "BALANCE", "ORIGIN", "CALLER", "CALLVALUE", "CALLDATALOAD", "CALLDATASIZE", "CODESIZE", "GASPRICE",
    "EXTCODESIZE", "RETURNDATASIZE", "EXTCODEHASH", "BLOCKHASH", "COINBASE", "TIMESTAMP", "NUMBER", "PREVRANDAO",
    "GASLIMIT", "CHAINID", "SELFBALANCE", "BASEFEE", "BLOBHASH", "BLOBBASEFEE", "PC",
]  # fmt: skip
# By hand: a generator says how often it writes an opcode and what operands it gives it, not what the opcode does.
# What each operand of an instruction that touches the world is, the top first: o offset, s size, k key, a address,
# w word, g gas, v value.
SHAPES = {
    "MLOAD": "o", "MSTORE": "ow", "MSTORE8": "ow", "KECCAK256": "os", "MCOPY": "oos", "CALLDATACOPY": "oos",
    "CODECOPY": "oos", "RETURNDATACOPY": "ozs", "EXTCODECOPY": "aoos", "SLOAD": "k", "SSTORE": "kw", "TLOAD": "k",
    "TSTORE": "kw", "LOG0": "os", "LOG1": "osw", "LOG2": "osww", "BALANCE": "a", "EXTCODESIZE": "a", "EXTCODEHASH": "a",
    "CALL": "gavosos", "STATICCALL": "gaosos", "DELEGATECALL": "gaosos", "CALLCODE": "gavosos", "CREATE": "vos",
    "MSIZE": "", "GAS": "", "RETURNDATASIZE": "", "RETURN": "os", "REVERT": "os", "SELFDESTRUCT": "a", "STOP": "",
    "INVALID": "",
}  # fmt: skip
MEMORY_OPS = ["MLOAD"] * 5 + ["MSTORE"] * 6 + ["MSTORE8", "MSTORE8", "KECCAK256", "KECCAK256", "MCOPY", "CALLDATACOPY",
              "CODECOPY", "RETURNDATACOPY", "EXTCODECOPY", "MSIZE", "LOG0", "LOG1", "LOG2"]  # fmt: skip
STATE_OPS = ["SLOAD", "SLOAD", "SLOAD", "SSTORE", "SSTORE", "TLOAD", "TLOAD", "TSTORE", "BALANCE", "EXTCODESIZE"]
CALL_OPS = ["CALL", "STATICCALL", "DELEGATECALL", "CALLCODE", "CREATE", "GAS", "GAS"]


class BlockMaker:
    """Writes straight-line code whose operands come from literals, the stack, and sums of both."""

    def __init__(self, rng: random.Random, fork: Fork, gas_matters: bool = True, wild: float = 0.005) -> None:
        self.rng, self.fork, self.wild = rng, fork, wild  # wild: how often an offset is beyond all gas
        self.known = {op.name for op in opcodes_of(fork) if op is not None}
        self.gas_matters = gas_matters
        self.text: list[str] = []
        self.height = 0
        self.floor = 0  # words below are not to be changed: loop counters, return addresses
        self.theme()

    def theme(self) -> None:
        """What this code is about: few places and words, so that accesses meet, and a taste for some instructions."""
        rng = self.rng
        self.offsets = rng.choices(OFFSETS, k=rng.choice([1, 2, 3, 8]))
        self.sizes = rng.choices(SIZES, k=rng.choice([1, 2, 8]))
        self.keys = rng.choices(KEYS, k=rng.choice([1, 2, 6]))
        self.words = rng.choices(WORDS, k=rng.choice([2, 4, 40]))
        kinds = [self.arithmetic, self.surroundings, self.memory, self.state, self.outside, self.shuffle]
        usual = [0.36, 0.08, 0.24, 0.10, 0.04, 0.18]
        self.kinds = kinds
        self.weights = [usual_weight * rng.choice([0.1, 1, 1, 1, 4]) for usual_weight in usual]

    def block(self) -> tuple[bytes, list[int]]:
        """Code of one block, and a stack to run it on."""
        rng = self.rng
        stack = [
            rng.choice([rng.choice(WORDS), rng.choice(BASES), rng.getrandbits(256)]) for _ in range(rng.randrange(6))
        ]
        self.text, self.height = [], len(stack)
        self.body(rng.choice([3, 8, 15, 30, 60]))
        self.end()
        if not self.text:
            self.push(0)
        return assemble(" ".join(self.text), self.fork), stack

    def body(self, length: int) -> None:
        for _ in range(length):
            self.instruction()

    def instruction(self) -> None:
        self.rng.choices(self.kinds, self.weights)[0]()

    def arithmetic(self) -> None:
        self.plain(self.rng.choice(ARITHMETIC))

    def surroundings(self) -> None:
        self.shaped(self.rng.choice(ENVIRONMENT))

    def memory(self) -> None:
        self.shaped(self.rng.choice(MEMORY_OPS))

    def state(self) -> None:
        self.shaped(self.rng.choice(STATE_OPS))

    def outside(self) -> None:
        self.shaped(self.rng.choice(CALL_OPS))

    def add(self, op: Opcode, operand: str = "") -> None:
        self.text.append(f"{op.name} {operand}".strip())
        self.height += op.pushes - op.pops

    def push(self, word: int) -> None:
        self.text.append(f"PUSH {word:#x}")
        self.height += 1

    def allowed(self, name: str) -> bool:
        if name not in self.known or self.height > 900:
            return False
        return self.gas_matters or name not in ("GAS", "MSIZE")

    def plain(self, name: str) -> None:
        """An instruction over words; sometimes with literals, sometimes with words on the stack."""
        op = BY_NAME[name]
        if not self.allowed(name):
            return
        for _ in range(op.pops):
            if self.height - self.floor < op.pops or self.rng.random() < 0.4:
                self.word()
        self.add(op)

    def word(self) -> None:
        rng = self.rng
        if self.height and rng.random() < 0.4:
            self.add(BY_NAME[f"DUP{rng.randrange(1, min(self.height, 16) + 1)}"])
        else:
            self.push(rng.choice(self.words) if rng.random() < 0.8 else rng.getrandbits(rng.choice([8, 64, 256])))

    def shaped(self, name: str) -> None:
        if not self.allowed(name):
            return
        op = BY_NAME[name]
        shape = SHAPES.get(name)
        if shape is None:
            self.plain(name)
            return
        for kind in reversed(shape):
            self.operand(kind)
        self.add(op)

    def operand(self, kind: str) -> None:
        rng = self.rng
        match kind:
            case "o" if self.height and rng.random() < 0.3:
                # base + offset: the base is any word on the stack, reduced to a small range
                self.add(BY_NAME[f"DUP{rng.randrange(1, min(self.height, 16) + 1)}"])
                if rng.random() < 0.7 or not self.wild:
                    self.push(0xFF)
                    self.add(BY_NAME["AND"])
                if rng.random() < 0.6:
                    self.push(rng.choice(self.offsets))
                    self.add(BY_NAME["ADD"])
            case "o":
                self.push(rng.choice(self.offsets) if rng.random() >= self.wild else rng.choice(WORDS))
            case "s" if self.height and rng.random() < 0.1:
                self.add(BY_NAME[f"DUP{rng.randrange(1, min(self.height, 16) + 1)}"])
                self.push(0x7F)
                self.add(BY_NAME["AND"])
            case "s":
                self.push(rng.choice(self.sizes))
            case "z":
                self.push(0 if rng.random() < 0.8 else 1)
            case "k" if self.height and rng.random() < 0.3:
                self.add(BY_NAME[f"DUP{rng.randrange(1, min(self.height, 16) + 1)}"])
                if rng.random() < 0.5:
                    self.push(1)
                    self.add(BY_NAME["ADD"])
            case "k":
                self.push(rng.choice(self.keys))
            case "a":
                self.push(rng.choice(ADDRESSES))
            case "g":
                self.push(rng.choice([0, 30_000, 100_000, (1 << 256) - 1]))
            case "v":
                self.push(rng.choice([0, 0, 1]))
            case _:
                self.word()

    def shuffle(self) -> None:
        rng, choice = self.rng, self.rng.random()
        own = self.height - self.floor
        if choice < 0.4 or own <= 0:
            self.word()
        elif choice < 0.55:
            self.add(BY_NAME["POP"])
        elif own > 1:
            self.add(BY_NAME[f"SWAP{rng.randrange(1, min(own - 1, 16) + 1)}"])

    def end(self) -> None:
        """Mostly nothing: the block falls through, and its stack can be seen."""
        rng, choice = self.rng, self.rng.random()
        if choice < 0.1:
            self.shaped(rng.choice(["RETURN", "REVERT", "STOP", "SELFDESTRUCT", "INVALID"]))
        elif choice < 0.2:
            self.word()
            self.add(BY_NAME["JUMP"])
        elif choice < 0.3:
            self.word()
            self.word()
            self.add(BY_NAME["JUMPI"])


class ProgramMaker(BlockMaker):
    """Writes programs with branches, loops, functions with return addresses on the stack, and jumps through memory."""

    labels = 0
    room = 40  # statements until only plain ones follow

    def program(self) -> bytes:
        rng = self.rng
        self.functions: list[tuple[str, int, int]] = [
            (f"f{n}", rng.randrange(3), rng.randrange(3)) for n in range(rng.randrange(4))
        ]
        for _ in range(rng.randrange(1, 6)):
            self.statement(2)
        self.finish()
        for name, taken, given in self.functions:
            self.function(name, taken, given)
        return assemble(" ".join(self.text), self.fork)

    def finish(self) -> None:
        """Mostly tells every word left on the stack, so that none can go wrong unseen."""
        if self.rng.random() < 0.3:
            self.shaped(self.rng.choice(["RETURN", "REVERT", "STOP", "SELFDESTRUCT"]))
            return
        self.tell()

    def tell(self) -> None:
        words = self.height
        for index in range(words):
            self.push(0x400 + 32 * index)
            self.add(BY_NAME["MSTORE"])
        self.push(32 * words)
        self.push(0x400)
        self.add(BY_NAME["RETURN"])

    def condition(self) -> None:
        """Sometimes known, mostly up to the call's data."""
        if self.rng.random() < 0.3:
            self.word()
            return
        self.push(self.rng.randrange(64))
        self.add(BY_NAME["CALLDATALOAD"])
        self.push(1 << self.rng.randrange(256))
        self.add(BY_NAME["AND"])

    def label(self) -> str:
        self.labels += 1
        return f"l{self.labels}"

    def here(self, label: str) -> None:
        self.text.append(f"{label}: JUMPDEST")

    def jump(self, label: str, name: str) -> None:
        self.text.append(f"PUSH @{label}")
        self.height += 1
        self.add(BY_NAME[name])

    def level(self, height: int) -> None:
        """Brings the stack to that height, so that paths can join."""
        while self.height > height:
            self.add(BY_NAME["POP"])
        while self.height < height:
            self.word()

    def statement(self, depth: int) -> None:
        self.room -= 1
        kinds = [
            self.plainly, self.plainly, self.branch, self.choice, self.loop, self.maybe_loop, self.deep, self.call,
            self.leave, self.through_memory,
        ]  # fmt: skip
        self.rng.choice(kinds if depth and self.room > 0 else kinds[:2])(depth)

    def plainly(self, depth: int) -> None:
        self.body(self.rng.choice([2, 5, 10, 20]))

    def branch(self, depth: int) -> None:
        after, height = self.label(), self.height
        self.condition()
        self.jump(after, "JUMPI")
        self.inside(depth, height)
        self.here(after)

    def choice(self, depth: int) -> None:
        then, after, height = self.label(), self.label(), self.height
        self.condition()
        self.jump(then, "JUMPI")
        self.inside(depth, height)
        self.jump(after, "JUMP")
        self.here(then)
        self.inside(depth, height)
        self.here(after)

    def inside(self, depth: int, height: int) -> None:
        self.statement(depth - 1)
        self.level(height)

    def loop(self, depth: int) -> None:
        top, floor = self.label(), self.floor
        self.push(self.rng.randrange(1, 5))
        self.floor = height = self.height
        self.here(top)
        self.inside(depth, height)
        if self.rng.random() < 0.5:
            self.inside(depth, height)
        self.text.append(f"PUSH 1 SWAP1 SUB DUP1 PUSH @{top} JUMPI POP")
        self.height, self.floor = height - 1, floor

    def maybe_loop(self, depth: int) -> None:
        """Entered by a branch, so that the block before it may also go elsewhere."""
        top, after, floor = self.label(), self.label(), self.floor
        self.push(self.rng.randrange(1, 5))
        self.floor = height = self.height
        self.condition()
        self.jump(top, "JUMPI")
        self.jump(after, "JUMP")
        self.here(top)
        self.inside(depth, height)
        self.text.append(f"PUSH 1 SWAP1 SUB DUP1 PUSH @{top} JUMPI")
        self.here(after)
        self.add(BY_NAME["POP"])
        self.floor = floor

    def deep(self, depth: int) -> None:
        """Pushes the current words out of reach for a while."""
        height = self.height
        for _ in range(self.rng.randrange(8, 20)):
            self.word()
        self.statement(depth - 1)
        self.level(height)

    def call(self, depth: int) -> None:
        if not self.functions:
            return
        name, taken, given = self.rng.choice(self.functions)
        back = self.label()
        self.text.append(f"PUSH @{back}")
        self.height += 1
        for _ in range(taken):
            self.word()
        self.jump(name, "JUMP")
        self.here(back)
        self.height += given - taken - 1

    def leave(self, depth: int) -> None:
        after = self.label()
        self.condition()
        self.jump(after, "JUMPI")
        height = self.height
        self.shaped(self.rng.choice(["RETURN", "REVERT", "STOP", "INVALID"]))
        self.height = height
        self.here(after)

    def through_memory(self, depth: int) -> None:
        """A jump whose target went through memory: known only to those who forward stores to loads."""
        after = self.label()
        self.text.append(f"PUSH @{after} PUSH 0x200 MSTORE")
        self.body(self.rng.choice([0, 0, 3]))
        self.text.append(f"PUSH 0x200 MLOAD JUMP {after}: JUMPDEST")

    def function(self, name: str, taken: int, given: int) -> None:
        self.height, self.floor = taken + 1, 1
        self.here(name)
        before, self.functions = self.functions, []  # no recursion: gas alone would end it
        for _ in range(self.rng.randrange(1, 3)):
            self.statement(1)
        self.functions = before
        self.level(given + 1)
        if given:
            self.add(BY_NAME[f"SWAP{given}"])
        self.add(BY_NAME["JUMP"])
