"""How an engine runs code, as a value: what tiers are made of. No LLVM here: a table of tiers needs none."""

from __future__ import annotations

from typing import NamedTuple


class Setting(NamedTuple):
    """Engines of all settings answer alike; they differ in their schedules."""

    fused: bool = True  # sequences of opcodes share a handler; else each opcode has its own
    tiered: bool = False  # plain schedules first; fused and with regions only where that pays
    regions: bool = False  # all that regions can be made of is compiled before it runs
    compared: bool = False  # with the reference tier, wherever native code can be stopped
    recorded: bool = False  # notes what it does

    @property
    def is_direct(self) -> bool:
        """Whether common calls take a path of their own (`direct.py`)."""
        return not (self.regions or self.compared)


PREPARED = Setting()
