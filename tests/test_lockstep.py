"""Lockstep: the tiers agree on what is right, and the first thing that is wrong is shown with both sides."""

from __future__ import annotations

import random

import pytest

from fusevm import EVM
from fusevm.chain.outcome import Disagreement
from fusevm.evm.assembly import assemble
from fusevm.evm.forks import LATEST
from fusevm.native.host.lockstep import Lockstep
from fusevm.native.host.settings import Setting
from fusevm.native.host.tiers import of_threads
from fusevm.schedule.build import Schedule, build_schedule
from loopprograms import LEAVING, Shape, loops_of, random_shape
from nativeprograms import Case, agreed
from programs import CALLER, HERE, NOBODY, OTHER, call, deployer, store_initcode

RUNTIME = deployer(assemble("PUSH1 1 PUSH0 SSTORE"))
SAMPLES = {
    "arithmetic": "PUSH1 7 PUSH0 CALLDATALOAD ADD DUP1 MUL PUSH1 3 SWAP1 DIV PUSH0 MSTORE PUSH1 32 PUSH0 RETURN",
    "a loop": "PUSH0 loop: JUMPDEST PUSH1 1 ADD DUP1 PUSH1 50 GT PUSH1 @loop JUMPI STOP",
    "hops": "PUSH1 @a JUMP b: JUMPDEST STOP a: JUMPDEST PUSH1 @c JUMP c: JUMPDEST PUSH1 @b JUMP",
    "a circle": "a: JUMPDEST PUSH1 @b JUMP b: JUMPDEST PUSH1 @a JUMP",
    "known conditions": "PUSH0 PUSH1 0xff JUMPI PUSH1 1 PUSH1 @end JUMPI INVALID end: JUMPDEST",
    "storage": "PUSH1 5 PUSH1 1 SSTORE PUSH1 1 SLOAD PUSH1 2 SSTORE PUSH0 PUSH1 1 SSTORE GAS POP",
    "transient storage": "PUSH1 5 PUSH1 1 TSTORE PUSH1 1 TLOAD PUSH1 2 SSTORE",
    "memory": "PUSH1 9 PUSH2 0x400 MSTORE PUSH1 64 PUSH2 0x3f0 KECCAK256 PUSH0 MSTORE MSIZE PUSH0 RETURN",
    "logs": "PUSH1 1 PUSH1 2 PUSH1 64 PUSH0 LOG2 PUSH0 PUSH0 LOG0",
    "calls": f"{call(OTHER)} POP {call(OTHER, kind='DELEGATECALL')} POP RETURNDATASIZE PUSH0 SSTORE",
    "static calls": f"{call(OTHER, kind='STATICCALL', out=32)} POP RETURNDATASIZE PUSH0 SSTORE",
    "calls of nobody": f"{call(NOBODY)} POP {call(CALLER)} POP {call((2).to_bytes(20, 'big'), out=32)} POP",
    "value": f"{call(OTHER, value=1)} POP {call(NOBODY, value=2)} POP",
    "creation": f"{store_initcode(RUNTIME)} PUSH2 {len(RUNTIME)} PUSH0 PUSH0 CREATE {'PUSH0 ' * 5} DUP6 GAS CALL",
    "end of life": f"PUSH20 0x{NOBODY.hex()} SELFDESTRUCT",
    "a revert": "PUSH1 5 PUSH1 1 SSTORE PUSH1 4 PUSH0 REVERT",
    "a bad jump": "PUSH1 1 PUSH1 200 JUMPI",
    "an underflow": "NUMBER JUMPDEST POP POP",
    "nothing": "",
}
CALLEE = "CALLER PUSH1 3 SSTORE PUSH1 7 PUSH0 MSTORE PUSH1 32 PUSH0 RETURN"


def lockstep() -> Lockstep:
    return of_threads(Setting(compared=True)).lockstep()


