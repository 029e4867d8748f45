"""Counts of what folding did, by stage and by rule."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, fields


@dataclass(slots=True)
class Stats:
    folded: int = 0  # FOLD: replaced by a rule
    shared: int = 0  # CSE: replaced by an equal instruction
    forwarded: int = 0  # FWD: loads and hashes whose value was known
    stores_dropped: int = 0  # DSE
    checks: int = 0  # memory checks requested
    checks_dropped: int = 0
    checks_merged: int = 0
    guards_decided: int = 0  # conditions known
    rules: Counter[str] = field(default_factory=Counter)

    def add(self, other: Stats) -> None:
        for each in fields(self):
            if each.name == "rules":
                self.rules.update(other.rules)
            else:
                setattr(self, each.name, getattr(self, each.name) + getattr(other, each.name))
