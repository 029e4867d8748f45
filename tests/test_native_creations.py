"""Creations, which native code does itself: the same as on the reference tier, whatever fails, reverts or collides."""

from __future__ import annotations

import random

import pytest

from fusevm import EVM
from fusevm.chain.addresses import create2_address
from fusevm.evm.assembly import assemble
from fusevm.evm.forks import Fork, fork_named
from nativeprograms import Case, Seen, agreed, agreed_at_every_gas, seen
from programs import CALLER, HERE, OTHER, call, push

CONTRACTS = [bytes.fromhex(f"c0de{number:036x}") for number in range(3)]
FRESH = [bytes.fromhex(f"feed{number:036x}") for number in range(2)]
SHOW = "PUSH0 MSTORE PUSH1 32 PUSH0 RETURN"
TIERS = ("reference", "native", "native-unfused", "lockstep")


def stored(data: bytes) -> str:
    """Puts bytes at the start of memory."""
    words = [data[at : at + 32].ljust(32, b"\0") for at in range(0, len(data), 32)]
    return " ".join(f"{push(word)} PUSH2 {32 * n} MSTORE" for n, word in enumerate(words))


def create(init: bytes, value: int = 0, salt: int | None = None) -> str:
    """Leaves the new address on the stack."""
    salted, name = ("", "CREATE") if salt is None else (f"PUSH1 {salt}", "CREATE2")
    return f"{stored(init)} {salted} PUSH2 {len(init)} PUSH0 PUSH1 {value} {name}"


def call_top(kind: str = "CALL", value: int = 0, out: int = 0) -> str:
    """Calls the address on top of the stack, which stays below the flag."""
    amount, depth = (f"PUSH1 {value}", 6) if kind == "CALL" else ("", 5)
    return f"PUSH1 {out} PUSH0 PUSH0 PUSH0 {amount} DUP{depth} GAS {kind}"


def returning(code: bytes) -> str:
    return f"{stored(code)} PUSH2 {len(code)} PUSH0 RETURN"


def init_of(program: str, fork: Fork | None = None) -> bytes:
    return assemble(program) if fork is None else assemble(program, fork)


STOPS = init_of(returning(b"\0"))


def test_the_address_follows_from_the_nonce_whatever_its_size() -> None:
    for nonce in (1, 0x7E, 0x7F, 0x80, 0xFF, 0x100, 0xFFFFFF, (1 << 56) - 1, (1 << 64) - 2):
        agreed(Case(f"{create(STOPS)} {SHOW}", prepare=lambda evm, n=nonce: evm.set_nonce(HERE, n)), 200_000)


def test_the_last_nonce_makes_no_contract_and_costs_no_gas_but_its_own() -> None:
    program = f"{create(STOPS)} GAS PUSH0 MSTORE PUSH1 32 MSTORE PUSH1 64 PUSH0 RETURN"
    result = agreed(Case(program, prepare=lambda evm: evm.set_nonce(HERE, (1 << 64) - 1)), 200_000)
    assert int.from_bytes(result.output[32:], "big") == 0


@pytest.mark.parametrize("salt", [None, 0, 7])
@pytest.mark.parametrize("size", [0, 1, 7, 8, 9, 15, 16, 17, 31, 33, 64, 100])
def test_init_code_of_any_length(size: int, salt: int | None) -> None:
    init = (b"\x58" * size)[: max(size - 1, 0)] + b"\0" * min(size, 1)
    agreed(f"{create(init, 0, salt)} {SHOW}", 300_000)


@pytest.mark.parametrize(
    "ending",
    [
        returning(b"\x60\x01"),
        returning(b"\xef\x01"),
        returning(b""),
        "PUSH2 24576 PUSH0 RETURN",
        "PUSH2 24577 PUSH0 RETURN",
        "PUSH1 7 PUSH0 MSTORE8 PUSH1 3 PUSH0 REVERT",
        "PUSH0 PUSH0 REVERT",
        "INVALID",
        "POP",
        "PUSH1 1 PUSH1 1 SSTORE PUSH0 PUSH0 LOG0 PUSH0 PUSH0 REVERT",
        "PUSH1 1 PUSH1 1 SSTORE STOP",
        "CALLER SELFDESTRUCT",
        "ADDRESS SELFDESTRUCT",
        "ADDRESS EXTCODEHASH PUSH0 SSTORE ADDRESS BALANCE PUSH1 1 SSTORE CODESIZE PUSH1 2 SSTORE",
        f"{create(STOPS)} PUSH0 SSTORE {create(STOPS)} PUSH1 1 SSTORE",
    ],
)
@pytest.mark.parametrize("fork", ["osaka", "shanghai"])
def test_how_init_code_ends_and_what_is_left(ending: str, fork: str) -> None:
    after = "DUP1 EXTCODEHASH PUSH0 MSTORE DUP1 BALANCE PUSH1 32 MSTORE RETURNDATASIZE PUSH1 64 MSTORE PUSH1 96 MSTORE"
    program = f"{create(init_of(ending), 3)} {after} GAS PUSH1 128 MSTORE PUSH1 160 PUSH0 RETURN"
    for gas in (60_000, 200_000, 6_000_000):
        agreed(Case(program, fork=fork, prepare=lambda evm: evm.set_balance(HERE, 5)), gas)


