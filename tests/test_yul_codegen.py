"""Yul to bytecode: it runs as the interpreter says, lays objects out, and names what it cannot reach."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from conftest import chosen
from fusevm import EVM, Block, Status
from fusevm.chain.environment import Context, Message
from fusevm.chain.outcome import Outcome
from fusevm.chain.state import State
from fusevm.codegen.yul import compile_object
from fusevm.evm.forks import LATEST
from fusevm.lab.yul.generate import random_program
from fusevm.yul import optimise
from fusevm.yul.execution.evm import run_message
from fusevm.yul.execution.host import LimitReached, Limits
from fusevm.yul.generate import StackTooDeep, fits
from fusevm.yul.optimise import optimize
from fusevm.yul.sequence import DEFAULT_SEQUENCE
from fusevm.yul.stack.reach import unreachable_variables
from fusevm.yul.syntax.ast import Block as YulBlock
from fusevm.yul.syntax.dialect import Dialect, dialect_for
from fusevm.yul.syntax.errors import YulError
from fusevm.yul.syntax.parser import parse_block, parse_object
from fusevm.yul.syntax.printer import print_block, print_object
from yulfixtures import YulFixture, load, parametrize

CALLER, ADDRESS, GAS = bytes(19) + b"\1", bytes(19) + b"\xc0", 3_000_000


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    parametrize(metafunc, "objectCompiler", "evmCodeTransform")


Effects = tuple[Status, bytes, dict[int, int], list[tuple[tuple[int, ...], bytes]]]


def effects_of_bytecode(source: str, calldata: bytes = b"", fork: str = "osaka") -> Effects:
    evm = EVM(fork=fork)
    evm.set_code(ADDRESS, compile_object(parse_object(source, dialect_for(fork)), dialect_for(fork)).code)
    result = evm.call(ADDRESS, calldata, caller=CALLER, gas=GAS)
    storage = {key: value for key, value in evm.state.account(ADDRESS).storage.items() if value}
    return result.status, result.output, storage, [(log.topics, log.data) for log in result.logs]


def effects_of_interpreter(source: str, calldata: bytes = b"", fork: str = "osaka") -> Effects:
    dialect = dialect_for(fork)
    obj = parse_object(source, dialect)
    compiled = compile_object(obj, dialect)
    state = State()
    state.set_code(ADDRESS, compiled.code)
    state.begin_transaction()
    message = Message(CALLER, ADDRESS, compiled.code, calldata, gas=GAS, code_address=ADDRESS)
    context = Context(dialect.fork, Block(), CALLER)
    try:
        outcome = run_message(obj, message, state, context, compiled.places, Limits(steps=20_000))
    except LimitReached:  # what never ends runs out of gas as bytecode
        outcome = Outcome(Status.HALT, 0)
    storage = {key: value for key, value in state.account(ADDRESS).storage.items() if value}
    return outcome.status, outcome.output, storage, [(log.topics, log.data) for log in state.logs]


def stored(source: str, calldata: bytes = b"", fork: str = "osaka") -> dict[int, int]:
    return effects_of_bytecode(source, calldata, fork)[2]


# -- behaviour --------------------------------------------------------------------------------------------------------


def test_every_source_of_the_suite_compiles(fixture: YulFixture) -> None:
    dialect = dialect_for(fixture.fork or LATEST)
    assert compile_object(parse_object(fixture.source, dialect), dialect).code


def test_every_source_of_the_suite_runs_as_interpreted(fixture: YulFixture) -> None:
    if "verbatim" in fixture.source or "setimmutable" in fixture.source or "gas()" in fixture.source:
        pytest.skip("verbatim, immutables and gas need bytecode")
    fork = (fixture.fork or LATEST).label
    expected = effects_of_interpreter(fixture.source, b"\0" * 31 + b"\5", fork)
    assert effects_of_bytecode(fixture.source, b"\0" * 31 + b"\5", fork) == expected


@pytest.mark.parametrize("fork", ["byzantium", "shanghai", "osaka"])
def test_functions_return_several_values_in_order(fork: str) -> None:
    source = """{
        function f(a, b, c) -> x, y, z { x := a y := b z := add(c, 1) if eq(a, 1) { leave } z := 99 }
        let p, q, r := f(1, 2, 3)
        sstore(1, p) sstore(2, q) sstore(3, r)
        p, q, r := f(4, 5, 6)
        sstore(4, p) sstore(5, q) sstore(6, r)
    }"""
    assert stored(source, fork=fork) == {1: 1, 2: 2, 3: 4, 4: 4, 5: 5, 6: 99}


def test_break_and_continue_leave_the_stack_as_it_was() -> None:
    source = """{
        let sum := 0
        for { let i := 0 let unused := 5 } lt(i, 10) { i := add(i, 1) } {
            let odd := and(i, 1)
            switch odd case 1 { let t := i if eq(t, 7) { break } } default { continue }
            sum := add(sum, i)
        }
        sstore(0, sum)
    }"""
    assert stored(source) == {0: 1 + 3 + 5}


def test_functions_may_be_nested_and_recursive() -> None:
    source = """{
        sstore(0, fib(10))
        function fib(n) -> r {
            function next(m) -> s { s := fib(sub(m, 1)) }
            r := n
            if gt(n, 1) { r := add(next(n), fib(sub(n, 2))) }
        }
    }"""
    assert stored(source) == {0: 55}


# -- random programs --------------------------------------------------------------------------------------------------


OPERATIONS = [
    *((name, 1) for name in ("iszero", "not", "calldataload", "sload")),
    *((name, 2) for name in ("add", "sub", "mul", "div", "sdiv", "lt", "xor", "shr", "byte", "signextend")),
    *(("addmod", 3), ("mulmod", 3), ("msize", 0), ("returndatasize", 0)),
]


class Programs:
    """Small random programs that end: bounded loops, functions that call only earlier ones."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.functions: list[tuple[str, int, int]] = []
        self.count = 0

    def program(self) -> str:
        functions = [self.function() for _ in range(self.random.randrange(4))]
        return "{ " + self.block_body([], 3, False, False) + " ".join(functions) + " }"

    def name(self, prefix: str = "v") -> str:
        self.count += 1
        return f"{prefix}{self.count}"

    def function(self) -> str:
        parameters = [self.name() for _ in range(self.random.randrange(4))]
        returns = [self.name() for _ in range(self.random.randrange(1, 3))]
        body = self.block_body([*parameters, *returns], 2, False, True)
        name = f"f{len(self.functions)}"
        self.functions.append((name, len(parameters), len(returns)))
        return f"function {name}({', '.join(parameters)}) -> {', '.join(returns)} {{ {body} }}"

    def expression(self, names: list[str], depth: int) -> str:
        pick = self.random.random()
        if depth == 0 or pick < 0.3:
            value = str(self.random.choice([0, 1, 2, 31, 32, 255, 2**160, 2**256 - 1]))
            return self.random.choice(names) if names and pick < 0.2 else value
        single = [function for function in self.functions if function[2] == 1]
        if single and pick < 0.45:
            name, parameters, _ = self.random.choice(single)
            return f"{name}({', '.join(self.expression(names, depth - 1) for _ in range(parameters))})"
        operation, operands = self.random.choice(OPERATIONS)
        return f"{operation}({', '.join(self.expression(names, depth - 1) for _ in range(operands))})"

    def block_body(self, outer: list[str], depth: int, in_loop: bool, in_function: bool) -> str:
        names = list(outer)
        statements = (self.statement(names, depth, in_loop, in_function) for _ in range(self.random.randrange(1, 6)))
        return " ".join(statements) + " "

    def statement(self, names: list[str], depth: int, in_loop: bool, in_function: bool) -> str:
        def body() -> str:
            return "{ " + self.block_body(names, depth - 1, in_loop, in_function) + "}"

        def value() -> str:
            return self.expression(names, 2)

        pick = self.random.random()
        if depth > 0 and pick < 0.12:
            return f"if {value()} {body()}"
        if depth > 0 and pick < 0.2:
            default = f"default {body()}" if self.random.random() < 0.5 else ""
            return f"switch {value()} case 0 {body()} case 1 {body()} {default}"
        if depth > 0 and pick < 0.28:
            counter = self.name("i")  # nothing assigns to an i: the loop ends
            inner = self.block_body([*names, counter], depth - 1, True, in_function)
            return f"for {{ let {counter} }} lt({counter}, 3) {{ {counter} := add({counter}, 1) }} {{ {inner} }}"
        if pick < 0.32 and in_loop:
            return self.random.choice(["break", "continue"])
        if pick < 0.34 and in_function:
            return "leave"
        if pick < 0.36:
            return self.random.choice(["stop()", "revert(0, 32)", "return(0, 64)"])
        if pick < 0.6:
            several = [function for function in self.functions if function[2] == 2]
            text, fresh = value(), [self.name()]
            if several and pick < 0.45:
                name, parameters, _ = self.random.choice(several)
                text, fresh = f"{name}({', '.join(value() for _ in range(parameters))})", [self.name(), self.name()]
            names += fresh
            return f"let {', '.join(fresh)} := {text}"
        targets = [name for name in names if name[0] == "v"]
        if pick < 0.75 and targets:
            return f"{self.random.choice(targets)} := {value()}"
        return self.random.choice(
            [
                f"sstore({value()}, {value()})",
                f"mstore(and({value()}, 0xff), {value()})",
                f"log1(0, 64, {value()})",
                f"pop(call(10000, 4, 0, 0, and({value()}, 0x3f), 0x20, 0x40))",
            ]
        )


