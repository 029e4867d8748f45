"""The fuzzer finds what a property forbids, keeps what reaches new code, and makes findings small."""

from __future__ import annotations

import random
import sys

import pytest

from fusevm import EVM, Batch, Call
from fusevm.batch import fuzz
from fusevm.batch.fuzz import jumps_of
from fusevm.batch.mutations import Mutator, smaller
from fusevm.evm.assembly import assemble
from fusevm.values import BadValue

fuzzing = sys.modules["fusevm.batch.fuzz"]  # the package has a function of that name
VAULT, ALICE, BOB = b"\xc0" * 20, b"\xa1" * 20, b"\xb0" * 20
# unlock(uint256) needs 0x2a, then break(uint256) more than 1000: slot 1 becomes 1
CODE = """
    PUSH1 0 CALLDATALOAD PUSH1 224 SHR
    DUP1 PUSH4 0x11111111 EQ PUSH2 @unlock JUMPI
    DUP1 PUSH4 0x22222222 EQ PUSH2 @break JUMPI
    PUSH1 0 PUSH1 0 REVERT
    unlock: JUMPDEST PUSH1 42 PUSH1 4 CALLDATALOAD EQ ISZERO PUSH2 @end JUMPI PUSH1 1 PUSH1 0 SSTORE STOP
    break: JUMPDEST PUSH1 0 SLOAD ISZERO PUSH2 @end JUMPI
      PUSH2 1000 PUSH1 4 CALLDATALOAD GT ISZERO PUSH2 @end JUMPI PUSH1 1 PUSH1 1 SSTORE
    end: JUMPDEST STOP
"""


def vault() -> EVM:
    evm = EVM(tier="auto")
    evm.set_code(VAULT, assemble(CODE))
    return evm


def data(selector: str, number: int) -> bytes:
    return bytes.fromhex(selector) + number.to_bytes(32, "big")


CORPUS = [[(VAULT, data("11111111", 40))], [(VAULT, data("22222222", 5))]]


def unbroken(evm: EVM, batch: Batch) -> bool:
    return evm.get_storage(VAULT, 1) == 0


def test_a_sequence_that_breaks_the_property_is_found_and_made_small() -> None:
    evm = vault()
    before = evm.state_root
    report = fuzz(evm, unbroken, corpus=CORPUS, sequences=20_000, seed=1)
    assert [call.data for call in report.findings[0].calls] == [data("11111111", 42), data("22222222", 1001)]
    assert report.findings[0].reason == "the property is False"
    assert evm.state_root == before


def test_without_a_way_to_break_it_nothing_is_found() -> None:
    report = fuzz(vault(), lambda evm, batch: True, corpus=CORPUS, sequences=300)
    assert report.findings == []
    assert report.sequences == 300
    assert report.calls >= 300
    assert 2 <= len(report.corpus) <= report.replayed < 300
    assert str(report).startswith("300 sequences, ")


def test_what_an_assertion_says_is_the_reason() -> None:
    def check(evm: EVM, batch: Batch) -> None:
        assert evm.get_storage(VAULT, 0) == 0, "unlocked"

    report = fuzz(vault(), check, corpus=CORPUS, sequences=20_000, seed=2)
    assert report.findings[0].reason == "unlocked"
    assert [call.data for call in report.findings[0].calls] == [data("11111111", 42)]


def test_the_same_seed_tries_the_same_sequences() -> None:
    first, second = (fuzz(vault(), unbroken, corpus=CORPUS, sequences=500, seed=9) for _ in range(2))
    assert (first.corpus, first.calls, first.coverage) == (second.corpus, second.calls, second.coverage)


GUARDED = """
    PUSH1 4 CALLDATALOAD PUSH32 0x1badb002deadbeef0123456789abcdef0123456789abcdef0123456789abcdef EQ ISZERO
    PUSH2 @end JUMPI PUSH1 1 PUSH1 1 SSTORE end: JUMPDEST STOP
"""


def guarded() -> EVM:
    evm = EVM(tier="auto")
    evm.set_code(VAULT, assemble(GUARDED))
    return evm


