"""Official blockchain tests through t8n: each valid block as alloc, env and transactions, judged by its own header."""

from __future__ import annotations

from typing import Any

from fusevm.blockchain import Chain
from fusevm.chain.alloc import alloc_of
from fusevm.chain.header import Header
from fusevm.chain.rewards import reward_of
from fusevm.chain.rlp import encode
from fusevm.chain.sealed import SealedBlock, decode_block
from fusevm.evm.forks import Fork
from fusevm.lab.official.blocktest import BlockCase, chain_of
from fusevm.lab.official.statetest import CaseVerdict, data
from fusevm.t8n import transition

# What t8n answers, and the header's field that it must equal.
COMPARED = {
    "stateRoot": "state_root",
    "txRoot": "transactions_root",
    "receiptsRoot": "receipts_root",
    "logsBloom": "bloom",
    "gasUsed": "gas_used",
    "currentBaseFee": "base_fee",
    "withdrawalsRoot": "withdrawals_root",
    "currentExcessBlobGas": "excess_blob_gas",
    "blobGasUsed": "blob_gas_used",
    "requestsHash": "requests_hash",
}


def run_transitions(case: BlockCase, tier: str) -> CaseVerdict:
    """Runs each valid block of a case, its transactions once as JSON and once as RLP."""
    chain = chain_of(case, tier)
    for place, entry in enumerate(case.test["blocks"]):
        if "expectException" in entry:
            continue
        block = decode_block(data(entry["rlp"]))
        body = encode([signed.item for signed in block.transactions])
        for form, txs in (("JSON", entry.get("transactions")), ("RLP", body)):
            if txs is None:
                continue
            wrong = _difference(chain, block, txs, case.network, tier)
            if wrong:
                return CaseVerdict(False, f"block {place}, transactions as {form}: {wrong}")
        chain.import_block(block)
    return CaseVerdict(True)


def _difference(chain: Chain, block: SealedBlock, txs: Any, network: str, tier: str) -> str:
    step = chain.step_after(block.header)
    reward = reward_of(step.fork)
    with chain.at(block.header.parent_hash) as state:
        alloc = alloc_of(state)
    done = transition(
        alloc,
        environment_json(chain, block),
        txs,
        network,
        chain_id=chain.schedule.chain_id,
        reward=-1 if reward is None else reward,
        blobs=step.blobs,
        tier=tier,
    )
    for key, name in COMPARED.items():
        wanted = _json(getattr(block.header, name))
        if wanted is not None and done.result.get(key) != wanted:
            why = done.result.get("rejected") or done.result.get("blockException") or ""
            return f"{key} {done.result.get(key)}, expected {wanted} {why}".rstrip()
    return ""


def environment_json(chain: Chain, block: SealedBlock) -> dict[str, Any]:
    """A block's surroundings as t8n reads them; what follows from the parent is left to t8n."""
    header, parent = block.header, chain.block(block.header.parent_hash).header
    fork = chain.step_after(header).fork
    oldest = max(chain.genesis.block.number, header.number - 256)
    env: dict[str, Any] = {
        "currentCoinbase": header.coinbase,
        "currentNumber": header.number,
        "currentTimestamp": header.timestamp,
        "currentGasLimit": header.gas_limit,
        "currentRandom": header.prev_randao,
        "parentTimestamp": parent.timestamp,
        "parentDifficulty": parent.difficulty,
        "parentUncleHash": parent.ommers_hash,
        "parentGasUsed": parent.gas_used,
        "parentGasLimit": parent.gas_limit,
        "parentBaseFee": parent.base_fee,
        "parentExcessBlobGas": parent.excess_blob_gas,
        "parentBlobGasUsed": parent.blob_gas_used,
        "parentBeaconBlockRoot": header.parent_beacon_root,
    }
    if fork >= Fork.LONDON and parent.base_fee is None:
        env["currentBaseFee"] = header.base_fee
    found: dict[str, Any] = {key: _json(value) for key, value in env.items() if value is not None}
    found["blockHashes"] = {hex(n): _json(chain.block(n).hash) for n in range(oldest, header.number)}
    found["ommers"] = [_ommer(ommer, header.number) for ommer in block.ommers]
    if block.withdrawals is not None:
        found["withdrawals"] = [
            {
                "index": each.index,
                "validatorIndex": each.validator,
                "address": _json(each.address),
                "amount": each.amount,
            }
            for each in block.withdrawals
        ]
    return found


def _ommer(ommer: Header, number: int) -> dict[str, Any]:
    return {"delta": number - ommer.number, "address": _json(ommer.coinbase)}


def _json(value: bytes | int | None) -> str | None:
    if value is None:
        return None
    return hex(value) if isinstance(value, int) else "0x" + value.hex()