@pytest.mark.parametrize("seed", range(150))
def test_random_programs_run_as_interpreted(seed: int) -> None:
    source = Programs(seed).program()
    calldata = random.Random(seed).randbytes(64)
    try:
        expected = effects_of_interpreter(source, calldata)
    except StackTooDeep:
        return
    assert effects_of_bytecode(source, calldata) == expected, source


# -- objects ----------------------------------------------------------------------------------------------------------


def test_a_deployed_object_answers() -> None:
    source = """object "A" {
        code { datacopy(0, dataoffset("A_deployed"), datasize("A_deployed")) return(0, datasize("A_deployed")) }
        object "A_deployed" { code { mstore(0, 42) return(0, 32) } }
    }"""
    compiled = compile_object(parse_object(source))
    evm = EVM()
    deployed = evm.deploy(compiled.code)
    assert compiled.runtime is not None
    assert deployed.address is not None
    assert evm.call(deployed.address).output == (42).to_bytes(32, "big")


def test_immutables_are_filled_in_where_they_are_read() -> None:
    source = """object "A" {
        code {
            datacopy(64, dataoffset("R"), datasize("R"))
            setimmutable(64, "x", 7) setimmutable(64, "unused", 8)
            return(64, datasize("R"))
        }
        object "R" { code { mstore(0, add(loadimmutable("x"), loadimmutable("x"))) return(0, 32) } }
    }"""
    evm = EVM()
    deployed = evm.deploy(compile_object(parse_object(source)).code)
    assert deployed.address is not None
    assert evm.call(deployed.address).output == (14).to_bytes(32, "big")


