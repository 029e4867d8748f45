"""JUMPI and hops: blocks that only jump on are passed over where a JUMPI goes to them, and cost what they cost."""

from __future__ import annotations

import random

import pytest

from conftest import first
from fusevm.evm.assembly import assemble
from fusevm.evm.bytecode import jumpdests
from fusevm.evm.forks import LATEST
from fusevm.native.emit.build import library
from fusevm.native.host import engine as native_engine
from fusevm.schedule.build import ScheduleUnit, build_schedule
from fusevm.schedule.sections import sections_of
from fusevm.schedule.threading import hops_in, threaded
from nativeprograms import Case, agreed, agreed_at_every_gas

RETURN = " PUSH0 MSTORE PUSH1 32 PUSH0 RETURN"
TIERS = ("native", "native-unfused", "lockstep")
HOP = "JUMPDEST PUSH2 @{} JUMP"
HOP_BY_JUMPI = "JUMPDEST PUSH1 1 PUSH2 @{} JUMPI"  # falls through to what stands next if it were not taken


def units_of(program: str) -> list[ScheduleUnit]:
    return build_schedule(assemble(program), LATEST, library().handlers, keep_units=True).units


def chain(forms: list[str], condition: str = "CALLDATASIZE") -> str:
    """A JUMPI to a chain of hops of these forms, which ends at `end`."""
    hops = " ".join(f"h{n}: {form.format(f'h{n + 1}')} INVALID" for n, form in enumerate(forms))
    last = f"h{len(forms)}"
    return f"{condition} PUSH2 @h0 JUMPI PUSH1 3 {RETURN} {hops} {last}: JUMPDEST PUSH1 5 {RETURN}"


@pytest.mark.parametrize("data", [b"", b"1"])
@pytest.mark.parametrize("forms", [[HOP], [HOP, HOP], [HOP_BY_JUMPI], [HOP, HOP_BY_JUMPI, HOP], [HOP_BY_JUMPI] * 5])
def test_a_jumpi_to_hops_costs_the_hops_where_it_is_taken_and_nothing_where_not(forms: list[str], data: bytes) -> None:
    seen = agreed_at_every_gas(Case(chain(forms), data=data))
    cost = sum(12 if form is HOP else 1 + 3 + 3 + 10 for form in forms)
    ahead, after = 2 + 3 + 10, 3 + (2 + 3 + 3 + 2 + 3)
    assert (seen.word, seen.gas_used) == ((5, ahead + cost + 1 + after) if data else (3, ahead + after))


def test_a_jumpi_to_hops_is_one_handler_that_goes_to_their_end() -> None:
    program = chain([HOP, HOP], "CALLDATASIZE ISZERO")
    jump = next(unit for unit in units_of(program) if unit.sequence[-1] == "JUMPI@HOP")
    assert jump.sequence[-2:] == ("ISZERO", "JUMPI@HOP")
    code = assemble(program)
    dests = jumpdests(code)
    hops = hops_in(threaded(sections_of(code, LATEST, library().handlers.native), dests), dests)
    first, second = sorted(hops)
    assert (hops[first].gas, hops[second].gas) == (24, 12)
    assert hops[first].target == hops[second].target == code.rindex(b"\x5b")


def test_a_jumpi_to_a_row_of_jumpdests_pays_for_the_row() -> None:
    program = f"CALLDATASIZE PUSH1 @in JUMPI INVALID in: {'JUMPDEST ' * 9} GAS {RETURN}"
    seen = agreed_at_every_gas(Case(program, data=b"1"), 300)
    assert seen.word == 300 - 2 - 3 - 10 - 9 - 2


@pytest.mark.parametrize("height", [1021, 1022, 1023, 1024])
@pytest.mark.parametrize("forms", [[HOP], [HOP_BY_JUMPI], [HOP, HOP_BY_JUMPI]])
def test_hops_overflow_a_full_stack_where_they_push(height: int, forms: list[str]) -> None:
    """The jump comes at this height, by a JUMP; the hops push a target, or a condition and a target."""
    hops = " ".join(f"h{n}: {form.format(f'h{n + 1}')} INVALID" for n, form in enumerate(forms))
    program = f"{'NUMBER ' * height} PUSH2 @h0 JUMP {hops} h{len(forms)}: JUMPDEST STOP"
    seen = agreed(program, 100_000, TIERS)
    room = 2 if HOP_BY_JUMPI in forms else 1
    assert (seen.status == "SUCCESS") == (height + room <= 1024)


