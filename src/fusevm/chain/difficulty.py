"""Difficulty until the merge: one formula per era of proof of work, and the bomb that every glacier delays."""

from __future__ import annotations

from fusevm.chain.schedule import Upgrade
from fusevm.evm.forks import Fork

LEAST = 131_072
DIVISOR = 2_048
BOMB_PERIOD = 100_000
MAX_FALL = -99


def difficulty_after(
    step: Upgrade, number: int, timestamp: int, parent_timestamp: int, parent_difficulty: int, parent_has_ommers: bool
) -> int:
    """What the block's difficulty must be (EIP-2 since Homestead, EIP-100 since Byzantium)."""
    elapsed = timestamp - parent_timestamp
    if step.fork >= Fork.BYZANTIUM:
        factor = max((2 if parent_has_ommers else 1) - elapsed // 9, MAX_FALL)
    elif step.fork >= Fork.HOMESTEAD:
        factor = max(1 - elapsed // 10, MAX_FALL)
    else:
        factor = 1 if elapsed < 13 else -1
    difficulty = parent_difficulty + parent_difficulty // DIVISOR * factor
    period = max(number - step.bomb_delay, 0) // BOMB_PERIOD - 2
    return max(difficulty + (1 << period if period >= 0 else 0), LEAST)
