"""All handlers in one piece of object code: built once, kept in the user's cache folder, loaded in milliseconds."""

from __future__ import annotations

import ctypes
import hashlib
import sys
from collections.abc import Collection, Iterable
from functools import cache

from llvmlite import ir

from fusevm.evm.keccak import use_native
from fusevm.evm.words import MEANINGS
from fusevm.native.cache.folder import cached
from fusevm.native.cache.ready import ready_made
from fusevm.native.cache.sources import digest_of_sources
from fusevm.native.emit import handlers as made
from fusevm.native.emit import merkle, packing, signers
from fusevm.native.emit.jit import Loaded, object_code
from fusevm.native.emit.progress import Bar
from fusevm.native.lang import PTR, Callee, Native
from fusevm.native.layout import NativeFrame
from fusevm.native.processor import target
from fusevm.native.runtime import calls, keccak, many, noted, outside, plain, relocation, storage
from fusevm.native.runtime import packing as joining
from fusevm.native.runtime.linked import LINKED, natives
from fusevm.schedule.build import Handlers
from fusevm.schedule.fusions import fused_sequences
from fusevm.schedule.sections import TELLING
from fusevm.version import __version__

_Digest = ctypes.c_char * 32
LLVM_TIMES = 6.0  # what LLVM takes, in multiples of what it takes to write its input: measured

STORAGE = frozenset(("SLOAD", "SSTORE", "TLOAD", "TSTORE"))
SURE = frozenset(("PUSH", "PUSHW", *made.ARRANGED, *MEANINGS)) - {"EXP"}  # cannot fail once their section is paid

# The functions that Python calls.
EXPORTED = (
    calls.call,
    calls.run,
    noted.call_noted,
    noted.run_noted,
    noted.halt_noted,
    many.call_many,
    storage.revert_to,
    storage.known_slot,
    storage.commit,
    outside.forget_all,
    outside.forget_account,
    outside.is_warm,
    outside.forget_schedules,
    outside.warm_address,
    outside.put_balance,
    outside.put_nonce,
    relocation.relocate,
    plain.begin_plain,
    plain.write_block,
    plain.forget_plain,
    plain.take_counts,
    keccak.keccak256,
    joining.measure_each,
    joining.join_each,
    joining.join_alike,
)


def single_sequences() -> list[tuple[str, ...]]:
    """One handler for every opcode native code can do, and for the schedule's own."""
    return [(name,) for name in dict.fromkeys(made.NAMES) if name != "PC"]


def all_sequences() -> list[tuple[str, ...]]:
    """All sequences; those that call, end a frame or use storage also in the version for recordings."""
    plain = [*single_sequences(), *fused_sequences()]
    telling = [noted_sequence(each, TELLING) for each in plain if not TELLING.isdisjoint(each)]
    stored = [noted_sequence(each, STORAGE) for each in plain if notes_last(each, STORAGE)]
    return list(dict.fromkeys([*plain, *telling, *stored]))


def noted_handlers(handlers: Handlers, names: Collection[str]) -> Handlers:
    """The handlers of which those note that do one of these opcodes; a handler that fails has noted nothing."""
    plain = (sequence for sequence in handlers.addresses if not any(name.endswith("!") for name in sequence))
    noted = {sequence: handlers.addresses.get(noted_sequence(sequence, names)) for sequence in plain}
    return Handlers({sequence: address for sequence, address in noted.items() if address})


def notes_last(sequence: tuple[str, ...], names: Collection[str]) -> bool:
    """Whether there is one opcode of these names, and nothing after it can fail: one that fails has noted nothing."""
    places = [place for place, name in enumerate(sequence) if name in names]
    return len(places) == 1 and all(name in SURE for name in sequence[places[0] + 1 :])


def noted_sequence(sequence: tuple[str, ...], names: Collection[str]) -> tuple[str, ...]:
    """The same where opcodes of these names are noted."""
    return tuple([made.noted_name(name) if name in names else name for name in sequence])


def build_module(sequences: list[tuple[str, ...]], bar: Bar | None = None) -> ir.Module:
    module = ir.Module("fusevm")
    for number, sequence in enumerate(sequences, 1):
        made.HandlerBuilder(module, sequence).derive()
        if bar is not None:
            bar.reach(number / len(sequences) / (1 + LLVM_TIMES))
    for function in EXPORTED:
        assert isinstance(function, Native)
        function.define(module)
    for linked in LINKED:
        linked.define(module).linkage = ""
    _define_enter(module)
    return module


