# ruff: noqa: E501 (a table: one deliberate error per line)
"""Deliberate errors in recordings: does a test or the campaign find each of them?

`python -m fusevm.lab.recording_mutations [--only N ...] [--programs 60] [--seconds 240]` is as `fusevm.lab.mutations`, for
notes, their decoding, frames that halt, coverage and gas.
"""

from __future__ import annotations

import sys

from fusevm.lab.mutations import Mutation, main

TESTS = ("test_recording.py", "test_recording_counts.py", "test_recording_machine.py")
CAMPAIGN = ("fusevm.lab.recordings", "--shrink", "0", "--stop", "1")

NOTES, NOTED, CODEC = "native/runtime/notes.py", "native/runtime/noted.py", "native/host/note_codec.py"
CALLS, STORED = "native/runtime/noted_calls.py", "native/runtime/noted_storage.py"
RECORDER, HALTING, COUNTING = "native/host/recorder.py", "native/host/halting.py", "native/host/counting.py"
EXACT, BUILD, EMIT = "native/host/exact.py", "schedule/build.py", "native/emit/control.py"

MUTATIONS = (
    # what native code notes
    Mutation(NOTES, "    if value != 0:\n        head += 32\n", ""),
    Mutation(NOTES, "    if delegated != 0:\n        head += 32\n", ""),
    Mutation(NOTES, "        store(rest, 0, account.delegate)\n", "        store(rest, 0, account.address)\n"),
    Mutation(NOTES, "    note.tag = frame.pc << PC_SHIFT | kind", "    note.tag = (frame.pc + 1) << PC_SHIFT | kind"),
    Mutation(CALLS, "    given += stipend\n", ""),
    Mutation(CALLS, "        stipend = engine.call_stipend\n", "        stipend = 0\n"),
    Mutation(CALLS, "    if frame.depth >= CALL_DEPTH_LIMIT:\n        reason = REASON_DEPTH", "    if frame.depth > CALL_DEPTH_LIMIT:\n        reason = REASON_DEPTH"),
    Mutation(CALLS, "        if engine.answer_gas != 0:\n", "        if engine.answer_gas == 0:\n"),
    Mutation(CALLS, "    elif maker.nonce != nonce:", "    elif maker.nonce == nonce:"),
    Mutation(CALLS, "        address = counted_address(frame.address, nonce)\n", "        address = counted_address(frame.address, maker.nonce)\n"),
    Mutation(CALLS, "    if reason == REASON_COLLISION:\n        left = 0", "    if reason == NO_REASON:\n        left = 0"),
    Mutation(CALLS, "    balance = own.balance\n    status = self_destruct(frame, gas, top, kind, ip)", "    status = self_destruct(frame, gas, top, kind, ip)\n    balance = own.balance"),
    Mutation(NOTED, "        elif deposit_cost(engine, size) > before:", "        elif deposit_cost(engine, size) > left:"),
    Mutation(STORED, "    if engine.journal_count == mark:\n        return value", "    if engine.journal_count == mark:\n        return u256(0)"),
    Mutation(NOTED, "            if status == REVERT and note_undone(engine, frame.log_mark) == 0:", "            if False and note_undone(engine, frame.log_mark) == 0:"),
    Mutation(NOTED, "        if (status == REVERT or engine.log_size <= FEW_LOGS) and note_undone(engine, 0) == 0:", "        if status == REVERT and note_undone(engine, 0) == 0:"),
    Mutation(NOTED, "    engine.noted_key = u256(0)\n    engine.older_key = u256(0)\n", ""),
    Mutation(CODEC, "self._key, self._older = self._older, self._key", "self._key = self._older"),
    Mutation(NOTES, "    if (value >> 128) == 0:", "    if (value >> 136) == 0:"),
    Mutation(NOTES, "    if ((value | previous) >> 128) == 0:", "    if (value >> 128) == 0:"),
    Mutation(NOTES, "        store(own.place, 0, load(u64, own.place) - left)\n", ""),
    Mutation(NOTES, "load(u64, caller.place) - (own.given - left))", "load(u64, caller.place) - own.given)"),
    Mutation(EMIT, '    noted_name("REVERT"): lambda handler: _end_with_output(handler, Status.REVERT, noted=True),', '    noted_name("REVERT"): lambda handler: _end_with_output(handler, Status.REVERT),'),
    # decoding
    Mutation(CODEC, "by, value = caller.caller, caller.value", "value = caller.value"),
    Mutation(CODEC, "by, value = caller.caller, caller.value", "by = caller.caller"),
    Mutation(CODEC, "static = caller.static or kind is FrameKind.STATICCALL", "static = kind is FrameKind.STATICCALL"),
    Mutation(CODEC, "acting = to if kind in _ELSEWHERE else caller.address", "acting = to"),
    Mutation(CODEC, "data, depth, pc = self._data(size), caller.depth + 1", "data, depth, pc = self._data(size), len(self._tree.open) + 1"),
    Mutation(CODEC, "REASONS[facts >> notes.REASON_SHIFT & _BYTE]", "REASONS[facts >> notes.REASON_SHIFT & 7]"),
    Mutation(CODEC, "while self._logs and self._logs[-1].start >= start:", "while self._logs and self._logs[-1].start > start:"),
    Mutation(CODEC, "key=lambda found: (-found[0].place, -found[0].start)", "key=lambda found: found[0].place"),
    Mutation(CODEC, "        if not depth:\n            self._key = self._older = self._logged_to = 0\n", ""),
    # what Python does
    Mutation(RECORDER, "        if not depth and mark <= FEW_LOGS:\n            mark = 0\n", ""),
    Mutation(RECORDER, "pc = running.pc - 1 if failed else self._tables.views[depth].pc", "pc = running.pc - 1"),
    Mutation(RECORDER, "        if ran:\n            self._halting.end(depth, running.gas)", "        self._halting.end(depth, running.gas)"),
    Mutation(RECORDER, "begun(running, self._before if message.depth else None)", "begun(running, self._before)"),
    # frames that halt
    Mutation(HALTING, "section.gas - _gas_before(of, section.pc, first.pc)", "section.gas"),
    Mutation(HALTING, "view.load_limit = max(view.memory_size - 31, 0)", "pass"),
    Mutation(HALTING, "if (view.sp - view.sp % STACK_ALIGN) + WORD * op.pops > view.sp:", "if (view.sp - view.sp % STACK_ALIGN) + WORD * op.pops >= view.sp:"),
    Mutation(HALTING, "short = view.gas + view.reserve < price", "short = view.gas + view.reserve <= price"),
    Mutation(HALTING, "if op is None or op.variants or byte in _CREATIONS:", "if op is None or op.variants:"),
    Mutation(HALTING, "view.gas + view.reserve - (0 if paid else price))", "view.gas + view.reserve)"),
    Mutation(HALTING, "self.counting.subtract(meter.place, view.gas + view.reserve)", "self.counting.subtract(meter.place, view.gas)"),
    Mutation(EXACT, "STACK_LIMIT - grows - kind.pops << 48", "STACK_LIMIT - kind.pops << 48"),
    Mutation(EXACT, "grows = max(kind.delta, 0)", "grows = kind.pops"),
    Mutation(EXACT, '            if kind.ending == ENDS_BLOCK and kind.name != "JUMPI":', "            if kind.ending == ENDS_BLOCK:"),
    # counting
    Mutation(COUNTING, "if each >= at:", "if each > at:"),
    Mutation(COUNTING, "        following = each.pc + 1 + (each.op.immediate if each.op else 0)\n", "        following = len(code)\n"),
    Mutation(COUNTING, "if last < len(code) and code[last] == JUMPI:", "if last < len(code) - 1 and code[last] == JUMPI:"),
    Mutation(BUILD, "    if marks is None:  # what is jumped over is not counted", "    if True:"),
    Mutation(BUILD, "self.hops: dict[int, Hop] = {} if marks else hops_in", "self.hops: dict[int, Hop] = hops_in"),
    Mutation(BUILD, 'Token("TALLY", marks.section(self.code, section.pc, section.steps), section.pc, 0)', 'Token("TALLY", marks.section(self.code, section.pc, len(section.tokens)), section.pc, 0)'),
)  # fmt: skip


if __name__ == "__main__":
    sys.exit(main(None, MUTATIONS, TESTS, CAMPAIGN, __doc__))
