"""Vyper's test suite on fusevm: Vyper's own environment for revm, of whatever version, over `fusevm.compat.pyrevm`.

To be imported from Vyper's repository, whose `tests` package has that environment. In its `tests/conftest.py`:

    from fusevm.adapters.vyper import FusevmEnv
    …
    return {"py-evm": PyEvmEnv, "revm": RevmEnv, "fusevm": FusevmEnv}[backend_str]
"""

from __future__ import annotations

import sys
from importlib.util import find_spec, module_from_spec
from types import ModuleType

from fusevm.compat import pyrevm

REVM_ENV = "tests.evm_backends.revm_env"


def _over_fusevm() -> ModuleType:
    """A second copy of Vyper's module, for which `pyrevm` is fusevm's; the first one remains as it is."""
    spec = find_spec(REVM_ENV)
    if spec is None or spec.loader is None:
        raise ModuleNotFoundError(f"{REVM_ENV} was not found: import fusevm.adapters.vyper from Vyper's repository")
    copied, missing = module_from_spec(spec), object()
    before = sys.modules.get("pyrevm", missing)
    sys.modules["pyrevm"] = pyrevm
    try:
        spec.loader.exec_module(copied)
    finally:
        if before is missing:
            del sys.modules["pyrevm"]
        else:
            sys.modules["pyrevm"] = before  # type: ignore[assignment]
    return copied


class FusevmEnv(_over_fusevm().RevmEnv):  # type: ignore[misc]
    """Contracts are deployed and called on fusevm."""