def test_a_jump_over_a_hop_by_jumpi_is_one_jump_and_holds_its_two_words() -> None:
    program = "PUSH2 @hop JUMP hop: JUMPDEST PUSH1 1 PUSH2 @end JUMPI INVALID end: JUMPDEST STOP"
    first = units_of(program)[0]
    assert first.tokens[-1].operand == assemble(program).rindex(b"\x5b")
    assert first.section is not None
    assert (first.section.grows, first.section.gas) == (2, 3 + 8 + 1 + 3 + 3 + 10)


@pytest.mark.parametrize("ending", ["PUSH2 0xffff JUMP", "PUSH1 1 PUSH2 3 JUMPI"])
def test_a_chain_that_ends_nowhere_fails_only_when_it_is_taken(ending: str) -> None:
    program = f"CALLDATASIZE PUSH2 @hop JUMPI STOP hop: JUMPDEST {ending}"
    assert agreed_at_every_gas(Case(program)).status == "SUCCESS"
    assert "invalid jump" in str(agreed_at_every_gas(Case(program, data=b"1"), 1_000).error)


def test_a_jumpi_into_a_circle_of_hops_ends_with_its_gas() -> None:
    program = "CALLDATASIZE PUSH1 @a JUMPI STOP a: JUMPDEST PUSH1 @b JUMP b: JUMPDEST PUSH1 @a JUMP"
    for gas in (*range(60), 999):
        assert "out of gas" in str(agreed(Case(program, data=b"1"), gas, TIERS).error)


def test_what_a_slice_of_gas_cannot_pay_goes_hop_by_hop(monkeypatch: pytest.MonkeyPatch) -> None:
    case = Case(chain([HOP] * 6), data=b"1")
    for size in (16, 17, 40, 90, 91):
        monkeypatch.setattr(native_engine, "SLICE", size)
        for gas in (89, 90, 100, 105, 106, 500):
            agreed(case, gas)


def test_a_loop_whose_back_edge_goes_over_a_hop_agrees() -> None:
    loop = "PUSH1 {} top: JUMPDEST PUSH1 1 SWAP1 SUB DUP1 PUSH1 @hop JUMPI STOP hop: JUMPDEST PUSH1 @top JUMP"
    for count in (1, 2, 30):
        agreed_at_every_gas(loop.format(count), most=250)
        agreed(loop.format(count), tiers=TIERS)


def _random_program(rng: random.Random) -> str:
    """Blocks that jump to each other, most of them hops; each JUMPI's condition is a bit of the calldata."""
    count = rng.randrange(3, 9)

    def target() -> str:
        return f"PUSH2 @b{rng.randrange(count)}" if rng.random() < 0.95 else f"PUSH2 {rng.randrange(40)}"

    parts = [f"PUSH0 CALLDATALOAD PUSH2 @b{rng.randrange(count)} JUMP"]
    for n in range(count):
        form = rng.randrange(6)
        body = {
            0: f"{target()} JUMP",
            1: f"{target()} JUMP",
            2: f"PUSH1 {rng.choice([1, 1, 0])} {target()} JUMPI",
            3: f"PUSH1 1 SHR DUP1 PUSH1 1 AND {target()} JUMPI {target()} JUMP",
            4: f"PUSH1 1 SHR DUP1 PUSH1 1 AND ISZERO {target()} JUMPI GAS PUSH1 {n} SSTORE STOP",
            5: f"PUSH1 1 SHR DUP1 {target()} JUMPI",
        }[form]
        parts.append(f"b{n}: JUMPDEST {body}")
    return " ".join(parts) + " STOP"


@pytest.mark.parametrize("seed", first(20, range(60)))
def test_random_jumps_over_random_hops_agree_on_every_tier(seed: int) -> None:
    rng = random.Random(seed)
    program = _random_program(rng)
    for _ in range(3):
        case = Case(program, data=rng.randbytes(32))
        seen = agreed(case, 30_000, TIERS)
        for gas in (
            seen.gas_used,
            max(seen.gas_used - 1, 0),
            *(rng.randrange(min(seen.gas_used, 400) + 2) for _ in range(6)),
        ):
            agreed(case, gas, TIERS)
