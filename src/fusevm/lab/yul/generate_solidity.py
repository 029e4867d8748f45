"""Helper functions as compilers of high-level languages write them, for random contracts: what the back end is for."""

from __future__ import annotations

import re

# name: source. A helper may call others of this table.
HELPERS = {
    "panic_11": "function panic_11() { mstore(0, shl(224, 0x4e487b71)) mstore(4, 0x11) revert(0, 0x24) }",
    "panic_12": "function panic_12() { mstore(0, shl(224, 0x4e487b71)) mstore(4, 0x12) revert(0, 0x24) }",
    "panic_32": "function panic_32() { mstore(0, shl(224, 0x4e487b71)) mstore(4, 0x32) revert(0, 0x24) }",
    "refuse": "function refuse() { revert(0, 0) }",
    "add_256": "function add_256(x, y) -> sum { sum := add(x, y) if gt(x, sum) { panic_11() } }",
    "sub_256": "function sub_256(x, y) -> diff { diff := sub(x, y) if gt(diff, x) { panic_11() } }",
    "mul_256": """function mul_256(x, y) -> product {
        let raw := mul(x, y)
        product := raw
        if iszero(or(iszero(x), eq(y, div(product, x)))) { panic_11() }
    }""",
    "add_8": """function add_8(x, y) -> sum {
        x := clean_8(x) y := clean_8(y)
        sum := add(x, y)
        if gt(sum, 0xff) { panic_11() }
    }""",
    "add_signed": """function add_signed(x, y) -> sum {
        sum := add(x, y)
        if or(and(iszero(slt(x, 0)), slt(sum, y)), and(slt(x, 0), iszero(slt(sum, y)))) { panic_11() }
    }""",
    "sub_128": """function sub_128(x, y) -> diff {
        x := clean_128(x) y := clean_128(y)
        diff := sub(x, y)
        if gt(diff, 0xffffffffffffffffffffffffffffffff) { panic_11() }
    }""",
    "div_256": "function div_256(x, y) -> r { if iszero(y) { panic_12() } r := div(x, y) }",
    "mod_256": "function mod_256(x, y) -> r { if iszero(y) { panic_12() } r := mod(x, y) }",
    "increment": "function increment(x) -> y { if eq(x, not(0)) { panic_11() } y := add(x, 1) }",
    "clean_8": "function clean_8(x) -> y { y := and(x, 0xff) }",
    "clean_128": "function clean_128(x) -> y { y := and(x, 0xffffffffffffffffffffffffffffffff) }",
    "clean_160": "function clean_160(x) -> y { y := and(x, 0xffffffffffffffffffffffffffffffffffffffff) }",
    "clean_bool": "function clean_bool(x) -> y { y := iszero(iszero(x)) }",
    "clean_int16": "function clean_int16(x) -> y { y := signextend(1, x) }",
    "check_160": "function check_160(x) { if iszero(eq(x, clean_160(x))) { revert(0, 0) } }",
    "check_bool": "function check_bool(x) { if iszero(eq(x, clean_bool(x))) { revert(0, 0) } }",
    "check_int16": "function check_int16(x) { if iszero(eq(x, clean_int16(x))) { revert(0, 0) } }",
    "decode_256": "function decode_256(at, end) -> x { x := calldataload(at) }",
    "decode_160": "function decode_160(at, end) -> x { x := calldataload(at) check_160(x) }",
    "decode_bool": "function decode_bool(at, end) -> x { x := calldataload(at) check_bool(x) }",
    "decode_1": """function decode_1(head, end) -> x {
        if slt(sub(end, head), 32) { refuse() }
        x := decode_256(add(head, 0), end)
    }""",
    "decode_2": """function decode_2(head, end) -> x, y {
        if slt(sub(end, head), 64) { refuse() }
        { let offset := 0 x := decode_160(add(head, offset), end) }
        { let offset := 32 y := decode_256(add(head, offset), end) }
    }""",
    "decode_3": """function decode_3(head, end) -> x, y, z {
        if slt(sub(end, head), 96) { refuse() }
        x := decode_256(head, end) y := decode_256(add(head, 32), end) z := decode_bool(add(head, 64), end)
    }""",
    "decode_bytes": """function decode_bytes(head, end) -> at, length {
        if slt(sub(end, head), 32) { refuse() }
        let offset := calldataload(head)
        if gt(offset, 0xffffffffffffffff) { refuse() }
        at := add(head, offset)
        if iszero(slt(add(at, 0x1f), end)) { refuse() }
        length := calldataload(at)
        if gt(length, 0xffffffffffffffff) { refuse() }
        at := add(at, 32)
        if gt(add(at, mul(length, 1)), end) { refuse() }
    }""",
    "mapping": """function mapping(slot, key) -> at {
        mstore(0, clean_160(key)) mstore(0x20, slot) at := keccak256(0, 0x40)
    }""",
    "round_up": "function round_up(x) -> y { y := and(add(x, 31), not(31)) }",
    "allocate": """function allocate(size) -> at {
        at := mload(64)
        let next := add(at, round_up(size))
        if or(gt(next, 0xffffffffffffffff), lt(next, at)) { panic_32() }
        mstore(64, next)
    }""",
    "encode_1": "function encode_1(head, x) -> tail { tail := add(head, 32) mstore(add(head, 0), x) }",
    "encode_2": """function encode_2(head, x, y) -> tail {
        tail := add(head, 64) mstore(head, clean_160(x)) mstore(add(head, 32), y)
    }""",
    "extract": "function extract(word, offset) -> x { x := clean_8(shr(mul(offset, 8), word)) }",
    "update": """function update(word, offset, x) -> y {
        let bits := mul(offset, 8)
        let mask := shl(bits, 0xff)
        y := or(and(word, not(mask)), and(shl(bits, x), mask))
    }""",
    "at_index": """function at_index(slot, i) -> at {
        let length := sload(slot)
        if iszero(lt(i, length)) { panic_32() }
        at := add(keccak_of(slot), i)
    }""",
    "keccak_of": "function keccak_of(slot) -> at { mstore(0, slot) at := keccak256(0, 0x20) }",
    "power": """function power(base, exponent) -> r {
        r := 1
        for { } gt(exponent, 1) { } {
            if gt(base, div(not(0), base)) { panic_11() }
            if and(exponent, 1) { r := mul(r, base) }
            base := mul(base, base)
            exponent := div(exponent, 2)
        }
        if gt(r, div(not(0), base)) { panic_11() }
        r := mul(r, base)
    }""",
    "root": """function root(x) -> r {
        if x {
            let next := add(shr(1, x), 1)
            r := x
            for { } lt(next, r) { } { r := next next := shr(1, add(div(x, next), next)) }
        }
    }""",
}
_CALLS = {name: set(re.findall(r"\b(\w+)\(", text)) & HELPERS.keys() - {name} for name, text in HELPERS.items()}

ARITHMETIC = ("add_256", "sub_256", "mul_256", "add_8", "add_signed", "sub_128", "div_256", "mod_256")
CLEANING = ("clean_8", "clean_128", "clean_160", "clean_bool", "clean_int16", "round_up")


def with_what_they_call(names: set[str]) -> list[str]:
    """The sources of these helpers and of everything they call."""
    found, work = set(names), list(names)
    while work:
        for callee in _CALLS[work.pop()] - found:
            found.add(callee)
            work.append(callee)
    return [HELPERS[name] for name in sorted(found)]
