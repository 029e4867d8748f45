"""Handlers: native code for a sequence of opcodes, derived from what each opcode means.

A sequence is run over a virtual stack. Words it takes from the run-time stack are read when first needed; at the end
those slots whose content changed are written, and the next handler is called by a tail call. Nobody writes the handler
of ADD, or of DUP2 MSTORE PUSH: both are derived here.

An opcode in a sequence may have an operand, which stands behind the handler's address in the schedule:

    PUSH     a word that fits 64 bits          PUSHW    four words, the lowest first
    JUMP@    where to go on                    JUMPI@   where to go on if the condition holds
    SECTION  gas, and stack bounds, of what follows
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir

from fusevm.evm.opcodes import BY_NAME
from fusevm.evm.words import MEANINGS, meanings_in
from fusevm.fuse.sections import OUTWARD
from fusevm.native import loops, outside, runtime
from fusevm.native.lang import PTR, Callee, Native
from fusevm.native.layout import STACK_ALIGN, WORD, Engine, Frame, Status
from fusevm.native.words import LlvmWords, V

I1, I8, I16, I32, I64, I256 = (ir.IntType(bits) for bits in (1, 8, 16, 32, 64, 256))
CONVENTION = "preserve_nonecc"
HANDLER = ir.FunctionType(I64, [PTR, PTR, I64, PTR])  # ip, sp, gas, frame -> status

OPERANDS = {
    "PUSH": 1,
    "PUSHW": 4,
    "PC": 1,
    "JUMP@": 1,
    "JUMPI@": 1,
    "SECTION": 1,
    "GASSECTION": 1,
    "SYNC": 1,
    "PROBE": 1,
}
OPERANDS |= dict.fromkeys(OUTWARD, 1)
OPERANDS |= dict.fromkeys(("BACKWARD_LOOP_ENTRY", "FORWARD_LOOP_ENTRY"), 11)
OPERANDS |= {"BACKWARD_LOOP_EXIT": 2, "FORWARD_LOOP_EXIT": 2, "LOOP_LEAVE": 10}

# What the frame and the engine know, by opcode.
FRAME_WORDS = {"ADDRESS": "address", "CALLER": "caller", "CALLVALUE": "value"}
FRAME_SIZES = {
    "CALLDATASIZE": "data_size",
    "CODESIZE": "code_size",
    "RETURNDATASIZE": "returned_size",
    "MSIZE": "memory_size",
}
ENGINE_WORDS = {
    "ORIGIN": "origin",
    "GASPRICE": "gas_price",
    "COINBASE": "coinbase",
    "TIMESTAMP": "timestamp",
    "NUMBER": "number",
    "PREVRANDAO": "prev_randao",
    "GASLIMIT": "gas_limit",
    "CHAINID": "chain_id",
    "BASEFEE": "base_fee",
    "BLOBBASEFEE": "blob_base_fee",
}


def symbol_of(sequence: tuple[str, ...]) -> str:
    return "h_" + "_".join(name.replace("@", "AT") for name in sequence)


def operand_count(sequence: tuple[str, ...]) -> int:
    return sum(OPERANDS.get(name, 0) for name in sequence)


class HandlerBuilder:
    """Derives the handler of one sequence into a module."""

    def __init__(self, module: ir.Module, sequence: tuple[str, ...]) -> None:
        self.module = module
        self.sequence = sequence
        self.function = ir.Function(module, HANDLER, symbol_of(sequence))
        self.function.calling_convention = CONVENTION
        self.function.attributes.add("nounwind")
        self.build = ir.IRBuilder(self.function.append_basic_block("entry"))
        self.ip, self.sp, self.gas, self.frame = self.function.args
        self.words = LlvmWords(self.build, module)
        self.meanings = meanings_in(self.words)
        self.virtual: list[Any] = []  # the stack above what has not been touched, top last: V or a slot's number
        self.taken = 0  # how many words of the run-time stack have been taken into `virtual`
        self.loaded: dict[int, Any] = {}
        self.operand = 0
        self.failures: dict[int, Any] = {}
        self.scratch: Any = None
        self.before: dict[str, Any] = {}  # fields of the frame as this handler began

    def derive(self) -> ir.Function:
        for name in self.sequence:
            self._opcode(name)
            if self.build.block.is_terminated:
                return self.function
        self._write_back()
        self._go_on(self._next_ip())
        return self.function

    # -- the virtual stack

    def _slot(self, depth: int) -> Any:
        """The run-time stack's word at a depth below the entry's top, 1 being the top; read once."""
        if depth not in self.loaded:
            self.loaded[depth] = V(self.words, self.build.load(self._slot_address(depth), typ=I256, align=8))
        return self.loaded[depth]

    def _slot_address(self, depth: int) -> Any:
        return self.build.gep(self.sp, [ir.Constant(I64, -WORD * depth)], source_etype=I8)

    def _reach(self, count: int) -> None:
        """Takes run-time words into the virtual stack until it has that many."""
        while len(self.virtual) < count:
            self.taken += 1
            self.virtual.insert(0, self.taken)

    def _pop(self) -> Any:
        self._reach(1)
        return self._resolve(self.virtual.pop())

    def _resolve(self, entry: Any) -> Any:
        return self._slot(entry) if isinstance(entry, int) else entry

    def _push(self, value: Any) -> None:
        self.virtual.append(value if isinstance(value, V) else V(self.words, value))

    def _write_back(self) -> None:
        """Stores every slot whose content changed; a slot's own value is never written to it."""
        base = self.taken
        values = [self._resolve(entry) for entry in self.virtual]
        for position, (entry, value) in enumerate(zip(self.virtual, values, strict=True)):
            depth = base - position
            if entry != depth or not isinstance(entry, int):
                self.build.store(value.value, self._slot_address(depth), align=8)
        self.sp = self._slot_address(base - len(self.virtual)) if base != len(self.virtual) else self.sp
        self.virtual, self.taken, self.loaded = [], 0, {}

    # -- control

    def _next_operand(self, kind: Any) -> Any:
        address = self.build.gep(self.ip, [ir.Constant(I64, 8 * self.operand)], source_etype=I8)
        self.operand += 1
        return self.build.load(address, typ=kind, align=8)

    def _next_ip(self) -> Any:
        if not self.operand:
            return self.ip
        return self.build.gep(self.ip, [ir.Constant(I64, 8 * self.operand)], source_etype=I8)

    def _go_on(self, ip: Any) -> None:
        """Tail-calls the handler at ip."""
        target = self.build.load(ip, typ=PTR, align=8)
        following = self.build.gep(ip, [ir.Constant(I64, 8)], source_etype=I8)
        arguments = [following, self.sp, self.gas, self.frame]
        result = self.build.call(Callee(target, HANDLER), arguments, cconv=CONVENTION, tail="musttail")
        self.build.ret(result)

    def _leave(self, status: int) -> None:
        """Back to Python, with the registers in the frame."""
        self._set_field("ip", self._next_ip())
        self._set_field("sp", self.sp)
        self._set_field("gas", self.gas)
        self.build.ret(ir.Constant(I64, status))

    def _fail_if(self, condition: Any, status: int) -> None:
        """A cold branch to an exceptional halt. The frame is undone, so only what tells why is kept."""
        if status not in self.failures:
            block = self.function.append_basic_block("fail")
            with self.build.goto_block(block):
                self._remember_entry()
                self.build.ret(ir.Constant(I64, status))
            self.failures[status] = block
        following = self.function.append_basic_block("ok")
        branch = self.build.cbranch(condition, self.failures[status], following)
        branch.set_weights([1, 2000])
        self.build.position_at_end(following)

    # -- the frame

    def _field_address(self, struct: Any, base: Any, name: str) -> Any:
        return self.build.gep(base, [ir.Constant(I64, struct.offset(name))], source_etype=I8)

    def _field(self, name: str, kind: Any = I64) -> Any:
        return self.build.load(self._field_address(Frame, self.frame, name), typ=kind, align=8)

    def _set_field(self, name: str, value: Any) -> None:
        self.build.store(value, self._field_address(Frame, self.frame, name), align=8)

    def _engine_field(self, name: str, kind: Any = I64) -> Any:
        return self.build.load(self._field_address(Engine, self._field("engine", PTR), name), typ=kind, align=8)

    def _call(self, function: Any, *arguments: Any) -> Any:
        assert isinstance(function, Native)
        return self.build.call(function.define(self.module), list(arguments))

    def _scratch(self) -> Any:
        """A word of machine stack for a runtime function to answer in."""
        if self.scratch is None:
            with self.build.goto_entry_block():
                self.scratch = self.build.alloca(I256)
        return self.scratch

    def _charged(self, gas: Any) -> None:
        """Goes on with the gas a runtime function left, or fails as it says."""
        failed = self.build.icmp_signed("<", gas, ir.Constant(I64, 0))
        bad, following = self.function.append_basic_block("bad"), self.function.append_basic_block("ok")
        branch = self.build.cbranch(failed, bad, following)
        branch.set_weights([1, 2000])
        self.build.position_at_end(bad)
        self._fail_unpaid(gas)
        self.build.position_at_end(following)
        self.gas = gas

    def _fail_unpaid(self, why: Any) -> None:
        """What was paid before in this handler, for memory too, is given back: it is part of the replay."""
        self._remember_entry()
        for name in ("reserve", "memory_size"):
            if name not in self.before:
                entry = self.function.entry_basic_block
                with self.build.goto_block(entry):
                    self.build.position_at_start(entry)
                    self.before[name] = self._field(name)
            self._set_field(name, self.before[name])
        self.build.ret(self.build.call(_status_of(self.module), [why]))

    def _remember_entry(self) -> None:
        """Registers as they were when this handler began: where a failed sequence can be replayed from."""
        ip, sp, gas, _ = self.function.args
        self._set_field("ip", ip)
        self._set_field("sp", sp)
        self._set_field("gas", gas)

    # -- the opcodes

    def _opcode(self, name: str) -> None:
        if name in MEANINGS:
            self._pure(name)
        elif name.startswith("DUP"):
            depth = int(name[3:])
            self._reach(depth)
            self.virtual.append(self.virtual[-depth])
        elif name.startswith("SWAP"):
            depth = int(name[4:]) + 1
            self._reach(depth)
            self.virtual[-1], self.virtual[-depth] = self.virtual[-depth], self.virtual[-1]
        elif name in FRAME_WORDS:
            self._push(self._field(FRAME_WORDS[name], I256))
        elif name in FRAME_SIZES:
            self._push(self.build.zext(self._field(FRAME_SIZES[name]), I256))
        elif name in ENGINE_WORDS:
            self._push(self._engine_field(ENGINE_WORDS[name], I256))
        else:
            SPECIAL[name](self)

    def _pure(self, name: str) -> None:
        operands = [self._pop() for _ in range(BY_NAME[name].pops)]
        if name == "EXP":
            self._charged(self._call(runtime.exponent_gas, self.frame, self.gas, operands[1].value))
        self._push(self.meanings[name](*operands))

    def do_pop(self) -> None:
        self._reach(1)
        self.virtual.pop()

    def do_push(self) -> None:
        self._push(self.build.zext(self._next_operand(I64), I256))

    def do_push_wide(self) -> None:
        address = self.build.gep(self.ip, [ir.Constant(I64, 8 * self.operand)], source_etype=I8)
        self.operand += 4
        self._push(self.build.load(address, typ=I256, align=8))

    def do_gas(self) -> None:
        self._push(self.build.zext(self.build.add(self.gas, self._field("reserve")), I256))

    def _memory_pointer(self, offset: Any, size: int) -> Any:
        """Where in memory an access of one byte or one word goes, memory grown if need be."""
        low = self.build.trunc(offset.value, I64)
        high = self.build.trunc(self.build.lshr(offset.value, ir.Constant(I256, 64)), ir.IntType(192))
        limit = self._field("load_limit") if size == WORD else self._field("memory_size")
        fits = self.build.and_(
            self.build.icmp_unsigned("==", high, ir.Constant(ir.IntType(192), 0)),
            self.build.icmp_unsigned("<", low, limit),
        )
        before = self.build.block
        slow, after = self.function.append_basic_block("grow"), self.function.append_basic_block("there")
        branch = self.build.cbranch(fits, after, slow)
        branch.set_weights([2000, 1])
        self.build.position_at_end(slow)
        old_gas = self.gas
        start = self._call(runtime.clamp, offset.value)
        self._charged(self._call(runtime.grow, self.frame, self.gas, start, ir.Constant(I64, size)))
        grown = self.build.block
        self.build.branch(after)
        self.build.position_at_end(after)
        gas = self.build.phi(I64)
        gas.add_incoming(old_gas, before)
        gas.add_incoming(self.gas, grown)
        self.gas = gas
        return self.build.gep(self._field("memory", PTR), [low], source_etype=I8)

    def do_mload(self) -> None:
        pointer = self._memory_pointer(self._pop(), WORD)
        self._push(self.build.bswap(self.build.load(pointer, typ=I256, align=1)))

    def do_mstore(self) -> None:
        offset, value = self._pop(), self._pop()
        self._store(self._memory_pointer(offset, WORD), self.build.bswap(value.value))

    def do_mstore8(self) -> None:
        offset, value = self._pop(), self._pop()
        self._store(self._memory_pointer(offset, 1), self.build.trunc(value.value, I8))

    def _store(self, pointer: Any, value: Any) -> None:
        self.build.store(value, pointer, align=1)

    def do_calldataload(self) -> None:
        data, size = self._field("data", PTR), self._field("data_size")
        self._push(self._call(runtime.read_data, data, size, self._pop().value))

    def _answering(self, function: Any, *arguments: Any) -> None:
        """Calls a runtime function that charges gas and answers one word."""
        scratch = self._scratch()
        self._charged(self._call(function, self.frame, self.gas, *arguments, scratch))
        self._push(self.build.load(scratch, typ=I256, align=8))

    def do_keccak256(self) -> None:
        offset, size = self._pop(), self._pop()
        self._answering(runtime.hash_memory, offset.value, size.value)

    def do_sload(self) -> None:
        self._answering(runtime.storage_load, self._pop().value)

    def do_tload(self) -> None:
        self._answering(runtime.transient_load, self._pop().value)

    def _acting(self, function: Any, count: int, *more: Any) -> None:
        """Calls a runtime function that charges gas and answers nothing."""
        operands = [self._pop().value for _ in range(count)]
        self._charged(self._call(function, self.frame, self.gas, *operands, *more))

    def do_sstore(self) -> None:
        self._acting(runtime.storage_store, 2)

    def do_tstore(self) -> None:
        self._acting(runtime.transient_store, 2)

    def do_calldatacopy(self) -> None:
        self._acting(runtime.copy_padded, 3, self._field("data", PTR), self._field("data_size"))

    def do_codecopy(self) -> None:
        self._acting(runtime.copy_padded, 3, self._field("code", PTR), self._field("code_size"))

    def do_returndatacopy(self) -> None:
        self._acting(runtime.copy_returned, 3)

    def do_mcopy(self) -> None:
        self._acting(runtime.copy_memory, 3)

    # -- control flow

    def do_section(self) -> None:
        """Gas of the section and the stack's bounds: 32 bits of gas, 16 of words needed, 16 of room."""
        packed = self._next_operand(I64)
        cost = self.build.and_(packed, ir.Constant(I64, 0xFFFFFFFF))
        needs = self.build.and_(self.build.lshr(packed, ir.Constant(I64, 32)), ir.Constant(I64, 0xFFFF))
        span = self.build.lshr(packed, ir.Constant(I64, 48))
        low = self.build.and_(self.build.ptrtoint(self.sp, I64), ir.Constant(I64, STACK_ALIGN - 1))
        height = self.build.lshr(low, ir.Constant(I64, 5))
        above = self.build.sub(height, needs)
        self._fail_if(self.build.icmp_unsigned(">", above, span), Status.STACK)
        self._take(cost)

    def do_gas_section(self) -> None:
        self._take(self._next_operand(I64))

    def _take(self, cost: Any) -> None:
        """Charges a section; a slice that is used up goes back to Python, which hands out another."""
        left = self.build.sub(self.gas, cost)
        short = self.build.icmp_signed("<", left, ir.Constant(I64, 0))
        refill, following = self.function.append_basic_block("refill"), self.function.append_basic_block("ok")
        branch = self.build.cbranch(short, refill, following)
        branch.set_weights([1, 2000])
        self.build.position_at_end(refill)
        again = self.build.gep(self.ip, [ir.Constant(I64, -8)], source_etype=I8)  # this handler, once more
        self._set_field("ip", again)
        self._set_field("sp", self.sp)
        self._set_field("gas", self.gas)
        self.build.ret(ir.Constant(I64, Status.REFILL))
        self.build.position_at_end(following)
        self.gas = left

    def do_jump_static(self) -> None:
        target = self._next_operand(PTR)
        self._write_back()
        self._go_on(target)

    def do_jumpi_static(self) -> None:
        target = self._next_operand(PTR)
        condition = self._truth(self._pop())
        self._write_back()
        self._branch(condition, target)

    def do_loop_entry(self) -> None:
        """To the loop's copy if all of it can be paid now, else on to the plain loop."""
        self._write_back()
        left = self._call(loops.enter_loop, self.frame, self.gas, self.sp, self.ip)
        copy = self.build.gep(self.ip, [ir.Constant(I64, loops.TARGET)], source_etype=I8)
        self.operand += loops.TARGET // 8 + 1
        plain, paid = self.function.append_basic_block("plain"), self.function.append_basic_block("paid")
        self.build.cbranch(self.build.icmp_signed("<", left, ir.Constant(I64, 0)), plain, paid)
        self.build.position_at_end(plain)
        self._go_on(self._next_ip())
        self.build.position_at_end(paid)
        self.gas = left
        self._go_on(self.build.load(copy, typ=PTR, align=8))

    def do_loop_exit(self) -> None:
        """Once more round, or out: two places to go to."""
        again, out = self._next_operand(PTR), self._next_operand(PTR)
        condition = self._truth(self._pop())
        self._write_back()
        taken, passed = self.function.append_basic_block("again"), self.function.append_basic_block("out")
        self.build.cbranch(condition, taken, passed)
        self.build.position_at_end(passed)
        self._go_on(out)
        self.build.position_at_end(taken)
        self._go_on(again)

    def do_loop_leave(self) -> None:
        """An early exit: what was paid for iterations that will not run comes back."""
        self._write_back()
        self.gas = self._call(loops.leave_loop, self.gas, self.sp, self.ip)
        self.operand += OPERANDS["LOOP_LEAVE"]

    def _truth(self, value: Any) -> Any:
        return self.build.icmp_unsigned("!=", value.value, ir.Constant(I256, 0))

    def _branch(self, condition: Any, target: Any) -> None:
        taken, passed = self.function.append_basic_block("taken"), self.function.append_basic_block("passed")
        self.build.cbranch(condition, taken, passed)
        self.build.position_at_end(taken)
        self._go_on(target)
        self.build.position_at_end(passed)
        self._go_on(self._next_ip())

    def _dynamic_target(self, target: Any) -> Any:
        low = self.build.trunc(target.value, I64)
        wide = self.build.icmp_unsigned(">=", target.value, self.build.zext(self._field("code_size"), I256))
        self._fail_if(wide, Status.INVALID_JUMP)
        table = self._field("jumps", PTR)
        place = self.build.gep(table, [self.build.shl(low, ir.Constant(I64, 2))], source_etype=I8)
        number = self.build.zext(self.build.load(place, typ=I32, align=4), I64)
        self._fail_if(self.build.icmp_unsigned("==", number, ir.Constant(I64, 0)), Status.INVALID_JUMP)
        offset = self.build.shl(number, ir.Constant(I64, 3))
        return self.build.gep(self._field("schedule", PTR), [offset], source_etype=I8)

    def do_jump(self) -> None:
        place = self._dynamic_target(self._pop())  # may fail: the stack must still be as this handler found it
        self._write_back()
        self._go_on(place)

    def do_jumpi(self) -> None:
        target, condition = self._pop(), self._truth(self._pop())
        self._write_back()
        taken, passed = self.function.append_basic_block("taken"), self.function.append_basic_block("passed")
        self.build.cbranch(condition, taken, passed)
        self.build.position_at_end(passed)
        self._go_on(self._next_ip())
        self.build.position_at_end(taken)
        self._go_on(self._dynamic_target(target))

    def do_stop(self) -> None:
        self._set_field("gas", self.gas)
        self.build.ret(ir.Constant(I64, Status.STOP))

    def _end_with_output(self, status: int) -> None:
        offset, size = self._pop(), self._pop()
        self._charged(self._call(runtime.set_output, self.frame, self.gas, offset.value, size.value))
        self._set_field("ip", self.function.args[0])  # a creation may fail now, and then this is where
        self._set_field("gas", self.gas)
        self.build.ret(ir.Constant(I64, status))

    def do_return(self) -> None:
        self._end_with_output(Status.RETURN)

    def do_revert(self) -> None:
        self._end_with_output(Status.REVERT)

    def do_invalid(self) -> None:
        self._remember_entry()
        self.build.ret(ir.Constant(I64, Status.INVALID_OPCODE))

    def do_badjump(self) -> None:
        self._remember_entry()
        self.build.ret(ir.Constant(I64, Status.INVALID_JUMP))

    def do_sync(self, status: int = Status.SYNC) -> None:
        """Python does the instruction, or looks at the frame; the pc is the operand."""
        pc = self._next_operand(I64)
        self._write_back()
        self._set_field("pc", pc)
        self._leave(status)

    def _log(self, topics: int) -> None:
        self._reach(2)
        offset, size = self._resolve(self.virtual[-1]), self._resolve(self.virtual[-2])
        self._charged(self._call(outside.pay_log, self.frame, self.gas, offset.value, size.value))
        self._write_back()
        left = self._call(outside.write_log, self.frame, self.gas, self.sp, ir.Constant(I64, topics))
        self._charged(left)
        self.sp = self._slot_address(topics + 2)

    def do_blockhash(self) -> None:
        scratch = self._scratch()
        done = self._call(outside.block_hash, self.frame, self._pop().value, scratch)
        self._fail_if(self.build.icmp_unsigned("!=", done, ir.Constant(I64, outside.DONE)), Status.ERROR)
        self._push(self.build.load(scratch, typ=I256, align=8))

    def _hand_over(self, pc: Any, sp: Any) -> None:
        self._set_field("pc", pc)
        self._set_field("ip", self._next_ip())
        self._set_field("sp", sp)
        self._set_field("gas", self.gas)
        self.build.ret(ir.Constant(I64, Status.SYNC))

    def _call_out(self, kind: int) -> None:
        """CALL and its kin: a child frame, or Python's business."""
        pc = self._next_operand(I64)
        number = ir.Constant(I64, kind)
        answer = self._call(outside.begin_call, self.frame, self.gas, self.sp, number, self._next_ip())
        done = self.build.icmp_unsigned("==", answer, ir.Constant(I64, outside.DONE))
        with self.build.if_then(done, likely=True):
            self.build.ret(ir.Constant(I64, Status.CALLING))
        ask = self.build.icmp_unsigned("==", answer, ir.Constant(I64, outside.ASK_PYTHON))
        with self.build.if_then(ask):
            self._hand_over(pc, self.sp)
        self._fail_unpaid(answer)


