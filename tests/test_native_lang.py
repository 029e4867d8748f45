"""The subset of Python that compiles to LLVM: each construct by a small function, each mistake by its message."""

from __future__ import annotations

import ctypes
from random import Random
from typing import Any

import pytest
from llvmlite import ir

from fusevm.native.emit.jit import Loaded, object_code
from fusevm.native.lang import (
    Native,
    NativeError,
    Struct,
    Table,
    bswap,
    call_pointer,
    clz,
    copy,
    ctz,
    exported,
    fill,
    inlined,
    load,
    local,
    native,
    outlined,
    ptr,
    rotl,
    select,
    slt,
    specialised,
    store,
    u1,
    u8,
    u16,
    u32,
    u64,
    u128,
    u192,
    u256,
    unlikely,
    x86_add_low_row,
    x86_add_row,
)
from fusevm.native.runtime import division

MASK = (1 << 64) - 1
SEVEN = 7
SQUARES = Table(u64, [n * n for n in range(10)])


class Point(Struct):
    x: u64
    wide: u256
    y: u32
    next: ptr


class Pair(Struct):
    first: Point
    second: u64


# -- the functions ----------------------------------------------------------------------------------------------------


@exported
def grade(x: u64) -> u64:
    """An if with elif and else, and a return from each."""
    if x < 10:
        return 1
    elif x < 100:  # noqa: RET505
        return 2
    else:
        return 3


@exported
def gcd(a: u64, b: u64) -> u64:
    while b != 0:
        rest = a % b
        a = b
        b = rest
    return a


@exported
def collatz(n: u64) -> u64:
    steps: u64 = 0
    while True:
        if n == 1:
            break
        steps += 1
        if (n & 1) == 0:
            n = n >> 1
            continue
        n = n * 3 + 1
    return steps


@exported
def unrolled(x: u64) -> u64:
    total: u64 = 0
    for i in range(10):
        if i == SEVEN:
            continue
        if i == 9:
            break
        total += SQUARES[i] * x
    for j in range(3, 0, -1):
        total += j
    return total


@exported
def looked_up(index: u64) -> u64:
    return SQUARES[index]


@exported
def fibonacci(n: u64) -> u64:
    room = local(u64, 2)
    room[0] = 0
    room[1] = 1
    while n != 0:
        following = room[0] + room[1]
        room[0] = room[1]
        room[1] = following
        n -= 1
    return room[0]


