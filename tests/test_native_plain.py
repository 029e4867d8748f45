"""New code runs on a plain schedule, and on a fused one once that is worth preparing: only the clock can tell."""

from __future__ import annotations

import ctypes
import random
import struct
from array import array

import pytest

from fusevm import EVM
from fusevm.chain.addresses import create_address
from fusevm.chain.outcome import EngineLimit
from fusevm.evm.assembly import assemble
from fusevm.evm.bytecode import JUMPDEST, jumpdests
from fusevm.evm.forks import LATEST, Fork
from fusevm.evm.halts import HaltReason
from fusevm.native.emit.build import library
from fusevm.native.host import code_cache, direct
from fusevm.native.host import engine as machinery
from fusevm.native.host.choice import NEW_SIZE
from fusevm.native.host.plain import PlainSchedule, PlainScheduler
from fusevm.native.host.tables import Tables
from fusevm.native.host.tiers import engine
from fusevm.native.runtime.landings import NEAR
from fusevm.native.runtime.plain import ORIGIN_SIZE
from nativeprograms import Case, agreed, agreed_at_every_gas
from programs import HERE, NOBODY, OTHER, call, deployer

SLICE = 200_000  # gas, where a test needs many slices
SPIN = "PUSH3 {times} loop: JUMPDEST PUSH1 1 SWAP1 SUB DUP1 PUSH1 @loop JUMPI POP "
EFFECTS = f"PUSH1 7 PUSH1 1 SSTORE PUSH1 8 PUSH1 2 TSTORE PUSH0 PUSH0 LOG0 {call(NOBODY, value=1)} POP "
TO_DATA = assemble("PUSH0 CALLDATALOAD JUMP")
ODD = [b"", b"\x5b", b"\x60", b"\x7f\x01\x02", b"\x5b\x57\x5b", bytes.fromhex("5a5a5b5a00"), b"\xfe\x5b", b"\x58" * 40]


@pytest.fixture
def plainly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is ever worth preparing."""
    monkeypatch.setattr(code_cache, "PREPARING", 1e9)
    engine(tiered=True).codes.forget()


def code_of(rng: random.Random) -> bytes:
    common = bytes.fromhex("5b5b60005f56575a0001025054f1f0fe7f618081")
    return bytes(rng.choice(common) if rng.random() < 0.8 else rng.randrange(256) for _ in range(rng.randrange(60)))


@pytest.mark.parametrize("counts", [False, True])
@pytest.mark.parametrize("fork", [Fork.FRONTIER, Fork.BYZANTIUM, Fork.LONDON, LATEST])
def test_what_native_code_writes_is_what_python_says_stands_there(fork: Fork, counts: bool) -> None:
    """Block by block, as jumps land; the last section of what is written at a time may be cut short."""
    rng, handlers = random.Random(str(fork)), library().handlers
    for code in [*ODD, *(code_of(rng) for _ in range(400)), *(code_of(rng) * 30 for _ in range(20))]:
        tables = engine(tiered=True).tables
        scheduler = PlainScheduler(library(), handlers, tables)
        scheduler.forget()
        schedule = scheduler.schedule(code, fork, counts=counts)
        targets = sorted(jumpdests(code), key=lambda _: rng.random())
        for pc in targets:
            if not landing(schedule, pc):
                scheduler.block(schedule, pc)
        shared, words = tables.shared, array("Q", tables.plain_words.read(0, 8 * tables.shared.plain_count))
        assert {pc for pc in range(len(code)) if landing(schedule, pc)} == jumpdests(code)
        starts = []
        for number in range(shared.origin_count):
            at, pc, opens = origin = scheduler.origin(first_word(tables, number))
            starts.append(at)
            units = scheduler.section(schedule, fork, at)
            assert not counts or words[at] == handlers.addresses["COUNT",]
            stop = first_word(tables, number + 1) if number + 1 < shared.origin_count else shared.plain_count
            for unit in units:
                if unit.at < stop and words[unit.at] not in (handlers.addresses["MORE",], handlers.addresses["JUMP@",]):
                    assert words[unit.at] == handlers.addresses[unit.sequence], (code.hex(), origin)
            assert not opens or pc >= len(code) or code[pc] != JUMPDEST or landing(schedule, pc)
        assert starts == sorted(starts)
        for pc in targets:
            assert scheduler.origin(landing(schedule, pc)) == (landing(schedule, pc), pc, True)
    engine(tiered=True).codes.forget()


def landing(schedule: PlainSchedule, pc: int) -> int:
    (found,) = struct.unpack_from("<I", ctypes.string_at(schedule.jumps_base + 4 * pc, 4))
    return int(found)


def first_word(tables: Tables, number: int) -> int:
    (at,) = struct.unpack("<Q", tables.plain_origins.read(number * ORIGIN_SIZE, 8))
    return int(at)


def tangled(rng: random.Random, size: int) -> bytes:
    """Code where most bytes may be PUSHes or inside another's data; here and there a row that tells."""
    common = rng.choice([b"\x60\x5b", b"\x60\x61\x62\x5b", bytes(range(0x5B, 0x80)), b"\x7f\x7e\x5b\x5f\x80"])
    code = bytearray(rng.choices(common, k=size))
    for _ in range(rng.choice([0, 0, 1, 4])):
        at = rng.randrange(size)
        code[at : at + 33] = rng.choices(b"\x5b\x00\x5f\x80", k=33)
    return bytes(code[:size])


