"""Stack code from functions: the stack layout of every block, and the moves between layouts.

Blocks are written one after another; the predecessor written first decides the stack layout at a join. Inside a block
instructions keep their order; a beam search keeps a few arrangements of the stack, and the cheapest is taken at the
end.
"""

from __future__ import annotations

from contextlib import suppress

from fusevm.analysis.graphs import settled
from fusevm.codegen import moves
from fusevm.codegen.arrangements import (
    DEAD,
    FIRST_FREE,
    RETURN_LABEL,
    Arrangements,
    At,
    CalledFunction,
    OutOfReach,
    StackState,
    StackStep,
)
from fusevm.codegen.blocks import (
    LABEL,
    POP,
    PUSH,
    SETIMMUTABLE,
    SYMBOL,
    VERBATIM,
    Code,
    StackBlock,
    StackProgram,
    Terminator,
)
from fusevm.codegen.liveness import liveness
from fusevm.codegen.ordering import COMMUTATIVE, is_free, lean_order, ordered
from fusevm.evm.assembler import Source
from fusevm.evm.opcodes import Effect
from fusevm.ir.functions import BRANCH, JUMP, LEAVE, NEVER, Arc, DependencyBlock, Function, Unit
from fusevm.ir.inline import FreshNumbers
from fusevm.ir.values import CONST, Value, traits_of

MIRRORED = {"LT": "GT", "GT": "LT", "SLT": "SGT", "SGT": "SLT"}
Layouts = dict[DependencyBlock, tuple[int, ...]]  # the stack on entry to a block, the top last
ROUNDS = 1  # in which loop headers get the layout that the latch prefers


class CodeWriter:
    """Writes the code of all functions into one program."""

    def __init__(
        self, unit: Unit, unseen: Effect, runs: int, beam: int, recursive: frozenset[str] = frozenset()
    ) -> None:
        """`recursive`: functions before whose calls dead slots are removed, so that the stack grows slowly."""
        self.unit, self.unseen, self.runs, self.beam, self.recursive = unit, unseen, runs, beam, recursive
        self.spilled = range(0)  # memory that only the function being written uses, for the same words all the time
        self.rescues = False  # whether words of the function may change places so that they stay in reach
        self.program = StackProgram()
        self.functions: dict[str, int] = {}
        self.entry("")  # block 0

    def entry(self, name: str) -> StackBlock:
        if name not in self.functions:
            self.functions[name] = self.program.functions[name] = self.program.new().label
        return self.program.blocks[self.functions[name]]

    def write(self, function: Function, weights: dict[DependencyBlock, float]) -> None:
        """Raises Unreachable if a value is out of reach; may be called again once a value is spilled."""
        before = self.program.next_label
        best = _FunctionWriter(self, function, weights)
        try:
            best.write()
        except OutOfReach:
            self.undo(function, before)
            raise
        preferred = best.preferred
        for _ in range(ROUNDS if preferred else 0):
            written = self.undo(function, before)
            other = _FunctionWriter(self, function, weights, preferred)
            with suppress(OutOfReach):
                other.write()
            if other.is_done and other.cost < best.cost:
                best, preferred = other, other.preferred
            else:
                self.undo(function, before)
                self.program.blocks.update(written)
                break

    def undo(self, function: Function, before: int) -> dict[int, StackBlock]:
        """Removes the function's code: its entry, and the blocks from label `before` on. Returns what was removed."""
        entry = self.entry(function.name)
        known = set(self.functions.values())
        mine = [label for label in range(before, self.program.next_label) if label not in known]
        written = {label: self.program.blocks.pop(label) for label in mine if label in self.program.blocks}
        written[entry.label] = entry
        self.program.blocks[entry.label] = StackBlock(entry.label)
        return written


