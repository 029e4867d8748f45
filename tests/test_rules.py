"""The rule base: its form, its proofs, why rewriting ends, and that every rule earns its place."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from conftest import first
from fusevm.cli import rules as command
from fusevm.evm.forks import LATEST, Fork
from fusevm.evm.opcodes import BY_NAME
from fusevm.evm.words import INTEGERS, MEANINGS, Integers
from fusevm.rules.families import FAMILIES, RULES, by_root, engine_rules, range_rules, yul_rules
from fusevm.rules.families.notation import high, less, low, mirrored, not_greater, orders, power_of_two, ranged, rule
from fusevm.rules.pattern import (
    ADD,
    ADDRESS,
    AND,
    BALANCE,
    BITS,
    BYTE,
    ENGINE,
    EXP,
    ISZERO,
    LT,
    MAX,
    MOD,
    MUL,
    NATIVE,
    SELFBALANCE,
    SHL,
    SUB,
    YUL,
    A,
    B,
    Node,
    Rule,
    Tree,
    V,
    VariableKind,
    X,
    Y,
    evaluate,
    facts,
    metas,
    nodes,
    tree,
)  # fmt: skip
from fusevm.rules.prove import prove, prove_at
from fusevm.rules.termination import ENGINE_ORDER, YUL_ORDER, Grows, check, gas
from plainmatching import Trees, build, match, rewrite
from ruleterms import (
    EDGES,
    LEAVES,
    TREES,
    example,
    first_match,
    numbers,
    random_step,
    random_term,
    random_word,
    reachable,
)


def named(name: str) -> Rule:
    (found,) = [each for each in RULES if each.name == name]
    return found


# -- the form -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "equation"),
    [
        ("add-zero", "ADD(X, 0) → X"),
        ("add-constants", "ADD(A, B) → A + B"),
        ("shl-shl", "SHL(B, SHL(A, X)) → SHL(A + B, X)  if A + B < bits"),
        ("mod-power", "MOD(X, A) → AND(X, A - 1)  if A = 2^k"),
        ("and-or-covered", "AND(OR(X, A), B) → B  if B ⊆ A"),
        ("lt-sum-wraps", "LT(ADD(X, A), X) → LT(~A, X)"),
        ("balance-of-self", "BALANCE(ADDRESS()) → SELFBALANCE()"),
        ("lt-not-greater", "LT(X, Y) → 0  if Y ≤ X"),
        ("signextend-fits", "SIGNEXTEND(A, X) → X  if A < bytes and high(X) < low_sign(A)"),
    ],
)
def test_the_equation_is_written_from_the_rule_itself(name: str, equation: str) -> None:
    assert named(name).equation == equation


def test_names_are_unique() -> None:
    assert [name for name, times in Counter(each.name for each in RULES).items() if times > 1] == []


def test_there_are_at_least_250_equations() -> None:
    assert len({each.equation_name for each in RULES}) >= 250


def test_every_pure_opcode_of_constants_is_folded() -> None:
    assert [each.pattern.op for each in FAMILIES["constants"]] == list(MEANINGS)


def test_an_opcode_is_built_with_as_many_operands_as_it_takes() -> None:
    with pytest.raises(ValueError, match="ADD takes 2 operands, not 3"):
        ADD(X, Y, 1)


def test_every_metavariable_of_a_result_or_condition_stands_in_the_pattern() -> None:
    for each in RULES:
        known = set(metas(each.pattern))
        assert {meta for fact in each.facts for meta in fact.of} <= known, each.name
        assert not set(facts(each.result)), each.name
        assert {meta for part in (each.result, *each.when, *each.given) for meta in metas(part)} <= known, each.name
        assert all(meta.kind is VariableKind.CONSTANT for part in (*each.when, *each.given) for meta in metas(part)), (
            each.name
        )


def test_conditions_and_computed_constants_compile_to_what_the_trees_mean() -> None:
    dice = random.Random(3)
    for each in RULES:
        names = sorted({meta.name for meta in metas(each.pattern) if meta.kind is VariableKind.CONSTANT})
        for _ in range(8 if names else 0):
            constants = {name: dice.choice(EDGES) for name in names}
            meant = all(evaluate(part, INTEGERS, constants) for part in each.when)
            assert bool(each.holds(constants)) == meant, each.name
    total = named("add-add-constants")
    assert isinstance(total.result, Node)
    assert total.number(total.result.args[1], {"A": MAX.at(256), "B": 2}) == 1


def test_orders_writes_every_operand_order_once() -> None:
    patterns = [each.pattern for each in orders("either", ADD(X, MUL(X, Y)), Y)]
    assert patterns == [ADD(X, MUL(X, Y)), ADD(X, MUL(Y, X)), ADD(MUL(X, Y), X), ADD(MUL(Y, X), X)]
    assert len(orders("same", ADD(X, Y), Y)) == 1  # the other order matches the same terms


def test_the_engine_skips_orders_with_a_constant_on_the_left() -> None:
    right, left = mirrored("zero", ADD(X, 0), X, solc=(1, 2))
    assert right.use == ENGINE | YUL
    assert left.use == YUL


# -- who reads which ----------------------------------------------------------------------------------------------


def test_solcs_212_rules_are_all_there_by_rank() -> None:
    ranks = [each.solc for each in yul_rules()]
    assert ranks == sorted(each for each in ranks if each is not None)
    assert set(ranks) == set(range(1, 213))


def test_the_exact_mode_reads_no_rule_that_solc_lacks() -> None:
    assert all(each.solc is not None for each in RULES if each.use & YUL)
    assert all(each.use & YUL for each in RULES if each.solc is not None)


@pytest.mark.parametrize(
    ("term", "result"),
    [
        (MOD(MUL(X, Y), 8), Node("MULMOD", (X, Y, tree(8)))),  # before MOD by a power of two becomes AND
        (MOD(X, 8), AND(X, 7)),
        (SUB(X, 1), ADD(X, MAX.at(256))),
        (ADD(ADD(1, X), Y), ADD(ADD(X, Y), 1)),
        (EXP(2, X), SHL(X, 1)),
    ],
)
def test_the_exact_mode_takes_the_first_rule_of_the_outermost_opcode(term: Node, result: Tree) -> None:
    found = first_match(numbers(term), by_root(yul_rules()))
    assert found is not None
    assert rewrite(found, numbers(term), TREES) == numbers(result)


def test_a_fork_gets_no_rule_whose_result_it_cannot_run() -> None:
    for each in (*engine_rules(Fork.BYZANTIUM), *yul_rules(Fork.BYZANTIUM)):
        shown = {node.op for node in nodes(each.pattern)}
        made = build(each.result, example(each), TREES)
        assert all(BY_NAME[node.op].since <= Fork.BYZANTIUM or node.op in shown for node in nodes(made)), each.name
    assert named("mul-power").since == Fork.CONSTANTINOPLE
    assert named("balance-of-self").since == Fork.ISTANBUL


def test_rules_that_are_dearer_as_bytecode_are_for_execution_only() -> None:
    for each in engine_rules(native=False):
        assert gas(each.result) <= gas(each.pattern), each.name
    assert all(gas(each.result) <= gas(each.pattern) for each in range_rules())
    assert {each.name for each in engine_rules()} - {each.name for each in engine_rules(native=False)} == {
        each.name for each in RULES if each.use == NATIVE
    }


def test_axioms_say_where_they_are_said() -> None:
    axioms = [each for each in RULES if each.axiom is not None]
    assert {each.family for each in axioms} == {"environment"}
    assert all(each.axiom and each.axiom.startswith(("EIP-", "Yellow Paper")) for each in axioms)


def test_the_documentation_counts_the_families_as_they_are() -> None:
    page = (Path(__file__).resolve().parent.parent / "docs" / "rules.md").read_text("utf-8")
    for name, members in FAMILIES.items():
        equations = len({each.equation_name for each in members})
        ranks = len({each.solc for each in members if each.solc is not None})
        assert f"| {name} | {len(members)} | {equations} | {ranks} |" in page


# -- matching -----------------------------------------------------------------------------------------------------


def test_a_repeated_metavariable_stands_for_the_same_value() -> None:
    assert match(named("sub-self"), SUB(X, X), TREES) is not None
    assert match(named("sub-self"), SUB(X, Y), TREES) is None


def test_a_match_binds_values_and_numbers_and_builds_the_result() -> None:
    found = match(named("add-add-constants"), numbers(ADD(ADD(Y, 3), 4)), TREES)
    assert found is not None
    assert (found.values, found.constants) == ({"X": Y, "A": tree(3), "B": tree(4)}, {"A": 3, "B": 4})
    assert build(found.rule.result, found, TREES) == numbers(ADD(Y, 7))


def test_v_is_no_constant_and_p_is_a_truth() -> None:
    assert match(named("add-order"), ADD(1, 2), TREES) is None
    assert match(named("iszero-iszero-boolean"), ISZERO(ISZERO(LT(X, Y))), TREES) is not None
    assert match(named("iszero-iszero-boolean"), ISZERO(ISZERO(AND(X, LT(X, Y)))), TREES) is not None
    assert match(named("iszero-iszero-boolean"), ISZERO(ISZERO(X)), TREES) is None


def test_a_view_may_refuse_terms_to_metavariables() -> None:
    class Flat(Trees):
        def admits(self, term: Tree) -> bool:
            return not isinstance(term, Node)

    assert match(named("add-zero"), ADD(MUL(X, Y), 0), TREES) is not None
    assert match(named("add-zero"), ADD(MUL(X, Y), 0), Flat()) is None


def test_environment_rules_match_what_they_are_about() -> None:
    assert rewrite(named("balance-of-self"), BALANCE(ADDRESS()), TREES) == SELFBALANCE()


# -- proofs -------------------------------------------------------------------------------------------------------


def test_every_rule_is_proved_at_eight_bits() -> None:
    """In a process of its own: hundreds of questions, and z3 has crashed where thousands of other tests had run."""
    pytest.importorskip("z3")
    left = "[each.name for each in RULES if each.axiom is None and prove_at(each, 8) is None]"
    code = f"from fusevm.rules import RULES\nfrom fusevm.rules.prove import prove_at\nprint({left})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.stdout, done.returncode) == ("[]\n", 0), done.stderr


@pytest.mark.parametrize("family", first(2, ["narrowing", "counting", "shifts"]))
def test_rules_about_bytes_and_shifts_are_proved_at_sixteen_bits(family: str) -> None:
    """Eight bits hold only one byte."""
    pytest.importorskip("z3")
    assert [each.name for each in FAMILIES[family] if prove_at(each, 16) is None] == []


@pytest.mark.parametrize(
    "name", first(5, ["add-zero", "mul-power", "div-large", "mulmod-of-mod", "exp-of-two", "byte-shl"])
)
def test_each_way_of_proving_reaches_256_bits(name: str) -> None:
    pytest.importorskip("z3")
    assert prove(named(name)).text == "proved at 256"


@pytest.mark.parametrize(
    "wrong",
    [
        rule("grows", ADD(X, 1), X),
        rule("mask", MOD(X, 8), AND(X, 8)),
        rule("too-far", SHL(A, SHL(B, X)), SHL(A + B, X)),  # the sum wraps
        rule("last-byte", BYTE(A, X), 0, A > 1),
        rule("zero-too", MUL(X, A), SHL(BITS, X), power_of_two(A)),
        ranged("may-be-equal", LT(X, Y), 1, high(X) <= low(Y)),
        ranged("may-wrap", LT(ADD(X, A), B), LT(X, B - A), low(X) >= A),
        ranged("at-the-most", LT(X, Y), 1, not_greater(X, Y)),
        ranged("the-other-way", LT(X, Y), 0, less(X, Y)),
    ],
    ids=lambda each: each.name,
)
def test_a_wrong_rule_is_refuted_by_values_that_show_it(wrong: Rule) -> None:
    pytest.importorskip("z3")
    proof = prove(wrong)
    assert proof.verdict == "refuted"
    words, values = Integers(proof.widths[0]), dict(proof.counterexample or {})
    assert evaluate(wrong.pattern, words, values) != evaluate(wrong.result, words, values)
    assert all(evaluate(part, words, values) for part in wrong.assumed)


def test_the_laws_of_division_that_proofs_rest_on_hold_of_division() -> None:
    z3 = pytest.importorskip("z3")
    from fusevm.rules.domains import division_laws, monotony

    x, y, more, less = z3.BitVecs("x y more less", 8)
    laws = division_laws(x, y, z3.UDiv(x, y), z3.URem(x, y))
    laws += monotony(x, y, z3.UDiv(x, y), more, less, z3.UDiv(more, less))
    for law in laws:
        solver = z3.SolverFor("QF_BV")
        solver.add(z3.Not(law))
        assert solver.check() == z3.unsat, law


# -- why rewriting ends -------------------------------------------------------------------------------------------


def test_every_engine_rule_lowers_the_engines_order() -> None:
    lowered = Counter(check(each, ENGINE_ORDER) for each in engine_rules() + range_rules())
    assert set(lowered) == {"cost", "negatives", "order"}


def test_every_rule_of_the_exact_mode_lowers_that_modes_order() -> None:
    assert set(Counter(check(each, YUL_ORDER) for each in yul_rules())) == {"cost", "order"}


@pytest.mark.parametrize(
    "endless",
    [
        rule("turns", ADD(X, Y), ADD(Y, X)),
        rule("turns-constants", ADD(X, A), ADD(A, X)),
        rule("doubles", MUL(X, 2), ADD(X, X)),
        rule("unfolds", AND(X, Y), Node("NOT", (Node("OR", (Node("NOT", (X,)), Node("NOT", (Y,)))),))),
        rule("hops", ADD(ADD(X, A), Y), ADD(ADD(X, Y), A)),  # Y may be a constant: V may not
        rule("back", LT(X, Y), Node("GT", (Y, X))),
        rule("negates", SUB(X, A), ADD(X, -A)),
    ],
    ids=lambda each: each.name,
)
def test_a_rule_that_could_go_on_forever_is_caught(endless: Rule) -> None:
    with pytest.raises(Grows):
        check(endless, ENGINE_ORDER)


def test_v_makes_the_difference_between_ending_and_not() -> None:
    assert check(rule("moves", ADD(ADD(X, A), V), ADD(ADD(X, V), A)), ENGINE_ORDER) == "order"


@pytest.mark.parametrize("chosen", [engine_rules(), yul_rules()], ids=["engine", "yul"])
def test_rules_in_any_order_end_and_keep_the_value(chosen: tuple[Rule, ...]) -> None:
    dice = random.Random(20)
    proved = [each for each in chosen if each.axiom is None]
    roots, patterns = by_root(proved), [each.pattern for each in proved]
    for _ in range(400):
        term = random_term(dice, 4, patterns)
        worlds = [{leaf.name: random_word(dice) for leaf in LEAVES} for _ in range(3)]
        values = [evaluate(term, INTEGERS, world) for world in worlds]
        for _ in range(400):
            changed = random_step(term, roots, dice)
            if changed is None:
                break
            term, used = changed
            assert [evaluate(term, INTEGERS, world) for world in worlds] == values, used.name
        else:
            pytest.fail(f"still rewriting: {term}")


def test_every_engine_rule_is_the_first_to_match_some_term_with_irreducible_operands() -> None:
    """None is hidden by those before it, none waits for operands that other rules have already rewritten."""
    roots = by_root(engine_rules())
    dice = random.Random(7)
    assert [each.name for each in engine_rules(LATEST) if not reachable(each, roots, dice)] == []


# -- the command --------------------------------------------------------------------------------------------------

app = typer.Typer()
app.command()(command.rules)


def fusevm_rules(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments, env={"COLUMNS": "200"})


def test_the_command_lists_rules_with_their_equations() -> None:
    output = fusevm_rules("--family", "counting").output
    assert "ISZERO(CLZ(X)) → SLT(X, 0)" in output
    assert f"{len(FAMILIES['counting'])} rules" in output


def test_the_command_proves_a_family() -> None:
    pytest.importorskip("z3")
    result = fusevm_rules("--family", "counting", "--prove", "--workers", "1", "--json")
    document = json.loads(result.output)
    assert result.exit_code == 0
    assert document["proofs"]["proved at 256"] == len(FAMILIES["counting"])
    assert {each["verdict"] for each in document["rules"]} == {"proved"}


def test_the_command_fails_where_a_rule_does(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("z3")
    monkeypatch.setitem(FAMILIES, "counting", (rule("wrong", ADD(X, 1), X),))
    result = fusevm_rules("--family", "counting", "--prove", "--workers", "1")
    assert result.exit_code == 1
    assert "refuted at 256 by X = 0x" in result.output
