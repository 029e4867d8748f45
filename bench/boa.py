"""titanoboa on py-evm and on fusevm: the same calls in the same run, processor time, the best of several.

python bench/boa.py [--json] [--quick]
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from time import process_time
from typing import Any

SOURCE = """
event Transfer:
    sender: indexed(address)
    receiver: indexed(address)
    amount: uint256

balanceOf: public(HashMap[address, uint256])
totalSupply: public(uint256)

@deploy
def __init__(supply: uint256):
    self.balanceOf[msg.sender] = supply
    self.totalSupply = supply

@external
def transfer(to: address, amount: uint256) -> bool:
    self.balanceOf[msg.sender] -= amount
    self.balanceOf[to] += amount
    log Transfer(sender=msg.sender, receiver=to, amount=amount)
    return True

@external
@pure
def spin(n: uint256) -> uint256:
    x: uint256 = 7
    for i: uint256 in range(n, bound=1000000):
        x = unsafe_add(unsafe_mul(x, 31), i) ^ (x >> 3)
    return x

@external
@pure
def primes(n: uint256) -> uint256:
    found: uint256 = 0
    for candidate: uint256 in range(2, 1000):
        if candidate > n:
            break
        prime: bool = True
        for divisor: uint256 in range(2, 1000):
            if divisor * divisor > candidate:
                break
            if candidate % divisor == 0:
                prime = False
                break
        if prime:
            found += 1
    return found
"""


def best(run: Callable[[], Any], times: int, rounds: int) -> float:
    """Seconds of processor time per call."""
    seen = []
    for _ in range(rounds):
        start = process_time()
        for _ in range(times):
            run()
        seen.append((process_time() - start) / times)
    return min(seen)


def measure(boa: Any, environment: Any, rounds: int) -> dict[str, float]:
    with boa.set_env(environment):
        token = boa.loads(SOURCE, 10**24)
        other, owner = boa.env.generate_address(), boa.env.eoa
        token.transfer(other, 1)

        def refused() -> None:
            token.transfer(other, 1)
            with boa.reverts():
                token.transfer(other, 10**25)

        cases: dict[str, tuple[Callable[[], Any], int]] = {
            "a loop of 3,000 turns": (lambda: token.spin(3_000), 1),
            "primes below 500": (lambda: token.primes(500), 1),
            "a view": (lambda: token.balanceOf(owner), 100),
            "a transfer": (lambda: token.transfer(other, 1), 100),
            "a transfer, and one that reverts": (refused, 20),
        }
        for run, _ in cases.values():
            run()
        return {name: best(run, times, rounds) for name, (run, times) in cases.items()}


def main(arguments: list[str]) -> None:
    rounds = 1 if "--quick" in arguments else 5
    sys.path.pop(0)  # this folder: `boa` means titanoboa
    import boa

    from fusevm.adapters.boa import FusevmEnv

    theirs, ours = measure(boa, boa.Env(), rounds), measure(boa, FusevmEnv(), rounds)
    rows = [
        {"name": name, "py-evm": seconds, "fusevm": ours[name], "times": seconds / ours[name]}
        for name, seconds in theirs.items()
    ]
    if "--json" in arguments:
        print(json.dumps(rows))
        return
    for row in rows:
        print(f"{row['name']:32} {row['py-evm'] * 1e3:9.3f} ms {row['fusevm'] * 1e3:9.3f} ms {row['times']:8.1f} times")


if __name__ == "__main__":
    main(sys.argv[1:])