def _define_enter(module: ir.Module) -> None:
    """From C's calling convention into the first handler: the frame's ip, sp and gas become registers."""
    function = ir.Function(module, ir.FunctionType(made.I64, [PTR]), "enter")
    build = ir.IRBuilder(function.append_basic_block())
    frame = function.args[0]
    fields = NativeFrame
    values = []
    for name, kind in (("ip", PTR), ("sp", PTR), ("gas", made.I64)):
        place = build.gep(frame, [ir.Constant(made.I64, fields.offset(name))], source_etype=made.I8)
        values.append(build.load(place, typ=kind, align=8))
    ip, sp, gas = values
    target = build.load(ip, typ=PTR, align=8)
    following = build.gep(ip, [ir.Constant(made.I64, 8)], source_etype=made.I8)
    build.ret(build.call(Callee(target, made.HANDLER), [following, sp, gas, frame], cconv=made.CONVENTION))


class Library:
    """The loaded code: where each handler is, and the functions Python calls."""

    def __init__(self, code: bytes, sequences: list[tuple[str, ...]], fingerprint: str) -> None:
        self.fingerprint = fingerprint
        functions = [function.symbol for function in (*natives(EXPORTED), *LINKED)]
        self.loaded = Loaded(code, ["enter", *functions, *map(made.symbol_of, sequences)])
        address, exported = self.loaded.address, self.loaded.exported
        self.handlers = Handlers({each: address(made.symbol_of(each)) for each in sequences})
        self.enter = address("enter")
        self.call = exported(calls.call)
        self.run = exported(calls.run)
        self.call_noted = exported(noted.call_noted)
        self.run_noted = exported(noted.run_noted)
        self.halt_noted = exported(noted.halt_noted)
        self.call_many = exported(many.call_many)
        self.revert_to = exported(storage.revert_to)
        self.known_slot = exported(storage.known_slot)
        self.commit = exported(storage.commit)
        self.forget_all = exported(outside.forget_all)
        self.forget_account = exported(outside.forget_account)
        self.is_warm = exported(outside.is_warm)
        self.forget_schedules = exported(outside.forget_schedules)
        self.warm_address = exported(outside.warm_address)
        self.put_balance = exported(outside.put_balance)
        self.put_nonce = exported(outside.put_nonce)
        self.relocate = exported(relocation.relocate)
        self.begin_plain = exported(plain.begin_plain)
        self.write_block = exported(plain.write_block)
        self.forget_plain = exported(plain.forget_plain)
        self.take_counts = exported(plain.take_counts)
        self.keccak256 = exported(keccak.keccak256)
        self.measure_each = exported(joining.measure_each)
        self.join_each = exported(joining.join_each)
        self.join_alike = exported(joining.join_alike, locked=True)

    def hash_of(self, data: bytes) -> bytes:
        """Keccak-256, as `evm/keccak.py` has it."""
        out = _Digest()
        self.keccak256(data, len(data), out)
        return out.raw

    def load(self, code: bytes, names: Iterable[str]) -> Loaded:
        """Object code that may call the functions of the runtime."""
        return Loaded(code, names, {each.symbol: self.loaded.address(each.symbol) for each in LINKED})


@cache
def library() -> Library:
    """The handlers of this version on this processor: from the cache folder, or built into it."""
    sequences = all_sequences()
    fingerprint = _fingerprint(sequences)
    made = cached(f"handlers-{fingerprint}.o", lambda: ready_made(digest_of_handlers(sequences)) or _build(sequences))
    found = Library(made, sequences, fingerprint)
    use_native(found.hash_of)
    merkle.install()
    signers.install()
    packing.install(found.measure_each, found.join_each, found.join_alike)
    return found


def _build(sequences: list[tuple[str, ...]]) -> bytes:
    with Bar(f"{len(sequences)} native handlers", sys.stderr) as bar:
        return build_handlers(sequences, bar)


def build_handlers(sequences: list[tuple[str, ...]], bar: Bar | None = None) -> bytes:
    module = build_module(sequences, bar)
    if bar is not None:
        bar.follow_clock(LLVM_TIMES)
    return object_code(module)


def _fingerprint(sequences: list[tuple[str, ...]]) -> str:
    """Everything that the object code depends on: LLVM, the processor, and the sources that generate it."""
    import llvmlite

    parts = [llvmlite.__version__, *target(), digest_of_handlers(sequences)]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


def digest_of_handlers(sequences: list[tuple[str, ...]]) -> str:
    return digest_of_sources(["native.emit.build"], __version__, sequences)
