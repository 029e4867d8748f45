"""ethereum-execution, the executable specification, as a chain: it imports blocks and raises where it disagrees."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ethereum_rlp import rlp
from ethereum_types.bytes import Bytes20, Bytes32
from ethereum_types.numeric import U64, U256, Uint

from fusevm.chain.genesis import Genesis
from fusevm.chain.schedule import Upgrade
from fusevm.lab.peers.work import deep_recursion

# The specification has no Constantinople: that fork went live together with the one that took EIP-1283 back.
_MODULES = {"petersburg": "constantinople", "constantinople": None, "bpo3": None, "bpo4": None, "bpo5": None}


def module_of(step: Upgrade) -> str | None:
    return _MODULES.get(step.name, step.name.replace("-", "_"))


class SpecChain:
    """One fork's rules from the genesis on. Proof of work is not looked at."""

    def __init__(self, genesis: Genesis) -> None:
        step = genesis.schedule.at(0, 0)
        name = module_of(step)
        if name is None:
            raise ValueError(f"the specification has no {step.name}")
        self._fork: Any = import_module(f"ethereum.forks.{name}.fork")
        self._blocks: Any = import_module(f"ethereum.forks.{name}.blocks")
        storage: Any = import_module(f"ethereum.forks.{name}.state")
        types: Any = import_module(f"ethereum.forks.{name}.fork_types")
        state = storage.State()
        for where, account in genesis.state.items():
            address = Bytes20(where)
            numbers = Uint(account.nonce), U256(account.balance)
            storage.set_account(state, address, types.Account(*numbers, account.code))
            for key, value in account.storage.items():
                storage.set_storage(state, address, Bytes32(key.to_bytes(32, "big")), U256(value))
        first = rlp.decode_to(self._blocks.Block, genesis.block.encoded)
        self._chain = self._fork.BlockChain([first], state, U64(genesis.schedule.chain_id))
        if hasattr(self._fork, "validate_proof_of_work"):
            setattr(self._fork, "validate_proof_of_work", lambda header: None)  # noqa: B010

    def import_block(self, data: bytes) -> None:
        """Raises what the specification raises for a block it refuses."""
        with deep_recursion():
            self._fork.state_transition(self._chain, rlp.decode_to(self._blocks.Block, data))
