"""What runs, runs along the control-flow graph: every executed block is reached, every executed jump is an edge."""

from __future__ import annotations

from pathlib import Path

import pytest

from fusevm import EVM
from fusevm.control_flow.graph import Cfg, control_flow
from fusevm.evm.bytecode import JUMPI, basic_blocks
from fusevm.evm.opcodes import BY_NAME
from fusevm.lab.ir.hostile import HOSTILE
from fusevm.lab.peers.ours import OurTier
from fusevm.lab.regions.cases import case, real_code
from fusevm.reference.frame import Frame
from fusevm.reference.hooks import Hooks
from programs import CALLER, HERE

JUMP = BY_NAME["JUMP"].byte


class Walk:
    """A watcher that follows every frame through the graph of its code."""

    watched = frozenset(range(256))

    def __init__(self) -> None:
        self.graphs: dict[tuple[bytes, str], tuple[Cfg, dict[int, int]]] = {}  # and the block of every pc
        self.at: dict[int, int] = {}  # the block that each frame is in
        self.edges = 0
        self.wrong: list[str] = []

    def graph(self, frame: Frame) -> tuple[Cfg, dict[int, int]]:
        code, fork = frame.message.code, frame.context.fork
        if (code, fork.label) not in self.graphs:
            block_of = {each.pc: block.start for block in basic_blocks(code, fork) for each in block.instructions}
            self.graphs[code, fork.label] = control_flow(code, fork), block_of
        return self.graphs[code, fork.label]

    def enter(self, frame: Frame) -> None:
        self.at.pop(id(frame), None)

    def leave(self, frame: Frame) -> None:
        self.at.pop(id(frame), None)

    def before(self, frame: Frame, byte: int) -> None:
        cfg, block_of = self.graph(frame)
        pc = frame.pc - 1
        if pc in cfg.nodes:
            before = self.at.get(id(frame))
            self.step(cfg, before, pc)
            self.at[id(frame)] = pc
        if byte in (JUMP, JUMPI) and len(frame.stack) > (byte == JUMPI):
            target, node = frame.stack[-1], cfg.nodes[block_of[pc]]
            taken = byte == JUMP or frame.stack[-2]
            if taken and target not in cfg.dests and not (node.bad_jump or node.unknown):
                self.wrong.append(f"{node.block.start:#x} jumps to no target, {target:#x}, in {cfg.code.hex()}")

    def step(self, cfg: Cfg, before: int | None, pc: int) -> None:
        if not cfg.nodes[pc].reached:
            self.wrong.append(f"{pc:#x} runs and is not reached, in {cfg.code.hex()}")
        if before is not None:
            node = cfg.nodes[before]
            self.edges += 1
            if pc not in node.successors and not (node.unknown and pc in cfg.dests):
                self.wrong.append(f"{before:#x} leads to {pc:#x}, in {cfg.code.hex()}")

    def after(self, frame: Frame, byte: int, called: Frame | None) -> None:
        pass

    def failed(self, frame: Frame, byte: int) -> None:
        pass


def called(
    walk: Walk, code: bytes, data: bytes = b"", storage: tuple[tuple[int, int], ...] = (), gas: int = 400_000
) -> None:
    evm = EVM(tier="reference", hooks=Hooks(watcher=walk))
    evm.set_code(HERE, code)
    for key, value in storage:
        evm.set_storage(HERE, key, value)
    evm.call(HERE, data, caller=CALLER, gas=gas)


@pytest.mark.parametrize(
    ("kind", "count"), [("random", 100), ("loops", 100), ("functions", 150), ("compiled", 30), ("mazes", 200)]
)
def test_random_programs_run_along_their_graphs(kind: str, count: int) -> None:
    walk = Walk()
    for number in range(count):
        OurTier("reference", Hooks(watcher=walk)).run(case(f"graph/{number}", None, kind, small=True).work())
    assert walk.wrong == []
    assert walk.edges > 100


def test_real_contracts_run_along_their_graphs(fixtures_dir: Path) -> None:
    walk = Walk()
    for sample in real_code(fixtures_dir):
        for data in sample.calls[:2]:
            called(walk, sample.code, data, sample.storage)
    assert walk.wrong == []
    assert not any(
        cfg.has_unknown_jumps or cfg.budget_spent for cfg, _ in walk.graphs.values() if len(cfg.code) > 1_000
    )


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_code_runs_along_its_graph(name: str) -> None:
    walk = Walk()
    for size in (200, 3_000):
        called(walk, HOSTILE[name](size), (3).to_bytes(32, "big"), gas=100_000)
    assert walk.wrong == []


def test_what_is_not_in_the_graph_is_seen() -> None:
    code = bytes.fromhex("5f356006575b00")
    walk = Walk()
    called(walk, code)
    assert walk.wrong == []
    (cfg, _), *_ = walk.graphs.values()
    cfg.nodes[5].reached = False
    cfg.nodes[0].falls = None
    called(walk, code)
    assert len(walk.wrong) == 2