@pytest.mark.usefixtures("plainly")
@pytest.mark.parametrize("size", [40, 150, 700, 2_000, 9_000])
def test_jumps_land_on_jumpdests_however_far_one_must_look(size: int) -> None:
    rng, evm = random.Random(size), EVM(tier="native-tiered")
    for _ in range(max(60_000 // size // 10, 2)):
        code = TO_DATA + tangled(rng, size)
        evm.set_code(HERE, code)
        valid = jumpdests(code)
        looking = [pc for pc in range(len(code)) if code[pc] == JUMPDEST]
        for pc in rng.sample(looking, min(len(looking), 12)) + rng.sample(range(len(code) + 2), 2):
            assert lands(evm, pc) == (pc in valid), (code.hex(), pc)


@pytest.mark.usefixtures("plainly")
@pytest.mark.parametrize(
    "before", [b"", b"\x7f" + bytes(31) + b"\x60", b"\x7f" + bytes(31) + b"\x61", b"\x7e" + bytes(20)]
)
def test_a_row_of_pushes_is_followed_from_where_it_begins(before: bytes) -> None:
    """Its length alone tells whether what follows is data; the row begins where one looks first, or near it."""
    evm = EVM(tier="native-tiered")
    for length in range(NEAR - 70, NEAR + 10):
        code = TO_DATA + bytes(NEAR) + before + b"\x60" * length + b"\x5b\x5b"
        evm.set_code(HERE, code)
        for pc in (len(code) - 2, len(code) - 1):
            assert lands(evm, pc) == (pc in jumpdests(code)), code.hex()


@pytest.mark.usefixtures("plainly")
@pytest.mark.parametrize("pushed", range(1, 33))
def test_rows_of_one_kind_of_push_are_told_apart_from_their_data(pushed: int) -> None:
    """Every byte but the JUMPDESTs is that PUSH, so any of them may be data; the last PUSH may be cut short."""
    rng, evm = random.Random(pushed), EVM(tier="native-tiered")
    for size in (pushed, NEAR + 8, 3_000):
        for shift in range(3):
            row = bytearray(bytes([0x5F + pushed]) * (size + shift))
            for at in rng.sample(range(len(row)), min(len(row), 40)):
                row[at] = JUMPDEST
            code = TO_DATA + bytes(shift) + bytes(row) + b"\x5b" * shift + bytes([0x5F + pushed]) * rng.randrange(2)
            evm.set_code(HERE, code)
            looking = [pc for pc in range(len(code)) if code[pc] == JUMPDEST]
            for pc in rng.sample(looking, len(looking)):  # in any order: some end where others have been
                assert lands(evm, pc) == (pc in jumpdests(code)), (code.hex(), pc)


@pytest.mark.usefixtures("plainly")
@pytest.mark.parametrize("period", [b"\x60\x60", b"\x60\x61\x61\x60\x62\x62\x60\x61\x60", b"\x7f" * 33 + b"\x60"])
def test_targets_far_into_large_code_are_told_wherever_the_walk_has_come_to(period: bytes) -> None:
    rng, evm = random.Random(len(period)), EVM(tier="native-tiered")
    body = bytearray((period * 24_000)[:24_000])
    for at in rng.sample(range(24_000), 60):
        body[at] = JUMPDEST
    code = TO_DATA + bytes(body)
    evm.set_code(HERE, code)
    looking = [pc for pc in range(len(code)) if code[pc] == JUMPDEST]
    for pc in (*rng.sample(looking, 10), *looking[::-5], *looking):
        assert lands(evm, pc) == (pc in jumpdests(code)), pc


@pytest.mark.usefixtures("plainly")
@pytest.mark.parametrize("push", [0x60, 0x61, 0x70, 0x7E, 0x7F])
def test_a_walk_that_goes_past_where_it_is_met_says_the_same(push: int) -> None:
    evm = EVM(tier="native-tiered")
    for length in range(NEAR, NEAR + 180):
        code = TO_DATA + bytes([push]) * length + b"\x5b\x5b"
        evm.set_code(HERE, code)
        for pc in (len(code) - 2, len(code) - 1):
            assert lands(evm, pc) == (pc in jumpdests(code)), (length, pc)


def lands(evm: EVM, pc: int) -> bool:
    """Whether the jump of TO_DATA can go there."""
    failure = evm.simulate(HERE, pc.to_bytes(32, "big"), gas=200).failure
    return failure is None or failure.reason is not HaltReason.INVALID_JUMP or failure.pc != len(TO_DATA) - 1


@pytest.mark.usefixtures("plainly")
def test_forgotten_schedules_leave_nothing_in_the_arena_of_tables() -> None:
    rng, known = random.Random(5), engine(tiered=True).codes
    evm, tables = EVM(tier="native-tiered"), known._tables
    for number in range(40):
        code = TO_DATA + tangled(rng, 1_500)
        evm.set_code(number + 1_000, code)
        for pc in sorted(jumpdests(code))[:: 1 + len(jumpdests(code)) // 5]:
            evm.simulate(number + 1_000, pc.to_bytes(32, "big"), gas=1_000)
    used = tables.shared.plain_used
    assert used > 40 * 5 * 1_500
    assert any(tables.plain_tables.read(0, used))
    known.forget()
    assert not any(tables.plain_tables.read(0, used))
    assert tables.shared.plain_used == 0


@pytest.mark.usefixtures("plainly")
def test_random_bytes_run_plainly_as_on_the_reference_tier() -> None:
    rng = random.Random(7)
    for _ in range(300):
        agreed(Case(code_of(rng), {OTHER: code_of(rng)}), rng.choice([20, 300, 60_000]), tiers=("native-tiered",))


@pytest.mark.usefixtures("plainly")
@pytest.mark.parametrize(
    "program",
    [
        "PUSH1 1 PUSH1 2 ADD POP GAS POP PUSH0 SLOAD POP",
        f"{EFFECTS} PUSH0 PUSH0 REVERT",
        "PC PUSH1 @l JUMP INVALID l: JUMPDEST PUSH32 0x1234 PUSH9 0x1234 SUB PUSH8 0x77 ADD PUSH0 MSTORE",
        "NUMBER JUMP",
        "PUSH1 1 PUSH1 3 JUMPI STOP",
        "POP",
        "GAS GAS GAS POP POP POP POP",
    ],
)
def test_a_plain_run_at_every_amount_of_gas(program: str) -> None:
    case = Case(program, prepare=lambda evm: evm.set_balance(HERE, 5))
    used = agreed_at_every_gas(case, 100_000, most=400).gas_used
    for gas in sorted({*range(min(used + 2, 120)), *case.critical_gas(100_000)}):
        agreed(case, gas, tiers=("native-tiered",))


def test_code_is_run_plainly_until_that_took_as_long_as_preparing_it(monkeypatch: pytest.MonkeyPatch) -> None:
    known = without_policy(monkeypatch)
    code = assemble("PUSH1 5 PUSH0 MSTORE PUSH1 32 PUSH0 RETURN") + bytes(600) + b"once"
    evm = EVM(tier="native-tiered")
    evm.set_code(HERE, code)
    monkeypatch.setattr(code_cache, "PREPARING", 1e9)
    first = evm.call(HERE)
    assert known.schedules[code, LATEST].plain
    assert evm.call(HERE) == first
    monkeypatch.setattr(code_cache, "PREPARING", 0.0)
    for _ in range(2):
        assert evm.call(HERE) == first
    assert not known.schedules[code, LATEST].plain


def test_code_that_others_call_is_prepared_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    known = without_policy(monkeypatch)
    inner = assemble("PUSH1 9 PUSH0 MSTORE PUSH1 32 PUSH0 RETURN") + bytes(600) + b"inner"
    evm = EVM(tier="native-tiered")
    evm.set_code(HERE, assemble(f"{call(OTHER, out=32)} POP PUSH1 32 PUSH0 RETURN"))
    evm.set_code(OTHER, inner)
    monkeypatch.setattr(code_cache, "PREPARING", 1e9)
    first = evm.call(HERE)
    assert known.schedules[inner, LATEST].plain
    monkeypatch.setattr(code_cache, "PREPARING", 0.0)
    for _ in range(3):
        assert evm.call(HERE) == first
    assert not known.schedules[inner, LATEST].plain


def test_a_deployed_contract_is_expected_to_be_called(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its plain schedule is begun, and nothing is counted for it; a factory's contracts are not prepared."""
    known = without_policy(monkeypatch)
    known.forget()
    monkeypatch.setattr(code_cache, "PREPARING", 1e9)
    runtime = assemble("PUSH1 5 PUSH0 MSTORE PUSH1 32 PUSH0 RETURN") + bytes(NEW_SIZE) + b"expected"
    evm = EVM(tier="native-tiered")
    where = evm.deploy(deployer(runtime)).check().address
    expected = known.schedules[runtime, LATEST]
    assert expected.plain
    assert (runtime, LATEST) not in known._spent
    assert not known.in_use
    with monkeypatch.context() as patch:
        patch.setattr(direct, "_prepared", lambda *_: pytest.fail("there is something to prepare"))
        assert evm.call(where).check().output[-1] == 5
    assert known.schedules[runtime, LATEST] is expected
    known.forget()
    init = deployer(runtime)
    factory = assemble(f"PUSH2 {len(init)} DUP1 PUSH2 @init PUSH0 CODECOPY PUSH0 PUSH0 CREATE EXTCODESIZE init:") + init
    evm.set_code(HERE, factory)
    made = create_address(HERE, 0)
    assert evm.call(HERE).ok
    assert evm.get_code(made) == runtime
    assert (runtime, LATEST) not in known.schedules


def test_a_tier_asked_for_by_name_is_prepared_at_once() -> None:
    code = assemble("PUSH1 5 PUSH0 MSTORE PUSH1 32 PUSH0 RETURN") + bytes(600) + b"named"
    evm = EVM(tier="native")
    evm.set_code(HERE, code)
    assert evm.call(HERE).ok
    assert not engine().codes.schedules[code, LATEST].plain


def without_policy(monkeypatch: pytest.MonkeyPatch) -> code_cache.CodeCache:
    """What is known of codes, where nothing is counted or compiled: then slices are shorter, and schedules others."""
    known = engine(tiered=True).codes
    monkeypatch.setattr(known.hot_code, "policy", None)
    return known


@pytest.fixture
def changes(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Slices are small, and what has run for one is worth preparing: the code that frames changed over for."""
    made: list[bytes] = []
    prepared = code_cache.CodeCache.prepared

    def noting(self: code_cache.CodeCache, code: bytes, *place: int, **options: bool) -> tuple[int, int, int] | None:
        better = prepared(self, code, *place, **options)
        made.extend([code] if better else [])
        return better

    monkeypatch.setattr(machinery, "SLICE", SLICE)
    monkeypatch.setattr(code_cache.CodeCache, "is_worth_fusing", lambda self, code, seconds: seconds > 0)
    monkeypatch.setattr(code_cache.CodeCache, "prepared", noting)
    without_policy(monkeypatch).forget()
    return made


@pytest.mark.parametrize("gas", [SLICE * 3 // 4, SLICE + 1_000, 3 * SLICE + 12_345])
@pytest.mark.parametrize("ending", ["STOP", "PUSH0 PUSH0 REVERT", "INVALID", "NUMBER JUMP"])
def test_what_runs_long_goes_on_with_a_fused_schedule(changes: list[bytes], gas: int, ending: str) -> None:
    times = (gas - SLICE // 2) // 26
    evenly = SPIN.format(times=times)
    unevenly = SPIN.format(times=times).replace("PUSH1 1 SWAP1", "GAS POP PUSH1 1 SWAP1")
    for number, spin in enumerate((evenly, unevenly)):
        code = assemble(f"{EFFECTS} {spin} {EFFECTS} {ending}") + gas.to_bytes(8, "big") + bytes([number])
        for limit in (gas, gas // 2):
            agreed(Case(code, prepare=lambda evm: evm.set_balance(HERE, 10)), limit, tiers=("native-tiered",))
        if spin is evenly:  # in the other, slices also end in the middle of a block
            assert changes.count(code) == (gas > 2 * SLICE)


def test_a_frame_that_fails_while_another_of_the_same_code_was_prepared_says_where(changes: list[bytes]) -> None:
    """The outer frame stays on the plain schedule, the inner one goes on with a fused one."""
    deeper = f"CALLVALUE PUSH1 @spin JUMPI {call(HERE, value=1)} POP INVALID"
    code = f"{deeper} spin: JUMPDEST {SPIN.format(times=3 * SLICE // 26)} STOP"
    seen = agreed(Case(code, prepare=lambda evm: evm.set_balance(HERE, 10)), 6 * SLICE, tiers=("native-tiered",))
    assert "invalid opcode" in str(seen.error)
    assert changes == [assemble(code)]


@pytest.mark.parametrize("times", [1, 5_000])
def test_a_deployment_is_as_on_the_reference_tier(times: int) -> None:
    init = assemble(EFFECTS + SPIN.format(times=times)) + deployer(assemble("PUSH1 1 POP"))
    seen = []
    for tier in ("reference", "native-tiered", "native"):
        evm = EVM(tier=tier)
        evm.set_balance(OTHER, 100)
        result = evm.deploy(init, caller=OTHER, value=50)
        seen.append((result, list(result.logs), evm.state_root))
    assert seen[0] == seen[1] == seen[2]


def test_the_memory_limit_holds_on_the_default_tier() -> None:
    evm = EVM(tier="native-tiered")
    evm.set_code(HERE, assemble("PUSH1 1 PUSH5 0x2000000000 MSTORE") + bytes(600))
    for run in (lambda: evm.call(HERE, gas=1 << 62), lambda: evm.deploy(evm.get_code(HERE), gas=1 << 62)):
        with pytest.raises(EngineLimit, match="memory"):
            run()


@pytest.mark.usefixtures("plainly")
@pytest.mark.parametrize("before", [0, 1, 250, 251, 252, 255, 256, 257, 600])
@pytest.mark.parametrize("jump", ["PUSH2 {to} JUMP", "PUSH1 1 PUSH2 {to} JUMPI", "PUSH0 PUSH2 {to} JUMPI"])
def test_a_jump_lands_on_what_is_a_jumpdest_wherever_it_stands(before: int, jump: str) -> None:
    """Not inside push data, not past the end, and not on what merely looks like one."""
    start = len(assemble(jump.format(to=0)))
    filling = b"\x5b\x60\x5b\x7f" + b"\x5b" * 32 + b"\x62\x5b\x5b\x5b\x01"
    body = bytes(before) + filling + b"\x00" + filling + b"\x61\x5b"
    for to in (*range(start, start + len(body) + 3), 0xFFFF):
        if abs(to - start - before) < 90 or to % 16 == 0:
            agreed(Case(assemble(jump.format(to=to)) + body), 5_000, tiers=("native-tiered",))


@pytest.mark.usefixtures("plainly")
@pytest.mark.parametrize("size", [254, 255, 256, 257, 258, 511, 512, 513, 1025])
@pytest.mark.parametrize("filling", ["5b", "5a50", "5f50", "600150", "7f" + "5b" * 32 + "50", "5b5f5056"])
def test_code_longer_than_what_is_written_at_a_time_goes_on(size: int, filling: str) -> None:
    code = (bytes.fromhex(filling) * size)[:size] + assemble("PUSH1 7 PUSH0 SSTORE PUSH1 5 PUSH0 MSTORE8")
    case = Case(code + assemble("PUSH0 SLOAD PUSH2 1 ADD PUSH1 1 JUMPI"))
    for gas in (50_000, 300, size, 2 * size, 2 * size + 22_150):
        agreed(case, gas, tiers=("native-tiered",))