def test_data_and_own_size_are_where_the_code_says() -> None:
    source = """object "A" {
        code { sstore(0, datasize("A")) sstore(1, dataoffset("A")) codecopy(0, dataoffset("d"), 4) sstore(2, mload(0)) }
        data "d" "abcd"
    }"""
    storage = stored(source)
    assert storage[0] == len(compile_object(parse_object(source)).code)
    assert storage[2] == int.from_bytes(b"abcd".ljust(32, b"\0"), "big")


@pytest.mark.parametrize("padding", [0, 200, 230, 240, 250, 70_000])
def test_references_are_as_wide_as_they_must_be(padding: int) -> None:
    source = f"""{{
        if calldatasize() {{ verbatim_0i_0o(hex"{"5b" * padding}") }}
        sstore(0, f()) function f() -> r {{ r := 7 }}
    }}"""
    if padding == 0:
        source = source.replace('verbatim_0i_0o(hex"")', "")
    assert stored(source) == {0: 7}


def test_libraries_are_linked_or_listed() -> None:
    obj = parse_object('{ sstore(0, linkersymbol("l.sol:L")) }')
    unlinked = compile_object(obj)
    (place,) = unlinked.libraries["l.sol:L"]
    linked = compile_object(obj, libraries={"l.sol:L": 0xABC})
    assert linked.libraries == {}
    assert linked.code[place : place + 20] == (0xABC).to_bytes(20, "big")