class _FunctionWriter(Arrangements):
    def __init__(
        self,
        writer: CodeWriter,
        function: Function,
        weights: dict[DependencyBlock, float],
        layouts: Layouts | None = None,
    ) -> None:
        """`layouts`: the stack layouts of loop headers."""
        super().__init__(function.name, writer.beam)
        self.writer, self.function, self.weights, self.unit = writer, function, weights, writer.unit
        self.program = writer.program
        self.live = liveness(function)
        self.layouts: Layouts = {}
        self.given = layouts or {}
        self.preferred: Layouts = {}  # of loop headers, as the latch prefers them
        self.begun: set[DependencyBlock] = set()
        self.is_done = False
        self.cost = 0.0  # of everything written, by weight
        self.labels: dict[DependencyBlock, StackBlock] = {function.entry: writer.entry(function.name)}
        self.results: dict[int, dict[int, Value]] = {}
        for value in function.instructions():
            if value.op == "RESULT":
                self.results.setdefault(value.args[0].id, {})[value.number] = value
        self.block = self.labels[function.entry]
        self.cleans: set[DependencyBlock] = self.returning()
        self.numbers = FreshNumbers(function)
        self.end_of = function.entry.end  # of the block being written

    def returning(self) -> set[DependencyBlock]:
        """The blocks from which the function may return: no dead slots may be left on the stack there."""
        blocks = self.function.blocks()[::-1]  # successors first
        found = {block: block.end.op == LEAVE for block in blocks}
        settled(blocks, found, lambda block: found[block] or any(found[target] for target in block.targets))
        return {block for block in blocks if found[block]}

    def write(self) -> None:
        function = self.function
        blocks = function.blocks()
        entry = function.entry
        params = [param.id for param in function.params]
        live = self.live.entry[entry]
        label = (RETURN_LABEL,) if function.returns and function.name else ()
        self.layouts[entry] = (*label, *[each if each in live else DEAD for each in reversed(params)])
        for block in blocks:
            self.end_of = block.end
            self.block = self.label(block)
            self.block.function = self.labels[entry].label
            self.block.weight = self.weights[block]
            self.begun.add(block)
            self.write_block(block)
        self.is_done = True

    def label(self, block: DependencyBlock) -> StackBlock:
        if block not in self.labels:
            self.labels[block] = self.program.new(self.weights[block], self.labels[self.function.entry].label)
        return self.labels[block]

    # -- slots --------------------------------------------------------------------------------------------------------

    def slot(self, value: Value) -> int:
        if not is_free(value):
            return value.id
        if value.op == CONST:
            return self.free(("constant", value.number), Code(PUSH, value.number))
        if value.op == "SYMBOL":
            return self.free(("symbol", value.number), Code(SYMBOL, value.number))
        return self.free(value.op, Code(value.op))

    # -- steps --------------------------------------------------------------------------------------------------------

    def steps(self, block: DependencyBlock, order: list[Value]) -> list[StackStep]:
        order = [value for value in order if value.op != "RESULT" and not is_free(value)]
        needed = set(self.live.exit[block])
        needed.update(arg.id for arg in block.end.args if not is_free(arg))
        steps: list[StackStep] = []
        end = self.end_step(block)
        if end is not None:
            needed = set(self.live.exit[block])
            steps.append(end._replace(dies=frozenset(each for each in end.takes if each not in needed)))
            needed.update(end.takes)
        for value in reversed(order):
            steps.append(self.step(value, needed))
            needed.difference_update(steps[-1].leaves)
            needed.update(steps[-1].takes)
        return steps[::-1]

    def end_step(self, block: DependencyBlock) -> StackStep | None:
        """The step for the operands of the block's end, if it takes any from the stack."""
        end = block.end
        if end.op == BRANCH:
            return StackStep(None, (self.slot(end.args[0]),), (), frozenset(), ends=True, where=end.where)
        if end.op in (JUMP, LEAVE, NEVER) or not end.args:
            return None
        return StackStep(Code(end.op), tuple([self.slot(arg) for arg in end.args]), (), frozenset(), where=end.where)

    def step(self, value: Value, needed: set[int]) -> StackStep:
        takes = [self.slot(arg) for arg in value.args]
        leaves: list[int] = []
        code: Code | None = Code(value.op)
        swapped: Code | None = None
        calls = label = None
        clears = False
        if value.op == "LITERAL":
            code, leaves = Code(PUSH, value.number), [value.id]
        elif value.op == "COPY":
            code, leaves = None, [value.id]
        elif value.op == LABEL:
            code, leaves = self.made[self.label_after(value.number)], [value.id]
            self.made[value.id] = code
        elif value.op == "CALLFN":
            callee = self.unit.callee(value)
            code, calls = None, self.writer.entry(callee.name).label
            clears = callee.name in self.writer.recursive
            if callee.returns:
                if not (value.args and value.args[-1].op == LABEL):
                    takes.append(self.label_after(value.id))
                label = takes[-1]
                leaves = self.outputs(value, callee.results)
        elif value.op == VERBATIM:
            code = Code(VERBATIM, value.number)
            leaves = self.outputs(value, self.unit.verbatims[value.number].outputs)
        elif value.op == SETIMMUTABLE:
            code = Code(SETIMMUTABLE, value.number)
        else:
            opcode = traits_of(value).opcode
            if opcode is not None and opcode.pushes:
                leaves = [value.id]
            if value.op in COMMUTATIVE:
                swapped = code
            elif value.op in MIRRORED:
                swapped = Code(MIRRORED[value.op])
        dies = frozenset(each for each in takes if each not in needed)
        return StackStep(code, tuple(takes), tuple(leaves), dies, swapped, calls, label, clears, where=value.where)

    def label_after(self, call: int) -> int:
        """The slot of a call's return label."""
        if ("label", call) not in self.slots:
            after = self.program.new(self.block.weight, self.block.function)
            self.free(("label", call), Code(LABEL, after.label))
        return self.slots["label", call]

    def outputs(self, call: Value, count: int) -> list[int]:
        found = self.results.get(call.id, {})
        return [found[number].id if number in found else -100 - number for number in range(count)]

    # -- blocks -------------------------------------------------------------------------------------------------------

    def write_block(self, block: DependencyBlock) -> None:
        order = ordered(block, self.writer.unseen, spilled=self.writer.spilled)
        try:
            found = [self.states_after(block, order)]
        except OutOfReach:
            found = self.compactly(block, order)
        early = ordered(block, self.writer.unseen, self.numbers, self.comes_back, self.writer.spilled)
        if len(early) > len(order):
            with suppress(OutOfReach):
                found.append(self.states_after(block, early))
        self.finish(block, min(found, key=lambda states: self.final_cost(block, states)))

    def compactly(self, block: DependencyBlock, order: list[Value]) -> list[list[StackState]]:
        """The states after the block with dead slots removed on the way: dearer, but more stays in reach."""
        lean = lean_order(block, self.writer.unseen, self.writer.spilled, self.live.exit[block])
        found: list[list[StackState]] = []
        self.compacts = True
        try:
            for each in (order, lean):
                with suppress(OutOfReach):
                    found.append(self.states_after(block, each))
            if not found:
                self.rescues = self.writer.rescues
                found.append(self.states_after(block, lean))
        finally:
            self.compacts = self.rescues = False
        return found

    def comes_back(self, call: Value) -> bool:
        return self.unit.callee(call).returns

    def states_after(self, block: DependencyBlock, order: list[Value]) -> list[StackState]:
        cleans = block in self.cleans
        stack: tuple[int, ...] = self.layouts[block]
        code: tuple[object, ...] = ()
        while cleans and stack and stack[-1] == DEAD:
            stack, code = stack[:-1], (POP, code)
        states = [StackState(0, stack, code)]
        steps = self.steps(block, order)
        self.uses = {}
        for number, step in enumerate(steps):
            for slot in step.takes:
                self.uses.setdefault(slot, []).append(number)
        for number, (step, needed) in enumerate(zip(steps, self.needed_after(block, steps), strict=True)):
            self.number = number
            states = self.follow(states, step, needed, cleans and not step.ends)
        return states

    def final_cost(self, block: DependencyBlock, states: list[StackState]) -> int:
        """The cost including the moves at the end of the block, if the layout required there is known."""
        wanted = self.wanted_at_end(block)
        if wanted is None:
            return self.rank(states[0], block in self.cleans)
        prices = {slot: self.price(slot) for slot in wanted if slot >= FIRST_FREE}
        ways = [(state, moves.shuffle(state.stack, wanted, prices)) for state in states]
        return min((state.cost + way.cost for state, way in ways if way is not None), default=1 << 30)

    def wanted_at_end(self, block: DependencyBlock) -> tuple[int, ...] | None:
        end = block.end
        if end.op == LEAVE:
            return (*[self.slot(arg) for arg in end.args], RETURN_LABEL)
        if end.op == JUMP and end.arcs[0].target in self.layouts:
            return self.handed_over(end.arcs[0])
        return None

    def handed_over(self, arc: Arc) -> tuple[int, ...]:
        """The target's layout, with arguments in place of its parameters."""
        given = {param.id: self.slot(arg) for param, arg in zip(arc.target.params, arc.args, strict=True)}
        return tuple([given.get(slot, slot) for slot in self.layouts[arc.target]])

    def needed_after(self, block: DependencyBlock, steps: list[StackStep]) -> list[set[int]]:
        needed = set(self.live.exit[block])
        if self.end_step(block) is None:
            needed.update(arg.id for arg in block.end.args if not is_free(arg))
        found: list[set[int]] = []
        for step in reversed(steps):
            found.append(set(needed))
            needed.difference_update(step.leaves)
            needed.update(step.takes)
        return found[::-1]

    # -- ends ---------------------------------------------------------------------------------------------------------

    def finish(self, block: DependencyBlock, states: list[StackState]) -> None:
        end = block.end
        if end.op == JUMP:
            self.finish_jump(block, end.arcs[0], states)
        elif end.op == BRANCH:
            best = states[0]
            self.cost += best.cost * self.block.weight
            self.emit(best)
            self.block.end = Terminator.BRANCH
            self.block.targets = tuple([self.label(arc.target).label for arc in end.arcs])
            for arc in end.arcs:
                needed = self.live.entry[arc.target]
                self.layouts[arc.target] = tuple(
                    [slot if slot in needed or slot == RETURN_LABEL else DEAD for slot in best.stack]
                )
        elif end.op == LEAVE:
            self.finish_with(states, (*[self.slot(arg) for arg in end.args], RETURN_LABEL), end.where)
            self.block.end = Terminator.RETURN
        else:
            self.cost += states[0].cost * self.block.weight
            self.emit(states[0])
            if end.op != NEVER and not end.args:
                self.block.code.append(Code(end.op).at(self.place(end.where)))
            elif end.op == NEVER and self.block.end is Terminator.HALT:  # no call before it, so that nothing comes here
                self.block.code.append(Code("INVALID").at(self.place(end.where)))

    def finish_jump(self, block: DependencyBlock, arc: Arc, states: list[StackState]) -> None:
        target = arc.target
        if target not in self.layouts:
            natural = self.natural_layout(states[0].stack, arc)
            given = self.given.get(target, natural)
            self.layouts[target] = given if sorted(given) == sorted(natural) else natural
        elif target in self.begun:
            self.preferred[target] = self.natural_layout(states[0].stack, arc)
        self.finish_with(states, self.handed_over(arc), block.end.where)
        self.block.end, self.block.targets = Terminator.JUMP, (self.label(target).label,)

    def natural_layout(self, stack: tuple[int, ...], arc: Arc) -> tuple[int, ...]:
        """A layout of the target's live-in values that moves as few of them as possible."""
        needed = set(self.live.entry[arc.target])
        params = {param.id for param in arc.target.params}
        through = needed - params
        becomes: dict[int, list[int]] = {}
        for param, arg in zip(arc.target.params, arc.args, strict=True):
            if param.id in needed:
                becomes.setdefault(self.slot(arg), []).append(param.id)
        layout: list[int] = []
        for slot in stack:
            if slot == RETURN_LABEL:
                layout.append(slot)
            elif slot in through:
                through.discard(slot)
                layout.append(slot)
            elif becomes.get(slot):
                layout.append(becomes[slot].pop(0))
        rest = [param for params_ in becomes.values() for param in params_]
        return (*layout, *rest)

    def finish_with(self, states: list[StackState], wanted: tuple[int, ...], where: Source | None) -> None:
        best: tuple[int, StackState, moves.FoundMoves] | None = None
        prices = {slot: self.price(slot) for slot in wanted if slot >= FIRST_FREE}
        for state in states:
            way = moves.shuffle(state.stack, wanted, prices)
            if way is not None and (best is None or state.cost + way.cost < best[0]):
                best = state.cost + way.cost, state, way
        if best is None:
            raise self.unreachable(states, ())
        total, state, way = best
        self.cost += total * self.block.weight
        stack = list(state.stack)
        written: tuple[object, ...] = (At(where), state.code)
        for move in way.moves:
            written = (self.move(stack, move, wanted), written)
        self.emit(StackState(0, (), written))

    def emit(self, state: StackState) -> None:
        """Writes the instructions of a state; a call ends the block, and the code after it goes to a new one."""
        written: list[object] = []
        at: tuple[object, ...] = state.code
        while at:
            written.append(at[0])
            at = at[1]  # type: ignore[assignment]
        where = self.place(next((each.where for each in reversed(written) if isinstance(each, At)), None))
        for each in reversed(written):
            if isinstance(each, Code):
                self.block.code.append(each.at(where))
            elif isinstance(each, At):
                where = self.place(each.where, where)
            elif isinstance(each, CalledFunction):
                self.block.end = Terminator.JUMP if each.label is None else Terminator.CALL  # the former never returns
                self.block.targets, self.block.where = (each.target,), where
                if each.label is not None:
                    self.block = self.program.blocks[self.made[each.label].number]
                    self.block.where = where
        self.block.where = self.place(self.end_of.where, where)

    def place(self, *known: Source | None) -> Source | None:
        """The first known source location, or the function's own."""
        return next((where for where in known if where is not None), self.function.where)
