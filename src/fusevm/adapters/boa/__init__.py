"""titanoboa on fusevm: `enable()`, and contracts run at native speed; traces come from py-evm, on the same state.

import boa
import fusevm.adapters.boa

fusevm.adapters.boa.enable()
"""

from __future__ import annotations

from typing import Any

import boa

from fusevm.adapters.boa.environment import FusevmEnv

__all__ = ["FusevmEnv", "enable", "fork"]


def enable(**settings: Any) -> Any:
    """Makes a new fusevm environment `boa.env`; as a context manager, until the end of the `with` block.

    `settings` are those of `FusevmEnv`.
    """
    return boa.set_env(FusevmEnv(**settings))


def fork(url: str, block_identifier: int | str = "safe", allow_dirty: bool = False, **settings: Any) -> Any:
    """As `boa.fork`: a new fusevm environment on the state of a node; changes made in the current one are dropped."""
    if boa.env.evm.is_state_dirty and not allow_dirty:
        raise RuntimeError("Cannot fork with dirty state. Set allow_dirty=True to override.")
    forked = FusevmEnv()
    forked.fork(url=url, block_identifier=block_identifier, deprecated=False, **settings)
    return boa.set_env(forked)
