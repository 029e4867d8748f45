"""What a call can ask about the block and the transaction it runs in, and the call itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import count

from fusevm.evm.forks import Fork, Rules, rules_of

ZERO_ADDRESS = bytes(20)
WORD_MASK = (1 << 256) - 1


MEMORY_LIMIT = 1 << 30  # bytes: more than 1,000,000,000 gas can pay for, however it is spread over frames

_versions = count()


@dataclass(slots=True)
class Block:
    number: int = 1
    timestamp: int = 1
    coinbase: bytes = ZERO_ADDRESS
    gas_limit: int = 30_000_000
    base_fee: int = 0
    prev_randao: int = 0
    difficulty: int = 0
    chain_id: int = 1
    excess_blob_gas: int = 0
    hashes: Mapping[int, bytes] | Callable[[int], bytes] = field(default_factory=dict)
    blob_base_fee_fraction: int | None = None  # overrides the fork's
    blob_max: int | None = None  # overrides the fork's
    version: int = field(init=False, compare=False, repr=False)  # changes with every change of a field

    def __setattr__(self, name: str, value: object) -> None:
        if isinstance(value, int) and name != "version" and not 0 <= value <= WORD_MASK:
            raise ValueError(f"block {name}: {value} is no number of 256 bits")
        object.__setattr__(self, name, value)
        object.__setattr__(self, "version", next(_versions))

    def hash_of(self, number: int) -> bytes:
        """The hash of one of the last 256 blocks, or zeros."""
        if not self.number - 256 <= number < self.number or number < 0:
            return bytes(32)
        found = self.hashes(number) if callable(self.hashes) else self.hashes.get(number, bytes(32))
        if len(found) != 32:
            raise ValueError(f"hash of block {number}: expected 32 bytes, got {len(found)}")
        return found

    def blob_base_fee(self, rules: Rules) -> int:
        fraction = self.blob_base_fee_fraction or rules.blob_base_fee_fraction
        return _fake_exponential(1, self.excess_blob_gas, fraction) if fraction else 0


def _fake_exponential(factor: int, numerator: int, denominator: int) -> int:
    """EIP-4844: factor * e^(numerator / denominator), by its Taylor series in integers."""
    total, step, i = 0, factor * denominator, 1
    while step:
        total += step
        step = step * numerator // (denominator * i)
        i += 1
    return total // denominator


@dataclass(slots=True)
class Context:
    """The surroundings of a running transaction, the same for all of its frames."""

    fork: Fork
    block: Block
    origin: bytes = ZERO_ADDRESS
    gas_price: int = 0
    blob_hashes: tuple[bytes, ...] = ()
    deadline: float | None = None  # on time.monotonic's clock: what runs past it ends in TimeLimit
    jumps_left: int = 0  # where a run must be brief
    memory_limit: int = MEMORY_LIMIT  # bytes of EVM memory that all frames of a call may have together
    memory_used: int = 0  # of these, as far as the reference tier keeps it
    rules: Rules = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.rules = rules_of(self.fork)

    @property
    def blob_base_fee(self) -> int:
        return self.block.blob_base_fee(self.rules)


@dataclass(slots=True)
class Message:
    """One call or creation, as it is about to begin."""

    caller: bytes
    address: bytes  # whose storage and balance the code sees as its own
    code: bytes
    data: bytes = b""
    value: int = 0  # what CALLVALUE answers
    gas: int = 0
    depth: int = 0
    static: bool = False
    creates: bool = False
    transfers: bool = True  # whether the value moves; DELEGATECALL only reports its parent's
    code_address: bytes = ZERO_ADDRESS  # where the code came from: a precompile is known by it
    runs_precompile: bool = True  # False where a delegation points at a precompile: its code is empty
