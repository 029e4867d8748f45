"""The native arithmetic, one piece of object code per family: built when first used, kept in the cache folder."""

from __future__ import annotations

import contextlib
import hashlib
import threading
from collections.abc import Callable
from functools import cache
from importlib import import_module

from llvmlite import ir

from fusevm.evm.precompiles.contract import Pause
from fusevm.native.cache.folder import cached
from fusevm.native.cache.ready import ready_made
from fusevm.native.cache.sources import digest_of_sources
from fusevm.native.emit.jit import Loaded, object_code
from fusevm.native.lang import Native
from fusevm.native.processor import target
from fusevm.native.runtime.linked import natives
from fusevm.version import __version__

_MOMENT = 0.02  # seconds

# By family: where its functions are, and those Python calls.
FAMILIES: dict[str, dict[str, tuple[str, ...]]] = {
    "bn254": {"bn254_curve": ("bn254_add", "bn254_mul"), "bn254_pairing": ("bn254_miller", "bn254_is_one")},
    "modexp": {
        "modexp": (
            "modexp_multiply",
            "modexp_reduce",
            "modexp_reciprocal",
            "modexp_prepare",
            "modexp_advance",
            "modexp_limb",
            "modexp_pair",
        ),
        "modexp_brief": ("modexp_brief",),
    },
    "merkle": {
        "merkle": ("keccak256_each",),
        "patricia": ("trie_changed", "trie_hold", "trie_let_go", "trie_room", "trie_root", "trie_count"),
    },
    "secp256k1": {"secp256k1": ("ecrecover",)},
    "hashes": {"sha256": ("sha256",), "ripemd160": ("ripemd160",)},
    "blake2": {"blake2": ("blake2_begin", "blake2_rounds", "blake2_end", "blake2_compress")},
}


@cache
def functions(family: str) -> dict[str, Callable[..., int]]:
    """What Python calls of a family, by name."""
    loaded = library(family)
    return {name: loaded.exported(function) for name, function in _sources(family).items()}


@cache
def library(family: str) -> Loaded:
    import llvmlite

    sources = digest_of_family(family)
    parts = (llvmlite.__version__, *target(), sources)
    fingerprint = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]
    code = cached(f"{family}-{fingerprint}.o", lambda: ready_made(sources) or build(family))
    return Loaded(code, [function.symbol for function in natives(_sources(family).values())])


def prepare(family: str, pause: Pause) -> None:
    """Loads or builds a family with pauses: LLVM takes up to a second, and cannot be interrupted."""
    worker = _worker(family)
    while worker.is_alive():
        worker.join(_MOMENT)
        pause()


def is_ready(family: str) -> bool:
    """Whether a family is ready; starts to build it if it is not. For callers that have an alternative."""
    if family not in _tried:
        _worker(family)
    return family in _tried


def _worker(family: str) -> threading.Thread:
    """What loads or builds a family: at most one at a time."""

    def work() -> None:
        try:
            with contextlib.suppress(Exception):  # the next caller that needs it gets the error
                library(family)
        finally:
            _tried.add(family)
            _workers.pop(family, None)

    worker = _workers.get(family)
    if worker is None or not worker.is_alive():  # after a fork the other process has the thread
        worker = _workers[family] = threading.Thread(target=work, name=f"fusevm builds {family}")
        worker.start()
    return worker


_workers: dict[str, threading.Thread] = {}
_tried: set[str] = set()  # families that were loaded, or cannot be


def build(family: str) -> bytes:
    module = ir.Module(family)
    for function in _sources(family).values():
        assert isinstance(function, Native)
        function.define(module)
    # By now the engines have reserved gigabytes, and what is left between may hold one section and not the next. Small
    # code does not reach further than 2 GiB: LLVM would abort the process.
    return object_code(module, scattered=True)


def _sources(family: str) -> dict[str, Callable[..., int]]:
    return {
        name: getattr(import_module(f"fusevm.native.runtime.crypto.{place}"), name)
        for place, names in FAMILIES[family].items()
        for name in names
    }


@cache
def digest_of_family(family: str) -> str:
    modules = [f"native.runtime.crypto.{place}" for place in FAMILIES[family]]
    return digest_of_sources(["native.emit.crypto", *modules], __version__, family)
