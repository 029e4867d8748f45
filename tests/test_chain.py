"""`Chain`: blocks built and imported, every rule with its name, the state at any block, reorganisation."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from fusevm import EVM, Chain, EngineLimit, Hooks, Step
from fusevm.chain.genesis import genesis_at, genesis_from_json
from fusevm.chain.header import Header
from fusevm.chain.reasons import BlockReason, InvalidBlock, Rejected, RejectReason
from fusevm.chain.rlp import decode, encode
from fusevm.chain.schedule import DEPOSIT_CONTRACT
from fusevm.chain.sealed import SealedBlock, Withdrawal, decode_block, ommers_hash, transactions_root
from fusevm.chain.signed import SignedTransaction, sign
from fusevm.chain.state import Account, State
from fusevm.chain.system import (
    BEACON_ROOTS,
    CONSOLIDATION_REQUESTS,
    DEPOSIT_PARTS,
    DEPOSIT_TOPIC,
    HISTORY,
    SYSTEM_ADDRESS,
    WITHDRAWAL_REQUESTS,
    requests_hash,
)
from fusevm.chain.transaction import Transaction
from fusevm.chain.trie import EMPTY_ROOT
from fusevm.evm.assembly import assemble
from fusevm.evm.secp256k1 import address_of_key
from fusevm.values import BadValue

KEY, OTHER_KEY = bytes(31) + b"\x01", bytes(31) + b"\x02"
SENDER, OTHER = address_of_key(KEY), address_of_key(OTHER_KEY)
COUNTER, ANYONE, MINER = b"\xc0" * 20, b"\xaa" * 20, b"\xbb" * 20
ETHER = 10**18
B = BlockReason

RETURN_NOTHING = assemble("STOP")
STORE_INPUT = assemble("PUSH1 0 CALLDATALOAD PUSH1 0 SSTORE")
COUNT = assemble("PUSH1 1 PUSH1 0 SLOAD ADD PUSH1 0 SSTORE PUSH1 7 PUSH1 0 PUSH1 0 LOG1")


def world() -> State:
    state = State()
    state.accounts = {
        SENDER: Account(balance=100 * ETHER),
        OTHER: Account(balance=100 * ETHER),
        COUNTER: Account(nonce=1, code=COUNT),
        BEACON_ROOTS: Account(nonce=1, code=STORE_INPUT),
        HISTORY: Account(nonce=1, code=STORE_INPUT),
        WITHDRAWAL_REQUESTS: Account(nonce=1, code=RETURN_NOTHING),
        CONSOLIDATION_REQUESTS: Account(nonce=1, code=RETURN_NOTHING),
    }
    return state


def chain_at(fork: str, state: State | None = None, **fields: Any) -> Chain:
    return Chain(genesis_at(fork, state or world(), **fields), tier="reference")


def pay(nonce: int, to: bytes | None = COUNTER, key: bytes = KEY, **fields: Any) -> SignedTransaction:
    given = {"gas_limit": 100_000, "gas_price": 10**10, **fields}
    return sign(Transaction(b"", to, nonce=nonce, **given), key, None)


FORKS = ["frontier", "homestead", "byzantium", "istanbul", "london", "paris", "shanghai", "cancun", "prague", "osaka"]


# -- building and importing -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fork", FORKS)
def test_what_one_chain_builds_another_imports(fork: str) -> None:
    one, other = (chain_at(fork, difficulty=131_072 if fork < "p" else 0) for _ in range(2))
    for place in range(3):
        built = one.build([pay(2 * place), pay(2 * place + 1, ANYONE, value=5)], coinbase=MINER)
        imported = other.import_block(built.encoded)
        assert imported == built
        assert imported.encoded == built.encoded
        assert other.head.hash == built.hash
    assert other.state.storage(COUNTER, 0) == 3
    assert other.state.account(ANYONE).balance == 15
    assert other.state.root() == one.state.root() == one.head.header.state_root


def test_a_block_pays_its_miner_until_the_merge() -> None:
    rewards = {"frontier": 5, "spurious-dragon": 5, "byzantium": 3, "petersburg": 2, "london": 2}
    for fork, ether in rewards.items():
        chain = chain_at(fork, difficulty=131_072)
        chain.build([], coinbase=MINER)
        assert chain.state.account(MINER).balance == ether * ETHER
    chain = chain_at("paris")
    chain.build([], coinbase=MINER)
    assert not chain.state.exists(MINER)


def test_ommers_and_who_names_them_are_paid() -> None:
    chain, fork = (chain_at("byzantium", difficulty=131_072) for _ in range(2))
    first = chain.build([], coinbase=MINER)
    ommer = fork.build([], coinbase=ANYONE, extra_data=b"other").header
    block = chain.build([], coinbase=MINER, ommers=[ommer])
    assert chain.state.account(ANYONE).balance == 3 * ETHER * 7 // 8
    assert chain.state.account(MINER).balance == 2 * 3 * ETHER + 3 * ETHER // 32
    fork = chain_at("byzantium", difficulty=131_072)
    fork.import_block(first.encoded)
    assert fork.import_block(block.encoded) == block


def test_withdrawals_are_paid_in_gwei_and_nothing_creates_nobody() -> None:
    chain = chain_at("shanghai")
    chain.build([], withdrawals=[Withdrawal(0, 7, ANYONE, 3), Withdrawal(1, 7, MINER, 0)])
    assert chain.state.account(ANYONE).balance == 3 * 10**9
    assert not chain.state.exists(MINER)
    with pytest.raises(BadValue, match="withdrawals: come with Shanghai, this block is of paris"):
        chain_at("paris").build([], withdrawals=[Withdrawal(0, 7, ANYONE, 3)])


def test_system_contracts_are_told_the_beacon_root_and_the_parents_hash() -> None:
    chain = chain_at("prague")
    chain.build([], beacon_root=b"\x77" * 32)
    assert chain.state.storage(BEACON_ROOTS, 0) == int.from_bytes(b"\x77" * 32, "big")
    assert chain.state.storage(HISTORY, 0) == int.from_bytes(chain.block(0).hash, "big")


def deposit_event() -> bytes:
    """The data of a deposit event whose parts are filled with 1, 2, 3, 4 and 5."""
    data = bytearray(576)
    for place, (offset, size) in enumerate(DEPOSIT_PARTS):
        data[32 * place : 32 * place + 32] = offset.to_bytes(32, "big")
        data[offset : offset + 32] = size.to_bytes(32, "big")
        data[offset + 32 : offset + 32 + size] = bytes([place + 1]) * size
    return bytes(data)


LOG_INPUT = assemble(
    f"CALLDATASIZE PUSH1 0 PUSH1 0 CALLDATACOPY PUSH32 0x{DEPOSIT_TOPIC:064x} CALLDATASIZE PUSH1 0 LOG1"
)


def test_deposits_and_requests_are_gathered_by_type() -> None:
    state = world()
    state.accounts[DEPOSIT_CONTRACT] = Account(nonce=1, code=LOG_INPUT)
    state.accounts[CONSOLIDATION_REQUESTS].code = assemble("PUSH1 0xcc PUSH1 0 MSTORE8 PUSH1 1 PUSH1 0 RETURN")
    chain = chain_at("prague", state)
    chain.build([pay(0, DEPOSIT_CONTRACT, data=deposit_event())])
    deposit = b"\1" * 48 + b"\2" * 32 + b"\3" * 8 + b"\4" * 96 + b"\5" * 8
    assert chain.requests(1) == (b"\0" + deposit, b"\2\xcc")
    assert chain.head.header.requests_hash == requests_hash(chain.requests(1) or ())


def test_only_the_deposit_contracts_own_event_is_a_deposit() -> None:
    state = world()
    state.accounts[DEPOSIT_CONTRACT] = Account(nonce=1, code=COUNT)  # logs another topic
    state.accounts[ANYONE] = Account(nonce=1, code=LOG_INPUT)  # logs the topic from another address
    chain = chain_at("prague", state)
    chain.build([pay(0, DEPOSIT_CONTRACT), pay(1, ANYONE, data=deposit_event())])
    assert [len(receipt.logs) for receipt in chain.receipts(1)] == [1, 1]
    assert chain.requests(1) == ()


def test_system_calls_have_30_million_gas_whatever_the_blocks_limit() -> None:
    state = world()
    state.accounts[HISTORY].code = assemble("GAS PUSH1 0 SSTORE CALLER PUSH1 1 SSTORE ORIGIN PUSH1 2 SSTORE")
    chain = chain_at("prague", state, gas_limit=5_000_000)
    chain.build()
    stored = [chain.state.storage(HISTORY, key) for key in range(3)]
    assert stored == [30_000_000 - 2, *[int.from_bytes(SYSTEM_ADDRESS, "big")] * 2]
    assert not chain.state.exists(SYSTEM_ADDRESS)
    assert chain.head.header.gas_used == 0


def test_blobs_fill_a_block_and_the_next_one_has_excess() -> None:
    chain = chain_at("cancun")
    full = chain.build([blobs(0, 4), blobs(1, 2)])
    assert (full.header.blob_gas_used, full.header.excess_blob_gas) == (6 << 17, 0)
    assert chain.build().header.excess_blob_gas == 3 << 17


def test_receipts_tell_what_became_of_each_transaction() -> None:
    chain = chain_at("osaka")
    chain.build([pay(0), pay(1, None, data=assemble("PUSH1 0 PUSH1 0 REVERT")), pay(2, ANYONE, value=1)])
    receipts = chain.receipts(1)
    assert [receipt.succeeded for receipt in receipts] == [True, False, True]
    assert receipts[-1].cumulative_gas == chain.head.header.gas_used == sum(each.gas_used for each in receipts)
    assert [len(receipt.logs) for receipt in receipts] == [1, 0, 0]
    assert receipts[0].bloom == chain.head.header.bloom != bytes(256)


def test_until_byzantium_receipts_have_the_state_root() -> None:
    chain = chain_at("homestead", difficulty=131_072)
    chain.build([pay(0), pay(1)])
    roots = [receipt.post_state for receipt in chain.receipts(1)]
    assert None not in roots
    assert len({*roots, chain.head.header.state_root}) == 3


def test_pending_transactions_of_several_senders_are_built_as_they_came() -> None:
    chain = chain_at("london")
    for nonce, key in ((1, KEY), (0, OTHER_KEY), (0, KEY)):
        chain.submit(pay(nonce, key=key))
    block = chain.build()
    assert [(tx.sender, tx.nonce) for tx in block.transactions] == [(SENDER, 0), (OTHER, 0), (SENDER, 1)]


def test_a_trial_block_is_the_one_that_would_be_built_and_leaves_nothing() -> None:
    chain = chain_at("osaka")
    chain.submit(pay(0))
    with chain.trial(timestamp=99) as (tried, receipts):
        assert receipts[0].succeeded
        assert chain.state.storage(COUNTER, 0) == 1
    assert chain.state.storage(COUNTER, 0) == 0
    assert chain.head.number == 0
    assert chain.build(timestamp=99) == tried


def test_pending_transactions_are_built_in_order_of_nonce_and_what_cannot_run_stays() -> None:
    chain = chain_at("osaka")
    for nonce in (1, 0, 5):
        chain.submit(pay(nonce).encoded)
    chain.submit(pay(0, key=OTHER_KEY))
    block = chain.build()
    assert sorted(tx.nonce for tx in block.transactions) == [0, 0, 1]
    assert [tx.nonce for tx in chain.pending] == [5]
    chain.submit(pay(0))
    assert chain.build().transactions == ()
    assert [tx.nonce for tx in chain.pending] == [5]


def test_a_transaction_given_to_build_must_be_valid_and_otherwise_nothing_happens() -> None:
    chain = chain_at("osaka")
    root = chain.state.root()
    with pytest.raises(Rejected) as caught:
        chain.build([pay(0), pay(7)])
    assert caught.value.reason is RejectReason.NONCE_MISMATCH_TOO_HIGH
    assert (chain.head.number, chain.state.root()) == (0, root)


@pytest.mark.parametrize("fork", ["frontier", "berlin", "london", "osaka"])
def test_a_key_signs_for_the_next_block_with_what_will_do(fork: str) -> None:
    chain = chain_at(fork, difficulty=131_072 if fork in ("frontier", "berlin", "london") else 0)
    for _ in range(2):
        chain.submit(chain.sign(KEY, COUNTER))
        chain.submit("0x" + chain.sign(KEY.hex(), "0x" + ANYONE.hex(), value="0x5").encoded.hex())
        assert len(chain.build(coinbase="0x" + MINER.hex(), timestamp=hex(9 + 9 * chain.head.number)).transactions) == 2
    assert chain.pending == []
    assert chain.state.account(SENDER).nonce == 4
    assert chain.state.account(ANYONE).balance == 10
    created = chain.build([chain.sign(OTHER_KEY, data=assemble("PUSH1 0 PUSH1 0 RETURN"), max_fee=10**10)])
    assert chain.receipts(created.hash)[0].created is not None


def test_blocks_and_hashes_may_be_hex_text() -> None:
    maker, chain = chain_at("osaka"), chain_at("osaka")
    block = chain.import_block("0x" + maker.build([pay(0)]).encoded.hex())
    assert chain.block("0x" + block.hash.hex()) == block
    with chain.at(bytearray(block.hash).hex()) as state:
        assert state.storage(COUNTER, 0) == 1


@pytest.mark.parametrize(
    ("do", "message"),
    [
        (lambda chain: chain.build(coinbase="0x12"), "coinbase: expected 20 bytes, got 1"),
        (lambda chain: chain.build(timestamp=-1), "timestamp: -1 is not a number of 64 bits"),
        (lambda chain: chain.build(gas_limit="x"), "gas_limit: 'x' is not a number; write an int or 0x hex text"),
        (lambda chain: chain.build(beacon_root=b"1"), "beacon_root: expected 32 bytes, got 1"),
        (lambda chain: chain.build(["0xq"]), "transaction: 'q' at position 0 is not a hex digit"),
        (lambda chain: chain.submit(5), "transaction: expected bytes or hex text, got int"),
        (lambda chain: chain.import_block("0xq"), "block: 'q' at position 0 is not a hex digit"),
        (lambda chain: chain.block(7), "block 7: the chain goes from 0 to 0"),
        (lambda chain: chain.block(-1), "block -1: the chain goes from 0 to 0"),
        (lambda chain: chain.block(b"\1" * 32), f"block 0x{'01' * 32}: not known"),
        (lambda chain: chain.set_head("0x12"), "block: expected 32 bytes, got 1"),
        (lambda chain: chain.sign("0x12"), "key: expected 32 bytes, got 1"),
        (lambda chain: chain.sign(KEY, "0x12"), "to: expected 20 bytes, got 1"),
        (lambda chain: chain.sign(KEY, value=-1), "value: -1 is not a number of 256 bits"),
        (lambda chain: chain.sign(bytes(32)), "key: 0 is not a secret key"),
    ],
)
def test_a_wrong_argument_gets_one_line(do: Callable[[Chain], object], message: str) -> None:
    with pytest.raises(BadValue) as caught:
        do(chain_at("osaka"))
    assert str(caught.value) == message


def test_more_ether_than_a_word_holds_is_a_limit_of_the_engine_and_changes_nothing() -> None:
    state = world()
    state.accounts[ANYONE] = Account(balance=2**256 - 1)
    chain = chain_at("shanghai", state)
    with pytest.raises(EngineLimit, match="a balance of more than 256 bits"):
        chain.build(withdrawals=[Withdrawal(0, 0, ANYONE, 1)])
    assert chain.state.root() == chain.head.header.state_root


def test_the_gas_limit_does_not_fall_below_5000() -> None:
    chain = chain_at("osaka", gas_limit=5_003)
    chain.build(gas_limit=5_000)
    with pytest.raises(InvalidBlock) as caught:
        chain.build(gas_limit=4_999)
    assert caught.value.reason is B.INVALID_GASLIMIT


def test_the_gas_limit_doubles_with_the_first_block_of_london() -> None:
    document = {"config": {"londonBlock": 1}, "alloc": {}, "gasLimit": 8_000_000, "difficulty": 131_072}
    chain = Chain(genesis_from_json(document), tier="reference")
    block = chain.build()
    assert (block.header.gas_limit, block.header.base_fee) == (16_000_000, 10**9)
    Chain(chain.genesis, tier="reference").import_block(block)


def test_geths_genesis_json_is_read(tmp_path: Any) -> None:
    document = {
        "config": {"chainId": 1337, "londonBlock": 0, "terminalTotalDifficulty": 0, "shanghaiTime": 0},
        "alloc": {SENDER.hex(): {"balance": "0xde0b6b3a7640000"}, "0x" + "12" * 20: {"balance": "5", "code": "0x00"}},
        "gasLimit": "0x1c9c380",
        "extraData": "0x1234",
        "timestamp": "0x10",
    }
    chain = Chain.from_json(json.loads(json.dumps(document)), tier="reference")
    assert chain.head.header.extra_data == b"\x12\x34"
    assert chain.state.account(b"\x12" * 20).balance == 5
    assert chain.build().header.timestamp == 28


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({}, "genesis: no 'config' section"),
        ({"config": {}}, "genesis: no 'alloc' section"),
        ({"config": {}, "alloc": {"0x12": {}}}, "alloc: address '0x12': expected 20 bytes, got 1"),
        ({"config": {}, "alloc": {"12" * 20: {"balance": "x"}}}, f"alloc[0x{'12' * 20}].balance: 'x' is not a number"),
        ({"config": {}, "alloc": {"12" * 20: {"blance": 1}}}, f"alloc[0x{'12' * 20}]: 'blance' is not a field"),
        ({"config": {}, "alloc": {}, "gasLimit": "x"}, "genesis gasLimit: 'x' is not a number"),
    ],
)
def test_a_wrong_genesis_gets_one_line(document: dict[str, Any], message: str) -> None:
    with pytest.raises(BadValue) as caught:
        Chain.from_json(document)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


# -- the state at a block, and reorganisation -------------------------------------------------------------------------


def test_the_state_at_any_block_can_be_looked_at_and_is_put_back() -> None:
    chain = chain_at("osaka")
    for nonce in range(4):
        chain.build([pay(nonce)])
    head = chain.state.root()
    for number in range(5):
        with chain.at(number) as state:
            assert state.storage(COUNTER, 0) == number
            assert state.root() == chain.block(number).header.state_root
        assert chain.state.root() == head


def test_what_is_done_to_a_past_state_is_undone() -> None:
    chain = chain_at("osaka")
    chain.build([pay(0)])
    chain.build([pay(1)])
    root = chain.state.root()
    with chain.at(1) as state:
        evm = EVM(state=state, block=chain.environment(1), tier="reference")
        evm.transact(OTHER, COUNTER, gas_price=10**10)
        assert state.storage(COUNTER, 0) == 2
    assert chain.state.root() == root
    chain.build([pay(2)])
    assert chain.state.storage(COUNTER, 0) == 3


@pytest.mark.parametrize("tier", ["reference", "native", "auto"])
def test_a_longer_branch_becomes_the_chain_and_back_again(tier: str) -> None:
    """Two branches with creations, destructions and storage; the state is exact after every change of branch."""
    destroyed = assemble(f"PUSH20 0x{ANYONE.hex()} SELFDESTRUCT")
    state = world()
    state.accounts[b"\xdd" * 20] = Account(nonce=1, balance=9, code=destroyed, storage={1: 2})
    genesis = genesis_at("shanghai", state)
    makers = [Chain(genesis, tier=tier) for _ in range(2)]
    branches: list[list[SealedBlock]] = [[], []]
    creation = assemble("PUSH1 5 PUSH1 1 SSTORE PUSH1 0 PUSH1 0 RETURN")
    for place in range(5):
        first = [pay(place), pay(place, None if place % 2 else b"\xdd" * 20, OTHER_KEY, data=creation)]
        second = [pay(place, b"\xdd" * 20, value=3), pay(place, None, OTHER_KEY, data=creation, value=place)]
        branches[0].append(makers[0].build(first, coinbase=MINER))
        branches[1].append(makers[1].build(second, coinbase=ANYONE))
    chain = Chain(genesis, tier=tier)
    a, b = branches
    for block, head in (
        (a[0], a[0]), (b[0], a[0]), (b[1], b[1]), (a[1], b[1]), (a[2], a[2]), (a[3], a[3]), (b[2], a[3]), (b[3], a[3]),
        (b[4], b[4]), (a[4], b[4]),
    ):  # fmt: skip
        chain.import_block(block.encoded)
        assert chain.head.hash == head.hash
        assert chain.state.root() == head.header.state_root
    chain.set_head(a[4].hash)
    assert chain.state.root() == a[4].header.state_root
    assert [chain.block(n + 1).hash for n in range(5)] == [block.hash for block in a]
    with chain.at(b[2].hash) as state:
        assert state.root() == b[2].header.state_root
    chain.set_head(0)
    assert chain.state.root() == genesis.block.header.state_root
    assert chain.head.number == 0
    with pytest.raises(BadValue, match="block 1: the chain goes from 0 to 0"):
        chain.block(1)


def test_before_the_merge_the_heavier_branch_wins_though_it_is_shorter() -> None:
    slow, fast = (chain_at("homestead", difficulty=10**9) for _ in range(2))
    long = [slow.build([], timestamp=10_000 * (place + 1)) for place in range(2)]
    short = fast.build([], timestamp=1)
    assert short.header.difficulty > long[0].header.difficulty
    chain = chain_at("homestead", difficulty=10**9)
    chain.import_block(long[0])
    chain.import_block(short)
    assert chain.head.hash == short.hash
    chain.import_block(long[1])
    assert chain.head.hash == long[1].hash
    assert chain.total_difficulty(2) == 10**9 + sum(block.header.difficulty for block in long)


def test_a_block_that_is_known_is_imported_again_without_effect() -> None:
    chain = chain_at("osaka")
    block = chain.build([pay(0)])
    assert chain.import_block(block.encoded) == block
    assert chain.head.hash == block.hash
    assert chain.knows(block.hash)


def test_blockhash_answers_along_the_blocks_own_branch() -> None:
    state = world()
    ask = assemble("PUSH1 2 NUMBER SUB BLOCKHASH PUSH1 0 SSTORE")
    state.accounts[ANYONE] = Account(nonce=1, code=ask)
    genesis = genesis_at("shanghai", state)
    one, two = Chain(genesis, tier="reference"), Chain(genesis, tier="reference")
    first = one.build([], extra_data=b"one")
    one.build([])
    third = one.build([pay(0, ANYONE)])
    two.build([], extra_data=b"two")
    for block in (first, one.block(2), third):
        two.import_block(block.encoded)
    assert two.head.hash == third.hash
    assert two.state.storage(ANYONE, 0) == int.from_bytes(first.hash, "big")


class Stop(Exception):
    """What a hook raises in the middle of a block."""


def test_what_ends_a_block_in_its_middle_leaves_the_chain_as_it_was() -> None:
    maker = chain_at("osaka")
    blocks = [maker.build([pay(2 * place), pay(2 * place + 1)]) for place in range(2)]
    steps = 0

    def stop(step: Step) -> None:
        nonlocal steps
        steps += 1
        if steps == limit:
            raise Stop

    for limit in range(1, 60, 3):
        steps = 0
        chain = Chain(maker.genesis, tier="reference", hooks=Hooks(on_opcode=stop))
        with suppress(Stop):
            for block in blocks:
                chain.import_block(block)
        assert steps == limit
        assert chain.state.root() == chain.head.header.state_root
        steps = limit + 1
        for block in blocks:
            chain.import_block(block)
        assert chain.state.root() == maker.state.root()


def test_history_is_not_kept_in_the_journal() -> None:
    chain = chain_at("osaka")
    for nonce in range(20):
        chain.build([pay(nonce)])
    with chain.at(3):
        pass
    assert chain.state.journal == []
    assert chain.state.open_marks == 0


# -- what is refused --------------------------------------------------------------------------------------------------


def blobs(nonce: int, count: int) -> SignedTransaction:
    hashes = (b"\1" + bytes(31),) * count
    fees: dict[str, Any] = {"gas_limit": 21_000, "max_fee": 10**10, "max_blob_fee": 1}
    return sign(Transaction(b"", ANYONE, nonce=nonce, blob_hashes=hashes, **fees), KEY, 1)


ONE_BLOB = blobs(0, 1)


def header(**fields: Any) -> Callable[[SealedBlock], bytes]:
    """The block with other header fields; a function is given the old value."""

    def change(block: SealedBlock) -> bytes:
        given = {key: value(getattr(block.header, key)) if callable(value) else value for key, value in fields.items()}
        return replace(block, header=replace(block.header, **given)).encoded

    return change


def body(**parts: Any) -> Callable[[SealedBlock], bytes]:
    return lambda block: replace(block, **parts).encoded


def item(change: Callable[[list[Any]], None]) -> Callable[[SealedBlock], bytes]:
    """The block with its RLP changed."""

    def make(block: SealedBlock) -> bytes:
        parts: list[Any] = list(decode(block.encoded))  # type: ignore[arg-type]
        change(parts)
        return encode(parts)

    return make


def with_transactions(*transactions: SignedTransaction) -> Callable[[SealedBlock], bytes]:
    def make(block: SealedBlock) -> bytes:
        committed = replace(block.header, transactions_root=transactions_root(transactions))
        return replace(block, header=committed, transactions=transactions).encoded

    return make


REFUSED: list[tuple[BlockReason | RejectReason, str, Callable[[SealedBlock], bytes]]] = [
    (B.RLP_STRUCTURES_ENCODING, "osaka", lambda block: block.encoded[:-1]),
    (B.RLP_STRUCTURES_ENCODING, "osaka", lambda block: b"\x80"),
    (B.RLP_STRUCTURES_ENCODING, "osaka", item(lambda parts: parts.append([]))),
    (B.RLP_STRUCTURES_ENCODING, "osaka", item(lambda parts: parts[0].__setitem__(0, b"\1" * 31))),
    (B.RLP_STRUCTURES_ENCODING, "osaka", item(lambda parts: parts[0].__setitem__(8, b"\0\1"))),
    (B.RLP_INVALID_FIELD_OVERFLOW_64, "osaka", item(lambda parts: parts[0].__setitem__(11, b"\1" * 9))),
    (B.RLP_INVALID_FIELD_OVERFLOW_64, "osaka", item(lambda parts: parts[3].append([b"\1" * 9, b"", ANYONE, b""]))),
    (B.RLP_INVALID_ADDRESS, "osaka", item(lambda parts: parts[3].append([b"", b"", ANYONE[1:], b""]))),
    (B.RLP_WITHDRAWALS_NOT_READ, "osaka", item(lambda parts: parts.pop())),
    (B.RLP_BLOCK_LIMIT_EXCEEDED, "osaka", with_transactions(pay(0, data=bytes(8_388_608), gas_limit=10**9))),
    (B.INCORRECT_BLOCK_FORMAT, "osaka", item(lambda parts: parts[0].pop())),
    (B.INCORRECT_BLOCK_FORMAT, "cancun", header(requests_hash=bytes(32))),
    (B.INCORRECT_BLOCK_FORMAT, "shanghai", item(lambda parts: parts[0].append(b""))),
    (B.INCORRECT_BLOCK_FORMAT, "paris", item(lambda parts: parts.append([]))),
    (B.UNKNOWN_PARENT, "osaka", header(parent_hash=b"\1" * 32)),
    (B.UNKNOWN_PARENT_ZERO, "osaka", header(parent_hash=bytes(32))),
    (B.INVALID_BLOCK_NUMBER, "osaka", header(number=2)),
    (B.INVALID_BLOCK_TIMESTAMP_OLDER_THAN_PARENT, "osaka", header(timestamp=0)),
    (B.INVALID_GASLIMIT, "osaka", header(gas_limit=lambda limit: limit + limit // 1024)),
    (B.INVALID_GASLIMIT, "osaka", header(gas_limit=lambda limit: limit - limit // 1024)),
    (B.GASLIMIT_TOO_BIG, "osaka", header(gas_limit=1 << 63)),
    (B.EXTRA_DATA_TOO_BIG, "osaka", header(extra_data=bytes(33))),
    (B.INVALID_DIFFICULTY, "byzantium", header(difficulty=lambda old: old + 1)),
    (B.IMPORT_IMPOSSIBLE_DIFFICULTY_OVER_PARIS, "osaka", header(difficulty=1)),
    (B.IMPORT_IMPOSSIBLE_PARIS_WRONG_POW, "osaka", header(nonce=b"\1" * 8)),
    (B.IMPORT_IMPOSSIBLE_UNCLES_OVER_PARIS, "osaka", header(ommers_hash=bytes(32))),
    (B.IMPORT_IMPOSSIBLE_UNCLES_OVER_PARIS, "osaka", body(ommers=(Header(),))),
    (B.INVALID_BASEFEE_PER_GAS, "osaka", header(base_fee=lambda fee: fee + 1)),
    (B.INVALID_GAS_USED_ABOVE_LIMIT, "osaka", header(gas_used=lambda _: 30_000_001)),
    (B.INVALID_GAS_USED, "osaka", header(gas_used=lambda used: used + 1)),
    (B.INCORRECT_EXCESS_BLOB_GAS, "cancun", header(excess_blob_gas=1)),
    (B.INCORRECT_BLOB_GAS_USED, "cancun", header(blob_gas_used=1 << 17)),
    (B.BLOB_GAS_USED_ABOVE_LIMIT, "cancun", header(blob_gas_used=7 << 17)),
    (B.INVALID_TRANSACTIONS_ROOT, "osaka", header(transactions_root=EMPTY_ROOT)),
    (B.INVALID_RECEIPTS_ROOT, "osaka", header(receipts_root=EMPTY_ROOT)),
    (B.INVALID_WITHDRAWALS_ROOT, "osaka", header(withdrawals_root=bytes(32))),
    (B.INVALID_WITHDRAWALS_ROOT, "osaka", body(withdrawals=(Withdrawal(0, 0, ANYONE, 1),))),
    (B.INVALID_STATE_ROOT, "osaka", header(state_root=EMPTY_ROOT)),
    (B.INVALID_LOG_BLOOM, "osaka", header(bloom=bytes(256))),
    (B.INVALID_UNCLES_HASH, "byzantium", header(ommers_hash=bytes(32))),
    (B.INVALID_REQUESTS, "osaka", header(requests_hash=bytes(32))),
    (RejectReason.NONCE_MISMATCH_TOO_HIGH, "osaka", with_transactions(pay(1))),
    (RejectReason.GAS_ALLOWANCE_EXCEEDED, "prague", with_transactions(pay(0), pay(1, gas_limit=3 * 10**7))),
    (RejectReason.TYPE_3_TX_MAX_BLOB_GAS_ALLOWANCE_EXCEEDED, "cancun", with_transactions(blobs(0, 4), blobs(1, 3))),
    (RejectReason.INVALID_CHAINID, "osaka", with_transactions(replace(pay(0), chain_id=9))),
    (RejectReason.TYPE_3_TX_PRE_FORK, "shanghai", with_transactions(ONE_BLOB)),
    (RejectReason.TYPE_NOT_SUPPORTED, "osaka", item(lambda parts: parts[1].append(b"\x09\xc0"))),
    (RejectReason.TYPE_3_TX_WITH_FULL_BLOBS, "osaka", item(
        lambda parts: parts[1].append(b"\x03" + encode([decode(ONE_BLOB.encoded[1:]), [], [], []])))),
]  # fmt: skip


@pytest.mark.parametrize(
    ("reason", "fork", "change"), REFUSED, ids=lambda each: getattr(each, "name", "") or str(each)[:9]
)
def test_a_block_that_breaks_a_rule_is_refused_by_name_and_changes_nothing(
    reason: BlockReason | RejectReason, fork: str, change: Callable[[SealedBlock], bytes]
) -> None:
    maker, chain = (chain_at(fork, difficulty=131_072 if fork == "byzantium" else 0) for _ in range(2))
    block = maker.build([pay(0)], coinbase=MINER)
    root = chain.state.root()
    with pytest.raises(InvalidBlock) as caught:
        chain.import_block(change(block))
    assert caught.value.reason is reason, caught.value
    assert "\n" not in str(caught.value)
    assert (chain.head.number, chain.state.root()) == (0, root)
    chain.import_block(block.encoded)
    assert chain.head.hash == block.hash


SYSTEM_FAULTS = [
    (B.SYSTEM_CONTRACT_EMPTY, WITHDRAWAL_REQUESTS, b""),
    (B.SYSTEM_CONTRACT_EMPTY, CONSOLIDATION_REQUESTS, b""),
    (B.SYSTEM_CONTRACT_CALL_FAILED, WITHDRAWAL_REQUESTS, assemble("PUSH1 0 PUSH1 0 REVERT")),
    (B.SYSTEM_CONTRACT_CALL_FAILED, CONSOLIDATION_REQUESTS, assemble("L: JUMPDEST PUSH1 @L JUMP")),
]


@pytest.mark.parametrize(("reason", "address", "code"), SYSTEM_FAULTS)
def test_a_block_whose_requests_cannot_be_had_is_refused(reason: BlockReason, address: bytes, code: bytes) -> None:
    state = world()
    state.accounts[address].code = code
    with pytest.raises(InvalidBlock) as caught:
        chain_at("prague", state).build()
    assert caught.value.reason is reason


def test_a_deposit_event_of_another_layout_makes_the_block_invalid() -> None:
    event = deposit_event()
    state = world()
    state.accounts[DEPOSIT_CONTRACT] = Account(nonce=1, code=LOG_INPUT)
    for wrong in (event[:-1], event + b"\0", b"\1" + event[1:], event[:160] + b"\1" + event[161:]):
        with pytest.raises(InvalidBlock) as caught:
            chain_at("prague", state.copy()).build([pay(0, DEPOSIT_CONTRACT, data=wrong, gas_limit=200_000)])
        assert caught.value.reason is B.INVALID_DEPOSIT_EVENT_LAYOUT


def test_the_dao_fork_asks_for_its_name() -> None:
    document = {"config": {"homesteadBlock": 0, "daoForkBlock": 1}, "alloc": {}, "difficulty": 131_072}
    chain = Chain.from_json(document, tier="reference")
    with pytest.raises(InvalidBlock) as caught:
        chain.build()
    assert caught.value.reason is B.EXTRA_DATA_INVALID_DAO
    chain.build(extra_data=b"dao-hard-fork")


def test_a_genesis_that_is_not_its_states_is_refused() -> None:
    genesis = genesis_at("osaka", world())
    with pytest.raises(InvalidBlock, match="wrong state root"):
        replace(genesis, state=State())


def pow_chain(blocks: int) -> Chain:
    chain = chain_at("byzantium", difficulty=131_072)
    for _ in range(blocks):
        chain.build()
    return chain


def sibling_of(chain: Chain, number: int, **fields: Any) -> Header:
    """A valid header beside a block of the chain."""
    other = chain_at("byzantium", difficulty=131_072)
    for place in range(1, number):
        other.import_block(chain.block(place))
    return other.build([], extra_data=b"ommer", **fields).header


OMMERS: list[tuple[BlockReason, Callable[[Chain], list[Header]]]] = [
    (B.TOO_MANY_UNCLES, lambda chain: [sibling_of(chain, 8, coinbase=bytes([n]) * 20) for n in range(3)]),
    (B.UNCLE_IS_BROTHER, lambda chain: [sibling_of(chain, 8)] * 2),
    (B.UNCLE_IN_CHAIN, lambda chain: [chain.block(8).ommers[0]]),
    (B.UNCLE_IS_ANCESTOR, lambda chain: [chain.block(7).header]),
    (B.UNCLE_PARENT_INCORRECT, lambda chain: [sibling_of(chain, 9)]),
    (B.UNCLE_PARENT_INCORRECT, lambda chain: [sibling_of(chain, 2)]),
    (B.UNCLE_UNKNOWN_PARENT, lambda chain: [replace(sibling_of(chain, 8), parent_hash=b"\1" * 32)]),
    (B.INVALID_DIFFICULTY, lambda chain: [replace(sibling_of(chain, 8), difficulty=5)]),
    (B.INVALID_BLOCK_NUMBER, lambda chain: [replace(sibling_of(chain, 8), number=7)]),
]


@pytest.mark.parametrize(("reason", "ommers"), OMMERS, ids=lambda each: getattr(each, "name", "ommers"))
def test_a_wrong_ommer_is_refused_by_name(reason: BlockReason, ommers: Callable[[Chain], list[Header]]) -> None:
    chain = pow_chain(7)
    chain.build([], ommers=[sibling_of(chain, 6)])
    with pytest.raises(InvalidBlock) as caught:
        chain.build([], ommers=ommers(chain))
    assert caught.value.reason is reason
    chain.build([], ommers=[sibling_of(chain, 3), sibling_of(chain, 8)])
    assert chain.head.header.ommers_hash == ommers_hash(chain.head.ommers)


def test_every_reason_to_refuse_a_block_is_shown_here() -> None:
    shown = {row[0] for row in REFUSED} | {row[0] for row in SYSTEM_FAULTS} | {row[0] for row in OMMERS}
    shown |= {B.INVALID_DEPOSIT_EVENT_LAYOUT, B.EXTRA_DATA_INVALID_DAO}
    assert {reason for reason in shown if isinstance(reason, BlockReason)} == set(BlockReason)


def test_a_refused_block_says_why_in_the_words_of_official_tests() -> None:
    assert InvalidBlock(B.INVALID_STATE_ROOT).official_name == "BlockException.INVALID_STATE_ROOT"
    rejected = InvalidBlock(RejectReason.NONCE_IS_MAX)
    assert rejected.official_name == "TransactionException.NONCE_IS_MAX"


def test_a_decoded_block_has_the_hash_of_its_header() -> None:
    block = chain_at("osaka").build([pay(0)])
    assert decode_block(block.encoded).hash == block.hash
