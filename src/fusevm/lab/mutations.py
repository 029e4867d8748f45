# ruff: noqa: E501 (a table: one deliberate error per line)
"""Deliberate errors in the back end: does the campaign or a test find each of them?

`python -m fusevm.lab.mutations [--only N ...] [--programs 400] [--seconds 240]` copies the sources to a scratch folder,
makes one textual change there at a time, and runs the tests of the back end and then the campaign against it, until one
of them fails. A change that nothing finds is a survivor: a test is missing. `--no-tests` asks the campaign alone,
`--validate` the validation of passes alone (`lab/yul/validated.py`).
"""

# ruff: noqa: E501 (a mutation per line is easier to read)
from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

ROOT = Path(__file__).resolve().parents[3]
TESTS = (
    "test_ir_ranges.py", "test_range_rules.py", "test_stack_moves.py", "test_stack_passes.py", "test_backend_golden.py",
    "test_dead_slots.py", "test_compiled_findings.py", "test_backend_passes.py", "test_backend_parts.py", "test_stack_fitting.py",
    "test_optimize.py",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Mutation:
    file: str  # below src/fusevm
    old: str
    new: str


MUTATIONS = (
    # ranges
    Mutation("ir/ranges.py", "a.high * b.high <= TOP", "a.low * b.low <= TOP"),
    Mutation("ir/ranges.py", "return Range(0, min(a.high, b.high))", "return Range(0, max(a.low, b.low))"),
    Mutation("ir/ranges.py", "Range(0, max(b.high - 1, 0))", "Range(0, max(b.high - 2, 0))"),
    Mutation("ir/ranges.py", "8 * (size.low + 1) - 1", "8 * (size.low + 1)"),
    Mutation("ir/ranges.py", "operands[1] << shift & TOP", "operands[1] >> shift & TOP"),
    # folding
    Mutation("ir/fold/facts.py", "self.assume(args[0], not holds, depth - 1)", "self.assume(args[0], holds, depth)"),
    Mutation("ir/fold/facts.py", '(op == "AND" and holds)', '(op == "AND")'),
    Mutation("ir/fold/functions.py", "self.assume(end.args[0], edges[0] == 0)", "self.assume(end.args[0], edges[0] == 1)"),
    Mutation("ir/fold/facts.py", "self.facts.less.setdefault((other.id, one.id), False)", "self.facts.less.setdefault((other.id, one.id), True)"),
    Mutation("ir/fold/facts.py", "self.facts.less[part.id, value.id] = other.low > 0", "self.facts.less[part.id, value.id] = True"),
    Mutation("rules/families/ranges.py", "high(Y) <= low(X)", "high(Y) <= high(X)"),
    Mutation("rules/families/ranges.py", "B < A, low(X) >= -A", "B < A, low(X) >= 0"),
    Mutation("ir/fold/functions.py", "written |= self.writes[start]", "written |= 0"),
    Mutation("ir/fold/functions.py", "if summary.writes & _MEMORY:\n            world.memory, world.zeroed = [], False", "if False:\n            pass"),
    Mutation("ir/fold/functions.py", "world.write(summary.writes, self.clock)\n        touched = summary.writes | summary.reads", "summary = Summary(summary.reads)\n        touched = summary.reads"),
    Mutation("ir/fold/functions.py", 'return self.pure("LT", (other, moved))', 'return self.pure("LT", (other, one))'),
    Mutation("ir/fold/functions.py", "not self.is_shared(value) and self.range(value).high < TOP", "not self.is_shared(value)"),
    Mutation("ir/fold/summaries.py", "summary.reads |= WORLD.value  #", "summary.reads |= 0  #"),
    Mutation("ir/fold/stores.py", "if event.op == \"MSIZE\" and not engine.guards_growth:", "if False:"),
    Mutation("codegen/inlining.py", "often *= DEARER", "often /= 2"),
    # graphs, inlining, sinking, sharing, threading
    Mutation("ir/graphs.py", "return bool(summary.writes & ~unseen.value) or summary.halts", "return bool(summary.writes & ~unseen.value)"),
    Mutation("ir/graphs.py", "len(predecessors[target]) != 1 or target.params:", "target.params:"),
    Mutation("ir/inline.py", "replaced[value.id] = after.params[value.number]", "replaced[value.id] = after.params[0]"),
    Mutation("ir/inline.py", "[Arc(after, list(ended))]", "[Arc(after, list(ended[::-1]))]"),
    Mutation("ir/sink_values.py", "while depth[target] > depth[block.start]:", "while False:"),
    Mutation("ir/sink_values.py", "if not traits_of(value).pure or", "if"),
    Mutation("ir/sink_values.py", "or target in latches", ""),
    Mutation("ir/share_constants.py", "literal if arg.op == CONST and arg.number == number else arg", "literal if arg.op == CONST else arg"),
    Mutation("ir/jump_threading.py", "arcs[0] if condition.number else arcs[1]", "arcs[1] if condition.number else arcs[0]"),
    Mutation("ir/jump_threading.py", "all(fails is not None for fails in refuses)", "any(fails is not None for fails in refuses)"),
    Mutation("ir/jump_threading.py", "uses.get(param.id) == 1", "True"),
    # code
    Mutation("codegen/dispatch.py", "self.search(low, cases[:middle])", "self.search(low, cases[: middle - 1])"),
    Mutation("codegen/dispatch.py", "(self.value,), [rest, arc]", "(self.value,), [arc, rest]"),
    Mutation("codegen/ordering.py", "work += [(read, None) for read in self.first(top)]", "pass"),
    Mutation("codegen/moves.py", "elif not copies:\n            return None", "elif False:\n            return None"),
    Mutation("codegen/moves.py", "moves.append(DUP + pattern.index(operand) + above + 1)", "moves.append(DUP + pattern.index(operand) + 1)"),
    Mutation("codegen/stack_code.py", 'MIRRORED = {"LT": "GT", "GT": "LT", "SLT": "SGT", "SGT": "SLT"}', 'MIRRORED = {"LT": "LT", "GT": "LT", "SLT": "SGT", "SGT": "SLT"}'),
    Mutation("codegen/liveness.py", "needed.update(arg.id for arg in arc.args if not is_free(arg))", "pass"),
    Mutation("codegen/stack_code.py", "*[each if each in live else DEAD for each in reversed(params)]", "*[each if each in live else DEAD for each in params]"),
    Mutation("codegen/spilling.py", "block.instructions.insert(0, numbers.new(block", "block.instructions.append(numbers.new(block"),
    Mutation("codegen/writing.py", "used += WORD_BYTES", "used += 0"),
    Mutation("codegen/writing.py", "cycle = part_of[name] if name in recursive else frozenset()", "cycle = frozenset()"),
    Mutation("codegen/passes.py", "key = (tuple(block.code), block.end, block.targets)", "key = (tuple(block.code), block.end)"),
    Mutation("codegen/passes.py", 'moved = constant.number + (1 if last == "LT" else -1)', 'moved = constant.number - (1 if last == "LT" else -1)'),
    Mutation("codegen/passes.py", "if last == _SWAP1 and code.op in COMMUTATIVE:", 'if last == _SWAP1 and code.op in {*COMMUTATIVE, "SUB"}:'),
    Mutation("codegen/placement.py", "!= block.targets[1]:\n            negate(block)", "!= block.targets[1]:\n            block.targets = block.targets[::-1]"),
    Mutation("codegen/ordering.py", "args.append(made)", "args.insert(0, made)"),
    Mutation("codegen/duplication.py", "block.code, block.targets = block.code[:-1], block.targets[::-1]", "block.targets = block.targets[::-1]"),
    Mutation("codegen/constants.py", "(word << ones & TOP) | (1 << ones) - 1", "(word << ones & TOP) | (1 << ones)"),
    Mutation("codegen/assembling.py", "if block.needs_jump(following.get(label)):\n            wanted", "if False:\n            wanted"),
    # stores that nobody reads
    Mutation("ir/dead_slots.py", "return self.kind != other.kind or (self.base == other.base and self.offset != other.offset)", "return self.kind != other.kind or self.offset != other.offset"),
    Mutation("ir/dead_slots.py", "return self.kind != other.kind or (", "return (self.kind == other.kind and False) or ("),
    Mutation("ir/dead_slots.py", "return Unread(False, frozenset(each for each in self.slots if each.differs_from(slot)))", "return Unread(False, self.slots - {slot})"),
    Mutation("ir/dead_slots.py", "unknown = {slot for slot in self.slots if slot.base == value.id}", "unknown: set[Slot] = set()"),
    Mutation("ir/dead_slots.py", "return Unread(False, self.slots & other.slots)", "return Unread(False, self.slots | other.slots)"),
    Mutation("ir/dead_slots.py", "return _NONE if reads & _READERS else unread", "return unread"),
    Mutation("ir/dead_slots.py", "if value.id in found and (was_halted or later[value.id]):", "if value.id in found:"),
    Mutation("ir/dead_slots.py", "return value.op in _HALTS_STATIC_CALLS and value.id not in found", "return value.op in _HALTS_STATIC_CALLS"),
    Mutation("ir/dead_slots.py", "return bool(sources) and block is not blocks[0] and all(", "return bool(sources) and any("),
    Mutation("ir/dead_slots.py", "return all(coming[target] for target in block.targets)", "return any(coming[target] for target in block.targets)"),
    Mutation("ir/dead_slots.py", 'if value.op == "CALLFN" and effects[unit.names[value.number]].ends:', "if False:"),
    Mutation("ir/dead_stores.py", "if value.op in dropped and not value.keep:", "if value.op in dropped:"),
    Mutation("ir/dead_stores.py", "_ALL = (1 << _BYTES + 1) - 1", "_ALL = (1 << _BYTES) - 1"),
    Mutation("ir/dead_stores.py", '(*_DROPPED, "EXTCODECOPY") if unseen & ACCESS else _DROPPED', '(*_DROPPED, "EXTCODECOPY")'),
    # fitting
    Mutation("codegen/spilling.py", "needed = value.id in live.exit[block] or value in block.end.args", "needed = value in block.end.args"),
    Mutation("codegen/spilling.py", 'block.instructions.insert(at, numbers.new(block, "MSTORE", (place, kept)))', "pass"),
    Mutation("codegen/ordering.py", "value.args[0].op == CONST and value.args[0].number in self.spilled", "value.args[0].op == CONST"),
    Mutation("codegen/ordering.py", "and all(is_free(arg) or arg.id not in self.local or arg.id in self.finished for arg in value.args)", ""),
    Mutation("codegen/writing.py", "writer.spilled = range(0) if room is None or cycle else", "writer.spilled = range(0) if room is None else"),
    Mutation("ir/dead_slots.py", "if unread.all and not any(", "if not any("),
    Mutation("ir/dead_slots.py", "and not any(each.kind == TRANSIENT.value for each in unread.slots)", ""),
    Mutation("ir/dead_slots.py", "loaded = {other: word for other, word in loaded.items() if other.differs_from(slot)}", "pass"),
    Mutation("ir/dead_slots.py", "loaded.clear()", "pass"),
)  # fmt: skip


CAMPAIGN = ("fusevm.lab.yul.compiled", "--no-shrink", "--stop", "1")
VALIDATION = ("fusevm.lab.yul.validated", "--stop", "1")


def found_by(
    mutation: Mutation,
    programs: int,
    seconds: float,
    names: tuple[str, ...] = TESTS,
    campaign: tuple[str, ...] = CAMPAIGN,
) -> str | None:
    """What finds the error; None where nothing does in the time given."""
    with TemporaryDirectory() as folder:
        copy = Path(folder)
        shutil.copytree(ROOT / "src", copy / "src", ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copytree(ROOT / "tests", copy / "tests", ignore=shutil.ignore_patterns("__pycache__"))
        path = copy / "src" / "fusevm" / mutation.file
        text = path.read_text()
        if mutation.old not in text:
            sys.exit(f"{mutation.file} has no {mutation.old!r}: change the entry of the table")
        path.write_text(text.replace(mutation.old, mutation.new, 1))
        tests = [str(copy / "tests" / name) for name in names if (copy / "tests" / name).exists()]
        pytest = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "--rootdir", folder, *tests]
        random = [sys.executable, "-m", *campaign, "--programs", str(programs)]
        for what, command in (("tests", pytest), ("campaign", random)):
            if not (names if what == "tests" else campaign):
                continue
            failure = _failure(command, copy, seconds)
            if failure is not None:
                return f"{what}: {failure}"
    return None


def _failure(command: list[str], folder: Path, seconds: float) -> str | None:
    environment = {**os.environ, "PYTHONPATH": str(folder / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    environment["FUSEVM_FIXTURES"] = str(folder / "none")  # tests of whole contracts take too long to be run for each
    try:
        run = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        return "it does not end"
    if run.returncode == 0:
        return None
    lines = [line for line in run.stdout.splitlines() if line.startswith(("FAILED", "ERROR", "seed"))]
    return lines[0][:110] if lines else (run.stderr.splitlines() or ["?"])[-1][:110]


def main(
    arguments: list[str] | None = None,
    mutations: tuple[Mutation, ...] = MUTATIONS,
    names: tuple[str, ...] = TESTS,
    campaign: tuple[str, ...] = CAMPAIGN,
    description: str | None = __doc__,
) -> int:
    parser = argparse.ArgumentParser(prog="python -m fusevm.lab.mutations", description=description)
    parser.add_argument("--only", type=int, nargs="*", help="numbers of the mutations to try")
    parser.add_argument("--programs", type=int, default=400, help="of the campaign, where no test finds it")
    parser.add_argument("--seconds", type=float, default=240.0, help="for the tests, and for the campaign")
    parser.add_argument("--no-tests", action="store_true", help="the campaign alone has to find it")
    parser.add_argument("--validate", action="store_true", help="the validation of passes alone has to find it")
    options = parser.parse_args(arguments)
    names = () if options.no_tests or options.validate else names
    campaign = VALIDATION if options.validate else campaign
    unchanged = found_by(Mutation("ir/ranges.py", "import", "import"), 0, options.seconds, names, campaign)
    if unchanged is not None:
        sys.exit(f"the tests must pass before anything is changed: {unchanged}")
    survivors = 0
    for number, mutation in enumerate(mutations):
        if options.only and number not in options.only:
            continue
        started = perf_counter()
        found = found_by(mutation, options.programs, options.seconds, names, campaign)
        survivors += found is None
        place = f"{number:2} {mutation.file}: {mutation.old.splitlines()[0][:60]}"
        print(f"{place}\n   {found or 'SURVIVES'} ({perf_counter() - started:.0f} s)", flush=True)
    print(f"{survivors} survivors")
    return int(bool(survivors))


if __name__ == "__main__":
    sys.exit(main())
