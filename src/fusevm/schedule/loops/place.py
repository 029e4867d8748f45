"""Places fused loops in the schedule: an entry before the header, and a copy that charges nothing.

The plain loop stays, for calls with too little gas and for jumps into its middle. The entry computes how often the
loop will run; if there is gas for all of it, it jumps to the copy, whose blocks have a SECTION only where an iteration
may skip them. In a copy calls are inlined, and the test is at the bottom.
"""

from __future__ import annotations

from collections.abc import Container, Set
from dataclasses import replace
from typing import NamedTuple

from fusevm.evm.limits import STACK_LIMIT
from fusevm.schedule.loops.operands import LIMB, MIRRORED, RELATIONS, WORD_MASK, LoopOperands, check_of, pair_of
from fusevm.schedule.loops.plan import LoopMetadata, LoopPlan, leaving_depths, loop_plans
from fusevm.schedule.loops.unroll import unrolled, way_on
from fusevm.schedule.loops.walk import NOWHERE, Edge, Node, slot
from fusevm.schedule.sections import Section, Token

PAID = -2  # a section's `needs` whose gas and bounds were checked before
NOBODY = -2  # the node after the last
WORD = 32
ENTRIES = {"while": "BACKWARD_LOOP_ENTRY", "break": "BACKWARD_LOOP_ENTRY", "do-while": "FORWARD_LOOP_ENTRY"}


class Control(NamedTuple):
    """The operands of a loop handler: words, then jump targets."""

    words: tuple[int, ...]
    targets: tuple[int, ...]


class Layout(NamedTuple):
    """Sections in the order of the schedule; a static jump to ~n goes to label n."""

    sections: list[Section]
    labels: dict[int, list[int]]  # by index of a section: the labels before it
    controls: list[Control]
    loops: list[LoopMetadata]
    plain: int  # how many sections belong to the code itself; copies of loops come after them


