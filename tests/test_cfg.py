"""Control flow: jumps through constants on the stack, loops, and what cannot be known."""

from __future__ import annotations

import random
import time
from xml.etree import ElementTree

from fusevm.control_flow.graph import Cfg, control_flow
from fusevm.control_flow.view import as_data, as_dot, as_svg, as_text
from fusevm.evm.assembly import assemble


def graph_of(text: str) -> Cfg:
    return control_flow(assemble(text))


def edges(cfg: Cfg) -> set[tuple[int, int]]:
    return {(start, to) for start, node in cfg.nodes.items() if node.reached for to in node.successors}


def test_a_pushed_target_is_an_edge() -> None:
    assert edges(graph_of("PUSH @a JUMP a: JUMPDEST STOP")) == {(0, 3)}


def test_a_branch_has_both_ways() -> None:
    cfg = graph_of("CALLVALUE PUSH @a JUMPI STOP a: JUMPDEST STOP")
    assert edges(cfg) == {(0, 4), (0, 5)}


def test_a_branch_on_a_constant_has_one_way() -> None:
    assert edges(graph_of("PUSH 1 PUSH @a JUMPI STOP a: JUMPDEST STOP")) == {(0, 6)}
    assert edges(graph_of("PUSH 0 PUSH @a JUMPI STOP a: JUMPDEST STOP")) == {(0, 4)}


def test_a_flag_that_was_tested_is_known_on_the_way_taken() -> None:
    """As compilers write try and catch: the first branch hands on a zero, the other way a one."""
    cfg = graph_of(
        "PUSH @end CALLER CALLVALUE DUP1 ISZERO PUSH @catch JUMPI POP PUSH 7 PUSH 1 "
        "catch: JUMPDEST PUSH @ok JUMPI POP JUMP ok: JUMPDEST POP POP JUMP end: JUMPDEST STOP"
    )
    assert not cfg.has_unknown_jumps
    assert cfg.nodes[max(cfg.nodes)].reached


def test_a_jump_to_no_jumpdest_is_bad_and_no_edge() -> None:
    node = graph_of("PUSH 1 JUMP").nodes[0]
    assert node.bad_jump
    assert node.successors == ()


def test_a_function_called_twice_returns_to_both_callers_and_makes_no_loop() -> None:
    cfg = graph_of("PUSH @r1 PUSH @f JUMP r1: JUMPDEST PUSH @r2 PUSH @f JUMP r2: JUMPDEST STOP f: JUMPDEST JUMP")
    assert cfg.nodes[13].taken == (5, 11)
    assert not cfg.has_unknown_jumps
    assert not cfg.loops.by_header


def test_nested_calls_return_through_every_level() -> None:
    cfg = graph_of(
        "PUSH @r1 PUSH @f JUMP r1: JUMPDEST PUSH @r2 PUSH @f JUMP r2: JUMPDEST STOP "
        "f: JUMPDEST PUSH @r3 PUSH @g JUMP r3: JUMPDEST JUMP g: JUMPDEST PUSH 1 POP JUMP"
    )
    assert not cfg.has_unknown_jumps
    assert cfg.nodes[19].taken == (5, 11)


def test_masked_code_addresses_are_followed() -> None:
    cfg = graph_of("PUSH @f PUSH 0xffff AND JUMP f: JUMPDEST STOP")
    assert cfg.nodes[0].taken == (7,)


def test_constants_that_differ_where_ways_join_are_not_followed() -> None:
    cfg = graph_of("PUSH 1 CALLVALUE PUSH @b JUMPI POP PUSH 2 b: JUMPDEST PUSH 13 ADD JUMP STOP JUMPDEST JUMPDEST")
    assert cfg.nodes[9].unknown


def test_an_unknown_jump_may_reach_every_jumpdest() -> None:
    cfg = graph_of("PUSH 0 CALLDATALOAD JUMP JUMPDEST STOP JUMPDEST STOP")
    assert cfg.nodes[0].unknown
    assert all(node.reached for node in cfg.nodes.values())


def test_a_return_from_code_an_unknown_jump_may_enter_is_unknown() -> None:
    cfg = graph_of("PUSH @r PUSH @f JUMP r: JUMPDEST PUSH 0 CALLDATALOAD JUMP f: JUMPDEST JUMP")
    assert cfg.nodes[9].unknown


def test_nested_loops_know_header_latch_exits_and_depth() -> None:
    cfg = graph_of("outer: JUMPDEST CALLVALUE inner: JUMPDEST CALLER PUSH @inner JUMPI CALLER PUSH @outer JUMPI STOP")
    outer, inner = cfg.loops.by_header[0], cfg.loops.by_header[2]
    assert (inner.parent, inner.depth, inner.latches, inner.exits) == (0, 2, (2,), ((2, 7),))
    assert (outer.parent, outer.depth, outer.latches, outer.exits) == (None, 1, (7,), ((7, 11),))
    assert outer.body == {0, 2, 7}


def test_a_loop_that_calls_a_function_holds_its_blocks() -> None:
    cfg = graph_of("loop: JUMPDEST PUSH @r PUSH @f JUMP r: JUMPDEST CALLER PUSH @loop JUMPI STOP f: JUMPDEST JUMP")
    assert cfg.loops.by_header[0].body == {0, 6, 12}


