"""titanoboa on fusevm: `enable()`, and contracts run at native speed; traces come from py-evm, on the same state.

import boa
import fusevm.adapters.boa

fusevm.adapters.boa.enable()
"""

from __future__ import annotations

from fusevm.adapters.boa.enabling import disable, enable, fork
from fusevm.adapters.boa.environment import FusevmEnv

__all__ = ["FusevmEnv", "disable", "enable", "fork"]
