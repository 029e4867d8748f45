"""Ethereum's blockchain tests: a genesis and blocks, valid and not, judged by the last block and its state."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from fusevm.blockchain import Chain
from fusevm.chain.genesis import Genesis
from fusevm.chain.reasons import InvalidBlock
from fusevm.chain.schedule import ForkSchedule, blobs_from_config, schedule_named
from fusevm.chain.sealed import decode_block
from fusevm.chain.state import Account, State
from fusevm.lab.official.expected import is_expected
from fusevm.lab.official.statetest import CaseVerdict, MalformedTest, data, problem, quantity, state_from
from fusevm.reference.hooks import Hooks


@dataclass(slots=True)
class BlockCase:
    """A chain, and what must come of it."""

    name: str
    network: str
    test: dict[str, Any]


def block_cases_in(document: Any, network: str | None = None) -> Iterator[BlockCase]:
    """Every case of a parsed blockchain test file, or those of one network."""
    if not isinstance(document, dict) or not document:
        raise MalformedTest("expected an object of named tests")
    for name, test in document.items():
        if not isinstance(test, dict) or not isinstance(test.get("blocks"), list):
            raise MalformedTest(f"{name}: no 'blocks' list")
        for part in ("pre", "genesisBlockHeader"):
            if not isinstance(test.get(part), dict):
                raise MalformedTest(f"{name}: no '{part}' section")
        if not isinstance(test.get("network"), str):
            raise MalformedTest(f"{name}: no 'network'")
        if network is None or test["network"].lower() == network.lower():
            yield BlockCase(name, test["network"], test)


def chain_of(case: BlockCase, tier: str, hooks: Hooks | None = None) -> Chain:
    """The chain of a case, with its genesis alone."""
    try:
        block = decode_block(data(case.test["genesisRLP"]))
        genesis = Genesis(block, state_from(case.test["pre"]), schedule_of(case))
    except (KeyError, ValueError, TypeError, AttributeError, InvalidBlock) as error:
        raise MalformedTest(f"{case.name}: {problem(error)}") from None
    return Chain(genesis, tier=tier, hooks=hooks)


def schedule_of(case: BlockCase) -> ForkSchedule:
    config = case.test.get("config") or {}
    schedule = schedule_named(case.network, quantity(config.get("chainid", 1)))
    return schedule.with_blobs(blobs_from_config(config.get("blobSchedule") or {}))


def run_block_case(
    case: BlockCase, tier: str, hooks: Hooks | None = None, on_root: Callable[[bytes], None] | None = None
) -> CaseVerdict:
    """Judges a case; `on_root` is told the state root after its last block."""
    chain = chain_of(case, tier, hooks)
    for place, block in enumerate(case.test["blocks"]):
        failed = _import(chain, block, f"block {place}", case)
        if failed is not None:
            return failed
    if on_root is not None:
        on_root(chain.head.header.state_root)
    try:
        last = data(case.test["lastblockhash"])
        post = state_from(case.test["postState"]) if case.test.get("postState") is not None else None
        root = data(case.test["postStateHash"]) if case.test.get("postStateHash") is not None else None
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        raise MalformedTest(f"{case.name}: {problem(error)}") from None
    if chain.head.hash != last:
        return CaseVerdict(False, f"last block 0x{chain.head.hash.hex()}, expected 0x{last.hex()}")
    if root is not None and chain.head.header.state_root != root:
        return CaseVerdict(False, f"state root 0x{chain.head.header.state_root.hex()}, expected 0x{root.hex()}")
    if post is not None:
        difference = first_difference(chain.state, chain.head.header.state_root, post)
        if difference:
            return CaseVerdict(False, difference)
    return CaseVerdict(True)


def _import(chain: Chain, block: Any, place: str, case: BlockCase) -> CaseVerdict | None:
    """A verdict if the case has failed with this block."""
    try:
        raw, expected = data(block["rlp"]), block.get("expectException")
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        raise MalformedTest(f"{case.name}: {place}: {problem(error)}") from None
    try:
        chain.import_block(raw)
    except InvalidBlock as error:
        if expected is None:
            return CaseVerdict(False, f"{place} refused, but it is valid: {error}")
        if not is_expected(error, expected):
            return CaseVerdict(False, f"{place} refused for {error.official_name}, expected {expected}: {error}")
        return None
    if expected is not None:
        return CaseVerdict(False, f"{place} accepted, but it must be refused: {expected}")
    return None


def first_difference(state: State, root: bytes, post: State) -> str:
    """Where a state, whose root is known, is not the one expected; nothing where it is."""
    if root == post.root():
        return ""
    for address in sorted({*state.accounts, *post.accounts}):
        got, wanted = state.accounts.get(address), post.accounts.get(address)
        if _fields(got) != _fields(wanted):
            return f"account 0x{address.hex()}: {_fields(got)}, expected {_fields(wanted)}"
    return ""


def _fields(account: Account | None) -> tuple[Any, ...] | None:
    return None if account is None else (account.nonce, account.balance, account.code.hex(), account.storage)
