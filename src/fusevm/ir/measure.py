"""Counts the instructions, stack accesses and PHIs of a program after lifting and after each stage of folding."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from fusevm.analysis.cfg import control_flow
from fusevm.evm.forks import LATEST, Fork
from fusevm.ir.block import Mode, Program
from fusevm.ir.builder import Builder
from fusevm.ir.flow import flow_of
from fusevm.ir.fold.program import fold_flow
from fusevm.ir.fold.stages import Stage
from fusevm.ir.fold.stats import Stats
from fusevm.ir.ordering import schedule
from fusevm.ir.program import build_program
from fusevm.ir.values import SPILL

# Each row adds a stage to the one above it. Forwarding loads needs FOLD, CSE and FWD; dead stores need FOLD and DSE.
LADDER: tuple[tuple[str, Stage | None], ...] = (
    ("lift", None),
    ("fold", Stage.FOLD),
    ("cse", Stage.FOLD | Stage.CSE),
    ("fwd", Stage.FOLD | Stage.CSE | Stage.FWD),
    ("dse", Stage.FOLD | Stage.CSE | Stage.FWD | Stage.DSE),
)


@dataclass(slots=True)
class Row:
    stage: str
    instructions: int = 0  # scheduled, without loads and spills
    loads: int = 0  # words read from the run-time stack
    spills: int = 0  # words written to it
    phis: int = 0
    stats: Stats = field(default_factory=Stats)


@dataclass(slots=True)
class Measurement:
    opcodes: int  # reachable EVM instructions
    stack_opcodes: int  # of those, the ones that only arrange the stack
    blocks: int
    rows: list[Row]

    @property
    def last(self) -> Row:
        return self.rows[-1]


def counted(program: Program, stage: str, stats: Stats) -> Row:
    row = Row(stage, stats=stats)
    for block in program.blocks.values():
        order = schedule(block, program.unseen)
        kinds = Counter("load" if step.slot is not None else step.value.op for step in order.steps)
        row.loads += kinds.pop("load", 0)
        row.spills += kinds.pop(SPILL, 0)
        row.instructions += sum(kinds.values())
        row.phis += len(block.params)
    return row


def measure(code: bytes, fork: Fork = LATEST, mode: Mode = Mode.EXECUTION, peel: bool = False) -> Measurement:
    flow = flow_of(control_flow(code, fork), peel)
    rows = []
    for stage, stages in LADDER:
        if stages is None:
            program, stats = build_program(flow, Builder(), Mode.EXECUTION), Stats()
        else:
            program, stats = fold_flow(flow, mode, stages)
        rows.append(counted(program, stage, stats))
    opcodes = sum(block.opcodes for block in flow.plain.values())
    arranging = sum(block.stack_opcodes for block in flow.plain.values())
    return Measurement(opcodes, arranging, len(flow.plain), rows)
