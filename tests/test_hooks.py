"""Hooks and the EIP-3155 tracer: what is told, in which order, and that nothing is paid for when nobody listens."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fusevm import EVM, Hooks, Result, Status, Step, StorageAccess
from fusevm.chain.environment import Message
from fusevm.chain.outcome import Outcome
from fusevm.evm.forks import Fork
from fusevm.reference import interpreter
from fusevm.reference.frame import Frame
from fusevm.reference.hooks import observed_table
from fusevm.reference.instructions import InstructionEntry, table_of
from fusevm.reference.tracer import eip3155_step, eip3155_summary, tracing_hooks
from programs import CALLER, HERE, NOBODY, OTHER, RETURN_TOP, call, machine, push


def steps_of(
    program: str, others: dict[bytes, str | bytes] | None = None, gas: int = 100_000
) -> tuple[list[Step], Result]:
    evm = machine({HERE: program, **(others or {})})
    steps: list[Step] = []
    evm.hooks = Hooks(on_opcode=steps.append)
    return steps, evm.call(HERE, caller=CALLER, gas=gas)


# -- opcodes ----------------------------------------------------------------------------------------------------------


def test_a_step_tells_what_was_before_the_instruction_and_what_it_cost() -> None:
    steps, _ = steps_of("PUSH1 1 PUSH1 2 MSTORE")
    assert steps[2] == Step(
        pc=4,
        op=0x52,
        name="MSTORE",
        gas=99_994,
        gas_cost=3 + 6,  # two words of memory
        memory_size=0,
        stack=(1, 2),
        depth=1,
        refund=0,
        returndata=b"",
        address=HERE,
        error=None,
    )
    assert steps[3].memory_size == 64


def test_steps_come_in_order_and_the_implicit_stop_is_one() -> None:
    steps, _ = steps_of("PUSH1 1 PUSH1 2 ADD")
    assert [(step.pc, step.name, step.gas_cost) for step in steps] == [
        (0, "PUSH1", 3),
        (2, "PUSH1", 3),
        (4, "ADD", 3),
        (5, "STOP", 0),
    ]


def test_costs_add_up_to_the_gas_used() -> None:
    steps, result = steps_of("PUSH1 1 PUSH1 0 SSTORE PUSH1 0 SLOAD PUSH1 9 MSTORE")
    assert sum(step.gas_cost for step in steps) == result.gas_used


@pytest.mark.parametrize(
    ("program", "gas", "name", "cost", "error"),
    [
        ("PUSH1 1 ADD", 100, "ADD", 0, "stack underflow: 2 words needed, 1 there"),
        ("DUP1", 100, "DUP1", 3, "stack underflow: 1 words needed, 0 there"),
        ("PUSH1 9 JUMP", 100, "JUMP", 8, "invalid jump: 0x9 is not a JUMPDEST"),
        ("PUSH1 1 PUSH1 2 ADD", 8, "ADD", 3, "out of gas: 3 needed, 2 left"),
        ("DATA 0x0c", 100, "0x0c", 0, "invalid opcode: 0x0c"),
        ("INVALID", 100, "INVALID", 0, "invalid opcode: 0xfe"),
        ("PUSH1 0 PUSH1 0 SSTORE", 2_306, "SSTORE", 0, "out of gas: SSTORE needs more than 2300 gas left"),
        ("PUSH1 1 PUSH1 0 SSTORE", 9_006, "SSTORE", 22_100, "out of gas: 22100 needed, 9000 left"),
        ("PUSH1 64 PUSH1 0 KECCAK256", 36, "KECCAK256", 30 + 12 + 6, "out of gas: 12 needed, 0 left"),
    ],
)
def test_the_failing_step_carries_the_error_and_what_it_would_have_cost(
    program: str, gas: int, name: str, cost: int, error: str
) -> None:
    steps, result = steps_of(program, gas=gas)
    last = steps[-1]
    assert (last.name, last.error, last.gas_cost) == (name, error, cost)
    assert all(step.error is None for step in steps[:-1])
    assert result.status is Status.HALT


def test_a_call_costs_what_it_hands_down_and_its_callee_is_one_deeper() -> None:
    steps, _ = steps_of(call(OTHER, gas="PUSH2 5000"), {OTHER: "PUSH1 1"})
    calling = next(step for step in steps if step.name == "CALL")
    assert calling.gas_cost == 100 + 2_500 + 5_000
    inside = [step for step in steps if step.depth == 2]
    assert [(step.pc, step.name, step.gas, step.address) for step in inside] == [
        (0, "PUSH1", 5_000, OTHER),
        (2, "STOP", 4_997, OTHER),
    ]
    assert steps[-1].depth == 1


def test_a_creation_costs_what_it_takes_without_what_it_hands_down() -> None:
    steps, _ = steps_of("PUSH1 40 PUSH1 0 PUSH1 0 CREATE POP")
    creating = next(step for step in steps if step.name == "CREATE")
    assert creating.gas_cost == 32_000 + 2 * 3 + 2 * 2  # memory and init code, two words each
    assert steps[-2].gas == creating.gas - creating.gas_cost  # the init code is a STOP and gives all back


def test_a_call_that_cannot_be_made_costs_what_it_would_have_handed_down() -> None:
    steps, _ = steps_of(f"{call(OTHER, gas='PUSH2 5000', value=1)} POP")
    calling = next(step for step in steps if step.name == "CALL")
    assert calling.gas_cost == 2_600 + 9_000 + 25_000 + 5_000
    assert steps[-2].gas == calling.gas - calling.gas_cost + 5_000 + 2_300


@pytest.mark.parametrize(("program", "what"), [("PUSH1 1 PUSH1 0 SSTORE", 22_100), ("PUSH1 0 PUSH1 0 LOG0", 375)])
def test_an_instruction_that_a_static_call_forbids_shows_its_price(program: str, what: int) -> None:
    steps, _ = steps_of(call(OTHER, kind="STATICCALL"), {OTHER: program})
    forbidden = next(step for step in steps if step.error)
    assert forbidden.gas_cost == what
    assert forbidden.error is not None
    assert forbidden.error.startswith("state change in a static call")


def test_an_account_without_code_has_no_steps() -> None:
    steps, result = steps_of(call(NOBODY))
    assert result.ok
    assert {step.depth for step in steps} == {1}


def test_pricing_what_fails_leaves_the_state_as_it_was() -> None:
    """The touch of the RIPEMD-160 precompile outlives a revert, so even a trial of SELFDESTRUCT might leave it."""
    ripemd = (3).to_bytes(20, "big")
    program = f"{push(ripemd)} SELFDESTRUCT"
    roots = set()
    for hooks in (None, Hooks(on_opcode=lambda step: None)):
        evm = machine(
            {HERE: f"{call(OTHER, gas='PUSH2 9000')} {call(OTHER, gas='PUSH2 9000')}", OTHER: program}, hooks=hooks
        )
        evm.state.ensure(ripemd)  # there, and empty: a touch would remove it
        evm.set_balance(OTHER, 1)
        assert evm.call(HERE).ok
        roots.add(evm.state_root)
    assert len(roots) == 1
    assert ripemd in evm.state.accounts


def test_memory_is_told_where_it_is_asked_for() -> None:
    evm = machine({HERE: "PUSH1 7 PUSH1 0 MSTORE PUSH1 1"})
    seen: list[bytes | None] = []
    evm.hooks = Hooks(on_opcode=lambda step: seen.append(step.memory), memory=True)
    evm.call(HERE)
    assert seen == [b"", b"", b"", (7).to_bytes(32, "big"), (7).to_bytes(32, "big")]
    evm.hooks = Hooks(on_opcode=lambda step: seen.append(step.memory))
    evm.call(HERE)
    assert seen[5:] == [None] * 5


def test_return_data_is_seen_from_the_step_after_a_call() -> None:
    steps, _ = steps_of(f"{call(OTHER)} POP", {OTHER: "PUSH1 2 PUSH1 0 RETURN"})
    assert [step.returndata for step in steps if step.depth == 1][-3:] == [b"", b"\0\0", b"\0\0"]


def test_the_refund_counter_is_told() -> None:
    evm = machine({HERE: "PUSH1 0 PUSH1 0 SSTORE"})
    evm.set_storage(HERE, 0, 1)
    refunds: list[int] = []
    evm.hooks = Hooks(on_opcode=lambda step: refunds.append(step.refund))
    evm.call(HERE)
    assert refunds == [0, 0, 4_800, 4_800]


def test_an_sstore_that_cannot_be_paid_shows_the_refund_it_would_have_brought() -> None:
    evm = machine({HERE: "PUSH1 0 PUSH1 0 SSTORE"})
    evm.set_storage(HERE, 0, 1)
    steps: list[Step] = []
    evm.hooks = Hooks(on_opcode=steps.append)
    assert not evm.call(HERE, gas=4_000).ok
    assert (steps[-1].gas_cost, steps[-1].refund) == (5_000, 4_800)


# -- storage ----------------------------------------------------------------------------------------------------------


def test_storage_accesses_are_told_with_key_and_value() -> None:
    program = "PUSH1 7 PUSH1 1 SSTORE PUSH1 1 SLOAD PUSH1 8 PUSH1 2 TSTORE PUSH1 2 TLOAD"
    accesses: list[StorageAccess] = []
    machine({HERE: program}, hooks=Hooks(on_storage=accesses.append)).call(HERE)
    assert accesses == [
        StorageAccess("SSTORE", HERE, 1, 7),
        StorageAccess("SLOAD", HERE, 1, 7),
        StorageAccess("TSTORE", HERE, 2, 8),
        StorageAccess("TLOAD", HERE, 2, 8),
    ]


def test_a_delegatecall_tells_whose_storage_it_was() -> None:
    accesses: list[StorageAccess] = []
    programs = {HERE: call(OTHER, kind="DELEGATECALL"), OTHER: "PUSH1 0 SLOAD"}
    machine(programs, hooks=Hooks(on_storage=accesses.append)).call(HERE)
    assert [access.address for access in accesses] == [HERE]


def test_an_access_that_halts_is_not_told() -> None:
    accesses: list[StorageAccess] = []
    machine({HERE: "PUSH1 1 PUSH1 0 SSTORE"}, hooks=Hooks(on_storage=accesses.append)).call(HERE, static=True)
    assert accesses == []


# -- calls ------------------------------------------------------------------------------------------------------------


def test_calls_and_returns_come_in_pairs_from_the_outside_in() -> None:
    events: list[tuple[str, bytes, int]] = []

    def on_call(message: Message) -> None:
        events.append(("call", message.address, message.depth))

    def on_return(message: Message, outcome: Outcome) -> None:
        events.append((outcome.status.value, message.address, message.depth))

    programs: dict[bytes, str | bytes] = {
        HERE: f"{call(OTHER)} {call(NOBODY)}",
        OTHER: "PUSH1 0 PUSH1 0 REVERT",
        NOBODY: "INVALID",
    }
    machine(programs, hooks=Hooks(on_call=on_call, on_return=on_return)).call(HERE)
    assert events == [
        ("call", HERE, 0),
        ("call", OTHER, 1),
        ("revert", OTHER, 1),
        ("call", NOBODY, 1),
        ("halt", NOBODY, 1),
        ("success", HERE, 0),
    ]


def test_a_precompile_is_a_call_too() -> None:
    called: list[bytes] = []
    evm = machine({HERE: call((4).to_bytes(20, "big"))}, hooks=Hooks(on_call=lambda m: called.append(m.code_address)))
    evm.call(HERE)
    assert called == [HERE, (4).to_bytes(20, "big")]


# -- listening changes nothing, and not listening costs nothing -------------------------------------------------------


@pytest.mark.parametrize("fork", Fork, ids=lambda fork: fork.label)
def test_without_opcode_and_storage_hooks_the_plain_table_itself_is_used(fork: Fork) -> None:
    plain = table_of(fork)
    assert observed_table(fork, Hooks()) is plain
    assert observed_table(fork, Hooks(on_call=lambda message: None, on_return=lambda message, outcome: None)) is plain


def test_a_run_without_hooks_goes_through_that_very_table(monkeypatch: pytest.MonkeyPatch) -> None:
    used: list[tuple[InstructionEntry, ...]] = []
    plain_run = interpreter.run

    def run(frame: Frame, table: tuple[InstructionEntry, ...]) -> Frame:
        used.append(table)
        return plain_run(frame, table)

    monkeypatch.setattr(interpreter, "run", run)
    machine({HERE: "STOP"}).call(HERE)
    assert len(used) == 1
    assert used[0] is table_of(Fork.OSAKA)


PROGRAMS = [
    "PUSH1 1 PUSH1 2 ADD" + RETURN_TOP,
    "PUSH1 1 PUSH1 0 SSTORE PUSH1 0 PUSH1 0 LOG0",
    "start: JUMPDEST PUSH1 @start JUMP",
    "PUSH1 1 ADD",
    "PUSH1 32 MLOAD PUSH1 3 PUSH1 4 REVERT",
    f"{call(OTHER, value=1, out=32)} PUSH1 0 SLOAD" + RETURN_TOP,
    "PUSH1 0 " * 1024 + "PUSH1 0",
    "PUSH1 0 PUSH1 0 PUSH1 0 CREATE" + RETURN_TOP,
    f"{push(CALLER)} SELFDESTRUCT",
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program[:24])
def test_listening_changes_nothing(program: str) -> None:
    def outcome(hooks: Hooks | None) -> tuple[Result, bytes]:
        evm = machine({HERE: program, OTHER: "CALLVALUE PUSH1 0 SSTORE PUSH1 5 PUSH1 0 RETURN"}, hooks=hooks)
        return evm.call(HERE, caller=CALLER, value=3, gas=200_000), evm.state_root

    everything = Hooks(lambda step: None, lambda access: None, lambda message: None, lambda message, outcome: None)
    assert outcome(everything) == outcome(None)


def test_an_error_in_a_hook_reaches_the_caller_and_undoes_the_call() -> None:
    def stumble(step: Step) -> None:
        if step.name == "SSTORE":
            raise KeyError("mine")

    evm = machine({HERE: "PUSH1 1 PUSH1 0 SSTORE"})
    evm.set_balance(OTHER, 7)
    root = evm.state_root
    evm.hooks = Hooks(on_opcode=stumble)
    with pytest.raises(KeyError, match="mine"):
        evm.call(HERE, caller=CALLER, value=1)
    with pytest.raises(KeyError, match="mine"):
        evm.transact(CALLER, HERE, gas_price=1)
    assert evm.state_root == root
    evm.hooks = None
    assert evm.call(HERE).ok


# -- EIP-3155 ---------------------------------------------------------------------------------------------------------

# The example of the EIP, run at Istanbul's prices: code, and each line's pc, op, gas, cost, stack and name.
EIP_CODE = "604080536040604055604060006040600060025afa6040f3"
EIP_LINES = [
    (0, 0x60, "0x2540be400", "0x3", [], "PUSH1"),
    (2, 0x80, "0x2540be3fd", "0x3", ["0x40"], "DUP1"),
    (3, 0x53, "0x2540be3fa", "0xc", ["0x40", "0x40"], "MSTORE8"),
    (4, 0x60, "0x2540be3ee", "0x3", [], "PUSH1"),
    (6, 0x60, "0x2540be3eb", "0x3", ["0x40"], "PUSH1"),
    (8, 0x55, "0x2540be3e8", "0x4e20", ["0x40", "0x40"], "SSTORE"),
    (9, 0x60, "0x2540b95c8", "0x3", [], "PUSH1"),
    (11, 0x60, "0x2540b95c5", "0x3", ["0x40"], "PUSH1"),
    (13, 0x60, "0x2540b95c2", "0x3", ["0x40", "0x0"], "PUSH1"),
    (15, 0x60, "0x2540b95bf", "0x3", ["0x40", "0x0", "0x40"], "PUSH1"),
    (17, 0x60, "0x2540b95bc", "0x3", ["0x40", "0x0", "0x40", "0x0"], "PUSH1"),
    (19, 0x5A, "0x2540b95b9", "0x2", ["0x40", "0x0", "0x40", "0x0", "0x2"], "GAS"),
    (20, 0xFA, "0x2540b95b7", "0x24abb676c", ["0x40", "0x0", "0x40", "0x0", "0x2", "0x2540b95b7"], "STATICCALL"),
    (21, 0x60, "0x2540b92a7", "0x3", ["0x1"], "PUSH1"),
    (23, 0xF3, "0x2540b92a4", "0x0", ["0x1", "0x40"], "RETURN"),
]


def traced(
    evm: EVM, *, memory: bool = False, returndata: bool = True, **how: Any
) -> tuple[list[dict[str, Any]], Result]:
    text: list[str] = []
    evm.hooks = tracing_hooks(text.append, memory=memory, returndata=returndata)
    result = evm.call(HERE, **how)
    assert all(line.endswith("\n") and line.count("\n") == 1 for line in text)
    return [json.loads(line) for line in text], result


def test_the_example_of_the_eip_is_traced_to_the_unit_of_gas() -> None:
    lines, result = traced(machine({HERE: bytes.fromhex(EIP_CODE)}, "istanbul"), gas=0x2540BE400)
    got = [(line["pc"], line["op"], line["gas"], line["gasCost"], line["stack"], line["opName"]) for line in lines]
    assert got == EIP_LINES
    assert lines[-1]["returnData"] == "0xf5a5fd42d16a20302798ef6ed309979b43003d2320d9f0e8ea9831a92759fb4b"
    assert result.gas_used == 0x515C


def test_a_line_has_the_fields_of_the_eip_in_its_order_and_types() -> None:
    lines, _ = traced(machine({HERE: "PUSH1 1 PUSH1 0 MSTORE"}), gas=1_000)
    assert list(lines[2].items()) == [
        ("pc", 4),
        ("op", 0x52),
        ("gas", "0x3e2"),
        ("gasCost", "0x6"),
        ("memSize", 0),
        ("stack", ["0x1", "0x0"]),
        ("depth", 1),
        ("returnData", "0x"),
        ("refund", 0),
        ("opName", "MSTORE"),
    ]


def test_a_line_has_memory_and_no_return_data_where_that_is_asked_for() -> None:
    lines, _ = traced(machine({HERE: "PUSH1 1 PUSH1 0 MSTORE"}), memory=True, returndata=False)
    assert [line.get("memory") for line in lines] == [None, None, None, "0x" + "00" * 31 + "01"]
    assert all("returnData" not in line for line in lines)


def test_a_failing_line_says_why() -> None:
    lines, _ = traced(machine({HERE: "ADD"}))
    assert lines[0]["error"] == "stack underflow: 2 words needed, 0 there"
    assert all("error" not in line for line in lines[1:])


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        ("PUSH1 1 PUSH1 31 RETURN", {"output": "0x00", "gasUsed": "0x9", "pass": True}),
        (
            "INVALID",
            {"output": "0x", "gasUsed": "0x186a0", "pass": False, "error": "halted: invalid opcode at pc 0 (0xfe)"},
        ),
    ],
)
def test_the_last_line_sums_up(program: str, expected: dict[str, Any]) -> None:
    evm = machine({HERE: program})
    _, result = traced(evm, gas=100_000)
    assert eip3155_summary(result, evm.state_root) == {"stateRoot": "0x" + evm.state_root.hex(), **expected}


def test_a_word_is_shown_without_leading_zeros() -> None:
    steps, _ = steps_of(f"{push(2**255)} PUSH1 0")
    assert eip3155_step(steps[2])["stack"] == [hex(2**255), "0x0"]
