# ruff: noqa: E501 (a table: one deliberate error per line)
"""Deliberate errors in regions: does a test or the campaign find each of them?

`python -m fusevm.lab.regions.mutations [--only N ...] [--programs 60] [--seconds 240]` is as `fusevm.lab.mutations`, for
emission, leaving, narrowing, gas and the search for functions.
"""

from __future__ import annotations

import sys

from fusevm.lab.mutations import Mutation, main

TESTS = ("test_regions_programs.py", "test_regions_lockstep.py", "test_regions_ranges.py")
CAMPAIGN = ("fusevm.lab.regions.campaign", "--shrink", "0", "--stop", "1", "--limits", "10")

EMIT, STATE, OPS = "native/region/emit.py", "native/region/state.py", "native/region/ops.py"
OPCODES = "native/emit/opcodes.py"
FOLD, FIND, BUILD = "ir/regions/fold.py", "ir/regions/find.py", "ir/regions/build.py"
FINDER = "ir/recovery/finder.py"
RANGES, DEMAND = "ir/regions/ranges.py", "ir/regions/demand.py"

MUTATIONS = (
    # entering
    Mutation(EMIT, 'unless(build.icmp_unsigned(">", above, ir.Constant(I64, max(STACK_LIMIT - shape.taken, 0))))', "pass"),
    Mutation(EMIT, "WORD * (shape.left - shape.taken)", "WORD * (shape.left - shape.taken + 1)"),
    Mutation(EMIT, 'unless(build.icmp_unsigned("<", number, ir.Constant(I64, 2)))', "pass"),
    Mutation(EMIT, 'build.icmp_unsigned(">=", back, build.zext(field("code_size", I64), I256))', 'build.icmp_unsigned(">", build.trunc(back, I64), field("code_size", I64))'),
    Mutation(EMIT, "go_on(at(ip, 8 * (self.layout.words - 1)), sp, gas)", "go_on(at(ip, 8 * self.layout.words), sp, gas)"),
    Mutation(EMIT, "most = STACK_LIMIT - self.shape.rises", "most = STACK_LIMIT - self.shape.rises + 1"),
    Mutation(EMIT, "state.own[param.id] = -depth\n", "state.own[param.id] = 1 - depth\n"),
    # gas
    Mutation(EMIT, "if spends or position[target.start] <= position[block.start]:", "if spends:"),
    Mutation(EMIT, "if spends or position[target.start] <= position[block.start]:", "if position[target.start] <= position[block.start]:"),
    Mutation(EMIT, "ahead[block.start] = block.gas + max(further, default=0)", "ahead[block.start] = block.gas + min(further, default=0)"),
    Mutation(EMIT, "ahead[block.start] = block.gas + max(further, default=0)", "ahead[block.start] = block.gas"),
    Mutation(EMIT, 'short = build.icmp_signed("<", state.gas, ir.Constant(I64, self.ahead[block.start]))', 'short = build.icmp_signed("<", state.gas, ir.Constant(I64, self.ahead[block.start] - 1))'),
    Mutation(BUILD, "ahead += instruction.op.gas_at(self.fork) if instruction.op else 0", "ahead += instruction.op.gas_at(self.fork) if instruction.op and instruction.op.name != 'SWAP1' else 0"),
    Mutation(FOLD, "self.anchor = made.state = self.mapped(block.state)", "self.prepaid = 9\n        self.anchor = made.state = self.mapped(block.state)\n        self.prepaid = 0"),
    Mutation(FOLD, "state._replace(gas=state.gas + self.prepaid)", "state"),
    Mutation(FOLD, "state.gas - self.prepaid)", "state.gas)"),
    Mutation(FOLD, "cases=(self.state.pc, self.state.gas + self.prepaid)", "cases=(self.state.pc, self.state.gas)"),
    # leaving and failing
    Mutation(STATE, "if number >= self.untouched or self.own.get(word.id) != number or word.op == CONST", "if self.own.get(word.id) != number or word.op == CONST"),
    Mutation(STATE, "if number >= self.untouched or self.own.get(word.id) != number or word.op == CONST", "if word.id not in self.own or word.op == CONST"),
    Mutation(STATE, 'self.set_field("gas", self.gas)\n', "pass\n"),
    Mutation(STATE, 'self.set_field("gas", self.build.add(self.gas, ir.Constant(I64, state.gas)))', 'self.set_field("gas", self.gas)'),
    Mutation(STATE, 'self.set_field("pc", ir.Constant(I64, state.pc))', 'self.set_field("pc", ir.Constant(I64, self.shape.entry))'),
    Mutation(EMIT, "unpatched = {pc: self.layout.words + at for pc, at in places.items()}", "unpatched = dict(places)"),
    Mutation(EMIT, "at if pc not in entries else unpatched[pc]", "at"),
    Mutation(EMIT, "state.leave(words[: len(words) - len(value.args)], left)", "state.leave((), left)"),
    Mutation(EMIT, "lowest = min(lowest, self.state.height(value.state.words) - len(value.args))", "lowest = min(lowest, self.state.height(value.state.words))"),
    Mutation(FOLD, "if value.op not in REPEATABLE and not TRAITS[value.op].pure:", "if False:"),
    Mutation(FOLD, "if self.anchor is None or value.op in OWN_STATE:", "if self.anchor is None:"),
    Mutation(FOLD, "if end.op == EXIT:\n            return End(EXIT, tuple([self.new(word) for word in end.args]), [], end.cases)", "if end.op == EXIT:\n            return End(EXIT, tuple([self.new(word) for word in end.args])[::-1], [], end.cases)"),
    # calls within regions
    Mutation(EMIT, "state.slot(base + value.number)", "state.slot(base + value.number + 1)"),
    Mutation(EMIT, "self.state.slot(base + value.number)", "self.state.slot(base)"),
    Mutation(EMIT, "build.store(state.word(arg), state.slot(height - number), align=8)\n        callee", "build.store(state.word(arg), state.slot(height - len(value.args) + number - 1), align=8)\n        callee"),
    Mutation(EMIT, "        back()\n        state.gas = left\n", "        back()\n"),
    # operations
    Mutation(OPCODES, "to.build.add(to.gas, to.field(\"reserve\"))", "to.gas"),
    Mutation(OPS, "state.build.store(state.word(arg), state.slot(height - number), align=8)\n    count", "pass\n    count"),
    Mutation(OPS, 'limit = state.field("load_limit") if size > 1 else state.field("memory_size")', 'limit = state.field("memory_size")'),
    Mutation(OPS, "if state.range(offset).high > NARROW:", "if False:"),
    # narrowing
    Mutation(STATE, "self.range(value).high <= NARROW or self.demanded.get(value.id, 0) <= NARROW", "self.range(value).low <= NARROW and self.demanded.get(value.id, 0) <= NARROW << 1"),
    Mutation(DEMAND, "wanted = bits if value.op in _SAME else below", "wanted = bits"),
    Mutation(DEMAND, 'bits >> count if value.op == "SHL" else bits << count & TOP', 'bits << count & TOP if value.op == "SHL" else bits >> count'),
    Mutation(DEMAND, "self._whole(block.end.args)", "pass"),
    Mutation(DEMAND, "self._state(value.state)", "pass"),
    Mutation(DEMAND, "return self._want(args[0], bits & masks[1]) | self._want(args[1], bits & masks[0])", "return self._want(args[0], bits & masks[0]) | self._want(args[1], bits & masks[1])"),
    Mutation(RANGES, "known = (*known, (source.end.args[0], source.end.arcs[0].target is block))", "known = (*known, (source.end.args[0], source.end.arcs[0].target is not block))"),
    Mutation(RANGES, "whole = found if whole is None else whole.with_(found)", "whole = found if whole is None else whole"),
    Mutation(RANGES, "found = found.with_(before)  # only ever wider, so that it ends", "found = before"),
    Mutation(RANGES, "if len(before) == 1 and before[0].end.op == BRANCH:", "if before and before[0].end.op == BRANCH:"),
    # finding
    Mutation(FIND, "stack.reach(needs)\n", "pass\n"),
    Mutation(FIND, "found.highest = max(found.highest, stack.height + rises)\n", "pass\n"),
    Mutation(FIND, "if (place, stack.height) != kept:", "if False:"),
    Mutation(FINDER, " and (not target.pushes or target.target in self.dests)", ""),
    # what memory accesses tell
    Mutation(RANGES, "0 < size.number <= PAYABLE", "size.number <= PAYABLE"),
    Mutation(RANGES, "reached = self.reached[block.start]", "reached = self.reached_after[block.start]"),
    Mutation(RANGES, "before[block.start] = after.get(self.above[block.start], {})", "before[block.start] = list(after.values())[-1] if after else {}"),
    Mutation(RANGES, "PAYABLE = (1 << 42) - 1", "PAYABLE = (1 << 12) - 1"),
    Mutation(STATE, "(number, True, word.number) if", "(number, True, 0) if"),
    Mutation(STATE, "else (number, False, word.id)", "else (number, False, 0)"),
    Mutation(STATE, "            found = longer\n", "            found = found if word.op == CONST else longer\n"),
)  # fmt: skip


if __name__ == "__main__":
    sys.exit(main(None, MUTATIONS, TESTS, CAMPAIGN, __doc__))