@pytest.mark.parametrize("sample", SAMPLES)
def test_the_tiers_agree_at_every_section_with_gas_enough_and_without(sample: str) -> None:
    case = Case(SAMPLES[sample], {OTHER: CALLEE}, prepare=lambda evm: evm.set_balance(HERE, 100))
    before = lockstep().compared
    seen = agreed(case, 300_000, ["lockstep"])
    assert lockstep().compared > before or not case.codes[HERE]
    rng = random.Random(sample)
    for gas in (
        seen.gas_used,
        max(seen.gas_used - 1, 0),
        *(rng.randrange(min(seen.gas_used, 60_000) + 1) for _ in range(8)),
    ):
        agreed(case, gas, ["lockstep"])


def _scheduled(program: str, evm: EVM) -> Schedule:
    """The schedule lockstep will run: that of a first call, which agrees."""
    code = assemble(program)
    evm.set_code(HERE, code)
    assert evm.simulate(HERE).ok
    return lockstep().engine.codes.schedules[code, LATEST]


def _place_of(program: str, name: str, value: int) -> int:
    """Where in the schedule an operand stands."""
    handlers = lockstep().engine.handlers
    for unit in build_schedule(assemble(program), LATEST, handlers, keep_units=True, probes=True).units:
        place = unit.at + 1
        for token in unit.tokens:
            if token.name == name and token.operand == value:
                return place
            place += {"PUSH": 1, "PUSHW": 4, "SECTION": 1, "GASSECTION": 1, "JUMP@": 1, "JUMPI@": 1, "PROBE": 1}.get(
                token.name, 0
            )
    raise AssertionError(f"no {name} {value} in {program}")


def test_a_wrong_constant_on_the_stack_is_found_at_the_next_section() -> None:
    program = "NUMBER POP PUSH1 0x55 NUMBER JUMPDEST POP POP STOP"
    evm = EVM(tier="lockstep")
    schedule = _scheduled(program, evm)
    schedule.words[_place_of(program, "PUSH", 0x55)] = 0x56
    with pytest.raises(Disagreement) as raised:
        evm.call(HERE)
    message = str(raised.value)
    assert "stack differs at depth 0, pc 5" in message
    assert "0x56" in message.split("native", 1)[1].splitlines()[0]
    assert "0x55" in message.split("reference", 1)[1].splitlines()[0]
    assert "0:2 PUSH1" in message.splitlines()[-1]


def test_a_wrong_count_of_gas_is_found() -> None:
    program = "NUMBER NUMBER JUMPDEST POP POP STOP"
    evm = EVM(tier="lockstep")
    schedule = _scheduled(program, evm)
    handlers = lockstep().engine.handlers
    header = build_schedule(assemble(program), LATEST, handlers, keep_units=True, probes=True).units[1]
    assert header.tokens[0].name == "SECTION"
    schedule.words[header.at + 1] += 1
    with pytest.raises(Disagreement, match="gas differs at depth 0, pc 2"):
        evm.call(HERE)


@pytest.mark.parametrize(
    ("program", "value", "what"),
    [
        ("NUMBER POP PUSH1 0x55 PUSH1 1 SSTORE NUMBER POP", 0x55, "slot 0x1"),
        ("NUMBER POP PUSH1 0x55 PUSH0 MSTORE JUMPDEST", 0x55, "memory"),
        ("NUMBER POP PUSH1 0x55 PUSH0 MSTORE PUSH1 32 PUSH0 RETURN", 0x55, "output"),
        ("PUSH1 0x55 PUSH0 PUSH0 LOG1 STOP", 0x55, "logs"),
    ],
)
def test_a_difference_is_named_where_it_shows(program: str, value: int, what: str) -> None:
    evm = EVM(tier="lockstep")
    schedule = _scheduled(program, evm)
    schedule.words[_place_of(program, "PUSH", value)] = value + 1
    with pytest.raises(Disagreement, match=what):
        evm.call(HERE)


def test_a_jump_that_goes_elsewhere_is_found() -> None:
    program = "NUMBER PUSH1 @a JUMPI INVALID a: JUMPDEST STOP b: JUMPDEST NUMBER STOP"
    evm = EVM(tier="lockstep")
    schedule = _scheduled(program, evm)
    code = assemble(program)
    place = _place_of(program, "JUMPI@", code.index(b"\x5b"))
    schedule.words[place] = schedule.base + 8 * schedule.jumps[code.rindex(b"\x5b")]
    with pytest.raises(Disagreement, match="the reference is at"):
        evm.call(HERE)


