"""Source maps of compiled Yul: every instruction knows what it was made from, and jumps know what they do."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import chosen, first, fixtures_folder
from fusevm.api import EVM
from fusevm.chain.environment import Block
from fusevm.codegen.source_map import debug_data
from fusevm.codegen.yul import CompiledObject, compile_object
from fusevm.evm.bytecode import instructions
from fusevm.evm.source_map import Mapped, compressed, decompressed
from fusevm.reference.hooks import Hooks, Step
from fusevm.yul.optimise import optimize
from fusevm.yul.syntax.ast import Object
from fusevm.yul.syntax.checks import check
from fusevm.yul.syntax.origins import NO_ORIGIN, Origin, source_names
from fusevm.yul.syntax.parser import parse_object

CORPUS = ["Amm", "Merkle", "Text", "Token", "Vault"]


@cache
def compiled(source: str | bytes, runs: int | None = 200) -> CompiledObject:
    tree, errors = check(source)
    assert tree is not None, errors
    return compile_object(tree, runs=runs)


def text_at(source: str, entry: Mapped) -> str:
    return source[entry.start : entry.start + entry.length]


def map_of(code: CompiledObject) -> str:
    return compressed(code.locations.values())


def parts_of(code: CompiledObject) -> Iterator[CompiledObject]:
    yield code
    for child in code.children.values():
        yield from parts_of(child)


@pytest.fixture(params=first(4, CORPUS))
def contract(request: pytest.FixtureRequest) -> Path:
    path = fixtures_folder(request.config) / "corpus" / f"{request.param}.yul"
    if not path.exists():
        pytest.skip(f"corpus not found at {path.parent} (set FUSEVM_FIXTURES)")
    return path


# -- locations --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("runs", [None, 200])
def test_an_instruction_comes_from_the_expression_it_computes(runs: int | None) -> None:
    source = "{ sstore(calldataload(7), add(caller(), timestamp())) }"
    code = compiled(source, runs)
    found = {each.name: text_at(source, code.locations[each.pc]) for each in instructions(code.code)}
    assert found["CALLDATALOAD"] == "calldataload(7)"
    assert found["ADD"] == "add(caller(), timestamp())"
    assert found["SSTORE"] == "sstore(calldataload(7), add(caller(), timestamp()))"
    assert found["STOP"] == source


def test_a_folded_value_comes_from_what_it_stands_for() -> None:
    source = "{ sstore(0, mul(calldataload(0), 32)) }"
    code = compiled(source)
    found = {each.name: text_at(source, code.locations[each.pc]) for each in instructions(code.code)}
    assert "MUL" not in found
    assert found["SHL"] == "mul(calldataload(0), 32)"


def test_inlined_code_comes_from_the_function_it_was_written_in() -> None:
    source = "{ sstore(0, f(calldataload(0))) function f(x) -> y { y := not(x) } }"
    code = compiled(source)
    found = {each.name: text_at(source, code.locations[each.pc]) for each in instructions(code.code)}
    assert found["NOT"] == "not(x)"


def test_moves_come_from_the_instruction_they_serve() -> None:
    source = "{ let a := sload(0) let b := sload(1) sstore(a, b) sstore(b, a) }"
    code = compiled(source)
    moves = [
        text_at(source, code.locations[each.pc])
        for each in instructions(code.code)
        if each.name.startswith(("DUP", "SWAP"))
    ]
    assert moves
    assert set(moves) <= {"sstore(a, b)", "sstore(b, a)"}


@pytest.mark.parametrize("runs", chosen([None, 200], [None, 0, 200]))
def test_every_instruction_of_a_contract_has_a_location(contract: Path, runs: int | None) -> None:
    tree, _ = check(contract.read_bytes())
    assert tree is not None
    declared = {number for obj in objects_in(tree) for number in source_names(obj.debug) or ()}
    for part in parts_of(compiled(contract.read_bytes(), runs)):
        wanted = [each.pc for each in instructions(part.code[: _end_of(part)])]
        assert list(part.locations) == wanted
        assert {entry.source for entry in part.locations.values()} <= declared
        assert all(entry.is_known and entry.length >= 0 for entry in part.locations.values())


def objects_in(obj: Object) -> Iterator[Object]:
    yield obj
    for child in obj.children:
        if isinstance(child, Object):
            yield from objects_in(child)


def _end_of(part: CompiledObject) -> int:
    last = max(part.locations)
    return last + next(each for each in instructions(part.code[last:])).size


def test_code_of_the_optimiser_still_knows_where_it_comes_from(contract: Path) -> None:
    if contract.stem not in ("Merkle", "Token"):
        pytest.skip("two are enough")
    tree, _ = check(contract.read_bytes())
    assert tree is not None
    for part in parts_of(compile_object(optimize(tree))):
        assert all(entry.is_known for entry in part.locations.values())


# -- @src comments ----------------------------------------------------------------------------------------------------


def test_a_comment_governs_everything_up_to_the_next_one() -> None:
    source = """/// @use-src 3:"x.sol", 7:"y.sol"
    object "A" { code {
        /// @src 3:10:20
        sstore(0, 1) sstore(1, /** @src 7:5:9 */ calldataload(0)) sstore(3, 4)
        /// @src -1:-1:-1
        sstore(5, 6)
        // @src 7:1:2
        sstore(7, 8)
    } }"""
    # What solc's own map says, but that it leaves the numbers of the sources empty and the final STOP, which stands
    # for the whole block, without origin.
    expected = "10:10:3:-:0;;;5:4:7;;10:10:3;;5:4:7;;;-1:-1:-1;;;;;;10:10:3"
    assert map_of(compiled(source, None)) == map_of(compiled(source)) == expected


@pytest.mark.parametrize(
    ("comment", "origin"),
    [
        ("/// @src 1:2:3", Origin(1, 2, 3)),
        ('/// @src 1:2:3  "let x := \\"a\\";"', Origin(1, 2, 3)),
        ("/// @ast-id 7 @src 1:2:3", Origin(1, 2, 3)),
        ("/// @src 1:2:3\n/// @src 4:5:6", Origin(4, 5, 6)),
        ("/** @src 1:2:3 */ /** @src 4:5:6 */", Origin(4, 5, 6)),
        ("/** @src 1:2:3 */ /** other */", NO_ORIGIN),
        ("// @src 1:2:3\n", NO_ORIGIN),
        ("/* @src 1:2:3 */", NO_ORIGIN),
        ("/// @src 1:2", NO_ORIGIN),
        ("/// @srcs 1:2:3", NO_ORIGIN),
        ("/// x@src 1:2:3", NO_ORIGIN),
        ("/// @src 1:2:99999999999999999999", NO_ORIGIN),
    ],
)
def test_origins_are_read_from_documentation_comments(comment: str, origin: Origin) -> None:
    tree = parse_object(f'/// @use-src 1:"a"\nobject "A" {{ code {{ {comment}\nstop() }} }}')
    assert tree.origins.at(tree.code.statements[0].location.start, *tree.code.location) == origin


def test_comments_of_one_object_say_nothing_of_another() -> None:
    tree = parse_object(
        """/// @use-src 1:"a"
        object "A" { code { /// @src 1:2:3
            stop() }
          /// @use-src 1:"a"
          object "B" { code { stop() /** @src 1:4:5 */ stop() } }
          /// @use-src 1:"a"
          object "C" { code { stop() } } }"""
    )
    _, inner, last = objects_in(tree)
    first, second = inner.code.statements
    assert inner.origins.at(first.location.start, *inner.code.location) == Origin(1, 4, 5)
    assert inner.origins.at(second.location.start, *inner.code.location) == Origin(1, 4, 5)
    assert last.origins.at(last.code.statements[0].location.start, *last.code.location) == NO_ORIGIN


def test_without_use_src_the_text_is_its_own_source() -> None:
    source = "{ /** @src 3:1:2 */ sstore(0, caller()) }"
    code = compiled(source)
    assert {text_at(source, entry) for entry in code.locations.values()} >= {"sstore(0, caller())"}
    assert {entry.source for entry in code.locations.values()} == {0}


def test_use_src_numbers_the_sources() -> None:
    assert source_names('0:"a.sol", 12:"b \\"c\\".sol"') == {0: "a.sol", 12: 'b "c".sol'}
    assert source_names("") == {}
    assert source_names(None) is None


# -- the compressed text ----------------------------------------------------------------------------------------------

entries = st.lists(
    st.builds(
        Mapped, st.integers(-1, 9), st.integers(-1, 5), st.integers(-1, 2), st.sampled_from("io-"), st.integers(0, 2)
    )
)


@given(entries)
@settings(max_examples=200)
def test_decompressing_gives_back_what_was_compressed(found: list[Mapped]) -> None:
    # One entry whose fields are all as before is an empty text, and so is none: solc's format cannot tell them apart.
    text = compressed(found)
    assert decompressed(text) == (found if text else [])


def test_a_map_of_solc_is_read() -> None:
    text = "288:21:0:-:0;306:1;293:15;:::i;:::-;285:1"
    assert decompressed(text) == [
        Mapped(288, 21, 0), Mapped(306, 1, 0), Mapped(293, 15, 0), Mapped(293, 15, 0, "i"), Mapped(293, 15, 0),
        Mapped(285, 1, 0),
    ]  # fmt: skip
    assert compressed(decompressed(text)) == text


@pytest.mark.parametrize("text", ["1:2:3:-:0:5", "1:2:3:x", "a:2"])
def test_what_is_not_a_source_map_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"source map|invalid literal"):
        decompressed(text)


def test_fields_as_in_the_entry_before_are_left_out(contract: Path) -> None:
    for part in parts_of(compiled(contract.read_bytes())):
        for one, two in pairwise(map_of(part).split(";")):
            assert not two or one != two
        assert decompressed(map_of(part)) == list(part.locations.values())


# -- jumps and functions ----------------------------------------------------------------------------------------------

FUNCTIONS = """{
    sstore(0, f(calldataload(0), 2)) sstore(1, f(calldataload(32), 3)) sstore(2, f(5, calldataload(64)))
    function f(a, b) -> c { for {} lt(a, b) { a := add(a, 1) } { c := add(mul(c, a), g(b)) } c := xor(c, g(a)) }
    function g(x) -> y { y := add(exp(x, x), sload(x)) if gt(x, 7) { y := g(sub(x, 1)) } sstore(y, x) }
}"""


@pytest.mark.parametrize("runs", [None, 0])
def test_functions_tell_where_they_begin_and_what_they_take(runs: int | None) -> None:
    code = compiled(FUNCTIONS, runs)
    data = debug_data(code.functions)
    assert {name: (each["parameterSlots"], each["returnSlots"]) for name, each in data.items()} == {
        "f": (2, 1), "g": (1, 1),
    }  # fmt: skip
    assert all(code.code[each["entryPoint"]] == 0x5B for each in data.values())


def balanced(part: CompiledObject, pcs: list[int]) -> bool:
    """Whether on this way through the code each return answers a call, and calls lead to functions."""
    entries, names = {each.pc for each in part.functions.values()}, dict.fromkeys(part.locations, "")
    names.update({each.pc: each.name for each in instructions(part.code) if each.pc in names})
    depth = 0
    for before, pc in pairwise(pcs):
        jump = part.locations[before].jump
        falls_into = pc in entries and names[before] != "JUMP" and jump == "-"
        if jump == "i" and pc not in entries:
            return False
        depth += (jump == "i" or falls_into) - (jump == "o")
        if depth < 0:
            return False
    return True


@pytest.mark.parametrize("runs", chosen([200], [None, 0, 200]))
def test_calls_and_returns_balance_wherever_a_contract_goes(contract: Path, runs: int | None) -> None:
    code = compiled(contract.read_bytes(), runs)
    assert code.runtime is not None
    facts: dict[str, Any] = json.loads(contract.with_suffix(".json").read_text())
    evm = EVM(tier="reference", block=Block(number=facts.get("number", 0), timestamp=facts.get("timestamp", 0)))
    for account in facts.get("fund", ()):
        evm.set_balance(account, 10**24)
    address = evm.deploy(code.code, caller=facts["deployer"], value=facts.get("deploy_value", 0)).address
    assert address is not None
    for call in facts["calls"]:
        pcs: list[int] = []

        def note(step: Step, pcs: list[int] = pcs) -> None:
            if step.depth == 1:
                pcs.append(step.pc)

        evm.hooks = Hooks(on_opcode=note)
        evm.call(address, call["data"], caller=call["caller"], value=call.get("value", 0))
        assert balanced(code.runtime, pcs)


def test_an_unmarked_return_would_be_noticed() -> None:
    code = compiled(FUNCTIONS, None)
    evm = EVM(tier="reference")
    evm.set_code("0x" + "c0" * 20, code.code)
    pcs: list[int] = []
    evm.hooks = Hooks(on_opcode=lambda step: pcs.append(step.pc))
    evm.call("0x" + "c0" * 20)
    assert balanced(code, pcs)
    marked = {pc: entry._replace(jump="o") if entry.jump == "i" else entry for pc, entry in code.locations.items()}
    assert not balanced(CompiledObject(code.name, code.code, {}, {}, {}, {}, marked, code.functions), pcs)
