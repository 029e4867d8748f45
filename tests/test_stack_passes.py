"""Passes over stack code change what it costs, never what it does: random programs are run before and after each."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest

from fusevm import EVM
from fusevm.codegen.assembling import assembly_of
from fusevm.codegen.blocks import LABEL, PUSH, Code, StackBlock, StackProgram, Terminator
from fusevm.codegen.constants import constant, cost, gas_of
from fusevm.codegen.passes import join_blocks, merge_equal_blocks, merge_tails, negated, peephole, size_of, thread_jumps
from fusevm.codegen.pipeline import IMPROVE, Work, run_passes
from fusevm.codegen.placement import place
from fusevm.evm.assembler import assemble, push
from fusevm.evm.forks import Fork
from fusevm.ir.functions import Unit
from stackprograms import Ran, copied, random_stack_program, run_program, run_stack_code


def improve(program: StackProgram, runs: int) -> None:
    work = Work(Unit(), runs)
    work.program = program
    run_passes(work, IMPROVE)


PASSES: dict[str, Callable[[StackProgram], object]] = {
    "thread_jumps": thread_jumps,
    "join_blocks": join_blocks,
    "merge_equal_blocks": merge_equal_blocks,
    "merge_tails, size alone": lambda program: merge_tails(program, 216, 0),
    "merge_tails": lambda program: merge_tails(program, 216, 200),
    "peephole": peephole,
    "place": place,
    "all": lambda program: improve(program, 200),
}


@pytest.mark.parametrize("name", PASSES)
def test_a_pass_keeps_what_a_program_does(name: str) -> None:
    changed = 0
    for seed in range(150):
        program = random_stack_program(seed)
        before = run_program(program)
        after = copied(program)
        PASSES[name](after)
        assert before.agrees_with(run_program(after)), seed
        changed += (
            any(
                block.code != program.blocks[label].code or block.targets != program.blocks[label].targets
                for label, block in after.blocks.items()
                if label in program.blocks
            )
            or after.blocks.keys() != program.blocks.keys()
        )
    assert changed > 30


@pytest.mark.parametrize(
    ("code", "left"),
    [
        ("POP SWAP3 POP STOP", "STOP"),
        ("SSTORE POP 1 2 RETURN", "SSTORE 1 2 RETURN"),
        ("POP 1 RETURN", "POP 1 RETURN"),
        ("POP DUP1 2 RETURN", "POP DUP1 2 RETURN"),
        ("SWAP1 REVERT", "SWAP1 REVERT"),
        ("SWAP2 SELFDESTRUCT", "SWAP2 SELFDESTRUCT"),
        ("SWAP2 1 SELFDESTRUCT", "1 SELFDESTRUCT"),
    ],
)
def test_no_moves_are_made_before_a_frame_ends_but_for_its_operands(code: str, left: str) -> None:
    def read(text: str) -> list[Code]:
        return [Code(PUSH, int(word)) if word.isdigit() else Code(word) for word in text.split()]

    program = StackProgram()
    program.new().code = read(code)
    peephole(program)
    assert program.blocks[0].code == read(left)


def assembled(program: StackProgram) -> bytes:
    assembly = assembly_of(program, Unit(), 200)
    return assemble(assembly.items, assembly.fork).code


def test_a_program_laid_out_runs_as_its_blocks_say() -> None:
    """On the EVM: what falls through, what is jumped to, what is pushed."""
    ended = 0
    for seed in range(200):
        program = random_stack_program(seed)
        expected = run_program(program)
        if expected.end is None:
            continue
        ended += 1
        improve(program, Random(seed).choice((0, 200, 10_000)))
        evm = EVM(tier="reference")
        evm.set_code(b"\xc0" * 20, assembled(program))
        result = evm.call(b"\xc0" * 20, caller=bytes(19) + b"\xca", gas=10_000_000)
        storage = {key: word for key, word in evm.state.account(b"\xc0" * 20).storage.items() if word}
        assert result.status.name == {"STOP": "SUCCESS", "REVERT": "REVERT", "INVALID": "HALT"}[str(expected.end[0])]
        if result.ok:
            assert storage == {key: word for key, word in dict(expected.events).items() if word}, seed
    assert ended > 50


def test_the_order_holds_every_block_once_and_begins_with_the_entry() -> None:
    for seed in range(200):
        program = random_stack_program(seed)
        place(program)
        assert sorted(program.order) == sorted(program.blocks)
        assert program.order[0] == 0


def test_negated_code_leaves_zero_exactly_where_the_code_does_not() -> None:
    random = Random(5)
    numbers = (0, 1, 2, 3, 255, 256, 2**255, 2**256 - 2, 2**256 - 1)
    shorter = 0
    for _ in range(6_000):
        code = [random.choice((Code(PUSH, random.choice(numbers)), Code("CALLER"), Code("DUP2"), Code("DUP1")))]
        code += [random.choice((Code(PUSH, random.choice(numbers)), Code("CALLER"), Code("DUP3"), Code("DUP1")))]
        code += [Code(random.choice(("LT", "GT", "EQ", "SUB", "XOR", "ADD", "SLT", "AND")))]
        code += [Code("ISZERO")] * random.choice((0, 0, 1))
        turned = negated(list(code))
        shorter += len(turned) <= len(code)
        words = [random.choice(numbers) for _ in range(3)]
        one, other = list(words), list(words)
        run_stack_code(code, one, Ran())
        run_stack_code(turned, other, Ran())
        assert (one[-1] == 0) == (other[-1] != 0), (code, turned, words)
        assert one[:-1] == other[:-1] == words
    assert shorter > 1_000


def test_negating_twice_is_no_longer_than_the_code_and_an_iszero() -> None:
    for op in ("LT", "GT", "EQ", "SUB", "XOR", "SLT"):
        code = [Code("DUP2"), Code("DUP2"), Code(op)]
        assert len(negated(negated(code))) <= len(code) + 1


# -- constants --------------------------------------------------------------------------------------------------------


def words_of_all_shapes() -> list[int]:
    random = Random(3)
    words = [0, 1, 255, 256, 2**256 - 1, 2**255, 2**160 - 1, 2**160, 2**256 - 2**32, 0xA9059CBB << 224]
    words += [1 << bit for bit in range(0, 256, 11)] + [(1 << bit) - 1 for bit in range(1, 256, 13)]
    words += [random.getrandbits(bits) << random.randrange(257 - bits) for bits in (1, 8, 20, 64, 160, 256) * 8]
    return words + [word ^ 2**256 - 1 for word in words]


@pytest.mark.parametrize(
    "fork", [Fork.FRONTIER, Fork.BYZANTIUM, Fork.CONSTANTINOPLE, Fork.LONDON, Fork.SHANGHAI, Fork.OSAKA]
)
def test_a_constant_is_pushed_as_it_is_on_every_fork(fork: Fork) -> None:
    evm = EVM(fork=fork.label, tier="reference")
    for word in words_of_all_shapes():
        for runs in (0, 1, 200, 10**6):
            code = constant(word, fork, runs)
            evm.set_code(b"\xc0" * 20, code + bytes.fromhex("60005260206000f3"))
            result = evm.call(b"\xc0" * 20, gas=100_000)
            assert int.from_bytes(result.output, "big") == word, (hex(word), code.hex())
            plain = push(word, fork)
            assert cost(code, runs) <= cost(plain, runs)


def test_the_gas_of_a_constant_is_what_it_takes() -> None:
    evm = EVM(tier="reference")
    for word in words_of_all_shapes()[::5]:
        code = constant(word, Fork.OSAKA, 0)
        evm.set_code(b"\xc0" * 20, code)
        assert evm.call(b"\xc0" * 20, gas=100_000).gas_used == gas_of(code)


def test_a_mask_of_an_address_takes_five_bytes() -> None:
    assert constant(2**160 - 1, Fork.OSAKA, 0).hex() == "5f1960601c"  # PUSH0 NOT PUSH1 96 SHR


# -- merging ----------------------------------------------------------------------------------------------------------


def block(
    program: StackProgram, code: list[Code], end: Terminator = Terminator.HALT, targets: tuple[int, ...] = ()
) -> StackBlock:
    made = program.new()
    made.code, made.end, made.targets = code, end, targets
    return made


def test_equal_blocks_become_one_and_all_ways_lead_to_it() -> None:
    program = StackProgram()
    block(program, [Code("CALLER")], Terminator.BRANCH, (1, 2))
    block(program, [Code("STOP")])
    block(program, [Code("STOP")])
    assert merge_equal_blocks(program)
    assert program.blocks.keys() == {0, 1}
    assert program.blocks[0].targets == (1, 1)


def test_a_long_end_is_shared_and_a_short_one_is_not() -> None:
    fails = [Code(PUSH, 2**250 + 1), Code(PUSH), Code("MSTORE"), Code(PUSH, 32), Code(PUSH), Code("REVERT")]
    program = StackProgram()
    block(program, [Code("CALLER")], Terminator.BRANCH, (1, 2))
    block(program, [Code(PUSH, 1), Code("POP"), *fails])
    block(program, [Code(PUSH, 2), Code("POP"), *fails])
    merge_tails(program, 216, 10_000)
    assert sum(size_of(code) for each in program.blocks.values() for code in each.code) < 2 * sum(map(size_of, fails))
    short = StackProgram()
    block(short, [Code("CALLER")], Terminator.BRANCH, (1, 2))
    block(short, [Code("NUMBER"), Code("POP"), Code("STOP")])
    block(short, [Code("CALLER"), Code("POP"), Code("STOP")])
    merge_tails(short, 216, 10_000)
    assert len(short.blocks) == 3


def test_ways_through_empty_blocks_are_shortened_and_a_circle_is_left() -> None:
    program = StackProgram()
    block(program, [Code(LABEL, 1), Code("POP")], Terminator.JUMP, (1,))
    block(program, [], Terminator.JUMP, (2,))
    block(program, [], Terminator.JUMP, (3,))
    block(program, [Code("STOP")])
    thread_jumps(program)
    assert program.blocks.keys() == {0, 3}
    assert program.blocks[0].code[0] == Code(LABEL, 3)
    circle = StackProgram()
    block(circle, [Code("CALLER"), Code("POP")], Terminator.JUMP, (1,))
    block(circle, [], Terminator.JUMP, (2,))
    block(circle, [], Terminator.JUMP, (1,))
    thread_jumps(circle)
    assert not run_program(circle).end


# -- placement --------------------------------------------------------------------------------------------------------


def test_a_branch_is_not_turned_by_an_iszero_where_the_frame_fails_next() -> None:
    """JUMPI costs the same both ways: falling into the failure saves the ISZERO of every run that does not fail."""
    program = StackProgram()
    block(program, [Code("CALLDATASIZE")], Terminator.BRANCH, (1, 2))
    block(program, [Code(PUSH, 1), Code(PUSH), Code("SSTORE"), Code("STOP")])
    block(program, [Code(PUSH), Code(PUSH), Code("REVERT")])
    place(program)
    assert program.order == [0, 2, 1]
    assert Code("ISZERO") not in program.blocks[0].code


def test_a_branch_that_turns_for_nothing_falls_into_what_runs_most() -> None:
    program = StackProgram()
    block(program, [Code("CALLER"), Code("ORIGIN"), Code("EQ")], Terminator.BRANCH, (1, 2))
    block(program, [Code(PUSH, 1), Code(PUSH), Code("SSTORE"), Code("STOP")])
    block(program, [Code(PUSH), Code(PUSH), Code("REVERT")])
    place(program)
    assert program.order == [0, 1, 2]
    assert program.blocks[0].code[-1] == Code("SUB")
