"""What does not fit on the stack at first: the function concerned is compiled with less, never the whole object."""

from __future__ import annotations

import json
from random import Random

import pytest
from typer.testing import CliRunner

from fusevm import EVM
from fusevm.cli.yul import app
from fusevm.codegen import backend
from fusevm.codegen.yul import CompiledObject, StepOrder, compile_object
from fusevm.lab.yul.compiled import CompiledTally, check
from fusevm.lab.yul.generate_contracts import YulContract
from fusevm.lab.yul.generate_deep import deep_contract
from fusevm.yul.generate import StackTooDeep
from fusevm.yul.syntax.parser import parse_object

HERE = "0x" + "c0" * 20
PRIME = 21888242871839275222246405745257275088548364400416034343698204186575808495617


def poseidon(rounds: int) -> str:
    """Straight-line code as Poseidon's: three words, mixed by products with constants, all modulo one prime."""
    rng, lines = Random(1), [f"let s{at} := calldataload({32 * at})" for at in range(3)]
    for number in range(rounds):
        lines += [f"s{at} := addmod(s{at}, {rng.getrandbits(253)}, {PRIME})" for at in range(3)]
        lines.append(f"s0 := mulmod(s0, mulmod(s0, s0, {PRIME}), {PRIME})")
        for at in range(3):
            products = [f"mulmod(s{each}, {rng.getrandbits(253)}, {PRIME})" for each in range(3)]
            sums = f"addmod(addmod({products[0]}, {products[1]}, {PRIME}), {products[2]}, {PRIME})"
            lines.append(f"let n{number}_{at} := {sums}")
        lines += [f"s{at} := n{number}_{at}" for at in range(3)]
    return "{ " + " ".join(lines) + " mstore(0, s0) mstore(32, s1) mstore(64, s2) return(0, 96) }"


# Many sums that are used twice, far apart: kept on the stack they do not fit, made again they do.
FAR = " ".join(f"sstore({at}, mul(add(calldataload(0), {at + 7}), 3))" for at in range(24))
SHARED = "{ " + FAR + " " + FAR.replace("sstore(", "tstore(") + " }"
CALLED = """{
    sstore(0, f(calldataload(0))) sstore(1, f(calldataload(32))) sstore(2, g(calldataload(64)))
    function f(a) -> r { r := add(a, 1) }
    function g(a) -> r { r := mul(a, 3) }
}"""


def run(compiled: CompiledObject, data: bytes) -> bytes:
    evm = EVM()
    evm.set_code(HERE, compiled.code)
    result = evm.call(HERE, data)
    assert result.ok
    return result.output


@pytest.mark.parametrize("rounds", [10, 100])
def test_long_straight_code_shares_its_prime_all_the_way(rounds: int) -> None:
    tree = parse_object(poseidon(rounds))
    compiled, plain = compile_object(tree, order=StepOrder.AS_WRITTEN), compile_object(tree, runs=None)
    assert compiled.notes == ()
    assert compiled.code.count(PRIME.to_bytes(32, "big")) == 1
    assert len(compiled.code) < 0.5 * len(plain.code)
    data = bytes(31) + b"\x01" + bytes(31) + b"\x02" + bytes(31) + b"\x03"
    assert run(compiled, data) == run(plain, data)


def test_values_that_are_used_far_apart_do_not_keep_code_from_being_compiled() -> None:
    compiled = compile_object(parse_object(SHARED))
    assert not any("as it stands" in note for note in compiled.notes)
    found = check(YulContract(SHARED, ((bytes(32), 0), (b"\xff" * 32, 0))), CompiledTally())
    assert found is None or "gas was" in found


def nested(operands: list[str]) -> str:
    """Sums whose operands are evaluated from the last to the first."""
    return operands[0] if len(operands) == 1 else f"sub({operands[0]}, {nested(operands[1:])})"