def test_verbatim_code_stands_as_it_is() -> None:
    assert stored('{ sstore(0, verbatim_2i_1o(hex"03", 10, 4)) }') == {0: 6}


def test_two_readers_of_immutables_are_refused() -> None:
    source = """object "A" { code { setimmutable(0, "x", 1) }
        object "B" { code { sstore(0, loadimmutable("x")) } } object "C" { code { sstore(0, loadimmutable("x")) } } }"""
    with pytest.raises(YulError, match="more than one"):
        compile_object(parse_object(source))


# -- out of reach -----------------------------------------------------------------------------------------------------


def test_too_deep_names_function_and_variables() -> None:
    lets = " ".join(f"let v{i} := sload({i})" for i in range(22))
    uses = " ".join(f"sstore({i + 1}, add(v{i}, mul(v{21 - i}, v{i * 7 % 22})))" for i in range(22))
    with pytest.raises(StackTooDeep) as caught:
        compile_object(parse_object(f"{{ f() function f() {{ {lets} {uses} }} }}"))
    assert caught.value.unreachable == {"f": [f"v{i}" for i in range(7)]}
    assert str(caught.value) == "yul: stack too deep in function 'f': cannot reach v0, v1, v2, v3, v4, v5, v6"


def test_what_is_out_of_reach_goes_to_memory_behind_a_guard() -> None:
    lets = " ".join(f"let v{i} := calldataload({i})" for i in range(24))
    uses = " ".join(f"sstore({i}, v{i})" for i in range(24))
    calldata = bytes(range(1, 60))
    storage = stored(f"{{ mstore(64, memoryguard(128)) {lets} {uses} }}", calldata)
    assert storage == {i: int.from_bytes(calldata[i : i + 32], "big") for i in range(24)}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("stub", {"f": ["a1"]}),
        ("tree", {"f": ["a1"], "g": ["a1"], "h": ["a2", "a1"], "i": ["a1"]}),
        ("verbatim_many_returns", {"": ["a1"]}),
        ("verbatim_many_arguments", {"": [f"a_{i}" for i in range(12, 0, -1)]}),
        ("function_arg", {"f": ["a1"]}),
    ],
)
def test_what_is_out_of_reach_is_what_the_suite_moves_to_memory(
    fixtures_dir: Path, name: str, expected: dict[str, list[str]]
) -> None:
    fixture = load(fixtures_dir / "yul_tests" / "yulOptimizerTests" / "stackLimitEvader" / f"{name}.yul")
    assert unreachable_variables(parse_block(fixture.source)) == expected


def test_a_function_with_too_many_parameters_and_returns_is_reported() -> None:
    names = [f"r{i}" for i in range(17)]
    source = f"{{ function f() -> {', '.join(names)} {{ }} }}"
    assert unreachable_variables(parse_block(source)) == {"f": []}


# -- the corpus -------------------------------------------------------------------------------------------------------


MAX_CODE = 24_576
CONTRACTS = {
    "corpus": ("Amm", "Merkle", "Nft", "Numbers", "Text", "Timelock", "Token", "Vault"),
    "corpus_new": ("Gov", "Machine", "Orders", "SoladySort"),
}


SHORT = {("corpus", name) for name in ("Amm", "Merkle", "Numbers", "Text", "Token")}


@pytest.mark.parametrize(
    ("folder", "name"), chosen(SHORT, [(folder, name) for folder, names in CONTRACTS.items() for name in names])
)
@pytest.mark.parametrize("suffix", [".yul", ".opt.yul"])
def test_the_corpus_answers_every_call(fixtures_dir: Path, folder: str, name: str, suffix: str) -> None:
    facts = json.loads((fixtures_dir / folder / f"{name}.json").read_text())
    compiled = compile_object(parse_object((fixtures_dir / folder / f"{name}{suffix}").read_text()))
    if compiled.runtime is not None and len(compiled.runtime.code) > MAX_CODE:
        pytest.skip("not optimised, it is larger than a contract may be")
    evm = EVM(block=Block(number=facts.get("number", 0), timestamp=facts.get("timestamp", 0)))
    for account in facts.get("fund", ()):
        evm.set_balance(account, 10**24)
    deployed = evm.deploy(compiled.code, caller=facts["deployer"], value=facts.get("deploy_value", 0))
    assert deployed.address is not None
    for call in facts["calls"]:
        result = evm.call(deployed.address, call["data"], caller=call["caller"], value=call.get("value", 0))
        assert result.ok == call["expect"]["success"], call["sig"]
        if call["expect"]["output"] is not None:
            assert "0x" + result.output.hex() == call["expect"]["output"], call["sig"]


