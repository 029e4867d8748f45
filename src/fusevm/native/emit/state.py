"""A handler while it is derived: its registers, its virtual stack, the frame, and its exits."""

from __future__ import annotations

from collections.abc import Callable
from operator import index

from llvmlite import ir

from fusevm.analysis.symbolic import SymbolicStack
from fusevm.evm.words import meanings_in
from fusevm.native.emit.llvm_words import LlvmWords, V
from fusevm.native.lang import PTR, Callee, Native, Struct
from fusevm.native.layout import WORD, Engine, NativeFrame, Status
from fusevm.native.runtime import memory

I8, I32, I64, I256 = (ir.IntType(bits) for bits in (8, 32, 64, 256))
CONVENTION = "preserve_nonecc"
HANDLER = ir.FunctionType(I64, [PTR, PTR, I64, PTR])  # ip, sp, gas, frame -> status


def noted_name(name: str) -> str:
    """The name of the opcode's variant that also writes notes, for recordings."""
    return name + "!"


def symbol_of(sequence: tuple[str, ...]) -> str:
    return "h_" + "_".join(name.replace("@", "AT").replace("!", "NOTED") for name in sequence)


def untouched() -> SymbolicStack[V | int]:
    """Its words are values, or the numbers of slots of the run-time stack, which are read when first needed."""
    return SymbolicStack(index, index)


