"""The bytecode optimiser: recovers functions in SSA form, folds them and runs the back end.

What a caller can observe is preserved: status, output, logs, storage, and calls in order with data and value; gas may
only fall. Code that cannot be understood, or that reads its own bytes or gas, is returned unchanged, and the report
says why.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from fusevm.codegen.assembling import assembly_of
from fusevm.codegen.gas_trials import max_gas_increase
from fusevm.codegen.linking import OWN, Parts, link, look_inside, parts_of
from fusevm.codegen.metadata import metadata_of
from fusevm.codegen.optimize_report import Cost, OptimizeReport, cost_of
from fusevm.codegen.pipeline import FROM_BYTECODE, IMPROVE, OPTIMISE, SCHEDULE, Work, run_passes
from fusevm.codegen.tight_loops import loop_gas_increase
from fusevm.evm.assembler import CodePiece, ObjectLayout, ObjectReferences, Source, assemble
from fusevm.evm.forks import LATEST, Fork
from fusevm.ir.fold.recorder import FoldRecorder
from fusevm.ir.fold.stats import Stats
from fusevm.ir.functions import SymbolKind
from fusevm.ir.recovery.unit import Recovered, recover
from fusevm.ir.recovery.words import RecoveryFailed
from fusevm.yul.generate import StackTooDeep

GAS_FIRST = 100  # from this many runs on, constants of the old code keep their PUSH: smaller code may cost more gas
RESERVED = b"\xef"  # EIP-3541


@dataclass(frozen=True, slots=True)
class Optimized:
    code: bytes
    report: OptimizeReport
    deployed: tuple[bytes, bytes] | None = None  # of creation code: the runtime before and after
    layout: ObjectLayout | None = None  # of new code: the source of each instruction, as block, end, jump and old pc


class AttemptSetting(NamedTuple):
    """Parameters of one attempt."""

    without: frozenset[str] = frozenset(("recompute",))  # passes left out
    merging: int = 20  # how much dearer gas is thought to be where shared code costs a jump that was not there before


# The first whose result is better is taken. What is shared less runs cheaper everywhere, and takes more bytes; without
# inlining fewer values have to fit on the stack. What is not kept for later costs nothing on ways that do not need it.
_NOT_INLINED = frozenset(("inline", "recompute"))
SETTINGS = (
    AttemptSetting(),
    AttemptSetting(frozenset()),
    AttemptSetting(merging=1),
    AttemptSetting(frozenset(), merging=1),
    AttemptSetting(_NOT_INLINED),
    AttemptSetting(_NOT_INLINED, merging=1),
)


@dataclass(slots=True)
class _Part:
    """Code after recovery and folding, with its cost before."""

    code: bytes
    recovered: Recovered
    parts: Parts
    work: Work
    cost: Cost


@dataclass(slots=True)
class _Made:
    code: bytes
    report: OptimizeReport
    layout: ObjectLayout | None = None  # None: the code is unchanged
    deployed: tuple[bytes, bytes] | None = None


def optimize(
    code: bytes, fork: Fork = LATEST, runs: int = 200, always: bool = False, recorder: FoldRecorder | None = None
) -> Optimized:
    """Optimises code that is deployed once and run `runs` times.

    `always` returns the result even if it is not better, for campaigns. `recorder` records the history of the values of
    the last attempt, but not of a runtime that the code deploys.
    """
    made = _Optimizer(fork, runs, always, recorder).best(code, frozenset())
    return Optimized(made.code, made.report, made.deployed, made.layout)


class _Optimizer:
    def __init__(self, fork: Fork, runs: int, always: bool, recorder: FoldRecorder | None = None) -> None:
        self.fork, self.runs, self.always, self.recorder = fork, runs, always, recorder
        self.setting = SETTINGS[0]
        self.runtimes: dict[bytes, _Made] = {}
        self.dearer: int | None = None  # how much more gas an iteration of a loop costs in the last result

    def best(self, code: bytes, places: frozenset[int]) -> _Made:
        """The first better result, or the unchanged code and why. `places`: offsets at which words are stored later."""
        reasons: list[str] = []
        kept = _Made(code, OptimizeReport("code", cost := Cost(len(code)), cost))
        for setting in SETTINGS:
            self.setting = setting
            try:
                made = self.made(code, places)
            except RecoveryFailed as reason:
                reasons.append(str(reason))
                break
            except StackTooDeep:
                reasons.append("the values of a function do not fit on the stack")
                continue
            if made.layout is not None:
                return made
            kept = made
            reasons += made.report.left_alone
            if made.report.runtime is not None and not made.report.runtime.changed:
                reasons += [f"the runtime: {reason}" for reason in made.report.runtime.left_alone]
        kept.report.left_alone = list(dict.fromkeys(reasons))
        kept.report.runtime = None  # the deployed code is unchanged
        return kept

    def made(self, code: bytes, places: frozenset[int]) -> _Made:
        """Optimises with the current setting; raises RecoveryFailed or StackTooDeep if that is not possible."""
        part = self.understood(code)
        _refuse_unknown_places(places, part)
        report = OptimizeReport("runtime", part.cost, part.cost)
        report.rules, report.steps = part.work.stats.rules, _steps(part.work.stats)
        pieces = {name: CodePiece(code[offset : offset + size]) for name, (offset, size) in part.parts.data.items()}
        runtime: _Made | None = None
        if part.parts.runtime is not None:
            report.kind = "creation"
            runtime = self.deployed(part, pieces)
            report.runtime = runtime.report
        elif part.parts.unfollowed:
            report.kind = "creation"
            report.left_alone.append(f"the runtime: {part.parts.unfollowed}")
        layout = self.laid_out(part, pieces, runtime.layout if runtime is not None else None)
        made = self.better(part, layout.code + self.appended(part), layout, report)
        if runtime is not None and made.layout is not None:
            offset, size = part.parts.data[part.parts.runtime or ""]
            made.deployed = code[offset : offset + size], runtime.code
        return made

    def deployed(self, part: _Part, pieces: dict[str, CodePiece]) -> _Made:
        """The new runtime, whose bytes replace the old one's in `pieces`."""
        assert part.parts.runtime is not None
        old = pieces[part.parts.runtime].content
        if old not in self.runtimes:
            setting = self.setting
            recorder, self.recorder = self.recorder, None
            self.runtimes[old] = self.best(old, part.parts.places)
            self.setting, self.recorder = setting, recorder
        made = self.runtimes[old]
        pieces[part.parts.runtime] = CodePiece(made.code)
        return made

    def understood(self, code: bytes) -> _Part:
        if code.startswith(RESERVED):
            raise RecoveryFailed("code that begins with 0xef is a delegation, or of another format", 0)
        recovered = recover(code, self.fork)
        unit = recovered.unit
        cost = cost_of(code, recovered)
        if self.runs >= GAS_FIRST:
            unit.plain = _pushed_in(recovered)
        if self.recorder is not None:
            self.recorder.start()
        boundary = look_inside(unit)
        work = Work(unit, self.runs, self.setting.without, recorder=self.recorder, low=True)
        run_passes(work, OPTIMISE)
        parts = parts_of(unit, code, recovered.overlaps, boundary)
        if not self.always:
            _refuse_data(code, recovered, parts)
        return _Part(code, recovered, parts, work, cost)

    def laid_out(self, part: _Part, pieces: dict[str, CodePiece], runtime: ObjectLayout | None) -> ObjectLayout:
        unit = part.recovered.unit
        link(unit, part.parts, follows=runtime is not None)
        work = part.work
        run_passes(work, FROM_BYTECODE)
        if self.recorder is not None:
            self.recorder.finish(unit)
        run_passes(work, SCHEDULE)
        work.merging = work.copying = self.setting.merging * max(self.runs, 1)
        work.followed = _followed(part.recovered)
        run_passes(work, IMPROVE)
        program = work.program
        if self.recorder is not None:
            self.recorder.merged(program.merged)
        self.dearer = loop_gas_increase(program, unit, part.recovered.reached, self.runs)
        assembly = assembly_of(program, unit, self.runs)
        sizes = {name: len(piece.content) for name, piece in pieces.items()}
        immutables = runtime.immutables if runtime is not None else {}
        around = ObjectReferences(sizes, pieces, OWN, self.tail(part), immutables)
        return assemble(assembly.items, self.fork, around)

    def tail(self, part: _Part) -> bytes:
        """The bytes after code and data: metadata, or what creation code has after the runtime."""
        end = max(part.parts.end, part.recovered.end)
        if part.parts.runtime is not None:
            return part.code[end : part.parts.boundary]
        whole = part.code[: part.parts.boundary]
        metadata = metadata_of(whole)
        return metadata if len(whole) - len(metadata) >= end else b""

    @staticmethod
    def appended(part: _Part) -> bytes:
        return b"" if part.parts.boundary is None else part.code[part.parts.boundary :]

    def better(self, part: _Part, made: bytes, layout: ObjectLayout, report: OptimizeReport) -> _Made:
        """The new code if it can be recovered again and is better, else the old."""
        try:
            again = recover(made, self.fork)
        except RecoveryFailed as reason:
            report.left_alone.append(f"the result cannot be checked: {reason}")
            return _Made(part.code, report)
        if _grows_faster(again, part.recovered):
            report.left_alone.append("a function that calls itself would raise the stack more than before")
            return _Made(part.code, report)
        if self.dearer is not None and not self.always:
            report.left_alone.append(f"a turn of a loop would cost {self.dearer} gas more")
            return _Made(part.code, report)
        cost = cost_of(made, again)
        before = report.before
        # A constructor runs once: if the runtime improves, the constructor's gas does not matter.
        deploys = report.runtime is not None and report.runtime.changed
        worse = (cost.gas > before.gas and not deploys) or cost.bytes > before.bytes
        if (worse or (cost.gas, cost.bytes) == (before.gas, before.bytes)) and not self.always:
            report.left_alone.append(f"no better: {cost.bytes:,} bytes, static gas {cost.gas:,.0f}")
            return _Made(part.code, report)
        if self.runs >= GAS_FIRST and report.kind == "runtime" and not self.always:
            more = max_gas_increase(part.code, made, self.fork)
            if more > 0:
                report.left_alone.append(f"a run would cost {more} gas more")
                return _Made(part.code, report)
        report.after = cost
        report.immutables = dict(layout.immutables)
        return _Made(made, report, layout)


