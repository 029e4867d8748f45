"""Random programs, each from a seed and a fork: always the same program for the same two."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from random import Random

from fusevm.chain.environment import Block
from fusevm.chain.rlp import encode, natural
from fusevm.chain.state import DELEGATION_PREFIX
from fusevm.chain.transaction import Authorization, Transaction, floor_gas, intrinsic_gas_of
from fusevm.evm.forks import Fork, Rules, rules_of
from fusevm.evm.keccak import keccak256
from fusevm.evm.precompiles import precompiles_of
from fusevm.evm.secp256k1 import address_of_key, sign
from fusevm.lab.fuzz import constants as words
from fusevm.lab.fuzz.code import misdirected, raw
from fusevm.lab.fuzz.flow import caller_code, contract_code, init_code, maker_code
from fusevm.lab.fuzz.program import FuzzContract, Program
from fusevm.lab.fuzz.writer import Surroundings, Writer
from fusevm.lab.peers.work import block_hash

SENDER = bytes.fromhex("5e4de5" + "00" * 16 + "01")
COINBASE = bytes.fromhex("c014ba5e" + "00" * 15 + "02")
CONTRACTS = tuple(bytes.fromhex(f"c0de{index:02x}" + "00" * 16 + "03") for index in range(4))
PERSON = bytes.fromhex("e0a0" + "00" * 17 + "04")
NOBODY = bytes.fromhex("dead" + "00" * 17 + "05")
DELEGATES = tuple(bytes.fromhex(f"de1e{index:02x}" + "00" * 16 + "06") for index in range(3))
_AUTHORITY_KEYS = tuple((0xA0 + index).to_bytes(32, "big") for index in range(3))
_RICH = 10**21


def program(seed: int | str, fork: Fork, room: int | None = None) -> Program:
    """`room`: instructions of its main code, about; without a number there are some dozens."""
    rng = Random(f"{seed}/{fork.label}")
    rules = rules_of(fork)
    around = _surroundings(fork)
    accounts = _accounts(rng, around, rules, room)
    block = _block(rng, rules)
    initcode = None
    if rng.random() < 0.06:
        initcode = init_code(Writer(rng, around, nesting=-1), rng.randint(20, 80))
    tx = _transaction(rng, rules, block, initcode is not None)
    made = Program(fork, accounts, block, tx, initcode, f"{seed}/{fork.label}")
    tx.gas_limit = _gas(rng, made, rules)
    return made


@cache
def _surroundings(fork: Fork) -> Surroundings:
    targets = [*CONTRACTS, *CONTRACTS[1:], PERSON, NOBODY, SENDER]
    if rules_of(fork).delegation:
        targets += [*DELEGATES, *map(_signer, _AUTHORITY_KEYS)]
    return Surroundings(
        fork,
        tuple(int.from_bytes(each, "big") for each in targets),
        tuple(int.from_bytes(each, "big") for each in precompiles_of(fork)),
    )


def _accounts(rng: Random, around: Surroundings, rules: Rules, room: int | None) -> dict[bytes, FuzzContract]:
    accounts = {
        SENDER: FuzzContract(rng.choice((0, 1, 1, 127, 128, 255)), _RICH + rng.getrandbits(32)),
        PERSON: FuzzContract(rng.choice((0, 1)), rng.choice((1, 1_000))),
    }
    rooms = [rng.randint(40, 170)] + [rng.randint(5, 50) for _ in range(rng.choice((0, 1, 1, 1, 2, 3)))]
    if room is not None:
        rooms = [room, *[min(each, room) for each in rooms[1:]]]
    makes = len(rooms) > 1 and rng.random() < 0.12
    for address, size in zip(CONTRACTS, rooms, strict=False):
        w = Writer(rng, around)
        if makes and address == CONTRACTS[0]:
            code = caller_code(w, size, int.from_bytes(CONTRACTS[1], "big"))
        else:
            code = maker_code(w, size) if makes and address == CONTRACTS[1] else contract_code(w, size)
        accounts[address] = FuzzContract(
            rng.choice((1, 1, 1, 0, 255)),
            rng.choice((0, 1, 5, 10**18)),
            misdirected(code, rng) if rng.random() < 0.05 else code,
            {key: rng.choice((1, 2, words.word(rng))) for key in range(4) if rng.random() < 0.5},
        )
    if rng.random() < 0.3:
        accounts[COINBASE] = FuzzContract(0, 1)
    if rules.delegation:
        ends = [*CONTRACTS, DELEGATES[0], DELEGATES[1], NOBODY, PERSON, rng.choice(list(precompiles_of(rules.fork)))]
        for address in DELEGATES:
            code = raw(DELEGATION_PREFIX + rng.choice(ends))
            accounts[address] = FuzzContract(1, rng.choice((0, 7)), code, {1: 1} if rng.random() < 0.3 else {})
        if rng.random() < 0.05:
            accounts[SENDER].code = raw(DELEGATION_PREFIX + rng.choice(CONTRACTS))
    return accounts


def _block(rng: Random, rules: Rules) -> Block:
    return Block(
        number=rng.choice((1, 255, 256, 257, 300, 1_000_000)),
        timestamp=rng.choice((1, 1_000, 1_700_000_000)),
        coinbase=COINBASE if rng.random() < 0.9 else rng.choice((CONTRACTS[1], PERSON, SENDER)),
        gas_limit=30_000_000,
        base_fee=rng.choice((0, 7, 1_000)) if rules.newest_tx_type >= 2 else 0,
        prev_randao=words.word(rng),
        difficulty=0 if rules.fork >= Fork.PARIS else rng.choice((0, 1, 131_072)),
        chain_id=1,
        excess_blob_gas=rng.choice((0, 0, 10_000_000, 40_000_000)) if rules.blob_max else 0,
        hashes=block_hash,
    )


def _transaction(rng: Random, rules: Rules, block: Block, creates: bool) -> Transaction:
    tx = Transaction(SENDER, None if creates else _target(rng, rules), value=rng.choice((0, 0, 0, 1, 1_000)))
    tx.gas_price = block.base_fee + rng.choice((0, 1, 10))
    if not creates:
        tx.data = words.octets(rng)
    newest = rules.newest_tx_type
    if newest >= 1 and rng.random() < 0.3:
        tx.access_list = _access_list(rng, rules.fork)
    if newest >= 2 and rng.random() < 0.4:
        tip = rng.choice((0, 1, 10))
        tx.gas_price, tx.max_fee, tx.max_priority_fee = None, block.base_fee + rng.choice((10, 20)), tip
    kind = rng.random()
    if newest >= 3 and kind < 0.15 and not creates:
        tx.blob_hashes = tuple(b"\x01" + rng.randbytes(31) for _ in range(rng.randint(1, 2)))
        tx.max_blob_fee = block.blob_base_fee(rules) + rng.randrange(3)
    elif newest >= 4 and kind < 0.4 and not creates:
        tx.authorizations = tuple(_authorization(rng) for _ in range(rng.randint(1, 3)))
    if tx.type > 2 and tx.max_fee is None:
        tx.max_fee, tx.max_priority_fee, tx.gas_price = tx.gas_price, 1, None
    return tx


def _target(rng: Random, rules: Rules) -> bytes:
    if rng.random() < 0.94:
        return CONTRACTS[0]
    others = [*CONTRACTS[1:], PERSON, NOBODY, *precompiles_of(rules.fork)]
    return rng.choice(others + [*DELEGATES] * 3 if rules.delegation else others)


def _access_list(rng: Random, fork: Fork) -> tuple[tuple[bytes, tuple[int, ...]], ...]:
    listed = rng.sample([*CONTRACTS, PERSON, NOBODY, COINBASE, (2).to_bytes(20, "big")], rng.randint(0, 3))
    return tuple((address, tuple(words.key(rng) for _ in range(rng.randrange(4)))) for address in listed)


def _gas(rng: Random, made: Program, rules: Rules) -> int:
    """Plenty, some, hardly any, or not even what the transaction costs before it runs."""
    tx = made.transaction
    if made.initcode is not None:
        tx = replace(tx, data=made.initcode.encode())
    least = max(intrinsic_gas_of(tx, rules), floor_gas(rules, tx.data))
    kind = rng.random()
    if kind < 0.75:
        return least + rng.randint(200_000, 400_000)
    if kind < 0.9:
        return least + rng.randrange(120_000)
    if kind < 0.99:
        return least + rng.randrange(6_000)
    return least - rng.choice((0, 1))


# -- EIP-7702


@cache
def _signer(key: bytes) -> bytes:
    return address_of_key(key)


def _authorization(rng: Random) -> Authorization:
    """Signed by one of a few keys; some name another chain or a wrong nonce, and are passed over."""
    key = rng.choice(_AUTHORITY_KEYS)
    to = rng.choice((*CONTRACTS, *CONTRACTS, bytes(20), NOBODY, DELEGATES[0], (4).to_bytes(20, "big"), _signer(key)))
    return _signed(key, rng.choice((0, 1, 1, 2)), to, rng.choice((0, 0, 0, 1)))


@cache
def _signed(key: bytes, chain_id: int, to: bytes, nonce: int) -> Authorization:
    digest = keccak256(b"\x05" + encode([natural(chain_id), to, natural(nonce)]))
    return Authorization(chain_id, to, nonce, *sign(digest, key))
