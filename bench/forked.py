"""What forked state costs once it is loaded, against the same calls on a plain state in the same process.

python bench/forked.py [--tier T]… [--repeat N] [--fixtures FOLDER] [--json]

The source is in memory, so that loading costs next to nothing and what is left is the price of looking through it.
Times are the best of many short batches, in microseconds; the share is plain time over forked time.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path

from calls import ALICE, BALANCE_OF, BOB, CODES, HERE, TRANSFER, best, token_of, word
from fusevm import EVM, Block
from fusevm.chain.sources.source import Facts, Place
from fusevm.chain.state import State
from fusevm.evm.assembly import assemble

COINBASE = b"\xcb" * 20


class Memory:
    """A source that has all accounts of a state."""

    name = "memory"

    def __init__(self, state: State) -> None:
        self.held = dict(state.copy().items())

    def accounts(self, addresses: Sequence[bytes]) -> list[Facts | None]:
        found = [self.held.get(address) for address in addresses]
        return [None if each is None else Facts(each.nonce, each.balance, each.code) for each in found]

    def slots(self, places: Sequence[Place]) -> list[int]:
        return [self.held[address].storage.get(key, 0) for address, key in places]

    def block_hash(self, number: int) -> bytes:
        return bytes(32)


def machines(tier: str, prepare: Callable[[EVM], None]) -> tuple[EVM, EVM]:
    block = Block(coinbase=COINBASE)
    plain = EVM(tier=tier, block=block)
    plain.set_balance(COINBASE, 1)  # as on any chain
    prepare(plain)
    return plain, EVM(tier=tier, block=block, state=State(source=Memory(plain.state)))


def works(creation: str) -> list[tuple[str, Callable[[EVM], None], Callable[[EVM], Callable[[], object]]]]:
    """Of each: its name, how a machine is prepared, and the call that is timed."""
    found: list[tuple[str, Callable[[EVM], None], Callable[[EVM], Callable[[], object]]]] = []
    for name, text in CODES.items():

        def put(evm: EVM, code: bytes = assemble(text)) -> None:
            evm.set_code(HERE, code)
            evm.set_storage(HERE, 1, 5)
            evm.set_balance(BOB, 7)

        found.append((name, put, lambda evm: lambda: evm.call(HERE, b"", caller=ALICE)))

    deployer = EVM()
    deployer.set_balance(ALICE, 10**24)
    token = deployer.deploy(creation, caller=ALICE).check().address
    assert token is not None

    def deploy(evm: EVM) -> None:
        evm.set_balance(ALICE, 10**24)
        evm.deploy(creation, caller=ALICE).check()

    for name, data in (
        ("ERC-20 balanceOf", bytes.fromhex(BALANCE_OF + word(BOB))),
        ("ERC-20 transfer", bytes.fromhex(TRANSFER + word(BOB) + f"{1:064x}")),
    ):

        def call(evm: EVM, data: bytes = data) -> Callable[[], object]:
            return lambda: evm.call(token, data, caller=ALICE)

        def transact(evm: EVM, data: bytes = data) -> Callable[[], object]:
            return lambda: evm.transact(ALICE, token, data, gas=100_000)

        found += [(name, deploy, call), (f"{name}, transaction", deploy, transact)]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tier", action="append", help="native and auto unless given; may be repeated")
    parser.add_argument("--repeat", type=int, default=300)
    fixtures = os.environ.get("FUSEVM_FIXTURES", "../shared/fixtures")
    parser.add_argument("--fixtures", type=Path, default=Path(fixtures))
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows = []
    for tier in options.tier or ("native", "auto"):
        for name, prepare, call in works(token_of(options.fixtures)):
            plain, forked = machines(tier, prepare)
            first, second = call(plain), call(forked)
            times = [[best(each, options.repeat // 6) for each in (first, second)] for _ in range(6)]
            row = {"tier": tier, "what": name, "plain": min(t[0] for t in times), "forked": min(t[1] for t in times)}
            rows.append(row | {"share": row["plain"] / row["forked"]})
    if options.json:
        print(json.dumps(rows, indent=1))
        return
    print(f"{'µs':10}{'':34}{'plain':>10}{'forked':>10}{'share':>10}")
    for row in rows:
        print(f"{row['tier']:10}{row['what']:34}{row['plain']:>10.2f}{row['forked']:>10.2f}{row['share']:>10.2f}")


if __name__ == "__main__":
    main()
