"""A pytest plugin for Vyper's test suite: its backend `revm` is fusevm's."""

from tests.evm_backends import revm_env

from fusevm.adapters.vyper import FusevmEnv

revm_env.RevmEnv = FusevmEnv