def test_a_difference_leaves_the_state_as_it_was_and_the_machine_usable() -> None:
    program = "PUSH1 1 PUSH1 7 SSTORE PUSH1 0x55 NUMBER JUMPDEST POP POP STOP"
    evm = EVM(tier="lockstep")
    schedule = _scheduled(program, evm)
    place = _place_of(program, "PUSH", 0x55)
    schedule.words[place] = 0x56
    with pytest.raises(Disagreement):
        evm.call(HERE)
    assert evm.get_storage(HERE, 7) == 0
    schedule.words[place] = 0x55
    assert evm.call(HERE).ok
    assert evm.get_storage(HERE, 7) == 1


def test_a_callee_whose_block_is_bound_to_fail_is_left_by_both() -> None:
    """Native code knows it as the block begins, the reference only some instructions later."""
    evm = EVM(tier="lockstep")
    evm.set_code(HERE, assemble(f"{call(OTHER)} POP"))
    evm.set_code(OTHER, assemble("PUSH1 1 PUSH1 1 SSTORE POP"))
    assert evm.call(HERE).ok


# -- loops ------------------------------------------------------------------------------------------------------------

LOOPS = {
    "while": Shape(bound=40),
    "do-while": Shape(bound=40, bottom=True, literal=False),
    "memory": Shape(bound=40, body="DUP1 PUSH 5 SHL DUP2 SWAP1 MSTORE"),
    "a branch": Shape(bound=40, body="DUP1 PUSH 1 AND PUSH2 @odd JUMPI DUP2 PUSH 7 MUL SWAP2 POP odd: JUMPDEST"),
    "a break": Shape(bound=40, body="DUP1 PUSH 17 EQ PUSH2 @out JUMPI DUP1 DUP3 ADD SWAP2 POP", after=LEAVING),
    "few iterations": Shape(bound=5),
    "a nest": Shape(
        bound=20, body="PUSH 0 in: JUMPDEST PUSH 1 ADD PUSH 30 DUP2 LT PUSH2 @in JUMPI POP DUP1 DUP3 ADD SWAP2 POP"
    ),
    "out of gas inside": Shape(bound=90, body="DUP1 PUSH 16 SHL MLOAD POP"),
}
BOTH = ["lockstep", "lockstep-regions"]


@pytest.mark.parametrize("loop", LOOPS)
def test_loops_run_in_lockstep_on_schedules_and_in_regions(loop: str) -> None:
    code = assemble(LOOPS[loop].text())
    assert any(each.fused for each in loops_of(code))
    before = lockstep().compared
    seen = agreed(code, 200_000, BOTH)
    assert lockstep().compared > before + 10
    for gas in (seen.gas_used, seen.gas_used - 1, seen.gas_used // 2, seen.gas_used // 3, 40):
        agreed(code, gas, BOTH)


def test_random_loops_run_in_lockstep_on_schedules_and_in_regions() -> None:
    for seed in range(60):
        code = assemble(random_shape(seed).text())
        for gas in (30_000, 700):
            agreed(code, gas, BOTH)


@pytest.mark.parametrize(
    ("body", "what"),
    [
        ("PUSH 0x55 DUP3 ADD SWAP2 POP", "stack differs"),
        ("PUSH 0x55 PUSH 0x80 MSTORE", "memory differs"),
        ("PUSH 0x55 PUSH 3 TSTORE", "slot 0x3"),
        ("PUSH 0x55 DUP2 SUB PUSH2 @loop JUMPI", "the reference is at"),
    ],
)
def test_a_wrong_constant_in_a_loop_is_found(body: str, what: str) -> None:
    program = Shape(bound=40, body=body, first=True).text()
    evm = EVM(tier="lockstep")
    schedule = _scheduled(program, evm)
    schedule.words[place := _place_of(program, "PUSH", 0x55)] -= 0x40
    try:
        with pytest.raises(Disagreement, match=what):
            evm.call(HERE)
    finally:
        schedule.words[place] += 0x40
    assert evm.call(HERE).ok