def test_a_number_that_only_the_code_knows_is_tried() -> None:
    report = fuzz(guarded(), unbroken, corpus=[[(VAULT, data("11111111", 0))]], sequences=2_000)
    assert bytes(report.findings[0].calls[0].data)[4:8].hex() == "1badb002"  # type: ignore[arg-type]


def test_without_the_numbers_of_the_code_it_is_not_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fuzzing, "_constants_of", lambda evm, corpus: [])
    report = fuzz(guarded(), unbroken, corpus=[[(VAULT, data("11111111", 0))]], sequences=2_000)
    assert report.findings == []


def test_what_uses_gas_in_a_new_way_is_changed_further_though_it_takes_no_new_jump() -> None:
    """slot 0 = data % 64 == 42, without a jump; then a number above 100 breaks it, without another."""
    code = """PUSH1 0 CALLDATALOAD PUSH1 224 SHR PUSH4 0x11111111 EQ PUSH2 @arm JUMPI
        PUSH1 0 SLOAD PUSH1 4 CALLDATALOAD PUSH1 100 LT MUL PUSH1 1 SSTORE STOP
        arm: JUMPDEST PUSH1 42 PUSH1 64 PUSH1 4 CALLDATALOAD MOD EQ PUSH1 0 SSTORE STOP"""
    evm = EVM(tier="auto")
    evm.set_code(VAULT, assemble(code))
    seen: list[tuple[Call, ...]] = []

    def nothing_new(evm: EVM, calls: tuple[Call, ...]) -> list[int]:
        seen.append(calls)
        return []

    report = fuzz(evm, unbroken, corpus=CORPUS, sequences=20_000, coverage=nothing_new)
    assert [bytes(call.data)[:4].hex() for call in report.findings[0].calls] == ["11111111", "22222222"]  # type: ignore[arg-type]
    assert report.corpus == []
    assert seen


def test_coverage_can_be_given() -> None:
    seen = []

    def coverage(evm: EVM, calls: tuple[Call, ...]) -> list[int]:
        seen.append(calls)
        return [len(calls)]

    report = fuzz(vault(), lambda evm, batch: None, corpus=CORPUS, sequences=200, coverage=coverage, longest=3)
    assert seen
    assert report.coverage <= {1, 2, 3}


def test_the_jumps_of_calls_are_where_they_went() -> None:
    evm = vault()
    taken = jumps_of(evm, (Call(VAULT, data("11111111", 42)),)) - jumps_of(evm, (Call(VAULT, data("11111111", 41)),))
    assert len(taken) == 1
    assert evm.hooks is None


def test_mutated_sequences_are_calls_of_the_same_contracts_by_known_callers() -> None:
    rng = random.Random(0)
    mutator = Mutator(rng, [ALICE, BOB], [1_000], longest=5)
    corpus = [(Call(VAULT, data("11111111", 1)),), (Call(VAULT, b"\x22" * 4), Call(VAULT, data("33333333", 7)))]
    made = [mutator.mutated(rng.choice(corpus), corpus) for _ in range(500)]
    assert {len(each) for each in made} <= {1, 2, 3, 4, 5}
    calls = [call for each in made for call in each]
    assert {call.to for call in calls} == {VAULT}
    assert {call.caller for call in calls} == {None, ALICE, BOB}
    assert {bytes(call.data)[:4].hex() for call in calls} == {"11111111", "22222222", "33333333"}  # type: ignore[arg-type]


def test_smaller_sequences_have_fewer_calls_or_smaller_words() -> None:
    calls = (Call(VAULT, data("11111111", 9)), Call(VAULT, b"\x22" * 4))
    for each in smaller(calls):
        assert len(each) == 1 or int.from_bytes(bytes(each[0].data)[4:], "big") < 9  # type: ignore[arg-type]


def test_a_corpus_without_calls_is_refused() -> None:
    with pytest.raises(BadValue, match="corpus: expected at least one sequence of calls"):
        fuzz(vault(), unbroken, corpus=[])
    with pytest.raises(BadValue, match="corpus: expected sequences of calls, got a call that is not in a list"):
        fuzz(vault(), unbroken, corpus=[b"\0"])