def _grows_faster(new: Recovered, old: Recovered) -> bool:
    """Recursion may overflow the stack, but must not do so at a smaller depth than before."""
    if new.growth is None:
        return False
    return old.growth is None or new.growth[1] > old.growth[0] or new.highest > old.highest


def _followed(recovered: Recovered) -> dict[Source, Source]:
    """The next block of each block in the original code."""
    places = {block.start: (block.start, block.end) for block in recovered.reached}
    return {place: places[place[1]] for place in places.values() if place[1] in places}


def _pushed_in(recovered: Recovered) -> frozenset[int]:
    """The constants that the code pushes: computing them instead would cost more gas."""
    return frozenset(each.push for block in recovered.reached for each in block.instructions if each.push is not None)


def _refuse_data(code: bytes, recovered: Recovered, parts: Parts) -> None:
    """Refuses code that is mostly neither run nor copied: it may be data that other contracts read."""
    run = sum(block.end - block.start for block in recovered.reached)
    copied = sum(size for _, size in parts.data.values())
    rest = len(code[: parts.boundary]) - run - copied - len(metadata_of(code))
    if rest > run + copied:
        raise RecoveryFailed("most of the code is never run: it may be data that others read")


def _refuse_unknown_places(places: frozenset[int], part: _Part) -> None:
    """Words stored into the code must go to its immutables."""
    known = {int(symbol.name) for symbol in part.recovered.unit.symbols if symbol.kind is SymbolKind.IMMUTABLE}
    if places - known:
        raise RecoveryFailed(
            "a word is stored into the code where nothing is left to be filled in", min(places - known)
        )


def _steps(stats: Stats) -> dict[str, int]:
    return {
        "folded by rules": stats.folded,
        "shared with an equal one": stats.shared,
        "loads whose value was known": stats.forwarded,
        "stores dropped": stats.stores_dropped,
    }
