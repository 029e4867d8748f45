"""Many blocks on a development chain, in this process: milliseconds and memory per block, by thousand.

python bench/blocks.py [--blocks 10000] [--transactions 20] [--json]

Half of the transactions are ERC-20 transfers, half give ether to one of a thousand accounts.
"""

from __future__ import annotations

import argparse
import gc
import json
import time
from pathlib import Path
from typing import Any

from fusevm import yul
from fusevm.chain.signed import SignedTransaction
from fusevm.chain.transaction import Transaction
from fusevm.rpc import Config, Session

ROOT = Path(__file__).resolve().parent.parent
TRANSFER, OWNERS = bytes.fromhex("a9059cbb"), 1_000
PRICE = 10**11


def resident() -> float:
    """Megabytes of memory that this process has."""
    pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    return pages * 4096 / 1e6


def token(session: Session) -> bytes:
    code = yul.compile((ROOT / "examples" / "token.yul").read_text("utf-8")).code + (10**24).to_bytes(32, "big")
    sender = "0x" + session.dev.accounts[0].hex()
    sent = session.request("eth_sendTransaction", [{"from": sender, "data": "0x" + code.hex()}])
    return bytes.fromhex(session.request("eth_getTransactionReceipt", [sent])["contractAddress"][2:])


def transactions(session: Session, where: bytes, first: int, count: int) -> list[SignedTransaction]:
    """From the first account, whose nonce is the number of the first; signed outside of what is timed."""
    found = []
    for nonce in range(first, first + count):
        owner = (1 + nonce % OWNERS).to_bytes(20, "big")
        given: dict[str, Any] = {"to": owner, "value": 1}
        if nonce % 2:
            given = {"to": where, "data": TRANSFER + owner.rjust(32, b"\0") + (1).to_bytes(32, "big")}
        tx = Transaction(session.dev.accounts[0], gas_limit=100_000, nonce=nonce, gas_price=PRICE, **given)
        found.append(session.dev.sign(tx))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--blocks", type=int, default=10_000)
    parser.add_argument("--transactions", type=int, default=20)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    session = Session(Config(balance=10**30))
    where = token(session)
    session.automine = False
    rows, step, nonce = [], max(options.blocks // 10, 1), 1
    for start in range(0, options.blocks, step):
        spent = 0.0
        for _ in range(min(step, options.blocks - start)):
            listed = transactions(session, where, nonce, options.transactions)
            nonce += len(listed)
            began = time.process_time()
            for signed in listed:
                session.submit(signed)
            session.mine()
            spent += time.process_time() - began
            assert len(session.dev.head.transactions) == options.transactions
        gc.collect()
        rows.append({"blocks": start + step, "ms_per_block": 1000 * spent / step, "megabytes": resident()})
        if not options.json:
            row = rows[-1]
            print(
                f"{row['blocks']:8,} blocks {row['ms_per_block']:8.2f} ms each {row['megabytes']:8.1f} MB", flush=True
            )
    if options.json:
        print(json.dumps(rows))


if __name__ == "__main__":
    main()
