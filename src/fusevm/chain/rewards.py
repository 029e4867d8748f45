"""What blocks paid until the merge, to their miner and to those of their ommers; and what may be an ommer."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fusevm.chain.header import Header
from fusevm.chain.outcome import check_room
from fusevm.chain.reasons import BlockReason, InvalidBlock
from fusevm.chain.sealed import SealedBlock
from fusevm.chain.state import State
from fusevm.evm.forks import Fork, Rules

ETHER = 10**18
REWARDS = {Fork.FRONTIER: 5 * ETHER, Fork.BYZANTIUM: 3 * ETHER, Fork.CONSTANTINOPLE: 2 * ETHER}
MAX_OMMERS = 2
DEEPEST_OMMER = 6  # generations


def reward_of(fork: Fork) -> int | None:
    """The block reward; None since the merge."""
    if fork >= Fork.PARIS:
        return None
    return [reward for since, reward in REWARDS.items() if since <= fork][-1]


def pay_rewards(
    state: State, rules: Rules, reward: int, number: int, coinbase: bytes, ommers: Sequence[tuple[int, bytes]]
) -> None:
    """Ommers are given by number and coinbase."""
    pay(state, rules, coinbase, reward + len(ommers) * (reward // 32))
    for ommer_number, ommer_coinbase in ommers:
        pay(state, rules, ommer_coinbase, (8 + ommer_number - number) * reward // 8)


def pay(state: State, rules: Rules, address: bytes, amount: int) -> None:
    """Ether from nowhere. Paying nothing touches the account, which clears an empty one (EIP-161)."""
    check_room(state, address, amount)
    state.add_balance(address, amount)
    if rules.clears_empty_accounts and state.account(address).empty:
        state.delete(address)


def check_ommers(
    block: SealedBlock, ancestor: Callable[[bytes], SealedBlock | None], check: Callable[[Header, Header], None]
) -> None:
    """Raises InvalidBlock for a wrong ommer. `ancestor` finds blocks by hash, `check` judges a header by its parent."""
    if len(block.ommers) > MAX_OMMERS:
        raise InvalidBlock(BlockReason.TOO_MANY_UNCLES, str(len(block.ommers)))
    if not block.ommers:
        return
    lineage = _lineage(block, ancestor)
    taken = {ommer.hash for each in lineage.values() for ommer in each.ommers}
    seen: set[bytes] = set()
    for ommer in block.ommers:
        if ommer.hash in seen:
            raise InvalidBlock(BlockReason.UNCLE_IS_BROTHER, f"0x{ommer.hash.hex()}")
        if ommer.hash in taken:
            raise InvalidBlock(BlockReason.UNCLE_IN_CHAIN, f"0x{ommer.hash.hex()}")
        if ommer.hash in lineage or ommer.hash == block.hash:
            raise InvalidBlock(BlockReason.UNCLE_IS_ANCESTOR, f"0x{ommer.hash.hex()}")
        parent = lineage.get(ommer.parent_hash)
        if parent is None or ommer.parent_hash == block.header.parent_hash:
            known = parent is not None or ancestor(ommer.parent_hash) is not None
            reason = BlockReason.UNCLE_PARENT_INCORRECT if known else BlockReason.UNCLE_UNKNOWN_PARENT
            raise InvalidBlock(reason, f"0x{ommer.parent_hash.hex()}")
        check(ommer, parent.header)
        seen.add(ommer.hash)


def _lineage(block: SealedBlock, ancestor: Callable[[bytes], SealedBlock | None]) -> dict[bytes, SealedBlock]:
    """The block's last ancestors by hash, as far back as an ommer's parent may be."""
    found: dict[bytes, SealedBlock] = {}
    parent = ancestor(block.header.parent_hash)
    while parent is not None and len(found) <= DEEPEST_OMMER:
        found[parent.hash] = parent
        parent = ancestor(parent.header.parent_hash) if parent.number else None
    return found
