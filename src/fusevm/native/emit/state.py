"""A handler while it is derived: its registers, its virtual stack, the frame, and its exits."""

from __future__ import annotations

from collections.abc import Callable
from operator import index

from llvmlite import ir

from fusevm.analysis.symbolic import SymbolicStack
from fusevm.native.emit.emitter import I8, I64, I256, Emitter
from fusevm.native.emit.llvm_words import V
from fusevm.native.lang import PTR, Callee
from fusevm.native.layout import WORD, Status
from fusevm.native.runtime import memory

CONVENTION = "preserve_nonecc"
HANDLER = ir.FunctionType(I64, [PTR, PTR, I64, PTR])  # ip, sp, gas, frame -> status


def symbol_of(sequence: tuple[str, ...]) -> str:
    return "h_" + "_".join(name.replace("@", "AT").replace("!", "NOTED") for name in sequence)


def untouched() -> SymbolicStack[V | int]:
    """Its words are values, or the numbers of slots of the run-time stack, which are read when first needed."""
    return SymbolicStack(index, index)


class Handler(Emitter):
    """A handler in the making: what `control` and `outside` say opcodes with."""

    def __init__(self, module: ir.Module, sequence: tuple[str, ...]) -> None:
        self.sequence = sequence
        self.function = ir.Function(module, HANDLER, symbol_of(sequence))
        self.function.calling_convention = CONVENTION
        self.function.attributes.add("nounwind")
        self.ip, self.sp, self.gas, frame = self.function.args
        super().__init__(module, self.function, frame)
        self.stack = untouched()
        self.loaded: dict[int, V] = {}
        self.operand = 0  # how many have been read
        self.failures: dict[int, ir.Block] = {}  # by status the block that returns it
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

    # -- what is paid for

    def pointer(self, offset: V, size: int) -> ir.Value:
        """Memory is grown if need be."""
        build = self.build
        low = build.trunc(offset.value, I64)
        high = build.trunc(build.lshr(offset.value, ir.Constant(I256, 64)), ir.IntType(192))
        limit = self.field("load_limit") if size == WORD else self.field("memory_size")
        fits = build.and_(
            build.icmp_unsigned("==", high, ir.Constant(ir.IntType(192), 0)),
            build.icmp_unsigned("<", low, limit),
        )
        before = build.block
        slow, after = self.function.append_basic_block("grow"), self.function.append_basic_block("there")
        branch = build.cbranch(fits, after, slow)
        branch.set_weights([2000, 1])
        build.position_at_end(slow)
        old_gas = self.gas
        start = self.call(memory.clamp, offset.value)
        self.charged(self.call(memory.grow, self.frame, self.gas, start, ir.Constant(I64, size)))
        grown = build.block
        build.branch(after)
        build.position_at_end(after)
        gas = build.phi(I64)
        gas.add_incoming(old_gas, before)
        gas.add_incoming(self.gas, grown)
        self.gas = gas
        return build.gep(self.field("memory", PTR), [low], source_etype=I8)

    def charged(self, gas: ir.Value) -> None:
        failed = self.build.icmp_signed("<", gas, ir.Constant(I64, 0))
        bad, following = self.function.append_basic_block("bad"), self.function.append_basic_block("ok")
        branch = self.build.cbranch(failed, bad, following)
        branch.set_weights([1, 2000])
        self.build.position_at_end(bad)
        self.fail_unpaid(gas)
        self.build.position_at_end(following)
        self.gas = gas

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