def _status_of(module: ir.Module) -> ir.Function:
    """From a runtime function's failure to a status."""
    found = module.globals.get("status_of")
    if found is not None:
        return found
    function = ir.Function(module, ir.FunctionType(I64, [I64]), "status_of")
    function.linkage = "internal"
    function.attributes.add("noinline")
    build = ir.IRBuilder(function.append_basic_block())
    result: Any = ir.Constant(I64, Status.ERROR)
    for failure, status in (
        (runtime.FAILED, Status.OUT_OF_GAS),
        (runtime.CAPPED, Status.CAP),
        (runtime.STATIC, Status.STATIC_WRITE),
        (runtime.BOUNDS, Status.RETURNDATA),
    ):
        same = build.icmp_unsigned("==", function.args[0], ir.Constant(I64, failure))
        result = build.select(same, ir.Constant(I64, status), result)
    build.ret(result)
    return function


SPECIAL: dict[str, Callable[[HandlerBuilder], None]] = {
    "POP": HandlerBuilder.do_pop,
    "PUSH": HandlerBuilder.do_push,
    "PC": HandlerBuilder.do_push,
    "PUSHW": HandlerBuilder.do_push_wide,
    "GAS": HandlerBuilder.do_gas,
    "MLOAD": HandlerBuilder.do_mload,
    "MSTORE": HandlerBuilder.do_mstore,
    "MSTORE8": HandlerBuilder.do_mstore8,
    "CALLDATALOAD": HandlerBuilder.do_calldataload,
    "KECCAK256": HandlerBuilder.do_keccak256,
    "SLOAD": HandlerBuilder.do_sload,
    "SSTORE": HandlerBuilder.do_sstore,
    "TLOAD": HandlerBuilder.do_tload,
    "TSTORE": HandlerBuilder.do_tstore,
    "CALLDATACOPY": HandlerBuilder.do_calldatacopy,
    "CODECOPY": HandlerBuilder.do_codecopy,
    "RETURNDATACOPY": HandlerBuilder.do_returndatacopy,
    "MCOPY": HandlerBuilder.do_mcopy,
    "SECTION": HandlerBuilder.do_section,
    "GASSECTION": HandlerBuilder.do_gas_section,
    "JUMP@": HandlerBuilder.do_jump_static,
    "JUMPI@": HandlerBuilder.do_jumpi_static,
    "BACKWARD_LOOP_ENTRY": HandlerBuilder.do_loop_entry,
    "BACKWARD_LOOP_EXIT": HandlerBuilder.do_loop_exit,
    "FORWARD_LOOP_ENTRY": HandlerBuilder.do_loop_entry,
    "FORWARD_LOOP_EXIT": HandlerBuilder.do_loop_exit,
    "LOOP_LEAVE": HandlerBuilder.do_loop_leave,
    "JUMP": HandlerBuilder.do_jump,
    "JUMPI": HandlerBuilder.do_jumpi,
    "STOP": HandlerBuilder.do_stop,
    "RETURN": HandlerBuilder.do_return,
    "REVERT": HandlerBuilder.do_revert,
    "INVALID": HandlerBuilder.do_invalid,
    "BADJUMP": HandlerBuilder.do_badjump,
    "SYNC": HandlerBuilder.do_sync,
    "PROBE": lambda builder: builder.do_sync(Status.PROBE),
    "BLOCKHASH": HandlerBuilder.do_blockhash,
    "BALANCE": lambda builder: builder._answering(outside.read_balance, builder._pop().value),
    "SELFBALANCE": lambda builder: builder._answering(outside.read_own_balance),
    "EXTCODESIZE": lambda builder: builder._answering(outside.read_code_size, builder._pop().value),
    "EXTCODEHASH": lambda builder: builder._answering(outside.read_code_hash, builder._pop().value),
    "CALL": lambda builder: builder._call_out(outside.CALL),
    "DELEGATECALL": lambda builder: builder._call_out(outside.DELEGATECALL),
    "STATICCALL": lambda builder: builder._call_out(outside.STATICCALL),
    "LOG0": lambda builder: builder._log(0),
    "LOG1": lambda builder: builder._log(1),
    "LOG2": lambda builder: builder._log(2),
    "LOG3": lambda builder: builder._log(3),
    "LOG4": lambda builder: builder._log(4),
}
