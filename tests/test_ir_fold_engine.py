"""The fold engine: the key, the order of masks, rule results, chains, stages and budgets."""

from __future__ import annotations

import pytest

from fusevm.evm.forks import LATEST
from fusevm.ir.fold.compiled import ANY_LEFT, ANY_RIGHT, RuleTable, key_of, keys_of, table_of
from fusevm.ir.fold.engine import Folder
from fusevm.ir.fold.stages import EVERYTHING, Mode, Stage
from fusevm.ir.values import NUMBER_OF, Value
from fusevm.rules.families import engine_rules
from irtools import fold_steps, folded


def engine(stages: Stage = EVERYTHING) -> Folder:
    made = Folder(stages=stages)
    made.enter(3)
    return made


def value(made: Folder, op: str, *args: Value) -> Value:
    result = made.emit(op, args)
    assert result is not None
    return result


# -- the key --------------------------------------------------------------------------------------------------------


def test_the_key_is_seven_bits_opcode_seven_bits_left_ten_bits_right() -> None:
    key = key_of("ADD", NUMBER_OF["MUL"], NUMBER_OF["CONST"])
    assert key >> 17 == NUMBER_OF["ADD"]
    assert key >> 10 & 0x7F == NUMBER_OF["MUL"]
    assert key & 0x3FF == NUMBER_OF["CONST"]
    assert key < 1 << 24


def test_operands_are_masked_from_the_most_to_the_least_specific() -> None:
    made = engine()
    left, right = value(made, "NOT", made.block.params[0]), made.const(7)
    not_, const = NUMBER_OF["NOT"], NUMBER_OF["CONST"]
    assert keys_of("ADD", (left, right)) == (
        key_of("ADD", not_, const),
        key_of("ADD", ANY_LEFT, const),
        key_of("ADD", not_, ANY_RIGHT),
        key_of("ADD", ANY_LEFT, ANY_RIGHT),
    )


def test_every_opcode_fits_seven_bits_and_none_is_the_wildcard() -> None:
    assert max(NUMBER_OF.values()) < ANY_LEFT


def test_every_engine_rule_is_in_the_table_under_one_key() -> None:
    table = table_of(LATEST, True)
    assert sum(map(len, table.buckets.values())) == len(engine_rules(LATEST, True))


# -- results --------------------------------------------------------------------------------------------------------


def test_a_constant_result_is_a_literal() -> None:
    made = engine()
    assert value(made, "ADD", made.const(2), made.const(3)) is made.const(5)
    assert made.block.instructions == []


def test_a_left_result_is_the_operand_itself() -> None:
    made = engine()
    x = made.block.params[0]
    assert value(made, "ADD", x, made.const(0)) is x


def test_a_retried_instruction_folds_again() -> None:
    made = engine()
    x = made.block.params[0]
    twice = value(made, "ADD", value(made, "ADD", x, made.const(5)), made.const(1 << 255))
    back = value(made, "SUB", value(made, "SUB", twice, made.const(1 << 255)), made.const(5))
    assert back is x


def test_no_rule_means_the_instruction_is_emitted() -> None:
    made = engine()
    x, y, _ = made.block.params
    product = value(made, "MUL", x, y)
    assert product.op == "MUL"
    assert made.block.instructions == [product]


def test_constants_go_to_the_right_and_younger_operands_to_the_left() -> None:
    made = engine()
    x, y, _ = made.block.params
    assert value(made, "AND", made.const(255), x).args == (x, made.const(255))
    assert value(made, "MUL", x, y).args == (y, x)


def test_raw_emission_passes_by_everything() -> None:
    made = engine()
    one = made.raw("ADD", (made.const(2), made.const(3)))
    two = made.raw("ADD", (made.const(2), made.const(3)))
    assert made.block.instructions == [one, two]


def test_a_phi_is_a_leaf_no_rule_looks_through() -> None:
    made = engine()
    phi = made.make("PHI", (), -1)
    assert value(made, "ADD", phi, made.const(1)).args == (phi, made.const(1))
    assert phi.args == ()


# -- chains and CSE -------------------------------------------------------------------------------------------------


def test_instructions_of_one_opcode_form_a_chain() -> None:
    made = engine()
    x, y, z = made.block.params
    first, other, second = value(made, "MUL", x, y), value(made, "AND", x, y), value(made, "MUL", y, z)
    assert made.chains["MUL"] is second
    assert second.prev is first
    assert other.prev is None


def test_an_equal_instruction_is_shared_whatever_the_order_of_its_operands() -> None:
    made = engine()
    x, y, _ = made.block.params
    assert value(made, "MUL", x, y) is value(made, "MUL", y, x)
    assert made.stats.shared == 1


