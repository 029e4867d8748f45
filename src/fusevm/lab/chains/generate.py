"""Random chains: a genesis with random contracts and keys, and for each block transactions of every type, and more."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

from fusevm.blockchain import Chain
from fusevm.chain.genesis import Genesis, genesis_on
from fusevm.chain.header import Header
from fusevm.chain.schedule import DEPOSIT_CONTRACT, STEPS, Activation, ForkSchedule, always
from fusevm.chain.sealed import SealedBlock, Withdrawal
from fusevm.chain.signed import SignedTransaction, sign
from fusevm.chain.state import Account, State
from fusevm.chain.system import (
    BEACON_ROOTS,
    CONSOLIDATION_REQUESTS,
    DEPOSIT_PARTS,
    DEPOSIT_SIZE,
    DEPOSIT_TOPIC,
    HISTORY,
    WITHDRAWAL_REQUESTS,
)
from fusevm.chain.transaction import Transaction
from fusevm.evm.assembly import assemble
from fusevm.evm.forks import Fork
from fusevm.evm.secp256k1 import address_of_key
from fusevm.lab.fuzz.generator import CONTRACTS, NOBODY, PERSON, program

KEYS = tuple((0x51 + place).to_bytes(32, "big") for place in range(8))
SIGNERS = tuple(map(address_of_key, KEYS))
RICH = 10**24
MORE_CONTRACTS = tuple(bytes.fromhex(f"c1de{place:02x}") + bytes(16) + b"\x07" for place in range(6))
GAS_LIMIT = 30_000_000

_STORE_INPUT = assemble("PUSH1 0 CALLDATALOAD NUMBER SSTORE")
_LOG_INPUT = assemble(
    f"CALLDATASIZE PUSH1 0 PUSH1 0 CALLDATACOPY PUSH32 0x{DEPOSIT_TOPIC:064x} CALLDATASIZE PUSH1 0 LOG1"
)
# Returns as many bytes as the block's number modulo 4 says, and counts its calls.
_ASKED = assemble("PUSH1 1 PUSH1 0 SLOAD ADD DUP1 PUSH1 0 SSTORE PUSH1 0 MSTORE PUSH1 3 NUMBER AND PUSH1 30 RETURN")
SYSTEM = {
    BEACON_ROOTS: _STORE_INPUT,
    HISTORY: _STORE_INPUT,
    WITHDRAWAL_REQUESTS: _ASKED,
    CONSOLIDATION_REQUESTS: _ASKED,
    DEPOSIT_CONTRACT: _LOG_INPUT,
}


def random_genesis(rng: Random, schedule: ForkSchedule) -> Genesis:
    """Contracts of several random programs, rich keys, and stand-ins for the system contracts."""
    step = schedule.at(0, 0)
    state = State()
    accounts = program(rng.getrandbits(60), step.fork).work().accounts
    for address in MORE_CONTRACTS:
        other = program(rng.getrandbits(60), step.fork).work().accounts
        accounts[address] = other[CONTRACTS[0]]
    accounts |= {address: Account(nonce=1, code=code) for address, code in SYSTEM.items()}
    accounts |= {address: Account(balance=RICH) for address in SIGNERS}
    state.accounts = accounts
    difficulty = 0 if step.fork >= Fork.PARIS else rng.choice((131_072, 10**9))
    header = Header(gas_limit=GAS_LIMIT, difficulty=difficulty, extra_data=rng.randbytes(rng.randrange(33)))
    return genesis_on(schedule, header, state)


def random_schedule(rng: Random, fork: Fork) -> ForkSchedule:
    """The fork from the start, or from a block or time that the chain will reach, with the one before it first."""
    names = [name for name, step in STEPS.items() if step.fork is fork]
    name = rng.choice(names)
    place = list(STEPS).index(name)
    if not place or rng.random() < 0.7:
        return always(name)
    first = Activation(list(STEPS.values())[place - 1], block=0)
    if fork >= Fork.SHANGHAI:
        return ForkSchedule((first, Activation(STEPS[name], time=rng.randrange(1, 60))))
    return ForkSchedule((first, Activation(STEPS[name], block=rng.randrange(1, 5))))


def random_transactions(rng: Random, chain: Chain, fork: Fork, count: int) -> list[SignedTransaction]:
    """Transactions for the next block; a few of them may not run."""
    nonces = {address: chain.state.account(address).nonce for address in SIGNERS}
    base_fee = (chain.head.header.base_fee or 10**9) * 9 // 8 + 1
    found = []
    for _ in range(count):
        place = rng.randrange(len(KEYS))
        tx = random_transaction(rng, fork, base_fee)
        tx.nonce = nonces[SIGNERS[place]] + (rng.choice((0, 1)) if rng.random() < 0.02 else 0)
        nonces[SIGNERS[place]] = tx.nonce + 1
        unprotected = tx.type == 0 and (fork < Fork.SPURIOUS_DRAGON or rng.random() < 0.3)
        found.append(sign(tx, KEYS[place], None if unprotected else chain.schedule.chain_id))
    return found


def random_transaction(rng: Random, fork: Fork, base_fee: int) -> Transaction:
    tx = program(rng.getrandbits(60), fork).work().transaction
    if tx.to in CONTRACTS:
        tx = replace(tx, to=rng.choice((*CONTRACTS, *MORE_CONTRACTS, *SIGNERS[:2], PERSON, NOBODY)))
    if rng.random() < 0.05:
        tx = replace(tx, to=DEPOSIT_CONTRACT, data=deposit_event(rng), gas_limit=200_000)
    if tx.max_fee is not None:
        tip = rng.randrange(10)
        return replace(tx, max_fee=base_fee + tip, max_priority_fee=tip, max_blob_fee=10**6)
    return replace(tx, gas_price=base_fee + rng.randrange(10))


def deposit_event(rng: Random) -> bytes:
    """The data of a deposit event (EIP-6110)."""
    data = bytearray(DEPOSIT_SIZE)
    for place, (offset, size) in enumerate(DEPOSIT_PARTS):
        data[32 * place : 32 * place + 32] = offset.to_bytes(32, "big")
        data[offset : offset + 32] = size.to_bytes(32, "big")
        data[offset + 32 : offset + 32 + size] = rng.randbytes(size)
    return bytes(data)


def random_block(rng: Random, chain: Chain, count: int) -> SealedBlock:
    """Builds the next block of a chain, with a limited number of transactions."""
    timestamp = chain.head.header.timestamp + rng.choice((1, 5, 12, 15, 40))
    step = chain.schedule.at(chain.head.number + 1, timestamp, chain.total_difficulty(chain.head.hash))
    options: dict[str, Any] = {
        "coinbase": rng.choice((bytes(20), PERSON, NOBODY, *CONTRACTS, *SIGNERS, rng.randbytes(20))),
        "timestamp": timestamp,
        "extra_data": rng.randbytes(rng.randrange(33)),
        "prev_randao": rng.randbytes(32),
        "beacon_root": rng.randbytes(32),
    }
    if rng.random() < 0.3 and chain.head.header.base_fee is not None:
        limit = chain.head.header.gas_limit
        options["gas_limit"] = limit + rng.choice((-1, 1)) * rng.randrange(limit // 1024)
    if step.fork >= Fork.SHANGHAI:
        options["withdrawals"] = [_withdrawal(rng, place) for place in range(rng.choice((0, 0, 1, 3)))]
    if step.fork < Fork.PARIS and rng.random() < 0.3 and chain.head.number > chain.genesis.block.number:
        options["ommers"] = [replace(chain.head.header, coinbase=rng.randbytes(20))]
    chain.pending = random_transactions(rng, chain, step.fork, rng.randint(0, count))
    block = chain.build(**options)
    chain.pending = []
    return block


def _withdrawal(rng: Random, index: int) -> Withdrawal:
    address = rng.choice((NOBODY, PERSON, *CONTRACTS, *SIGNERS, rng.randbytes(20)))
    return Withdrawal(index, rng.getrandbits(20), address, rng.choice((0, 1, 10**9, rng.getrandbits(64))))
