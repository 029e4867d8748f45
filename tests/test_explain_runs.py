"""Runs of an explained contract: what a call brought, where its gas went, and every step of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fusevm import EVM, BadSource, Explanation, explain, yul
from fusevm.evm.bytecode import instructions

VAULT = Path(__file__).parent.parent / "examples" / "vault.yul"
CALLER = "0x" + "ca" * 20


@pytest.fixture(scope="module")
def vault() -> Explanation:
    return explain(VAULT)


def test_functions_are_named_by_the_signatures_in_the_text(vault: Explanation) -> None:
    names = {each["signature"]: each["inputs"] for each in vault.functions}
    assert names["deposit(uint256)"] == [{"name": "", "type": "uint256"}]
    assert len(names) == 5


def test_selectors_that_nobody_named_are_those_that_the_code_jumps_by() -> None:
    listed = explain("0x5f3560e01c8063deadbeef14601657806311223344146017575f5ffd5b005b00").functions
    assert [(each["name"], each["signature"]) for each in listed] == [("0xdeadbeef", None), ("0x11223344", None)]
    assert explain("0x5f35630f4240105f55").functions == [], "a constant that is compared, and no jump"


def test_with_the_whole_interface_at_hand_no_constant_is_taken_for_a_function() -> None:
    code = "0x5f3560e01c8063deadbeef146016578063000f424014601757" + "5f5ffd5b005b00"
    abi = [{"type": "function", "name": "f", "inputs": [], "outputs": []}]
    artifact = {"abi": abi, "bytecode": code, "deployedBytecode": code}
    assert [each["name"] for each in explain(artifact).functions] == ["f"]
    assert [each["name"] for each in explain(code).functions] == ["0xdeadbeef", "0x000f4240"]


def test_a_call_by_name_gives_what_the_contract_gives(vault: Explanation) -> None:
    vault.reset()
    run = vault.run("compound(uint256,uint256)(uint256)", [1000, 3])
    evm = EVM()
    evm.set_code(0xC0, vault.code)
    data = bytes.fromhex("bff1208d") + (1000).to_bytes(32, "big") + (3).to_bytes(32, "big")
    result = evm.call(0xC0, data)
    assert (run.output, run.gas_used) == ("0x" + result.output.hex(), result.gas_used)
    assert run.decoded == "1157"
    assert run.status == "success"


def test_the_gas_of_families_lines_and_blocks_is_the_gas_used(vault: Explanation) -> None:
    vault.reset()
    run = vault.run("deposit", [5])
    assert sum(each["gas"] for each in run.families) == run.gas_used
    assert sum(gas for _, gas in run.heat.values()) == run.gas_used
    assert sum(gas for _, gas in run.blocks.values()) == run.gas_used
    assert run.flame["gas"] == sum(each["gas"] for each in run.flame["children"]) == run.gas_used
    for function in run.flame["children"]:
        assert function["gas"] == sum(line["gas"] for line in function["children"])
    assert max(run.families, key=lambda each: each["gas"])["name"] == "storage"
    assert "deposit" in {each["name"] for each in run.flame["children"]}


def test_every_pc_that_is_warm_is_an_opcode_and_was_traced(vault: Explanation) -> None:
    vault.reset()
    run = vault.run("deposit", [5])
    opcodes = {each.pc: each.name for each in instructions(vault.code)}
    counted: dict[int, int] = {}
    for step in run.trace:
        assert opcodes[step["pc"]] == step["op"]
        counted[step["pc"]] = counted.get(step["pc"], 0) + 1
    assert counted == {pc: count for pc, (count, _) in run.heat.items()}


def test_state_is_kept_between_runs_until_it_is_reset(vault: Explanation) -> None:
    vault.reset()
    vault.run("deposit", [5])
    vault.run("deposit", [6])
    ask = "balanceOf(address)(uint256)"
    assert vault.run(ask, [CALLER]).decoded == "11"
    vault.reset()
    assert vault.run(ask, [CALLER]).decoded == "0"


def test_a_trace_has_stack_memory_and_storage_where_they_change(vault: Explanation) -> None:
    vault.reset()
    run = vault.run("deposit", [5])
    stores = [step for step in run.trace if step["op"] == "SSTORE"]
    assert [list(step["storage"].values()) for step in stores] == [["0x5"], ["0x5"]]
    after = next(step for step in run.trace if "memory" in step)
    assert run.trace[after["i"] - 1]["op"] == "MSTORE"
    assert all("memory" not in step for step in run.trace[: after["i"]])


def test_a_long_run_is_traced_up_to_the_limit_and_counted_to_its_end(vault: Explanation) -> None:
    run = vault.run("compound", [1000, 500], most_steps=100)
    assert len(run.trace) == 100
    assert run.notes == ["trace: the first 100 steps; heat and gas count all"]
    assert sum(gas for _, gas in run.heat.values()) == run.gas_used


def test_a_revert_and_a_halt_say_why() -> None:
    assert explain("0x5f5ffd").run().status == "revert"
    halted = explain("0xfe").run()
    assert (halted.status, halted.reason) == ("halt", "halted: invalid opcode at pc 0 (0xfe)")
    message = bytes.fromhex("08c379a0") + (32).to_bytes(32, "big") + (2).to_bytes(32, "big") + b"no".ljust(32, b"\0")
    code = "".join(f"7f{message[at : at + 32].ljust(32, bytes(1)).hex()}60{at:02x}52" for at in range(0, 100, 32))
    assert "no" in str(explain(code + "60645ffd").run().reason)


def test_creation_code_runs_as_a_deployment() -> None:
    run = explain(VAULT, object="Vault").run()
    assert run.status == "success"
    assert sum(gas for _, gas in run.heat.values()) <= run.gas_used


def test_the_run_is_json(vault: Explanation) -> None:
    data = json.loads(json.dumps(vault.run("deposit", [5]).as_data()))
    assert data["call"]["function"] == "deposit(uint256)"
    assert set(data) >= {"status", "output", "logs", "families", "heat", "blocks", "flame", "trace"}


def test_arguments_may_be_text_as_people_type_it(vault: Explanation) -> None:
    assert vault.run("compound", ["1000", "0x3"]).output == vault.run("compound", [1000, 3]).output


def test_a_call_that_cannot_be_made_is_one_line(vault: Explanation) -> None:
    with pytest.raises(BadSource, match="call 'deposit': "):
        vault.run("deposit", ["five"])


def test_what_is_shown_does_what_the_source_says() -> None:
    """The bytecode of the pane against Yul's interpreter, on the source as it stands."""
    text = "{ let x := calldataload(0) if gt(x, 3) { x := mul(x, 7) } mstore(0, add(x, 1)) sstore(x, 2) return(0, 32) }"
    explanation = explain(text)
    for number in (0, 3, 4, 2**255):
        data = number.to_bytes(32, "big")
        explanation.reset()
        run, expected = explanation.run(data), yul.run(text, data)
        assert run.output == "0x" + expected.output.hex()
        written = {int(k, 16): int(v, 16) for step in run.trace for k, v in step.get("storage", {}).items()}
        assert written == expected.storage