def with_loops(sections: list[Section], dests: Set[int], code_size: int) -> Layout:
    """The sections with their loops fused."""
    loops, plans = loop_plans(sections, dests, code_size)
    if not plans:
        return Layout(sections, {}, [], loops, len(sections))
    writer = _Writer(plans, 1_000 + code_size // 4)
    writer.lay_out(sections)
    loops = [replace(each, unrolled=writer.unrolled.get(each.header, 0)) for each in loops]
    return Layout(writer.sections, writer.labels, writer.controls, loops, writer.own)


class _Copy:
    """A fused loop's copy being written: the labels of its nodes."""

    def __init__(self, plan: LoopPlan, around: _Copy | None) -> None:
        self.plan = plan
        self.around = around
        self.labels: dict[int, int] = {}
        self.past_entry: dict[int, int] = {}  # headers of inner loops, after their entries
        self.members = frozenset(plan.members)


class _Writer:
    def __init__(self, plans: dict[int, LoopPlan], room: int) -> None:
        self.plans = plans
        self.room = room  # remaining budget of tokens for copies
        self.written = room  # and for unrolled loops
        self.sections: list[Section] = []
        self.labels: dict[int, list[int]] = {}
        self.controls: list[Control] = []
        self.count = 0
        self.own = 0  # sections of the plain code, once they are written
        self.plain: dict[int, int] = {}  # labels of plain blocks, entries included
        self.past_entry: dict[int, int] = {}
        self.waiting: list[tuple[_Copy, int]] = []
        self.later: list[tuple[int, Section]] = []
        self.unrolled: dict[int, int] = {}

    def lay_out(self, sections: list[Section]) -> None:
        for plan in self.plans.values():
            self.past_entry[plan.meta.header] = self._label()
        entries = {}
        for header, plan in self.plans.items():
            copy = _Copy(plan, None)
            entries[header] = self._entry(copy)
        kept: dict[int, int] = {}  # the new index of sections that may enter a loop and are not latches of it
        done = 0
        for index in _near(sections, self.plans):
            section = sections[index]
            self.sections += sections[done:index]
            if section.needs >= 0 and section.pc in self.plans:
                self.sections.append(Section(section.pc, 0, PAID, 0, [entries[section.pc]]))
                self._mark(self.past_entry[section.pc])
            relinked = self._relinked(section, sections[index + 1] if index + 1 < len(sections) else None)
            if relinked is section:
                kept[index] = len(self.sections)
            self.sections.append(relinked)
            done = index + 1
        self.sections += sections[done:]
        self.own = plain = len(self.sections)
        self._unroll(sections, kept)
        while self.waiting:
            copy, label = self.waiting.pop()
            self._write(copy, label)
        for label, section in self.later:
            self._mark(label)
            self.sections.append(section)
        for index in range(plain):
            section = self.sections[index]
            if section.pc in self.plain and section.needs != -1:
                self.labels.setdefault(index, []).append(self.plain.pop(section.pc))

    def _unroll(self, sections: list[Section], kept: dict[int, int]) -> None:
        """Edges into a loop with a known start value lead to an unrolled copy for that start value."""
        for index, place in kept.items():
            section = sections[index]
            following = sections[index + 1] if index + 1 < len(sections) else None
            target = way_on(section, following)
            plan = self.plans.get(target)
            if plan is None or section.pc in plan.meta.body:
                continue
            made = unrolled(plan, section) if self.written > 0 else None
            if made is None:
                continue
            self.written -= len(made.tokens) + 1
            label = self._label()
            self.unrolled[target] = self.unrolled.get(target, 0) + 1
            tokens = section.tokens[:-1] if section.tokens[-1].name == "JUMP@" else section.tokens
            self.sections[place] = section._replace(tokens=[*tokens, Token("JUMP@", ~label, section.pc, 0)])
            self._mark(label)
            leaving = Token("JUMP@", ~self._plain(plan.meta.exit_pc or 0), made.pc, 0)
            self.sections.append(made._replace(tokens=[*made.tokens, leaving]))

    # -- labels

    def _label(self) -> int:
        self.count += 1
        return self.count

    def _mark(self, label: int) -> None:
        """Puts the label before the section written next."""
        self.labels.setdefault(len(self.sections), []).append(label)

    def _plain(self, pc: int) -> int:
        if pc not in self.plain:
            self.plain[pc] = self._label()
        return self.plain[pc]

    def _control(self, name: str, control: Control, pc: int, steps: int = 0) -> Token:
        self.controls.append(control)
        return Token(name, len(self.controls) - 1, pc, steps)

    # -- the plain loop

    def _relinked(self, section: Section, following: Section | None) -> Section:
        """A latch of a plain loop jumps to after the entry: a failed attempt is not repeated."""
        tokens = section.tokens
        last = tokens[-1] if tokens else None
        if last is not None and last.name in ("JUMP@", "JUMPI@") and self._is_latch(section.pc, last.operand):
            tokens = [*tokens[:-1], last._replace(operand=~self.past_entry[last.operand])]
        falls = following is not None and following.needs >= 0 and (last is None or last.name != "JUMP@")
        if falls and following is not None and self._is_latch(section.pc, following.pc):
            tokens = [*tokens, Token("JUMP@", ~self.past_entry[following.pc], section.pc, 0)]
        return section if tokens is section.tokens else section._replace(tokens=tokens)

    def _is_latch(self, pc: int, header: int) -> bool:
        return header in self.plans and pc in self.plans[header].meta.body

    # -- entries and copies

    def _entry(self, copy: _Copy) -> Token:
        """The token before a header; its copy is written later."""
        plan, counted = copy.plan, copy.plan.counted
        label = self._label()
        self.waiting.append((copy, label))
        room = STACK_LIMIT - plan.grows - plan.needs
        relation = RELATIONS[counted.relation]
        operands = LoopOperands(
            check=check_of(relation, plan.needs, room) if room >= 0 else check_of(relation, STACK_LIMIT + 1),
            places=pair_of(WORD * counted.slot, WORD * counted.bound_slot),
            each=pair_of(plan.gas, plan.slack),
            once=pair_of(plan.gas_to_test, plan.slack_once),
            step=_step(plan),
            addend=counted.addend,
            limit=counted.bound_addend & WORD_MASK,
        )
        control = Control(operands.words(), (~label,))
        return self._control(ENTRIES[plan.meta.kind], control, plan.meta.header)

    def _leave(self, copy: _Copy, node: Node, way: int) -> int:
        """Adds the stub of a side exit, which returns the gas of iterations that did not run; returns its label."""
        plan = copy.plan
        found = leaving_depths(plan, node.number)
        assert found is not None
        depth, bound, moved = found
        run = 0
        for number in plan.members:
            run = plan.spine.get(number, run)
            if number == node.number:
                break
        operands = LoopOperands(
            check=check_of(RELATIONS[plan.counted.relation]),
            places=pair_of(WORD * depth, WORD * bound),
            each=plan.gas,
            once=plan.gas_to_test - run & LIMB,
            step=_step(plan),
            addend=plan.counted.addend - moved,
            limit=plan.counted.bound_addend & WORD_MASK,
        )
        label, edge = self._label(), node.edges[way]
        self._mark(label)
        leave = self._control("LOOP_LEAVE", Control(operands.words(), ()), edge.pc)
        tokens = [leave, Token("JUMP@", self._outside(copy, edge), edge.pc, 0)]
        self.sections.append(Section(edge.pc, 0, PAID, 0, tokens))
        return label

    def _outside(self, copy: _Copy, edge: Edge) -> int:
        """The target of an edge that leaves the copy: in the enclosing copy, or in the plain code."""
        around = copy.around
        while around is not None:
            for number in around.plan.members:
                if around.plan.nodes[number].block.pc == edge.pc:
                    return ~self._node_label(around, number)
            around = around.around
        return ~self._plain(edge.pc)

    def _node_label(self, copy: _Copy, number: int, *, past_entry: bool = False) -> int:
        labels = copy.past_entry if past_entry and number in copy.past_entry else copy.labels
        if number not in labels:
            labels[number] = self._label()
        return labels[number]

    def _fits_inside(self, copy: _Copy, number: int) -> LoopPlan | None:
        """The plan of an inner loop that can have its own entry in this copy."""
        node = copy.plan.nodes[number]
        inner = self.plans.get(node.block.pc)
        if number == 0 or inner is None or number in copy.plan.spine:
            return None
        pcs = [copy.plan.nodes[each].block.pc for each in copy.plan.members]
        if any(pcs.count(pc) != 1 for pc in inner.meta.body):
            return None
        if any(pcs.count(pc) > 1 for pc in (inner.meta.exit_pc or 0, *inner.meta.early_exits)):
            return None
        return inner if self.room > sum(len(inner.nodes[each].block.tokens) for each in inner.members) else None

    def _write(self, copy: _Copy, label: int) -> None:
        plan = copy.plan
        copy.labels[0] = label
        order = plan.members
        self.room -= sum(len(plan.nodes[each].block.tokens) for each in order)
        early = set(plan.early)
        stubs = {leaving: self._leave(copy, plan.nodes[leaving[0]], leaving[1]) for leaving in plan.early}
        arrivals = _arrivals(plan)
        inner = {number: found for number in order if (found := self._fits_inside(copy, number)) is not None}
        for number in inner:
            copy.past_entry[number] = self._label()
        running: list[Token] = []
        gas = pc = 0
        for index, number in enumerate(order):
            node = plan.nodes[number]
            following = order[index + 1] if index + 1 < len(order) else NOBODY
            alone = number in plan.spine and number and arrivals[number] == [order[index - 1]]
            if not alone or not running:
                self._flush(running, gas, pc)
                running, gas, pc = [], 0, node.block.pc
                self._mark(self._node_label(copy, number))
                if number in inner:
                    entry = self._entry(_Copy(inner[number], copy))
                    self.sections.append(Section(pc, 0, PAID, 0, [entry]))
                    self._mark(copy.past_entry[number])
            tokens = self._node_tokens(copy, node, following, early, stubs)
            if number in plan.spine:
                running, gas = running + tokens, gas + node.block.gas
            else:
                block = node.block
                self.sections.append(Section(block.pc, block.gas, block.needs, block.grows, tokens))
                running = []
        self._flush(running, gas, pc)

    def _flush(self, tokens: list[Token], gas: int, pc: int) -> None:
        if tokens:
            self.sections.append(Section(pc, gas, PAID, 0, tokens))

    def _node_tokens(
        self, copy: _Copy, node: Node, following: int, early: Set[tuple[int, int]], stubs: dict[tuple[int, int], int]
    ) -> list[Token]:
        tokens = list(node.block.tokens)
        plan = copy.plan
        last = tokens[-1] if tokens else None

        def back_inside(edge: Edge) -> bool:
            """A latch of an inner loop: it jumps to after that loop's entry."""
            return edge.node in copy.past_entry and node.block.pc in self.plans[edge.pc].meta.body

        def place(way: int) -> int:
            edge = node.edges[way]
            if (node.number, way) in early:
                return ~stubs[node.number, way]
            if edge.node in copy.members:
                return ~self._node_label(copy, edge.node, past_entry=back_inside(edge))
            if edge.pc == NOWHERE and last is not None:
                return last.operand  # fails when it is taken
            return self._outside(copy, edge)

        def go(way: int) -> list[Token]:
            edge = node.edges[way]
            if edge.node in copy.past_entry and not back_inside(edge):
                written = self._unrolled_inside(copy, node, edge)
                if written:
                    return [Token("JUMP@", ~written, node.block.pc, 0)]
            if edge.node == following and edge.node and not back_inside(edge):
                return []
            if edge.node == 0 and _inverts(plan):
                return self._test_at_bottom(copy, node.block.pc)
            return [Token("JUMP@", place(way), last.pc if last else node.block.pc, 0)]

        if last is not None and last.name == "JUMPI@":
            counted = plan.counted
            if node.edges[0].node == 0 and (node.number, 1) == (counted.node, counted.way):
                targets = (place(0), place(1))
                tokens[-1] = self._control("FORWARD_LOOP_EXIT", Control((), targets), last.pc, last.steps)
                return tokens
            if node.edges[0].node == following and node.edges[1].node != following:
                return [*_negated(tokens[:-1], last.pc), last._replace(operand=place(1)), *go(0)]
            tokens[-1] = last._replace(operand=place(0))
            return [*tokens, *go(1)]
        if last is not None and last.name == "JUMP@":
            tokens.pop()
        elif node.returns and last is not None:
            tokens[-1] = Token("POP", 0, last.pc, last.steps)
        return [*tokens, *go(0)]

    def _unrolled_inside(self, copy: _Copy, node: Node, edge: Edge) -> int:
        """The label of an inner loop unrolled for the start value this node gives it; 0 if that is not known."""
        block, plan = node.block, self.plans[edge.pc]
        made = unrolled(plan, Section(block.pc, 0, 0, 0, block.tokens)) if block.tokens else None
        if made is None or self.room < len(made.tokens):
            return 0
        self.room -= len(made.tokens)
        label = self._label()
        leaving = plan.nodes[plan.counted.node].edges[plan.counted.way]
        way_on = Token("JUMP@", self._outside(_Copy(plan, copy), leaving), made.pc, 0)
        self.later.append((label, made._replace(tokens=[*made.tokens, way_on])))
        return label

    def _test_at_bottom(self, copy: _Copy, pc: int) -> list[Token]:
        plan, counted = copy.plan, copy.plan.counted
        header = plan.nodes[0]
        last = header.block.tokens[-1]
        tokens = header.block.tokens[:-1]
        if counted.way == 0:  # the jump leaves the loop: invert the condition
            tokens = _negated(tokens, last.pc)
        going_on = ~self._node_label(copy, header.edges[1 - counted.way].node)
        leaving = self._outside(copy, header.edges[counted.way])
        return [*tokens, self._control("BACKWARD_LOOP_EXIT", Control((), (going_on, leaving)), last.pc, last.steps)]


def _near(sections: list[Section], headers: Container[int]) -> list[int]:
    """Indices of the headers' sections, and of those that may jump there: the rest is unchanged."""
    near = set()
    for index, section in enumerate(sections):
        tokens = section.tokens
        if tokens and tokens[-1][1] in headers:
            near.add(index)
        if section.pc in headers:
            near |= {index, max(index - 1, 0)}
    return sorted(near)


def _step(plan: LoopPlan) -> int:
    """The counter's step, mirrored if its relation is."""
    return -plan.counted.step if RELATIONS[plan.counted.relation] & MIRRORED else plan.counted.step


def _negated(tokens: list[Token], pc: int) -> list[Token]:
    if tokens and tokens[-1].name == "ISZERO":
        return tokens[:-1]
    return [*tokens, Token("ISZERO", 0, pc, 0)]


def _inverts(plan: LoopPlan) -> bool:
    """Whether the header is only the test, so that the loop can be inverted (tested at the bottom)."""
    header = plan.nodes[0]
    return (
        plan.counted.node == 0
        and len(plan.members) > 1
        and not header.accesses
        and not header.after.height
        and all(header.after.at(number) == slot(number) for number in range(1, header.after.taken + 1))
        and header.block.tokens[-1].name == "JUMPI@"
    )


def _arrivals(plan: LoopPlan) -> dict[int, list[int]]:
    """The predecessors of each node, including the test at the bottom (-1)."""
    members = frozenset(plan.members)
    found: dict[int, list[int]] = {number: [] for number in plan.members}
    for number in plan.members:
        for edge in plan.nodes[number].edges:
            if edge.node in members:
                found[edge.node].append(number)
    if _inverts(plan):
        counted = plan.counted
        found[plan.nodes[0].edges[1 - counted.way].node].append(-1)
    return found
