"""Regions: hot functions and loops as native functions, made from folded functions and entered from the schedule.

Each entry has a handler, which replaces the original one in the schedule. After the schedule comes a
second copy of it, which is never patched: side exits lead there, and control returns to patched code by the
next jump. So a region can be left anywhere without entering it again at the point where it had to be left.
"""

from __future__ import annotations

from collections import Counter

from llvmlite import ir

from fusevm.evm.limits import STACK_LIMIT
from fusevm.ir.functions import BRANCH, JUMP, LEAVE, NEVER, DependencyBlock
from fusevm.ir.regions.build import EXIT, FAIL, RegionUnit
from fusevm.ir.values import FrameState, Value
from fusevm.native.emit.emitter import I8, I32, I64, I256
from fusevm.native.emit.llvm_words import V
from fusevm.native.emit.state import CONVENTION, HANDLER
from fusevm.native.lang import PTR, Callee
from fusevm.native.layout import STACK_ALIGN, WORD, NativeFrame
from fusevm.native.region.choice import ExitPlaces
from fusevm.native.region.compiled import handler_name
from fusevm.native.region.debug import DebugLines
from fusevm.native.region.ops import SPENDS, emit
from fusevm.native.region.state import LEFT, REGION, FunctionState
from fusevm.native.runtime import memory
from fusevm.native.runtime.linked import LINKED

SHORT = 24  # instructions of a function that is copied into its callers
COPIED = 400  # instructions of all copies of one


class RegionEmitter:
    def __init__(self, region: RegionUnit, layout: ExitPlaces, located: bool) -> None:
        self.region, self.layout = region, layout
        self.module = ir.Module("regions")
        self.debug = DebugLines(self.module) if located else None
        for function in LINKED:
            function.declare(self.module)
        self.functions: dict[str, ir.Function] = {}

    def run(self) -> ir.Module:
        unit = self.region.unit
        calls = Counter(
            value.number
            for function in unit.functions.values()
            for value in function.instructions()
            if value.op == "CALLFN"
        )
        for name in unit.functions:
            llvm = self.functions[name] = ir.Function(self.module, REGION, name)
            llvm.linkage = "internal"
            llvm.attributes.add("nounwind")
            if self._is_copied(name, calls[unit.number_of(name)]):
                llvm.attributes.add("alwaysinline")
        places, entries = self.layout.places, self.region.entries
        unpatched = {pc: self.layout.words + at for pc, at in places.items()}
        patched = {pc: at if pc not in entries else unpatched[pc] for pc, at in places.items()}
        for name, function in unit.functions.items():
            shape = self.region.shapes[name]
            state = FunctionState(
                self.module, self.functions[name], function, shape, self.region.ranges[name], unpatched, patched
            )
            FunctionEmitter(self, state).run()
        for pc, name in self.region.entries.items():
            self.handler(pc, name)
        return self.module

    def _is_copied(self, name: str, calls: int) -> bool:
        """Whether calls of a function become copies of it: a call takes as long as the little it does."""
        size = 0
        for value in self.region.unit.functions[name].instructions():
            size += 1
            if value.op == "CALLFN" or size > SHORT:
                return False
        return calls * size <= COPIED

    def handler(self, pc: int, name: str) -> None:
        """The handler that calls a region's function from the schedule, and continues after it."""
        function = ir.Function(self.module, HANDLER, handler_name(pc))
        function.calling_convention = CONVENTION
        function.attributes.add("nounwind")
        build = ir.IRBuilder(function.append_basic_block("entry"))
        if self.debug is not None:
            build.debug_metadata = self.debug.location(function, pc)
        ip, sp, gas, frame = function.args
        shape = self.region.shapes[name]

        def at(base: ir.Value, offset: int) -> ir.Value:
            return build.gep(base, [ir.Constant(I64, offset)], source_etype=I8)

        def field(name: str, kind: ir.Type) -> ir.Value:
            return build.load(at(frame, NativeFrame.offset(name)), typ=kind, align=8)

        def go_on(ip: ir.Value, sp: ir.Value, gas: ir.Value) -> None:
            target = Callee(build.load(ip, typ=PTR, align=8), HANDLER)
            build.ret(build.call(target, [at(ip, 8), sp, gas, frame], cconv=CONVENTION, tail="musttail"))

        def unless(condition: ir.Value) -> None:
            following = function.append_basic_block("on")
            build.cbranch(condition, original, following).set_weights([1, 2000])
            build.position_at_end(following)

        original = function.append_basic_block("original")
        low = build.and_(build.ptrtoint(sp, I64), ir.Constant(I64, STACK_ALIGN - 1))
        above = build.sub(build.lshr(low, ir.Constant(I64, 5)), ir.Constant(I64, shape.taken))
        unless(build.icmp_unsigned(">", above, ir.Constant(I64, max(STACK_LIMIT - shape.taken, 0))))
        if shape.returns:
            back = build.load(at(sp, -WORD * shape.place), typ=I256, align=8)
            unless(build.icmp_unsigned(">=", back, build.zext(field("code_size", I64), I256)))
            entry = build.gep(
                field("jumps", PTR), [build.shl(build.trunc(back, I64), ir.Constant(I64, 2))], source_etype=I8
            )
            number = build.zext(build.load(entry, typ=I32, align=4), I64)
            unless(build.icmp_unsigned("<", number, ir.Constant(I64, 2)))
        left = build.call(self.functions[name], [frame, sp, gas])
        out, done = function.append_basic_block("out"), function.append_basic_block("done")
        build.cbranch(build.icmp_signed("<", left, ir.Constant(I64, 0)), out, done)
        build.position_at_end(done)
        if shape.returns:
            place = build.gep(field("schedule", PTR), [build.shl(number, ir.Constant(I64, 3))], source_etype=I8)
            go_on(place, at(sp, WORD * (shape.left - shape.taken)), left)
        else:
            build.unreachable()
        build.position_at_end(out)
        on, failed = function.append_basic_block("on"), function.append_basic_block("failed")
        build.cbranch(build.icmp_signed("==", left, ir.Constant(I64, LEFT)), on, failed)
        build.position_at_end(on)
        go_on(field("ip", PTR), field("sp", PTR), field("gas", I64))
        build.position_at_end(failed)
        build.ret(build.sub(ir.Constant(I64, LEFT - 1), left))
        build.position_at_end(original)
        go_on(at(ip, 8 * (self.layout.words - 1)), sp, gas)