# Words between calls: each sum takes the last of two words as soon as it is computed.
BETWEEN = [f"f({at}, 2)" if at % 3 == 0 else f"{'s' if at % 3 == 1 else 'm'}load({32 * at})" for at in range(24)]
BETWEEN_CALLS = f"""{{
    sstore(0, {nested(BETWEEN)})
    function f(n, m) -> r {{ r := sload(n) sstore(n, add(r, 1)) mstore(n, m) if gt(r, n) {{ r := f(add(n, 2), r) }} }}
}}"""
# Words that are all read before a write, and used afterwards in another order.
READ_BEFORE = " ".join(f"let w{at} := sload({at})" for at in range(18)) + (
    f"sstore(w3, w7) sstore(1000, {nested([f'w{at * 7 % 18}' for at in range(18)])}) sstore(1001, w0) sstore(1002, w1)"
)


@pytest.mark.parametrize("source", [BETWEEN_CALLS, f"{{ {READ_BEFORE} }}"])
def test_words_in_the_order_of_their_use_fit_without_memory(source: str) -> None:
    compiled = compile_object(parse_object(source))
    assert compiled.notes == ()
    assert check(YulContract(source, ((bytes(32), 0), (b"\xff" * 32, 0))), CompiledTally()) is None


# Found by `beside_solc --deep`: refused, or translated as they stood, though solc compiles them. A call of eight
# operands over fourteen words (1015), reloads that were made too early (1065), recursion with and without a memoryguard
# (1153, 1240, 2019, 2266).
@pytest.mark.parametrize("seed", [1015, 1065, 1153, 1240, 2019, 2266])
def test_programs_that_hardly_fit_are_compiled_by_all_passes(seed: int) -> None:
    program = deep_contract(seed)
    assert not any("as it stands" in note for note in compile_object(parse_object(program.source)).notes)
    found = check(program, CompiledTally(), runs=(200,))
    assert found is None or "gas was" in found


class _Refuses:
    """Finds that a function does not fit as long as something is inlined into it, or equal values are shared there."""

    def __init__(self, name: str, unshared: bool) -> None:
        self.name, self.unshared, self.right = name, unshared, backend.run_passes

    def __call__(self, work: backend.Work, steps: tuple[object, ...]) -> None:
        if steps is backend.SCHEDULE and self.name not in (work.unshared if self.unshared else work.apart):
            raise StackTooDeep({self.name: []})
        self.right(work, steps)  # type: ignore[arg-type]


@pytest.mark.parametrize("unshared", [False, True])
def test_only_the_function_that_does_not_fit_is_compiled_with_less(
    unshared: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backend, "run_passes", _Refuses("", unshared))
    compiled = compile_object(parse_object(CALLED), runs=10_000, order=StepOrder.AS_WRITTEN)
    (note,) = compiled.notes
    assert note.startswith("the main code does not fit on the stack with everything shared: nothing is inlined into it")
    assert note.endswith("computed again") == unshared
    assert set(compiled.functions) == {"f", "g"}  # which are inlined otherwise
    found = check(YulContract(CALLED, ((bytes(96), 0),)), CompiledTally())
    assert found is None or "gas was" in found


def test_the_command_says_what_was_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backend, "run_passes", _Refuses("", False))
    result = CliRunner().invoke(app, ["compile", "-", "--bin", "--runs", "10000"], input=CALLED)
    assert result.stderr.startswith("fusevm: the main code does not fit on the stack with everything shared: ")
    told = json.loads(CliRunner().invoke(app, ["compile", "-", "--json"], input=CALLED).stdout)
    assert len(told["notes"]) == 1


def test_code_that_is_translated_as_it_stands_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(*_: object) -> None:
        raise StackTooDeep({})

    monkeypatch.setattr(backend, "run_passes", refuses)
    result = CliRunner().invoke(app, ["compile", "-", "--bin"], input=CALLED)
    assert "translated as it stands, because its values do not fit on the stack" in result.stderr
    assert result.stdout.strip() == compile_object(parse_object(CALLED), runs=None).code.hex()