def test_a_creation_at_every_amount_of_gas() -> None:
    init = init_of(f"PUSH1 1 PUSH1 1 SSTORE {returning(bytes(5))}")
    agreed_at_every_gas(f"{create(init)} POP {create(init)} POP {create(init, salt=1)} {SHOW}", 400_000, most=120)


def test_the_same_address_twice_collides_and_takes_the_gas() -> None:
    result = agreed(f"{create(STOPS, salt=3)} POP {create(STOPS, salt=3)} {SHOW}", 1_000_000)
    assert result.word == 0
    assert result.gas_used > 900_000


@pytest.mark.parametrize("what", ["code", "nonce", "storage", "balance"])
def test_what_stands_at_the_address_collides_but_for_a_balance(what: str) -> None:
    address = create2_address(HERE, 3, STOPS)

    def prepare(evm: EVM) -> None:
        if what == "code":
            evm.set_code(address, b"\0")
        elif what == "nonce":
            evm.set_nonce(address, 1)
        elif what == "storage":
            evm.set_storage(address, 1, 1)
        else:
            evm.set_balance(address, 1)

    assert bool(agreed(Case(f"{create(STOPS, salt=3)} {SHOW}", prepare=prepare), 500_000).word) == (what == "balance")


def test_an_address_made_in_vain_can_be_made_again_with_other_code() -> None:
    """The init code asks its maker what to return, so that both have the same address."""
    asks = init_of(f"CALLER {call_top(out=32)} POP PUSH0 MLOAD PUSH0 MSTORE8 PUSH1 1 PUSH0 RETURN")
    make = f"{create(asks, salt=3)}"
    tells = f"CALLVALUE PUSH2 @make JUMPI PUSH1 5 SLOAD {SHOW}"
    inner = f"{tells} make: JUMPDEST CALLVALUE PUSH1 5 SSTORE {make} POP CALLVALUE PUSH1 2 EQ PUSH2 @fail JUMPI "
    inner += f"{make} STOP fail: JUMPDEST PUSH0 PUSH0 REVERT"
    tries = " ".join(f"{call(OTHER, value=value)} POP" for value in (2, 1, 2, 3))
    for extra in ("", call(FRESH[0], value=1) + " POP"):
        case = Case(f"{tries} {extra} {tries}", {OTHER: inner}, prepare=lambda evm: evm.set_balance(HERE, 50))
        agreed(case, 3_000_000)


def test_a_contract_that_was_called_and_then_undone_is_not_there() -> None:
    """Python has heard of it by then, for its schedule."""
    address = create2_address(OTHER, 3, STOPS)
    fails = "CALLVALUE PUSH2 @fail JUMPI STOP fail: JUMPDEST PUSH0 PUSH0 REVERT"
    inner = f"{create(STOPS, salt=3)} {call_top()} POP POP {fails}"
    look = f"{push(address)} EXTCODESIZE PUSH1 2 SLOAD ADD PUSH1 8 SHL PUSH1 2 SSTORE {call(address)} POP"
    program = " ".join(f"{call(OTHER, value=value)} POP {look}" for value in (1, 1, 0, 1))
    result = agreed(Case(program, {OTHER: inner}, prepare=lambda evm: evm.set_balance(HERE, 50)), 3_000_000)
    assert result.accounts[HERE][3][2] == 0x01_01_00


def pays_and_reverts(address: bytes) -> str:
    return f"{call(address, value=1)} POP PUSH0 PUSH0 REVERT"


def rich(evm: EVM) -> None:
    for address in (HERE, OTHER):
        evm.set_balance(address, 50)


