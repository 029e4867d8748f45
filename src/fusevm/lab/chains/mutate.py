"""Damaged encodings of transactions and blocks: none may crash, each is refused with a reason or means itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any

from fusevm.blockchain import Chain
from fusevm.chain.reasons import InvalidBlock, Rejected
from fusevm.chain.rlp import Item, MalformedRLP, decode, encode
from fusevm.chain.sealed import list_root
from fusevm.chain.signed import decode_transaction
from fusevm.evm.forks import Fork
from fusevm.evm.keccak import keccak256
from fusevm.lab.chains.generate import random_block, random_genesis, random_schedule

WITHDRAWALS_ROOT = 16  # its place in a header
BLOCKS = 3  # of the chain that damaged blocks are offered to


@dataclass
class Damage:
    """What became of damaged inputs."""

    inputs: int = 0
    accepted: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    crashes: list[str] = field(default_factory=list)


def run_damage(seed: str, fork: Fork, inputs: int) -> Damage:
    """Mutated transactions and blocks of one random chain."""
    rng = Random(f"damage {seed}")
    genesis = random_genesis(rng, random_schedule(rng, fork))
    chain = Chain(genesis, tier="reference")
    blocks = [random_block(rng, chain, 6) for _ in range(BLOCKS)]
    transactions = [tx.encoded for block in blocks for tx in block.transactions] or [encode([b""] * 9)]
    chain.set_head(blocks[-2].hash)
    seen = Damage()
    for _ in range(inputs):
        seen.inputs += 1
        if rng.random() < 0.5:
            _offer_transaction(damaged_transaction(rng, rng.choice(transactions)), seen)
        else:
            _offer_block(chain, damaged_block(rng, rng.choice(blocks).encoded), seen)
    return seen


def _offer_transaction(data: bytes, seen: Damage) -> None:
    try:
        read = decode_transaction(data)
        if read.encoded != data:
            seen.crashes.append(f"transaction 0x{data.hex()}: read, but written back differently")
        _ = read.sender
        seen.accepted += 1
    except Rejected as error:
        seen.reasons[error.official_name] += 1
    except Exception as error:
        seen.crashes.append(f"transaction 0x{data.hex()}: {error!r}")


def _offer_block(chain: Chain, data: bytes, seen: Damage) -> None:
    head = chain.head.hash
    root = chain.state.root()
    try:
        chain.import_block(data)
        seen.accepted += 1
        chain.set_head(head)
    except InvalidBlock as error:
        seen.reasons[error.official_name] += 1
    except Exception as error:
        seen.crashes.append(f"block 0x{data.hex()}: {error!r}")
    if (chain.head.hash, chain.state.root()) != (head, root):
        seen.crashes.append(f"block 0x{data.hex()}: refused, but the chain has changed")


# -- damage


def damaged_transaction(rng: Random, data: bytes) -> bytes:
    if data[0] >= 0xC0:
        return damaged(rng, data)
    if rng.random() < 0.3:
        return _with_bytes_changed(rng, data)
    kind = data[0] if rng.random() < 0.9 else rng.randrange(256)
    return bytes((kind,)) + damaged(rng, data[1:])


def damaged_block(rng: Random, data: bytes) -> bytes:
    """Damaged anywhere; half of those that still have a body get its roots, so that more than roots is looked at."""
    changed = damaged(rng, data)
    if rng.random() < 0.5:
        return changed
    try:
        parts: Any = decode(changed)
        header, transactions, ommers = list(parts[0]), parts[1], parts[2]
        header[1] = keccak256(encode(ommers))
        header[4] = list_root([each if isinstance(each, bytes) else encode(each) for each in transactions])
        if len(parts) > 3 and len(header) > WITHDRAWALS_ROOT:
            header[WITHDRAWALS_ROOT] = list_root([encode(each) for each in parts[3]])
        return encode([header, *parts[1:]])
    except (MalformedRLP, ValueError, TypeError, IndexError):
        return changed


def damaged(rng: Random, data: bytes) -> bytes:
    """Bytes changed anywhere, or a well-formed tree with something in it changed."""
    if rng.random() < 0.4:
        return _with_bytes_changed(rng, data)
    tree = decode(data)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        tree = _with_a_part_changed(rng, tree)
    return encode(tree)


def _with_bytes_changed(rng: Random, data: bytes) -> bytes:
    raw = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 5))):
        at = rng.randrange(len(raw) + 1)
        kind = rng.randrange(4)
        if kind == 0 and at < len(raw):
            raw[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            raw[at:at] = rng.randbytes(rng.choice((1, 1, 2, 33)))
        elif kind == 2:
            del raw[at : at + rng.choice((1, 1, 2, 33))]
        elif kind == 3 and rng.random() < 0.3:
            del raw[at:]
    return bytes(raw)


def _with_a_part_changed(rng: Random, tree: Item) -> Item:
    """A change at a random place, deeper ones likelier than the root."""
    if isinstance(tree, bytes) or not tree or rng.random() < 0.1:
        return _changed(rng, tree)
    items: list[Any] = list(tree)
    at = rng.randrange(len(items))
    kind = rng.random()
    if kind < 0.08:
        del items[at]
    elif kind < 0.16:
        items.insert(at, items[rng.randrange(len(items))])
    elif kind < 0.2:
        items[at], items[-1] = items[-1], items[at]
    else:
        items[at] = _with_a_part_changed(rng, items[at])
    return items


def _changed(rng: Random, item: Item) -> Item:
    if not isinstance(item, bytes):
        return b"" if rng.random() < 0.5 else [*item, rng.randbytes(rng.randrange(40))]
    choices: tuple[Any, ...] = (
        b"",
        b"\0" + item,
        item[1:],
        item + b"\1",
        [item],
        b"\xff" * len(item),
        rng.randbytes(len(item)),
        rng.randbytes(rng.choice((1, 8, 9, 20, 32, 33, 256))),
    )
    chosen: Item = rng.choice(choices)
    return chosen


def run_damages(seeds: range, forks: list[Fork], inputs: int) -> Iterator[Damage]:
    """One finding per chain."""
    for seed in seeds:
        fork = forks[seed % len(forks)]
        yield run_damage(f"{seed}/{fork.label}", fork, inputs)