@exported
def arithmetic(a: u64, b: u64) -> u64:
    return ((a + b) * 3 - (a // b)) ^ ((a % b) | 5) & ~b


@exported
def shifted(a: u64, n: u64) -> u64:
    return (a << n) + (a >> n) + (-a)


@exported
def both(a: u64, b: u64) -> u64:
    """The second is not looked at where the first decides: it would divide by zero."""
    if b != 0 and a // b > 2:
        return 1
    return 0


@exported
def either(a: u64, b: u64) -> u64:
    if b == 0 or not (a // b <= 2) or a == 99:
        return 1
    return 0


@exported
def truth(a: u64) -> u64:
    if a:
        return u64(1) if not a == 3 else 2  # noqa: SIM201
    return 0


@exported
def compared(a: u64, b: u64) -> u64:
    answer: u64 = 0
    if a == b:
        answer += 1
    if a != b:
        answer += 2
    if a < b:
        answer += 4
    if a <= b:
        answer += 8
    if a > b:
        answer += 16
    if a >= b:
        answer += 32
    if slt(a, b):
        answer += 64
    return answer


@exported
def narrowed(a: u64) -> u64:
    return u64(u8(a)) + (u64(u16(a)) << 8) + (u64(u32(a)) << 24) + u64(u1(a))


@exported
def widened(a: u64, b: u64) -> u64:
    product = u128(a) * u128(b)
    return u64(product >> 64)


@exported
def counted(a: u64) -> u64:
    return clz(a) * 1_000_000 + ctz(a) * 1_000 + u64(clz(u256(a)))


@exported
def turned(a: u64, n: u64) -> u64:
    return rotl(a, n) ^ bswap(a)


@exported
def greater(a: u64, b: u64) -> u64:
    return select(a > b, a, b) + (a if a < b else b) * 2


@exported
def decided(a: u64, b: u64) -> u64:
    """Conditions known while translating, wherever a condition may stand."""
    answer = (a if SEVEN == 7 else b) + select(SEVEN == 8, a, b) * 100
    if (SEVEN == 7 and a < b) or False:
        answer += 10_000
    return answer


@exported
def compared_with_truth(a: u64) -> u64:
    return 1 if (a == 5) == True else u64(2)  # noqa: E712


@exported
def unlikely_zero(a: u64) -> u64:
    if unlikely(a == 0):
        return 1
    return 2


@exported
def fields(p: Point) -> u64:
    p.x += 5
    p.wide = u256(p.x) << 128
    p.y = u32(p.x)
    return p.x + u64(p.wide >> 128)


@exported
def followed(p: Point) -> u64:
    after = Point(p.next)
    if after == 0:
        return 0
    return after.x + Point(after.next).x


@exported
def through(pair: Pair) -> u64:
    return pair.first.x + pair.second


@exported
def memory(p: ptr, size: u64) -> u64:
    fill(p, 7, size)
    store(p, 1, u8(9))
    copy(p + 2, p, size - 2)
    store(p + 8, 0, load(u16, p))
    return load(u64, p, 0)


@inlined
def twice(x: u64) -> u64:
    return x + x


@native
def thrice(x: u64) -> u64:
    return twice(x) + x


@outlined
def apart(x: u64) -> u64:
    return thrice(x) + 1


@exported
def calling(x: u64) -> u64:
    return apart(twice(x)) + thrice(1)


@exported
def asking(function: ptr, x: u64) -> u64:
    return call_pointer(u64, function, x) + 1


@exported
def emptied(p: ptr) -> None:
    store(p, 0, u64(0))


@exported
def declared() -> u64:
    wide: u256 = 1 << 200
    other = wide >> 199
    if SEVEN == 8:
        pass
    return u64(other) + SEVEN


Kind, bias = u8, 1


@exported
def biased(x: u64) -> u64:
    narrow: Kind = Kind(x)
    return u64(narrow + bias)


biased_more = specialised(biased, "biased_more", Kind=u16, bias=3)


First = u64


@exported
def first_of(pair: ptr) -> u64:
    return halved(load(First, pair))


@native
def halved(word: First) -> u64:
    return u64(word) >> 1


first_wide = specialised(first_of, "first_wide", First=u256, halved=specialised(halved, "halved_wide", First=u256))


@exported
def rows(words: ptr, limb: u64) -> None:
    """After x and start: x · limb + start, from registers and from memory, and three limbs of it."""
    x = load(u256, words)
    start = load(u256, words, 32)
    store(words, 64, x86_add_row(x, limb, start))
    store(words, 104, x86_add_row(words, limb, start))
    store(words, 144, x86_add_low_row(words, limb, u192(start)))


FUNCTIONS = [each for each in globals().values() if isinstance(each, Native) and each.export]


@pytest.fixture(scope="module")
def compiled() -> Loaded:
    module = ir.Module("test")
    for function in FUNCTIONS:
        if function is not rows or division.TWO_CARRIES:
            function.define(module)
    return Loaded(object_code(module))


@pytest.fixture
def run(compiled: Loaded) -> Any:
    def call(function: Any, *arguments: int) -> int | None:
        return compiled.exported(function)(*arguments)

    return call


def test_a_function_can_be_translated_once_more_with_other_names(run: Any) -> None:
    assert [run(biased, x) for x in (0, 255, 256)] == [1, 0, 1]
    assert [run(biased_more, x) for x in (0, 255, 65_535)] == [3, 258, 2]
    pair = (6).to_bytes(32, "little")
    assert [run(first_of, pair), run(first_wide, pair)] == [3, 3]


def test_a_name_that_a_function_does_not_use_cannot_be_replaced() -> None:
    with pytest.raises(NativeError, match="again: biased does not use biass"):
        specialised(biased, "again", biass=2)


# -- control ----------------------------------------------------------------------------------------------------------


def test_if_elif_and_else(run: Any) -> None:
    assert [run(grade, x) for x in (0, 9, 10, 99, 100, MASK)] == [1, 1, 2, 2, 3, 3]


def test_while(run: Any) -> None:
    assert run(gcd, 1071, 462) == 21


def test_break_and_continue(run: Any) -> None:
    assert run(collatz, 27) == 111


def test_for_is_unrolled_over_a_known_range(run: Any) -> None:
    assert run(unrolled, 2) == 2 * sum(n * n for n in range(9) if n != 7) + 6


def test_a_table_may_be_indexed_at_run_time(run: Any) -> None:
    assert [run(looked_up, n) for n in range(10)] == [n * n for n in range(10)]


def test_local_arrays(run: Any) -> None:
    assert [run(fibonacci, n) for n in (0, 1, 2, 10, 90)] == [0, 1, 1, 55, 2880067194370816120]


def test_and_or_and_not_short_circuit(run: Any) -> None:
    assert [run(both, a, b) for a, b in ((9, 3), (9, 0), (4, 2), (0, 0))] == [1, 0, 0, 0]
    assert [run(either, a, b) for a, b in ((9, 3), (9, 0), (4, 2), (99, 50))] == [1, 1, 0, 1]


def test_a_word_is_true_unless_it_is_zero(run: Any) -> None:
    assert [run(truth, a) for a in (0, 1, 3, MASK)] == [0, 1, 2, 1]


def test_an_unlikely_condition_is_still_a_condition(run: Any) -> None:
    assert [run(unlikely_zero, a) for a in (0, 1)] == [1, 2]


# -- words ------------------------------------------------------------------------------------------------------------


def test_arithmetic_is_unsigned_and_wraps(run: Any) -> None:
    for a, b in ((1, 1), (MASK, 3), (12345678901234567890, 987654321), (0, 7)):
        expected = ((a + b) * 3 - (a // b)) ^ ((a % b) | 5) & ~b
        assert run(arithmetic, a, b) == expected & MASK
    assert run(shifted, 0x8001, 4) == ((0x8001 << 4) + (0x8001 >> 4) - 0x8001) & MASK


@pytest.mark.parametrize(("a", "b"), [(1, 2), (2, 1), (5, 5), (MASK, 1), (1, MASK), (1 << 63, (1 << 63) - 1)])
def test_comparisons_are_unsigned_but_slt(a: int, b: int, run: Any) -> None:
    signed = (a ^ 1 << 63) < (b ^ 1 << 63)
    flags = (a == b, a != b, a < b, a <= b, a > b, a >= b, signed)
    assert run(compared, a, b) == sum(1 << at for at, flag in enumerate(flags) if flag)


def test_casts_narrow_and_widen(run: Any) -> None:
    a = 0x1122334455667789
    assert run(narrowed, a) == ((a & 0xFF) + ((a & 0xFFFF) << 8) + ((a & 0xFFFFFFFF) << 24) + (a & 1)) & MASK
    assert run(widened, MASK, MASK) == MASK * MASK >> 64


def test_zeros_are_counted_from_both_ends(run: Any) -> None:
    assert run(counted, 0) == 64_000_000 + 64_000 + 256
    assert run(counted, 0x10) == 59_000_000 + 4_000 + 251


def test_bytes_are_swapped_and_bits_rotated(run: Any) -> None:
    a, n = 0x0123456789ABCDEF, 12
    rotated = (a << n | a >> 64 - n) & MASK
    assert run(turned, a, n) == rotated ^ int.from_bytes(a.to_bytes(8, "little"), "big")


def test_select_and_conditional_expressions(run: Any) -> None:
    assert [run(greater, a, b) for a, b in ((3, 4), (4, 3), (5, 5))] == [4 + 6, 4 + 6, 5 + 10]


def test_a_condition_may_be_known_while_translating(run: Any) -> None:
    assert [run(decided, a, b) for a, b in ((3, 4), (4, 3))] == [3 + 400 + 10_000, 4 + 300]


def test_a_truth_is_a_literal_too(run: Any) -> None:
    assert [run(compared_with_truth, a) for a in (5, 6)] == [1, 2]


def test_declared_types_and_constants_of_the_module(run: Any) -> None:
    assert run(declared) == 2 + 7


# -- memory and calls -------------------------------------------------------------------------------------------------


def test_fields_lie_one_behind_another_each_at_a_multiple_of_eight() -> None:
    assert {name: Point.offset(name) for name in ("x", "wide", "y", "next")} == {"x": 0, "wide": 8, "y": 40, "next": 48}
    assert Point.byte_size() == 56


def test_fields_are_read_and_written_through_pointers(run: Any) -> None:
    room = (ctypes.c_ubyte * Point.byte_size())()
    address = ctypes.addressof(room)
    ctypes.c_uint64.from_address(address).value = 37
    assert run(fields, address) == 84
    assert ctypes.c_uint64.from_address(address + 8 + 16).value == 42
    assert ctypes.c_uint32.from_address(address + 40).value == 42


def test_pointers_are_followed_and_may_point_at_nothing(run: Any) -> None:
    rooms = [(ctypes.c_uint64 * 7)(n * 11) for n in range(3)]
    rooms[0][6], rooms[1][6] = ctypes.addressof(rooms[1]), ctypes.addressof(rooms[2])
    assert run(followed, ctypes.addressof(rooms[0])) == 33
    rooms[0][6] = 0
    assert run(followed, ctypes.addressof(rooms[0])) == 0
    pair = (ctypes.c_uint64 * 2)(ctypes.addressof(rooms[1]), 5)
    assert run(through, ctypes.addressof(pair)) == 16


def test_memory_is_filled_copied_loaded_and_stored(run: Any) -> None:
    room = (ctypes.c_ubyte * 16)()
    assert run(memory, ctypes.addressof(room), 16) == int.from_bytes(bytes([7, 9, 7, 9, 7, 7, 7, 7]), "little")
    assert bytes(room) == bytes([7, 9, 7, 9] + [7] * 4 + [7, 9] + [7] * 6)


def test_functions_call_each_other_inlined_or_not(run: Any) -> None:
    assert run(calling, 5) == 31 + 3


def test_a_function_may_be_called_by_its_address(run: Any) -> None:
    callback = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_uint64)(lambda x: x * 2)
    assert run(asking, ctypes.cast(callback, ctypes.c_void_p).value, 21) == 43


def test_a_function_may_return_nothing(run: Any) -> None:
    room = ctypes.c_uint64(5)
    run(emptied, ctypes.addressof(room))
    assert room.value == 0


@pytest.mark.skipif(not division.TWO_CARRIES, reason="needs a processor that adds along two flags")
def test_rows_of_products_carry_to_their_ends(run: Any) -> None:
    rng = Random("rows")
    words = [0, 1, MASK, 1 << 255, (1 << 256) - 1, (1 << 256) - MASK, *(rng.getrandbits(256) for _ in range(20))]
    for x in words:
        for start in words:
            for limb in (0, 1, MASK, rng.getrandbits(64)):
                memory = ctypes.create_string_buffer(b"".join(each.to_bytes(32, "little") for each in (x, start)), 168)
                run(rows, ctypes.addressof(memory), limb)
                row = (x * limb + start).to_bytes(40, "little")
                assert memory.raw[64:] == row + row + row[:24], (hex(x), hex(start), hex(limb))


def test_a_struct_may_be_a_constant() -> None:
    table = Point.constant({"x": 1, "wide": 2 << 192 | 3, "y": 4, "next": 0})
    assert table.values == (1, 3, 0, 0, 2, 4, 0)


def test_intrinsics_are_not_for_python() -> None:
    for use in (lambda: load(u64, 0), lambda: bswap(1), lambda: clz(1), lambda: fill(0, 0, 0), lambda: local(u64, 1)):
        with pytest.raises(TypeError, match="only inside @native"):
            use()


# -- mistakes ---------------------------------------------------------------------------------------------------------


@native
def mixes(a: u64, b: u32) -> u64:
    return a + b


@native
def converts(a: u32) -> u64:
    return a


@native
def undeclared() -> u64:
    x = 5
    return u64(x)


@native
def excepting(a: u64) -> u64:
    try:
        return a
    finally:
        pass


@native
def unknown_field(p: Point) -> u64:
    return p.z


@native
def unknown_call(a: u64) -> u64:
    return len(a)  # type: ignore[arg-type]


@native
def runs_over_a_list(a: u64) -> u64:
    for i in range(a):
        a += i
    return a


@native
def not_a_number(a: u64) -> u64:
    return a + Point


@native
def no_table(a: u64) -> u64:
    return FUNCTIONS[a]


@native
def lambdas(a: u64) -> u64:
    return (lambda: a)()


@native
def chooses_between_literals(a: u64) -> u64:
    return 1 if a < 5 else 2


@native
def chooses_between_truths(a: u64) -> u64:
    return u64(True if a < 5 else False)  # noqa: SIM210


@native
def selects_between_literals(a: u64) -> u64:
    return select(a < 5, SEVEN, 2)


@native
def compares_literals_as_signed(a: u64) -> u64:
    return u64(slt(1, SEVEN))


@native
def declares_no_truth(a: u64) -> u64:
    x = True
    return a + x


@pytest.mark.parametrize(
    ("function", "line", "why"),
    [
        (mixes, 3, "i64 meets i32: a + b"),
        (converts, 3, "i32 where i64 is expected: a"),
        (undeclared, 3, "a literal needs a declared type"),
        (excepting, 3, "Try is not in the subset"),
        (unknown_field, 3, "no field 'z': p.z"),
        (unknown_call, 3, "len cannot be called here"),
        (runs_over_a_list, 3, "`for` runs over a range known while translating"),
        (not_a_number, 3, "Point is not a number"),
        (no_table, 3, "FUNCTIONS is neither local(...) nor a Table"),
        (chooses_between_literals, 3, "1 and 2 are both literals: one needs a type"),
        (chooses_between_truths, 3, "True and False are both literals: one needs a type"),
        (selects_between_literals, 3, "SEVEN and 2 are both literals: one needs a type"),
        (compares_literals_as_signed, 3, "1 and SEVEN are both literals: one needs a type"),
        (declares_no_truth, 3, "a literal needs a declared type"),
    ],
)
def test_a_mistake_names_the_function_and_the_line(function: Any, line: int, why: str) -> None:
    with pytest.raises(NativeError) as raised:
        function.define(ir.Module("bad"))
    assert str(raised.value) == f"{function.name}, line {line}: {why}"