def test_an_address_that_was_paid_in_vain_and_then_made_is_gone_with_the_snapshot() -> None:
    address = create2_address(HERE, 3, STOPS)
    case = Case(f"{call(OTHER)} POP {create(STOPS, salt=3)}", {OTHER: pays_and_reverts(address)}, prepare=rich)
    assert agreed(case).accounts[address][2] == b"\0"
    for tier in TIERS:
        evm = case.machine(tier)
        before = evm.state_root
        with evm.snapshot():
            assert case.call(evm, 1_000_000).ok
        assert evm.state_root == before


def test_an_address_paid_in_vain_and_made_in_vain_is_not_there() -> None:
    address = create2_address(OTHER, 3, STOPS)
    pays = f"CALLVALUE PUSH2 @make JUMPI {pays_and_reverts(address)}"
    makes = f"make: JUMPDEST {create(STOPS, salt=3)} {call_top()} POP PUSH0 PUSH0 REVERT"
    case = Case(f"{call(OTHER)} POP {call(OTHER, value=1)} POP", {OTHER: f"{pays} {makes}"}, prepare=rich)
    assert address not in agreed(case, tiers=TIERS[1:]).accounts


def test_a_balance_outlives_a_creation_that_is_undone() -> None:
    """Made and undone, then paid, then made again and undone while Python looks on."""
    looks_on = assemble(f"{call(FRESH[0], value=1)} POP CALLVALUE PUSH1 @ok JUMPI PUSH0 PUSH0 REVERT ok: JUMPDEST STOP")
    address = create2_address(OTHER, 3, looks_on)
    make = f"{create(looks_on, salt=3)} POP"
    fail = f"fail: JUMPDEST {make} {call(FRESH[1], value=1)} POP PUSH0 PUSH0 REVERT"
    other = f"CALLVALUE PUSH2 @fail JUMPI {make} STOP {fail}"
    program = f"{call(OTHER, value=1)} POP {call(address, value=1)} POP {call(OTHER)} POP"
    found = agreed(Case(program, {OTHER: other}, prepare=rich), 3_000_000, tiers=TIERS[1:])
    assert found.accounts[address][:3] == (0, 1, b"")


def test_a_new_contract_is_called_at_once_and_has_its_code_and_storage() -> None:
    runtime = assemble("PUSH1 1 SLOAD PUSH1 1 ADD DUP1 PUSH1 1 SSTORE PUSH0 MSTORE PUSH1 32 PUSH0 RETURN")
    init = init_of(f"PUSH1 41 PUSH1 1 SSTORE {returning(runtime)}")
    result = agreed(f"{create(init)} {call_top(out=32)} POP PUSH0 MLOAD {SHOW}", 500_000)
    assert result.word == 42


def test_a_contract_made_and_destroyed_in_one_transaction_is_gone() -> None:
    init = init_of(returning(assemble("CALLER SELFDESTRUCT")))
    for fork in ("osaka", "shanghai"):
        program = f"{create(init, 2)} {call_top()} POP EXTCODESIZE {SHOW}"
        agreed(Case(program, fork=fork, transact={}, prepare=lambda evm: evm.set_balance(HERE, 5)), 500_000)


# -- at random


