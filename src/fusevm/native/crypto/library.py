"""The native arithmetic, one piece of object code per family: built when first used, kept in the cache folder."""

from __future__ import annotations

import contextlib
import hashlib
import threading
from functools import cache
from importlib import import_module
from pathlib import Path

from llvmlite import ir

from fusevm.evm.precompiles.contract import Pause
from fusevm.native.cache import cached
from fusevm.native.jit import Loaded, object_code, target
from fusevm.native.lang import Native
from fusevm.native.ready import ready_made

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
    "blake2": {"blake2": ("blake2_begin", "blake2_rounds", "blake2_end", "blake2_compress")},
}


@cache
def library(family: str) -> Loaded:
    import llvmlite

    sources = digest_of_sources(family)
    parts = (llvmlite.__version__, *target(), sources)
    fingerprint = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]
    return Loaded(cached(f"{family}-{fingerprint}.o", lambda: ready_made(sources) or build(family)))


def prepare(family: str, pause: Pause) -> None:
    """Loads or builds a family with pauses: LLVM takes up to a second, and cannot be interrupted."""

    def work() -> None:
        with contextlib.suppress(Exception):  # whoever asks for it next gets the error
            library(family)

    worker = threading.Thread(target=work, name=f"fusevm builds {family}")
    worker.start()
    while worker.is_alive():
        worker.join(_MOMENT)
        pause()


def build(family: str) -> bytes:
    module = ir.Module(family)
    for place, names in FAMILIES[family].items():
        for name in names:
            function = getattr(import_module(f"fusevm.native.crypto.{place}"), name)
            assert isinstance(function, Native)
            function.define(module)
    # By now the engines have reserved gigabytes, and what is left between may hold one section and not the next. Small
    # code does not reach further than 2 GiB: LLVM would abort the process.
    return object_code(module, scattered=True)


@cache
def digest_of_sources(family: str) -> str:
    """Of all that the object code is made from, and more: the language, and where constants come from."""
    import fusevm

    digest = hashlib.sha256(f"{fusevm.__version__} {family}".encode())
    package = Path(__file__).parent.parent.parent
    for folder, names in (("native/crypto", "*.py"), ("native", "*.py"), ("evm/precompiles", "*.py")):
        for source in sorted((package / folder).glob(names)):
            digest.update(source.read_bytes())
    return digest.hexdigest()[:32]