def test_environment_reads_are_shared() -> None:
    steps = fold_steps("CALLER CALLER MUL PUSH 4 CALLDATALOAD PUSH 4 CALLDATALOAD MUL")
    assert steps == ["CallDataLoad #4", "Mul $2 $2", "Spill $3 1", "Caller", "Mul $0 $0", "Spill $1 0"]


def test_what_a_call_may_change_is_not_shared_across_it() -> None:
    call = "PUSH 0 PUSH 0 PUSH 0 PUSH 0 PUSH 0 PUSH 9 PUSH 0 CALL POP"
    text = f"SELFBALANCE RETURNDATASIZE {call} SELFBALANCE RETURNDATASIZE"
    assert [step.split()[0] for step in fold_steps(text)].count("SelfBalance") == 2
    assert [step.split()[0] for step in fold_steps(text)].count("ReturnDataSize") == 2


def test_what_warms_an_address_is_shared_until_the_world_changes() -> None:
    assert fold_steps("PUSH 9 BALANCE PUSH 9 BALANCE ADD PUSH 0 MSTORE").count("Balance #9") == 1


def test_the_gas_counter_is_never_shared() -> None:
    assert fold_steps("GAS GAS").count("Gas") == 2


# -- stages ---------------------------------------------------------------------------------------------------------

ALL_STAGES = ("FOLD", "CSE", "FWD", "DSE")
TEXT = "PUSH 2 PUSH 3 ADD CALLER CALLER ADD PUSH 7 PUSH 0 MSTORE PUSH 8 PUSH 0 MSTORE PUSH 0 MLOAD"


@pytest.mark.parametrize("off", ALL_STAGES)
def test_a_stage_switched_off_does_nothing(off: str) -> None:
    _, stats = folded(TEXT, stages=EVERYTHING & ~Stage[off])
    done = {
        "FOLD": stats.folded,
        "CSE": stats.shared,
        "FWD": stats.forwarded,
        "DSE": stats.stores_dropped,
    }
    assert done[off] == 0


def test_with_everything_on_every_stage_has_work_here() -> None:
    _, stats = folded(TEXT)
    assert stats.folded
    assert stats.shared
    assert stats.forwarded
    assert stats.stores_dropped


@pytest.mark.parametrize("off", ["FOLD", "CSE", "FWD"])
def test_loads_pass_unchanged_unless_fold_cse_and_fwd_are_on(off: str) -> None:
    _, stats = folded("PUSH 7 PUSH 0 MSTORE PUSH 0 MLOAD", stages=EVERYTHING & ~Stage[off])
    assert stats.forwarded == 0


@pytest.mark.parametrize("off", ["FOLD", "DSE"])
def test_stores_pass_unchanged_unless_fold_and_dse_are_on(off: str) -> None:
    _, stats = folded("PUSH 7 PUSH 0 MSTORE PUSH 8 PUSH 0 MSTORE", stages=EVERYTHING & ~Stage[off])
    assert stats.stores_dropped == 0


def test_without_fold_pure_instructions_still_pass_cse() -> None:
    _, stats = folded("CALLER PUSH 0 ADD CALLER PUSH 0 ADD", stages=Stage.CSE)
    assert stats.folded == 0
    assert stats.shared == 2


# -- EXP and budgets ------------------------------------------------------------------------------------------------


def test_a_constant_power_is_folded_and_its_price_joins_the_section() -> None:
    block, _ = folded("PUSH 0x0100 PUSH 3 EXP")
    assert block.gas == 3 + 3 + 10 + 50 * 2
    assert block.instructions == []


def test_a_power_that_became_a_shift_still_pays_by_its_exponent() -> None:
    assert fold_steps("PUSH 2 EXP") == ["Unspill -1", "ExpGas $0", "Shl $0 #1", "Spill $1 -1"]


def test_where_gas_may_fall_the_price_of_a_folded_power_is_forgotten() -> None:
    assert "ExpGas $0" not in fold_steps("PUSH 2 EXP", Mode.OPTIMISATION)


def test_with_its_fuel_spent_the_engine_emits_what_it_is_given() -> None:
    made = engine()
    made.fuel = 0
    result = value(made, "ADD", made.const(2), made.const(3))
    assert result.op == "ADD"


def test_a_result_of_several_instructions_waits_until_the_old_ones_have_no_other_use() -> None:
    made = engine()
    x, y, _ = made.block.params
    shared = value(made, "MUL", x, y)
    value(made, "NOT", shared)
    result = value(made, "ADD", value(made, "ADD", shared, made.const(3)), x)
    assert result.op == "ADD"


def test_an_empty_table_folds_nothing() -> None:
    made = engine()
    made.table = RuleTable()
    assert value(made, "ADD", made.const(2), made.const(3)).op == "ADD"