def test_a_cycle_with_two_entries_is_irreducible() -> None:
    cfg = graph_of("CALLER PUSH @b JUMPI a: JUMPDEST CALLVALUE PUSH @b JUMPI STOP b: JUMPDEST PUSH @a JUMP")
    assert not cfg.loops.by_header
    assert cfg.loops.irreducible


def test_a_loop_header_whose_address_waits_on_the_stack_is_found() -> None:
    cfg = graph_of("PUSH @loop loop: JUMPDEST CALLER DUP2 JUMPI STOP")
    assert 2 in cfg.loops.by_header


def test_thousands_of_jumps_into_each_other_stay_inside_the_budget_and_sound() -> None:
    rng = random.Random(7)
    text = "".join(f"l{n}: JUMPDEST CALLER PUSH2 @l{rng.randrange(2000)} JUMPI " for n in range(2000))
    cfg = graph_of(text + "CALLDATASIZE JUMP")
    last = cfg.nodes[max(cfg.nodes)]
    assert last.unknown
    assert all(node.unknown or node.taken for node in cfg.nodes.values() if node.block.last.name == "JUMPI")


def test_a_long_block_in_many_states_stays_inside_the_budget_and_sound() -> None:
    """Addresses on the stack change places in a loop, in as many ways as there are permutations."""
    addresses = " ".join(f"PUSH2 @a{n}" for n in range(12))
    long = "CALLER POP " * 10_000
    dests = " ".join(f"a{n}: JUMPDEST" for n in range(12))
    code = assemble(
        f"{addresses} loop: JUMPDEST {long} CALLER PUSH2 @other JUMPI SWAP1 CALLER PUSH2 @loop JUMPI JUMP "
        f"other: JUMPDEST SWAP2 SWAP5 SWAP11 CALLER PUSH2 @loop JUMPI JUMP {dests}"
    )
    began = time.process_time()
    cfg = control_flow(code)
    assert time.process_time() - began < 5
    assert cfg.budget_spent
    assert all(node.reached for node in cfg.nodes.values())
    assert {node.block.last.name for node in cfg.nodes.values() if node.unknown} == {"JUMP"}
    assert cfg.nodes[len(code) - 12].falls == len(code) - 11


def test_a_function_that_returns_to_either_of_two_addresses_returns_to_both() -> None:
    cfg = graph_of(
        "PUSH @one PUSH @two PUSH @f JUMP one: JUMPDEST STOP two: JUMPDEST STOP "
        "f: JUMPDEST CALLER PUSH @swapped JUMPI JUMP swapped: JUMPDEST SWAP1 JUMP"
    )
    assert not cfg.has_unknown_jumps
    assert (cfg.nodes[16].taken, cfg.nodes[17].taken) == ((9,), (7,))


def test_functions_that_call_each_other_return_to_all_their_callers() -> None:
    cfg = graph_of(
        "PUSH @end PUSH @even JUMP end: JUMPDEST STOP "
        "even: JUMPDEST CALLER PUSH @leave JUMPI PUSH @a PUSH @odd JUMP a: JUMPDEST JUMP "
        "odd: JUMPDEST CALLER PUSH @leave JUMPI PUSH @b PUSH @even JUMP b: JUMPDEST JUMP leave: JUMPDEST JUMP"
    )
    end, a, b, leave = 5, 17, 29, 31
    assert not cfg.has_unknown_jumps
    assert not cfg.loops.by_header
    assert [cfg.nodes[block].taken for block in (a, b, leave)] == [(end, b), (a,), (end, a, b)]


def test_an_address_that_is_masked_in_the_function_it_is_given_to_is_followed() -> None:
    cfg = graph_of("PUSH @r PUSH @f JUMP r: JUMPDEST STOP f: JUMPDEST PUSH 0xffff AND JUMP")
    assert not cfg.has_unknown_jumps
    assert cfg.nodes[7].taken == (5,)


def test_an_address_that_is_computed_is_followed_to_where_it_waits_for() -> None:
    cfg = graph_of("PUSH 5 PUSH 4 ADD PUSH @f JUMP STOP r: JUMPDEST STOP f: JUMPDEST JUMP")
    assert cfg.nodes[11].taken == (9,)


def test_stacks_that_grow_in_a_loop_do_not_run_away() -> None:
    cfg = graph_of("loop: JUMPDEST PUSH @loop DUP1 JUMP")
    assert edges(cfg) == {(0, 0)}


def test_views_show_blocks_edges_and_loops() -> None:
    cfg = graph_of("loop: JUMPDEST CALLER PUSH @loop JUMPI STOP")
    assert as_text(cfg) == (
        "2 blocks, 2 reached, 0 unknown jumps, 1 loops\n"
        "block 0x0000: 4 instructions -> jump 0x0000, fall 0x0005  (loop)\n"
        "block 0x0005: 1 instruction -> stop\n"
        "loop 0x0000: depth 1, 1 blocks, latches 0x0000, exits 0x0000->0x0005\n"
    )
    assert "b0 -> b5 [style=dashed]" in as_dot(cfg)
    assert as_data(cfg)["loops"][0]["header"] == 0
    drawn = ElementTree.fromstring(as_svg(cfg))
    assert {group.get("id") for group in drawn.iter("{http://www.w3.org/2000/svg}g")} == {"b0", "b5"}