# -- several ways to fit on the stack ---------------------------------------------------------------------------------


def nested_calls(depth: int) -> str:
    calls = "f(" * depth + "a" + ")" * depth
    return f"{{ let a := calldataload(0) sstore(a, {calls}) function f(x) -> y {{ y := add(sload(x), add(x, 1)) }} }}"


@pytest.mark.parametrize("depth", [15, 16, 17, 30, 300, 500])
def test_calls_nested_around_a_variable_compile(depth: int) -> None:
    assert stored(nested_calls(depth)) == {0: depth}


def test_a_long_chain_in_one_expression_does_not_overflow_the_stack() -> None:
    lines = " ".join(f"let x{i + 1} := xor(div(x{i}, 1), {i + 1})" for i in range(1_500))
    program = parse_object(f"{{ let x0 := calldataload(0) {lines} sstore(0, x1500) }}")
    expected = 0
    for i in range(1_500):
        expected ^= i + 1
    joined = print_object(optimize(program, steps="[j]:"))
    evm = EVM()
    evm.set_code(ADDRESS, compile_object(optimize(program, steps="[j]:")).code)
    assert "let" not in joined
    assert evm.call(ADDRESS, caller=CALLER, gas=GAS).ok
    assert evm.state.account(ADDRESS).storage[0] == expected


@pytest.mark.parametrize("guard", ["", "pop(memoryguard(128))"])
def test_a_variable_that_the_plain_generator_cannot_reach_is_moved_though_nothing_is_rewritten(guard: str) -> None:
    count = 24
    reads = " ".join(f"let x{i} := calldataload({32 * i})" for i in range(count))
    total = " ".join(f"sstore({i}, sub(x{i}, x{(5 * i + 7) % count}))" for i in range(count))
    program = parse_object(f"{{ {guard} {reads} {total} }}")
    evm = EVM()
    evm.set_code(ADDRESS, compile_object(program, runs=None).code)
    words = [i * i for i in range(count)]
    assert unreachable_variables(program.code)[""]
    assert evm.call(ADDRESS, caller=CALLER, gas=GAS, data=b"".join(each.to_bytes(32) for each in words)).ok
    found = evm.state.account(ADDRESS).storage
    assert [found.get(i, 0) for i in range(count)] == [
        (words[i] - words[(5 * i + 7) % count]) % 2**256 for i in range(count)
    ]


@pytest.mark.parametrize("seed", range(60))
def test_what_compiles_plain_compiles_optimised(seed: int) -> None:
    program = parse_object(random_program(seed))
    if fits(program.code, dialect_for()):
        assert fits(optimize(program).code, dialect_for())


def test_a_text_that_would_not_compile_is_optimised_less(monkeypatch: pytest.MonkeyPatch) -> None:
    program = parse_object("{ sstore(0, f(calldataload(0))) function f(x) -> y { y := add(x, mul(x, 2)) } }")
    plain, best = print_object(program), print_object(optimize(program))
    tried: list[str] = []

    def only_plain(code: YulBlock, dialect: Dialect) -> bool:
        tried.append(print_block(code))
        return "function" in tried[-1]

    monkeypatch.setattr(optimise, "fits", only_plain)
    result = print_object(optimize(program))
    assert "function f(x) -> y" in result
    assert result != best
    assert tried[:2] == [best, plain]
    assert print_object(optimize(program, steps=DEFAULT_SEQUENCE)) == best


def test_functions_that_are_never_called_take_no_memory() -> None:
    lets = " ".join(f"let v{i} := calldataload({i})" for i in range(24))
    uses = " ".join(f"sstore({i}, v{i})" for i in range(24))
    assert stored(f"{{ mstore(64, memoryguard(128)) sstore(99, 1) function f() {{ {lets} {uses} }} }}") == {99: 1}