class Maker:
    """Programs that make contracts, call them, fail, and make them again."""

    def __init__(self, rng: random.Random, fork: Fork) -> None:
        self.rng, self.fork = rng, fork
        self.places = list(FRESH)

    def assemble(self, program: str) -> bytes:
        return assemble(program if self.fork >= Fork.SHANGHAI else program.replace("PUSH0", "PUSH1 0"), self.fork)

    def ending(self, depth: int) -> str:
        rng = self.rng
        runtime = self.assemble(" ".join(self.action(depth + 2) for _ in range(rng.randrange(3))) + " STOP")
        return rng.choice(
            [
                *[returning(runtime[:200])] * 12,
                returning(b"\xef" * rng.randrange(3)),
                returning(self.assemble("CALLER SELFDESTRUCT")),
                "PUSH1 9 PUSH0 REVERT",
                "INVALID",
                "STOP",
                "CALLER SELFDESTRUCT",
                f"PUSH2 {rng.choice([24_000, 24_577])} PUSH0 RETURN",
            ]
        )

    def creation(self, depth: int) -> str:
        rng = self.rng
        body = " ".join(self.action(depth + 1) for _ in range(rng.randrange(3)))
        if rng.random() < 0.4:  # the same again and again
            body, salt = rng.choice(["", "PUSH1 1 PUSH1 2 SSTORE", "CALLVALUE PUSH1 3 SSTORE"]), rng.randrange(2)
            init = self.assemble(f"{body} {rng.choice([returning(bytes(3)), 'STOP', 'PUSH0 PUSH0 REVERT'])}")
        else:
            salt = rng.choice([None, None, 0, 1])
            init = self.assemble(f"{body} {self.ending(depth)}")
        if salt is not None:  # value may be sent there before there is anything, or after it was undone
            self.places += [create2_address(maker, salt, init) for maker in CONTRACTS]
        return create(init, rng.choice([0, 0, 0, 1, 7]), salt)

    def action(self, depth: int) -> str:
        rng = self.rng
        if depth < 3 and rng.random() < 0.5:
            use = rng.choice(
                [
                    "POP",
                    f"PUSH1 {rng.randrange(4)} SSTORE",
                    "DUP1 EXTCODEHASH PUSH1 5 SSTORE EXTCODESIZE PUSH1 6 SSTORE",
                    "BALANCE PUSH1 7 SSTORE",
                    "PUSH1 9 PUSH0 PUSH0 DUP4 EXTCODECOPY POP PUSH0 MLOAD PUSH1 8 SSTORE",
                    f"{call_top(value=rng.choice([0, 0, 1]))} SWAP1 POP PUSH1 3 SSTORE",
                    f"{call_top('DELEGATECALL')} SWAP1 POP PUSH1 3 SSTORE",
                    f"{call_top('STATICCALL')} SWAP1 POP POP",
                    "SELFDESTRUCT",
                ]
            )
            return f"{self.creation(depth)} {use}"
        return rng.choice(
            [
                f"{call(rng.choice(CONTRACTS), value=rng.choice([0, 0, 1]), gas='PUSH3 400000')} POP",
                f"{call(rng.choice(self.places[-8:]), value=rng.choice([0, 1, 1]), gas='PUSH3 400000')} POP",
                f"{call(rng.choice(CONTRACTS), kind='DELEGATECALL', gas='PUSH3 400000')} POP",
                f"PUSH1 {rng.randrange(9)} PUSH1 {rng.randrange(4)} SSTORE",
                "PUSH1 3 PUSH0 PUSH0 LOG1",
                "RETURNDATASIZE PUSH1 4 SSTORE",
            ]
        )

    def program(self) -> bytes:
        body = " ".join(self.action(0) for _ in range(self.rng.randrange(1, 5)))
        end = self.rng.choice([*["STOP"] * 9, "PUSH0 PUSH0 REVERT", "INVALID", "CALLER SELFDESTRUCT"])
        return self.assemble(f"{body} {end}")


def outcome(tier: str, fork: str, codes: dict[bytes, bytes], gas: int, *, transacts: bool) -> list[Seen]:
    """Of a call that is undone, and of one after it that is not."""
    evm = EVM(fork, tier)
    for address, code in codes.items():
        evm.set_code(address, code)
        evm.set_balance(address, 20)
    evm.set_balance(CALLER, 10**20)

    def run() -> Seen:
        to = next(iter(codes))
        result = evm.transact(CALLER, to, gas=gas, gas_price=10) if transacts else evm.call(to, caller=CALLER, gas=gas)
        return seen(evm, result)

    found = []
    with evm.snapshot():
        found.append(run())
    found.append(run())
    found.append(run())
    assert evm.state.ledger is None
    return found


def compare(fork: str, programs: int, seed: object) -> int:
    """Random makers on the tiers; how many contracts were made and kept."""
    rng = random.Random(f"creations {fork} {seed}")
    maker = Maker(rng, fork_named(fork))
    made = 0
    for number in range(programs):
        codes = {address: maker.program() for address in CONTRACTS}
        gas = rng.choice([80_000, 300_000, 1_000_000, 8_000_000, 8_000_000, 8_000_000])
        transacts = rng.random() < 0.5
        expected = outcome(TIERS[0], fork, codes, gas, transacts=transacts)
        made += sum(bool(code) for _, _, code, _ in expected[0].accounts.values()) - len(CONTRACTS)
        for tier in TIERS[1:] if number % 5 == 0 else TIERS[1:2]:
            found = outcome(tier, fork, codes, gas, transacts=transacts)
            assert found == expected, (tier, number, gas, {to.hex(): code.hex() for to, code in codes.items()})
    return made


@pytest.mark.parametrize("fork", ["osaka", "cancun", "shanghai", "london", "istanbul"])
def test_makers_of_contracts_at_random_agree(fork: str) -> None:
    assert compare(fork, 40, seed=0) > 5
