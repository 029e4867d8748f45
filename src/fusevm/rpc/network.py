"""What a client asks first: net_*, web3_*, the chain's number, whether the node is there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fusevm.evm.keccak import keccak256
from fusevm.rpc.values import data
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


METHODS = {
    "net_version": version,
    "net_listening": listening,
    "net_peerCount": peers,
    "web3_clientVersion": client,
    "web3_sha3": sha3,
    "eth_chainId": chain_id,
    "eth_networkId": version,
    "eth_protocolVersion": protocol,
    "eth_syncing": syncing,
    "eth_mining": mining,
    "eth_hashrate": hashrate,
    "rpc_modules": modules,
}
