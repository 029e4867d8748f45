"""What a client asks first: net_*, web3_*, the chain's number, whether the node is up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fusevm.chain.forms import data
from fusevm.chain.schedule import DEPOSIT_CONTRACT
from fusevm.chain.system import BEACON_ROOTS, CONSOLIDATION_REQUESTS, HISTORY, WITHDRAWAL_REQUESTS
from fusevm.evm.forks import Fork
from fusevm.evm.keccak import keccak256
from fusevm.evm.precompiles import precompiles_of
from fusevm.values import to_bytes
from fusevm.version import __version__

if TYPE_CHECKING:
    from fusevm.rpc.session import Session

CLIENT = f"anvil-compatible/fusevm/v{__version__}"  # Hardhat's helpers ask whether it begins with "anvil"


def version(session: Session) -> str:
    return str(session.dev.chain_id)


def listening(session: Session) -> bool:
    return True


def peers(session: Session) -> str:
    return "0x0"


def client(session: Session) -> str:
    return CLIENT


def sha3(session: Session, given: Any) -> str:
    return data(keccak256(to_bytes(given, "data")))


def chain_id(session: Session) -> str:
    return hex(session.dev.chain_id)


def protocol(session: Session) -> str:
    return "0x41"


def syncing(session: Session) -> bool:
    return False


def mining(session: Session) -> bool:
    return session.automine or session.interval is not None


def hashrate(session: Session) -> str:
    return "0x0"


def modules(session: Session) -> Any:
    from fusevm.rpc.methods import METHODS

    return {name.partition("_")[0]: "1.0" for name in METHODS}


# EIP-7910's names of what is called differently here.
_PRECOMPILES = {"ecrecover": "ECREC", "identity": "ID", "point_evaluation": "KZG_POINT_EVALUATION"}
_CONTRACTS = {
    "BEACON_ROOTS_ADDRESS": (BEACON_ROOTS, Fork.CANCUN),
    "CONSOLIDATION_REQUEST_PREDEPLOY_ADDRESS": (CONSOLIDATION_REQUESTS, Fork.PRAGUE),
    "DEPOSIT_CONTRACT_ADDRESS": (DEPOSIT_CONTRACT, Fork.PRAGUE),
    "HISTORY_STORAGE_ADDRESS": (HISTORY, Fork.PRAGUE),
    "WITHDRAWAL_REQUEST_PREDEPLOY_ADDRESS": (WITHDRAWAL_REQUESTS, Fork.PRAGUE),
}


def config(session: Session) -> Any:
    """EIP-7910: what holds in the head's fork. A development chain has no fork that is to come."""
    step = session.dev.chain.step_of(session.dev.head.hash)
    contracts = precompiles_of(step.fork).items()
    current: dict[str, Any] = {
        "activationTime": 0,
        "chainId": hex(session.dev.chain_id),
        "forkId": "0x00000000",
        "precompiles": {_PRECOMPILES.get(each.name, each.name.upper()): data(where) for where, each in contracts},
        "systemContracts": {name: data(each) for name, (each, since) in _CONTRACTS.items() if since <= step.fork},
    }
    if step.blobs is not None:
        fraction, most, target = step.blobs.fraction, step.blobs.most, step.blobs.target
        current["blobSchedule"] = {"baseFeeUpdateFraction": fraction, "max": most, "target": target}
    return {"current": current, "next": None, "last": None}


METHODS = {
    "net_version": version,
    "net_listening": listening,
    "net_peerCount": peers,
    "web3_clientVersion": client,
    "web3_sha3": sha3,
    "eth_chainId": chain_id,
    "eth_config": config,
    "eth_networkId": version,
    "eth_protocolVersion": protocol,
    "eth_syncing": syncing,
    "eth_mining": mining,
    "eth_hashrate": hashrate,
    "rpc_modules": modules,
}