class Handler:
    """A handler in the making: what `memory`, `control` and `outside` say opcodes with."""

    def __init__(self, module: ir.Module, sequence: tuple[str, ...]) -> None:
        self.module = module
        self.sequence = sequence
        self.function = ir.Function(module, HANDLER, symbol_of(sequence))
        self.function.calling_convention = CONVENTION
        self.function.attributes.add("nounwind")
        self.build = ir.IRBuilder(self.function.append_basic_block("entry"))
        self.ip, self.sp, self.gas, self.frame = self.function.args
        self.words = LlvmWords(self.build, module, self.frame)
        self.meanings = meanings_in(self.words)
        self.stack = untouched()
        self.loaded: dict[int, V] = {}
        self.operand = 0  # how many have been read
        self.failures: dict[int, ir.Block] = {}  # by status the block that returns it
        self._scratch: ir.Value = None
        self.before: dict[str, ir.Value] = {}  # fields of the frame as this handler began

    # -- the virtual stack

    def _slot(self, depth: int) -> V:
        """The run-time stack's word at a depth below the entry's top, 1 being the top; read once."""
        if depth not in self.loaded:
            self.loaded[depth] = V(self.words, self.build.load(self.slot_address(depth), typ=I256, align=8))
        return self.loaded[depth]

    def slot_address(self, depth: int) -> ir.Value:
        return self.build.gep(self.sp, [ir.Constant(I64, -WORD * depth)], source_etype=I8)

    def pop(self) -> V:
        return self.resolve(self.stack.pop())

    def resolve(self, entry: V | int) -> V:
        return self._slot(entry) if isinstance(entry, int) else entry

    def push(self, value: V | ir.Value) -> None:
        self.stack.push(value if isinstance(value, V) else V(self.words, value))

    def write_back(self) -> None:
        """Stores every slot whose content changed; a slot's own value is never written to it."""
        base, words = self.stack.taken, self.stack.words
        values = [self.resolve(entry) for entry in words]
        for position, (entry, value) in enumerate(zip(words, values, strict=True)):
            depth = base - position
            if entry != depth or not isinstance(entry, int):
                self.build.store(value.value, self.slot_address(depth), align=8)
        self.sp = self.slot_address(base - len(words)) if base != len(words) else self.sp
        self.stack, self.loaded = untouched(), {}

    # -- control

    def next_operand(self, kind: ir.Type) -> ir.Value:
        address = self.build.gep(self.ip, [ir.Constant(I64, 8 * self.operand)], source_etype=I8)
        self.operand += 1
        return self.build.load(address, typ=kind, align=8)

    def next_ip(self) -> ir.Value:
        if not self.operand:
            return self.ip
        return self.build.gep(self.ip, [ir.Constant(I64, 8 * self.operand)], source_etype=I8)

    def go_on(self, ip: ir.Value) -> None:
        """Tail-calls the handler at ip."""
        target = self.build.load(ip, typ=PTR, align=8)
        following = self.build.gep(ip, [ir.Constant(I64, 8)], source_etype=I8)
        arguments = [following, self.sp, self.gas, self.frame]
        result = self.build.call(Callee(target, HANDLER), arguments, cconv=CONVENTION, tail="musttail")
        self.build.ret(result)

    def leave(self, status: int) -> None:
        """Back to Python, with the registers in the frame."""
        self.set_field("ip", self.next_ip())
        self.set_field("sp", self.sp)
        self.set_field("gas", self.gas)
        self.build.ret(ir.Constant(I64, status))

    def fail_if(self, condition: ir.Value, status: int) -> None:
        """A cold branch to an exceptional halt. The frame is undone, so only the reason is kept."""
        if status not in self.failures:
            block = self.function.append_basic_block("fail")
            with self.build.goto_block(block):
                self.remember_entry()
                self.build.ret(ir.Constant(I64, status))
            self.failures[status] = block
        following = self.function.append_basic_block("ok")
        branch = self.build.cbranch(condition, self.failures[status], following)
        branch.set_weights([1, 2000])
        self.build.position_at_end(following)

    # -- the frame

    def _field_address(self, struct: type[Struct], base: ir.Value, name: str) -> ir.Value:
        return self.build.gep(base, [ir.Constant(I64, struct.offset(name))], source_etype=I8)

    def field(self, name: str, kind: ir.Type = I64) -> ir.Value:
        return self.build.load(self._field_address(NativeFrame, self.frame, name), typ=kind, align=8)

    def set_field(self, name: str, value: ir.Value) -> None:
        self.build.store(value, self._field_address(NativeFrame, self.frame, name), align=8)

    def engine_field(self, name: str, kind: ir.Type = I64) -> ir.Value:
        return self.build.load(self._field_address(Engine, self.field("engine", PTR), name), typ=kind, align=8)

    # -- functions of the runtime

    def call(self, function: Callable[..., int | None], *arguments: ir.Value) -> ir.Value:
        assert isinstance(function, Native)
        return self.build.call(function.define(self.module), list(arguments))

    def scratch(self) -> ir.Value:
        """A word of machine stack for a runtime function to answer in."""
        if self._scratch is None:
            with self.build.goto_entry_block():
                self._scratch = self.build.alloca(I256)
        return self._scratch

    def charged(self, gas: ir.Value) -> None:
        """Continues with the gas that a runtime function left, or fails with its status."""
        failed = self.build.icmp_signed("<", gas, ir.Constant(I64, 0))
        bad, following = self.function.append_basic_block("bad"), self.function.append_basic_block("ok")
        branch = self.build.cbranch(failed, bad, following)
        branch.set_weights([1, 2000])
        self.build.position_at_end(bad)
        self.fail_unpaid(gas)
        self.build.position_at_end(following)
        self.gas = gas

    def answering(self, function: Callable[..., int], *arguments: ir.Value) -> None:
        """Calls a runtime function that charges gas and answers one word."""
        scratch = self.scratch()
        self.charged(self.call(function, self.frame, self.gas, *arguments, scratch))
        self.push(self.build.load(scratch, typ=I256, align=8))

    def acting(self, function: Callable[..., int], count: int, *more: ir.Value) -> None:
        """Calls a runtime function that charges gas and answers nothing."""
        operands = [self.pop().value for _ in range(count)]
        self.charged(self.call(function, self.frame, self.gas, *operands, *more))

    def fail_unpaid(self, why: ir.Value) -> None:
        """What was paid before in this handler, for memory too, is given back: it is part of the replay."""
        self.remember_entry()
        for name in ("reserve", "memory_size"):
            if name not in self.before:
                entry = self.function.entry_basic_block
                with self.build.goto_block(entry):
                    self.build.position_at_start(entry)
                    self.before[name] = self.field(name)
            self.set_field(name, self.before[name])
        self.set_field("zeroed", ir.Constant(I64, 0))  # what was written since is above the old size
        self.build.ret(self.build.call(status_of(self.module), [why]))

    def remember_entry(self) -> None:
        """Registers as they were when this handler began: where a failed sequence can be replayed from."""
        ip, sp, gas, _ = self.function.args
        self.set_field("ip", ip)
        self.set_field("sp", sp)
        self.set_field("gas", gas)


Opcode = Callable[[Handler], None]  # what derives the code of an opcode


def status_of(module: ir.Module) -> ir.Function:
    """From a runtime function's failure to a status."""
    found = module.globals.get("status_of")
    if found is not None:
        return found
    function = ir.Function(module, ir.FunctionType(I64, [I64]), "status_of")
    function.linkage = "internal"
    function.attributes.add("noinline")
    build = ir.IRBuilder(function.append_basic_block())
    result: ir.Value = ir.Constant(I64, Status.ERROR)
    for failure, status in (
        (memory.FAILED, Status.OUT_OF_GAS),
        (memory.CAPPED, Status.CAP),
        (memory.STATIC, Status.STATIC_WRITE),
        (memory.BOUNDS, Status.RETURNDATA),
    ):
        same = build.icmp_unsigned("==", function.args[0], ir.Constant(I64, failure))
        result = build.select(same, ir.Constant(I64, status), result)
    build.ret(result)
    return function
