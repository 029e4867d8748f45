"""Engines by name: our tiers under their own names, and the peers, each imported only when asked for."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec

from fusevm.lab.peers.ours import OurTier
from fusevm.lab.peers.work import PeerEngine, PeerMissing, UnknownEngine
from fusevm.tiers import TIERS


def _pyrevm() -> PeerEngine:
    from fusevm.lab.peers.revm import Revm

    return Revm()


def _pyevm() -> PeerEngine:
    from fusevm.lab.peers.pyevm import PyEvm

    return PyEvm()


def _spec() -> PeerEngine:
    from fusevm.lab.peers.spec import Spec

    return Spec()


# name: how to make it, the module it needs, the package that has the module
PEERS: dict[str, tuple[Callable[[], PeerEngine], str, str]] = {
    "pyrevm": (_pyrevm, "pyrevm", "pyrevm"),
    "py-evm": (_pyevm, "eth", "py-evm"),
    "spec": (_spec, "ethereum", "ethereum-execution"),
}


def engine_named(name: str) -> PeerEngine:
    """A tier of ours or a peer. Raises UnknownEngine, or PeerMissing where its package is not installed."""
    if name in TIERS:
        return OurTier(name)
    if name not in PEERS:
        raise UnknownEngine(f"unknown engine {name!r}; known: {', '.join([*TIERS, *PEERS])}")
    make, module, package = PEERS[name]
    if find_spec(module) is None:
        raise PeerMissing(name, package)
    return make()
