"""The state of a block as an Ethereum node has it, asked over JSON-RPC and kept on disk."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from fusevm.chain.environment import Block
from fusevm.chain.networks import NETWORKS
from fusevm.chain.schedule import Upgrade
from fusevm.chain.sources.disk import Disk
from fusevm.chain.sources.json_rpc import JsonRpc, NodeError, Question, is_local
from fusevm.chain.sources.source import Facts, Place, SourceError
from fusevm.folders import cache_folder
from fusevm.values import BadValue, shown, to_address, to_bytes, to_hash, to_number, to_word

TAGS = ("latest", "safe", "finalized", "earliest")
_INVALID_PARAMETERS = (-32602, -32601)
_CALL_FAILS = (3, -32603)  # a revert, a halt: nodes other than geth say so instead of making a list


class NodeSource:
    """Accounts, slots and block hashes as of one block, which is known by its hash."""

    def __init__(self, rpc: JsonRpc, header: Mapping[str, Any], chain_id: int, disk: Disk | None = None) -> None:
        self.rpc, self.chain_id, self.disk = rpc, chain_id, disk
        self.header = dict(header)
        self.number = to_number(header["number"], "block number")
        self.hash = to_hash(header["hash"], "block hash")
        self.name = f"{rpc.name}, block {self.number}"
        self._at: Any = {"blockHash": "0x" + self.hash.hex()}  # EIP-1898: whatever the chain does meanwhile

    @classmethod
    def at(
        cls,
        url: str,
        block: str | int | bytes = "latest",
        *,
        cache: bool | str | os.PathLike[str] = True,
        timeout: float = 30.0,
        retries: int = 3,
    ) -> NodeSource:
        """The state after a block of the node's chain.

        `cache` is a folder, or whether the user's is to be used; that is not done for a node on this machine, which may
        give one block another state later on.
        """
        rpc = JsonRpc(url, timeout=timeout, retries=retries)
        method, which = _block_question(block)
        chain, header = rpc.ask_all([("eth_chainId", []), (method, [which, False])])
        if not isinstance(header, Mapping) or header.get("hash") is None:
            raise BadValue(f"block: {rpc.name} has no block {shown(block)}")
        chain_id = to_number(chain, f"{rpc.name}: eth_chainId")
        folder = _folder(cache, rpc.host)
        block_hash = to_hash(header["hash"], f"{rpc.name}: block hash")
        disk = None if folder is None else Disk(folder / f"chain-{chain_id}.sqlite", block_hash)
        return cls(rpc, header, chain_id, disk)

    # -- a source

    def accounts(self, addresses: Sequence[bytes]) -> list[Facts | None]:
        found: dict[bytes, Facts | None] = {} if self.disk is None else self.disk.accounts(addresses)
        missing = [address for address in dict.fromkeys(addresses) if address not in found]
        if missing:
            asked = self._asked_accounts(missing)
            if self.disk is not None:
                self.disk.keep_accounts(asked)
            found.update(asked)
        return [found[address] for address in addresses]

    def slots(self, places: Sequence[Place]) -> list[int]:
        found: dict[Place, int] = {} if self.disk is None else self.disk.slots(places)
        missing = [place for place in dict.fromkeys(places) if place not in found]
        if missing:
            methods = [("eth_getStorageAt", ["0x" + address.hex(), hex(key)]) for address, key in missing]
            words = [self._read(_word, answer, "eth_getStorageAt") for answer in self._ask_state(methods)]
            asked = dict(zip(missing, words, strict=True))
            if self.disk is not None:
                self.disk.keep_slots(asked)
            found.update(asked)
        return [found[place] for place in places]

    def block_hash(self, number: int) -> bytes:
        if number >= self.number:  # what the chain has built since is not this state's future
            return self.hash if number == self.number else bytes(32)
        found = None if self.disk is None else self.disk.block_hash(number)
        if found is None:
            header = self.rpc.ask("eth_getBlockByNumber", hex(number), False)
            if not isinstance(header, Mapping) or "hash" not in header:
                raise SourceError(f"{self.name}: the node has no block {number}")
            found = self._read(to_hash, header["hash"], "eth_getBlockByNumber")
            if self.disk is not None:
                self.disk.keep_block_hash(number, found)
        return found

    def access_list(self, transaction: Mapping[str, Any]) -> list[tuple[bytes, list[int]]]:
        """What the node says that a call touches (eth_createAccessList), to load in one go; nothing if it fails."""
        try:
            answer = self._ask_state([("eth_createAccessList", [dict(transaction)])])[0]
        except NodeError as error:
            if error.code not in _CALL_FAILS:
                raise
            return []
        listed = answer.get("accessList", []) if isinstance(answer, Mapping) else []
        return [
            (to_address(each["address"], "accessList"), [_word(key, "accessList") for key in each["storageKeys"]])
            for each in listed
        ]

    # -- the block

    def step(self) -> Upgrade | None:
        """The rules of the block, where its chain is a public network; None elsewhere."""
        for network in NETWORKS.values():
            if network.chain_id == self.chain_id:
                timestamp = to_number(self.header["timestamp"], "block timestamp")
                return network.at(self.number, timestamp, 0)
        return None

    def block(self) -> Block:
        """What calls in the block see of it."""
        header, step = self.header, self.step()
        block = Block(
            number=self.number,
            timestamp=header["timestamp"],
            coinbase=header["miner"],
            gas_limit=header["gasLimit"],
            base_fee=header.get("baseFeePerGas") or 0,
            prev_randao=_word(header.get("mixHash") or "0x", "mixHash"),
            difficulty=header.get("difficulty") or 0,
            chain_id=self.chain_id,
            excess_blob_gas=header.get("excessBlobGas") or 0,
            hashes=self.block_hash,
        )
        return block if step is None else step.with_blobs(block)

    # -- asking

    def _asked_accounts(self, addresses: Sequence[bytes]) -> dict[bytes, Facts | None]:
        methods = ("eth_getTransactionCount", "eth_getBalance", "eth_getCode")
        answers = iter(self._ask_state([(each, ["0x" + a.hex()]) for a in addresses for each in methods]))
        found: dict[bytes, Facts | None] = {}
        for address in addresses:
            nonce = self._read(to_number, next(answers), methods[0])
            balance = self._read(to_number, next(answers), methods[1])
            code = self._read(to_bytes, next(answers), methods[2])
            found[address] = Facts(nonce, balance, code) if nonce or balance or code else None
        return found

    def _ask_state(self, questions: Sequence[Question]) -> list[Any]:
        """Questions about the block's state; the block is added to each."""
        try:
            return self.rpc.ask_all([(method, [*given, self._at]) for method, given in questions])
        except NodeError as error:
            if error.code in _INVALID_PARAMETERS and isinstance(self._at, dict):
                self._at = hex(self.number)  # an old node
                return self._ask_state(questions)
            raise NodeError(
                f"{error}; if the node has no state of block {self.number} any more, ask an archive node", error.code
            ) from None

    def _read(self, reader: Callable[[Any, str], Any], answer: Any, method: str) -> Any:
        try:
            return reader(answer, method)
        except (BadValue, TypeError) as error:
            raise SourceError(f"{self.rpc.name}: cannot read an answer: {error}") from None


def _word(value: str, what: str) -> int:
    """Storage: 32 bytes in hex, though some nodes leave leading zeros out, even half a byte."""
    if not isinstance(value, str):
        raise BadValue(f"{what}: expected hex text, got {shown(value)}")
    return to_word(to_bytes(value.removeprefix("0x").rjust(64, "0"), what), what)


def _block_question(block: str | int | bytes) -> tuple[str, str]:
    if isinstance(block, bytes) or (isinstance(block, str) and len(block) == 66):
        return "eth_getBlockByHash", "0x" + to_hash(block, "block").hex()
    if isinstance(block, str) and not block.startswith("0x"):
        if block not in TAGS:
            raise BadValue(f"block: {shown(block)} is not a number, a hash or one of {', '.join(TAGS)}")
        return "eth_getBlockByNumber", block
    return "eth_getBlockByNumber", hex(to_number(block, "block"))


def _folder(cache: bool | str | os.PathLike[str], host: str) -> Path | None:
    if not isinstance(cache, bool):
        return Path(cache)
    return None if not cache or is_local(host) else cache_folder() / "forks"
