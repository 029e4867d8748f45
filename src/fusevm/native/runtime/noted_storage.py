"""Storage and hashes for recordings: done as ever, and noted. In the subset of `lang`."""

from __future__ import annotations

from fusevm.native.lang import inlined, load, native, ptr, slt, specialised, u64, u256
from fusevm.native.layout import Engine, NativeFrame, Undo
from fusevm.native.runtime.memory import BROKEN, clamp, hash_memory
from fusevm.native.runtime.notes import (
    READ,
    READ_TRANSIENT,
    WRITTEN,
    WRITTEN_TRANSIENT,
    note_hash,
    note_read,
    note_written,
)
from fusevm.native.runtime.storage import UNDO_SIZE, storage_load, storage_store, transient_load, transient_store


@native
def storage_load_noted(frame: NativeFrame, gas: u64, key: u256, out: ptr) -> u64:
    gas = storage_load(frame, gas, key, out)
    if not slt(gas, 0) and note_read(Engine(frame.engine), READ, key, load(u256, out)) == 0:
        return BROKEN
    return gas


transient_load_noted = specialised(
    storage_load_noted, "transient_load_noted", storage_load=transient_load, READ=READ_TRANSIENT
)


@inlined
def overwritten(engine: Engine, mark: u64, value: u256) -> u256:
    """What a write has replaced: the journal knows, unless nothing changed."""
    if engine.journal_count == mark:
        return value
    return Undo(engine.journal + (engine.journal_count - 1) * UNDO_SIZE).value


@native
def storage_store_noted(frame: NativeFrame, gas: u64, key: u256, value: u256) -> u64:
    engine = Engine(frame.engine)
    mark = engine.journal_count
    gas = storage_store(frame, gas, key, value)
    if not slt(gas, 0) and note_written(engine, WRITTEN, key, value, overwritten(engine, mark, value)) == 0:
        return BROKEN
    return gas


transient_store_noted = specialised(
    storage_store_noted, "transient_store_noted", storage_store=transient_store, WRITTEN=WRITTEN_TRANSIENT
)


@native
def hash_memory_noted(frame: NativeFrame, gas: u64, offset: u256, size: u256, out: ptr) -> u64:
    gas = hash_memory(frame, gas, offset, size, out)
    if not slt(gas, 0) and note_hash(frame, clamp(offset), clamp(size), load(u256, out)) == 0:
        return BROKEN
    return gas
