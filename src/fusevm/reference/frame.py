"""One call's own machine: program counter, gas, stack, memory, return data."""

from __future__ import annotations

from fusevm.chain.environment import Context, Message
from fusevm.chain.outcome import EngineLimit
from fusevm.chain.state import State
from fusevm.evm.bytecode import JUMPDEST, without_pushes
from fusevm.evm.code_cache import CodeMemo
from fusevm.evm.gas import growth_cost, words_of
from fusevm.evm.halts import ExceptionalHalt, HaltReason

PADDING = bytes(33)  # running off the end is STOP, and truncated push data reads as zeros
CACHED = 1 << 26  # bytes

padded = CodeMemo(lambda code: code + PADDING, len, CACHED)
jump_map = CodeMemo(without_pushes, len, CACHED)


class Frame:
    __slots__ = (
        "code", "context", "created", "error", "gas", "jumps", "mark", "memory", "message", "output",
        "pc", "return_range", "returndata", "reverted", "stack", "state", "static",
    )  # fmt: skip

    def __init__(self, message: Message, state: State, context: Context) -> None:
        self.message = message
        self.state = state
        self.context = context
        self.code = padded(message.code)
        self.jumps: bytes | None = None  # the code without its PUSHes; made at the first jump
        self.static = message.static
        self.pc = 0
        self.gas = message.gas
        self.stack: list[int] = []
        self.memory = bytearray()
        self.returndata = b""  # what the last call returned
        self.return_range = (0, 0)  # where in memory the running call's output goes
        self.mark = 0  # the journal's length as this frame began
        self.output = b""
        self.reverted = False
        self.error: ExceptionalHalt | None = None
        self.created: bytes | None = None

    @property
    def succeeded(self) -> bool:
        return self.error is None and not self.reverted

    def halt(self, halt: ExceptionalHalt) -> None:
        """Keeps why it failed, without the traceback: that holds what ran this frame and so the frame itself, and only
        the garbage collector would free them."""
        self.error = halt.with_traceback(None)

    def is_jumpdest(self, target: int) -> bool:
        jumps = self.jumps
        if jumps is None:
            code = self.message.code
            if target >= len(code) or code[target] != JUMPDEST:
                return False  # without a look at all of the code
            jumps = self.jumps = jump_map(code)
        return target < len(jumps) and jumps[target] == JUMPDEST

    def charge(self, amount: int) -> None:
        if amount > self.gas:
            raise ExceptionalHalt(HaltReason.OUT_OF_GAS, f"{amount} needed, {self.gas} left")
        self.gas -= amount

    def expand(self, offset: int, size: int) -> None:
        """Pays for memory up to offset + size, and grows it; a size of zero touches nothing."""
        if not size:
            return
        end, length = offset + size, len(self.memory)
        if end <= length:
            return
        words = words_of(end)
        self.charge(growth_cost(length // 32, words))
        context, growth = self.context, words * 32 - length
        if growth > context.memory_limit - context.memory_used:
            raise EngineLimit(memory_limit_message(context.memory_limit))
        context.memory_used += growth
        self.memory.extend(bytes(growth))

    def read(self, offset: int, size: int) -> bytes:
        """Memory that has been paid for."""
        return bytes(self.memory[offset : offset + size]) if size else b""

    def write(self, offset: int, data: bytes) -> None:
        """Into memory that has been paid for."""
        if data:
            self.memory[offset : offset + len(data)] = data

    def forbid_static(self, what: str) -> None:
        if self.static:
            raise ExceptionalHalt(HaltReason.STATIC_WRITE, what)


def memory_limit_message(limit: int) -> str:
    return f"memory: more than {limit >> 20:,} MiB in one call; EVM(memory_limit=...) sets this limit"
