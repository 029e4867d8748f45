"""`fusevm doctor`: what this installation is and how it fares, in a paragraph for a bug report."""

from __future__ import annotations

import json
import os
import platform
import textwrap
import time
import warnings
from collections.abc import Callable
from importlib import metadata
from typing import Any

import typer

from fusevm import EVM, __version__, assemble
from fusevm.cli import options
from fusevm.cli.inputs import BadInput

LIBRARIES = ("llvmlite", "eth-abi", "coincurve", "cryptography", "pycryptodome", "py-arkworks-bls12381", "z3-solver")
HERE = b"\xc0" * 20
# 2,000 turns, each of which needs the one before: a hash and a product.
LOOP = """PUSH2 2000 top: JUMPDEST PUSH1 32 PUSH0 KECCAK256 DUP2 PUSH0 NOT SWAP2 MULMOD PUSH0 MSTORE
PUSH1 1 SWAP1 SUB DUP1 PUSH1 @top JUMPI STOP"""
_MOMENT = 0.05  # seconds to measure a call for
_WIDTH = 100


def doctor(as_json: options.AsJson = False) -> None:
    """Say what is installed, where it keeps what it built, and how quick it is: to paste into a bug report."""
    found = examined()
    typer.echo(json.dumps(found) if as_json else told(found))
    if found["native"] != "runs":
        raise typer.Exit(1)


def examined() -> dict[str, Any]:
    started = time.perf_counter()
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        native = _native()
        seconds = time.perf_counter() - started
        speeds = _speeds("native") if native["native"] == "runs" else {}
    return {
        "fusevm": __version__,
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "platform": platform.platform(),
        "machine": platform.machine(),
        "cpus": os.cpu_count(),
        "libraries": {name: _version(name) for name in LIBRARIES},
        **native,
        "seconds_to_start": round(seconds, 2),
        "cache": _cache(),
        "speeds": {"native": speeds, "reference": _speeds("reference")},
        "environment": {name: value for name, value in sorted(os.environ.items()) if name.startswith("FUSEVM_")},
        "warnings": [str(each.message) for each in warned],
    }


def _native() -> dict[str, Any]:
    """Whether the native tier runs, and by whose handlers."""
    try:
        from fusevm.native.cache import ready
        from fusevm.native.emit import build
        from fusevm.native.processor import target

        sequences = build.all_sequences()
        level = ready.level_of_host()
        delivered = ready.ready_made(build.digest_of_handlers(sequences)) is not None
        build.library()
        evm = EVM(tier="native")
        evm.set_code(HERE, assemble("PUSH1 42 PUSH0 MSTORE PUSH1 32 PUSH0 RETURN"))
        if int.from_bytes(evm.call(HERE).check().output, "big") != 42:
            return {"native": "gives wrong answers"}
    except (ImportError, OSError, RuntimeError, BadInput) as error:
        return {"native": f"does not run: {error}"}
    handlers = {"count": len(sequences), "delivered": delivered, "level": level}
    return {"native": "runs", "processor": target().name, "handlers": handlers}


def _cache() -> dict[str, Any]:
    from fusevm.folders import cache_folder

    try:
        folder = cache_folder()
        files = [path.stat().st_size for path in folder.rglob("*") if path.is_file()]
    except (OSError, RuntimeError) as error:
        return {"folder": None, "problem": str(error)}
    try:
        from fusevm.native.cache.folder import usable_folder

        usable = usable_folder() is not None and os.access(folder, os.W_OK)
    except ImportError:
        usable = False
    return {"folder": str(folder), "usable": usable, "files": len(files), "bytes": sum(files)}


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _speeds(tier: str) -> dict[str, float]:
    """Microseconds of a call that stops at once, and millions of gas per second in a loop."""
    evm = EVM(tier=tier)
    evm.set_code(HERE, b"\x00")
    stop = _best(lambda: evm.call(HERE))
    evm.set_code(HERE, assemble(LOOP))
    gas = evm.simulate(HERE).check().gas_used
    loop = _best(lambda: evm.simulate(HERE))
    return {"call_microseconds": round(stop * 1e6, 2), "million_gas_per_second": round(gas / loop / 1e6, 1)}


def _best(work: Callable[[], object]) -> float:
    best, until = float("inf"), time.perf_counter() + _MOMENT
    while True:
        started = time.perf_counter()
        work()
        ended = time.perf_counter()
        best = min(best, ended - started)
        if ended > until:
            return best


def told(found: dict[str, Any]) -> str:
    """All of it in sentences."""
    cache, libraries = found["cache"], found["libraries"]
    sentences = [
        f"fusevm {found['fusevm']} on {found['python']}, {found['platform']} ({found['cpus']} CPUs).",
        ", ".join(f"{name} {version or 'missing'}" for name, version in libraries.items()) + ".",
    ]
    if found["native"] == "runs":
        handlers = found["handlers"]
        source = "delivered with the package" if handlers["delivered"] else "built on this machine"
        sentences.append(
            f"The native tier runs: {handlers['count']} handlers for {found['processor']}, {source}; "
            f"ready after {found['seconds_to_start']} s."
        )
    else:
        sentences.append(f"The native tier {found['native']}.")
    if cache["folder"] is None:
        sentences.append(f"No cache folder: {cache['problem']}.")
    else:
        state = "usable" if cache["usable"] else "NOT usable: every process builds its handlers anew (see FUSEVM_CACHE)"
        sentences.append(f"Cache: {cache['folder']}, {state}, {cache['files']} files, {cache['bytes']:,} bytes.")
    for tier, speeds in found["speeds"].items():
        if speeds:
            sentences.append(
                f"{tier}: {speeds['call_microseconds']} µs per call, "
                f"{speeds['million_gas_per_second']:,} million gas per second of hashes and products."
            )
    sentences += [f"{name}={value}." for name, value in found["environment"].items()]
    sentences += [f"Warning: {text}." for text in found["warnings"]]
    return textwrap.fill(" ".join(sentences), _WIDTH, break_long_words=False, break_on_hyphens=False)