class FunctionEmitter:
    def __init__(self, emitter: RegionEmitter, state: FunctionState) -> None:
        self.emitter, self.state, self.build = emitter, state, state.build
        self.function, self.shape = state.function, state.shape
        self.order = self.function.blocks()
        self.starts = {block.start: state.llvm.append_basic_block(f"b{block.start}") for block in self.order}
        self.ends: dict[int, ir.Block] = {}
        self.phis: dict[int, list[ir.PhiInstr]] = {}
        self.checks, self.ahead = self._checks()

    def run(self) -> None:
        state = self.state
        self._at(self.shape.entry)
        state.untouched = self._untouched()
        entry, *others = self.order
        self._enter(entry)
        for block in others:
            self._begin(block)
        for block in self.order:
            self._block(block)
        for block in self.order:
            for arc in block.end.arcs:
                for phi, arg in zip(self.phis[arc.target.start], arc.args, strict=True):
                    phi.add_incoming(self._handed(arg, phi.type, self.ends[block.start]), self.ends[block.start])

    def _handed(self, arg: Value, kind: ir.Type, end: ir.Block) -> ir.Value:
        """The argument of a PHI, truncated at the end of the predecessor if the PHI is narrow."""
        if kind is I256:
            return self.state.word(arg)
        with self.build.goto_block(end):
            return self.state.limb(arg)

    def _at(self, pc: int) -> None:
        """Sets the debug location, if there is debug information."""
        if self.emitter.debug is not None:
            self.build.debug_metadata = self.emitter.debug.location(self.state.llvm, pc)

    def _untouched(self) -> int:
        """Slots below this one are not written by calls and logs."""
        lowest = 0
        for block in self.order:
            for value in block.instructions:
                if value.op == "CALLFN" or value.op.startswith("LOG"):
                    assert value.state is not None
                    lowest = min(lowest, self.state.height(value.state.words) - len(value.args))
        return lowest

    # -- gas ----------------------------------------------------------------------------------------------------------

    def _checks(self) -> tuple[set[int], dict[int, int]]:
        """The blocks that check the gas, and for how much: the static gas of all paths up to the next checks."""
        position = {block.start: number for number, block in enumerate(self.order)}
        checks: set[int] = set()
        for block in self.order:
            spends = block.end.op == JUMP and block is self.function.entry
            spends = spends or any(
                value.op in SPENDS and not looks_itself(value, block) for value in block.instructions
            )
            for target in block.targets:
                if spends or position[target.start] <= position[block.start]:
                    checks.add(target.start)
        moved = self._past_edge_blocks(checks)
        ahead: dict[int, int] = {}
        for block in reversed(self.order):
            further = [ahead[to.start] for to in block.targets if to.start not in moved and to.start in ahead]
            ahead[block.start] = block.gas + max(further, default=0)
        return moved, ahead

    def _past_edge_blocks(self, checks: set[int]) -> set[int]:
        """A block that only splits an edge has no state for a side exit: its successors check instead."""
        blocks = {block.start: block for block in self.order}
        found: set[int] = set()
        work, seen = list(checks), set()
        while work:
            start = work.pop()
            if start in seen:
                continue
            seen.add(start)
            block = blocks[start]
            if block.state is not None:
                found.add(start)
            else:
                work += [target.start for target in block.targets]
        return found

    # -- blocks -------------------------------------------------------------------------------------------------------

    def _enter(self, entry: DependencyBlock) -> None:
        state, build = self.state, self.build
        low = build.and_(build.ptrtoint(state.sp, I64), ir.Constant(I64, STACK_ALIGN - 1))
        most = STACK_LIMIT - self.shape.rises
        high = (
            build.icmp_unsigned(">", low, ir.Constant(I64, WORD * most)) if most >= 0 else ir.Constant(ir.IntType(1), 1)
        )
        back = state.branch_off(high, "high")
        state.go_to(state.unpatched[self.shape.entry], 0)
        state.leave((), ir.Constant(I64, LEFT))
        back()
        for depth, param in enumerate(entry.params, 1):
            state.own[param.id] = -depth
            state.bind(param, build.load(state.slot(-depth), typ=I256, align=8))
        self.phis[entry.start] = []
        build.branch(self.starts[entry.start])

    def _begin(self, block: DependencyBlock) -> None:
        self.build.position_at_end(self.starts[block.start])
        state = self.state
        kinds = [I64 if state.is_narrow(param) else I256 for param in block.params]
        phis = self.phis[block.start] = [self.build.phi(kind) for kind in kinds]
        for param, phi in zip(block.params, phis, strict=True):
            word = phi if phi.type is I256 else self.build.zext(phi, I256)
            state.values[param.id] = V(state.words, word)

    def _block(self, block: DependencyBlock) -> None:
        state, build = self.state, self.build
        build.position_at_end(self.starts[block.start])
        self._at(block.pc if block.pc >= 0 else self.shape.entry)
        if block.start in self.checks:
            assert block.state is not None
            short = build.icmp_signed("<", state.gas, ir.Constant(I64, self.ahead[block.start]))
            back = state.branch_off(short, "short")
            state.leave_to(block.pc, block.state.words)
            back()
        state.ahead = self.ahead[block.start] - block.gas
        if block.gas:
            state.gas = build.sub(state.gas, ir.Constant(I64, block.gas))
        for value in block.instructions:
            if value.where is not None and len(value.where) > 2:
                self._at(value.where[2])
            if value.op == "CALLFN":
                self._call(value)
            elif value.op == "RESULT":
                self._result(value)
            else:
                emit(state, value)
        self._end(block)
        self.ends[block.start] = build.block

    def _end(self, block: DependencyBlock) -> None:
        state, build, end = self.state, self.build, block.end
        if end.op == JUMP:
            build.branch(self.starts[end.arcs[0].target.start])
        elif end.op == BRANCH:
            truth = build.icmp_unsigned("!=", state.word(end.args[0]), ir.Constant(I256, 0))
            build.cbranch(truth, *[self.starts[arc.target.start] for arc in end.arcs])
        elif end.op == EXIT:
            state.continue_at(end.cases[0], end.args)
        elif end.op == LEAVE:
            state.store_words(end.args)
            build.ret(state.gas)
        elif end.op == FAIL:
            state.fail(FrameState(end.cases[0], end.args, end.cases[1]), ir.Constant(I64, memory.FAILED))
        else:
            assert end.op == NEVER, end.op
            build.unreachable()

    def _call(self, value: Value) -> None:
        """Stores the arguments on the stack in memory; a side exit of the callee unwinds all its callers."""
        state, build = self.state, self.build
        assert value.state is not None
        words, height = value.state.words, state.height(value.state.words)
        for number, arg in enumerate(value.args, 1):
            build.store(state.word(arg), state.slot(height - number), align=8)
        callee = self.emitter.functions[self.emitter.region.unit.names[value.number]]
        left = build.call(callee, [state.frame, state.slot(height), state.gas])
        back = state.branch_off(build.icmp_signed("<", left, ir.Constant(I64, 0)), "unwind")
        state.leave(words[: len(words) - len(value.args)], left)
        back()
        state.gas = left

    def _result(self, value: Value) -> None:
        call = value.args[0]
        assert call.state is not None
        base = self.state.height(call.state.words) - len(call.args)
        self.state.bind(value, self.build.load(self.state.slot(base + value.number), typ=I256, align=8))


def looks_itself(value: Value, block: DependencyBlock) -> bool:
    """Whether an instruction that spends gas can exit to the start of its block if too little is left after it."""
    return value.op == "REACH" and block.pc >= 0 and value.state is not None and value.state.pc == block.pc


def region_module(region: RegionUnit, layout: ExitPlaces, *, located: bool = False) -> ir.Module:
    """`located`: adds debug locations, with the pc of each instruction as its line."""
    return RegionEmitter(region, layout, located).run()
