"""What native code and Python share is declared once: prototypes, layouts, rules of the fork."""

from __future__ import annotations

import ctypes
import inspect
from dataclasses import fields
from typing import Any

import pytest
from llvmlite import ir

from fusevm.evm.forks import Rules
from fusevm.evm.opcodes import CONTEXT_WORDS
from fusevm.native.emit import build, crypto
from fusevm.native.emit.jit import Loaded, object_code
from fusevm.native.host import code_records, engine
from fusevm.native.host.callbacks import Callbacks
from fusevm.native.host.views import packed, packed_whole, view_at
from fusevm.native.lang import Native, Struct, exported, native, ptr, u8, u32, u64, u256
from fusevm.native.lang.foreign import prototype_of
from fusevm.native.layout import QUESTIONS, Engine, NativeFrame
from fusevm.native.runtime import calls, keccak, many, noted, outside, packing, plain, relocation, storage


class Pair(Struct):
    first: u64
    second: u256
    third: u64


@exported
def answer_of(pair: Pair, place: ptr, narrow: u8, count: u32, size: u64) -> u64:
    return pair.first + u64(narrow) + u64(count) + size


@exported
def touch(pair: Pair) -> None:
    pair.first = 7


@exported
def place_of(place: ptr) -> ptr:
    return place


@exported
def by_value(word: u256) -> u64:
    return u64(word)


@native
def inside(number: u64) -> u64:
    return number


# -- prototypes


def prototype(function: Any) -> tuple[Any, tuple[Any, ...]]:
    found: Any = prototype_of(function)
    return found._restype_, found._argtypes_


def test_a_prototype_follows_from_the_annotations() -> None:
    c = ctypes
    assert prototype(answer_of) == (c.c_uint64, (c.c_void_p, c.c_void_p, c.c_uint8, c.c_uint32, c.c_uint64))
    assert prototype(touch) == (None, (c.c_void_p,))
    assert prototype(place_of) == (c.c_uint64, (c.c_void_p,))  # a number also where it is zero


def test_a_derived_function_can_be_called() -> None:
    module = ir.Module()
    for function in (answer_of, touch, place_of):
        function.define(module)  # type: ignore[attr-defined]
    loaded = Loaded(object_code(module))
    room = ctypes.create_string_buffer(Pair.byte_size())
    loaded.exported(touch)(room)
    assert loaded.exported(answer_of)(room, b"bytes", 255, 2**32 - 1, 1) == 7 + 255 + 2**32
    assert loaded.exported(place_of)(0) == 0
    with pytest.raises(TypeError, match=r"this function takes at least 5 arguments \(1 given\)"):
        loaded.exported(answer_of)(room)


def test_a_wide_word_cannot_be_passed_by_value() -> None:
    with pytest.raises(TypeError, match="by_value: Python cannot pass u256 by value; take a pointer to it"):
        prototype_of(by_value)  # type: ignore[arg-type]


def test_only_what_is_exported_is_called_from_python() -> None:
    with pytest.raises(TypeError, match="is not exported: mark it with @exported"):
        build.library().loaded.exported(inside)


def exported_in(*modules: Any) -> set[Any]:
    return {each for module in modules for each in vars(module).values() if isinstance(each, Native) and each.export}


def test_every_exported_function_of_the_runtime_is_in_the_library() -> None:
    runtime = exported_in(calls, keccak, many, noted, outside, packing, plain, relocation, storage)
    here = {each for each in runtime if not each.apart}
    assert {each.symbol for each in here} == {each.symbol for each in build.EXPORTED}  # type: ignore[attr-defined]
    library = build.library()
    assert all(callable(getattr(library, each.name)) for each in build.EXPORTED)  # type: ignore[attr-defined]


@pytest.mark.parametrize("family", crypto.FAMILIES)
def test_every_function_of_a_family_of_arithmetic_has_its_prototype(family: str) -> None:
    for name, function in crypto.functions(family).items():
        source = crypto._sources(family)[name]
        assert (type(function)._restype_, type(function)._argtypes_) == prototype(source)  # type: ignore[attr-defined]


# -- layouts


def test_fields_are_packed_in_the_order_they_are_named() -> None:
    assert packed(Pair, "first second").format == "<Q32s"
    assert packed_whole(Pair, "first second third").size == Pair.byte_size()


@pytest.mark.parametrize("names", ["second first", "first third", "first secnd", "third fourth", "nothing"])
def test_fields_that_a_layout_does_not_have_one_after_another_are_an_error(names: str) -> None:
    with pytest.raises(TypeError, match=r"Pair has the fields \['first', 'second', 'third'\]"):
        packed(Pair, names)


def test_a_field_that_is_left_out_is_an_error_where_all_are_meant() -> None:
    with pytest.raises(TypeError, match=r"Pair has the fields .*, more than"):
        packed_whole(Pair, "first second")


def test_a_view_has_every_field_as_a_number_and_refuses_other_names() -> None:
    room = ctypes.create_string_buffer(Pair.byte_size())
    view = view_at(Pair, ctypes.addressof(room))
    view.first, view.second, view.third = 1, 2**255 + 3, 4
    assert packed_whole(Pair, "first second third").unpack(room.raw) == (1, (2**255 + 3).to_bytes(32, "little"), 4)
    assert (view.first, view.second, view.third) == (1, 2**255 + 3, 4)
    with pytest.raises(AttributeError):
        view.frist = 1  # type: ignore[attr-defined]


def test_head_and_rest_make_a_whole_frame() -> None:
    assert engine._FRAME_HEAD.size == NativeFrame.offset("ip")
    assert engine._FRAME_HEAD.size + code_records._FRAME_REST.size == NativeFrame.byte_size()


def test_how_a_call_ended_is_what_the_engine_begins_with() -> None:
    assert Engine.offset("gas_left") == 0  # `_ENDED` is read from there


# -- what Python tells native code


def test_a_field_that_is_also_a_rule_or_a_word_is_an_error() -> None:
    with pytest.raises(TypeError, match="Twice declares cold_sload more than once"):

        class Twice(Struct, Rules):  # type: ignore[misc]
            cold_sload: u64

    with pytest.raises(TypeError, match="Again declares fork more than once"):

        class Again(Struct, Rules, words=("fork",)):  # type: ignore[misc]
            pass


def test_the_engine_has_each_rule_and_each_word_once() -> None:
    expected = {field.name for field in fields(Rules)} | set(CONTEXT_WORDS.values())
    assert expected <= set(Engine.names())


def test_every_question_native_code_has_is_answered() -> None:
    asked = {name for name, method in inspect.getmembers(Callbacks, callable) if f"_{name.strip('_')}" == name}
    assert {f"_{name}" for name in QUESTIONS} <= asked
