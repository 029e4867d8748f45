"""What a call can ask about the block and the transaction it runs in, and the call itself."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, field, fields
from itertools import count
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from fusevm.evm.forks import Fork, Rules, rules_of
from fusevm.evm.precompiles import Precompile, precompiles_of
from fusevm.values import AddressLike, BadValue, Number, Word, to_address, to_hash, to_number, to_word

ZERO_ADDRESS = bytes(20)
# Who calls where nobody is named: Foundry's default sender. It always has what it sends (`EVM` lends it what it lacks).
DEFAULT_CALLER = bytes.fromhex("1804c8ab1f12e6bbf3894d4083f33e07309d1f38")
WORD_MASK = (1 << 256) - 1


MEMORY_LIMIT = 1 << 30  # bytes: more than 1,000,000,000 gas can pay for, however it is spread over frames

_versions = count()


@dataclass(slots=True)
class Block:
    """The block a call runs in. Fields are checked whenever they are set; numbers may be given as 0x hex text.

    >>> block = Block(number="0x10", coinbase="0x" + "c0" * 20)
    >>> block.base_fee = 7
    >>> block.number, block.coinbase.hex()[:4], block.base_fee
    (16, 'c0c0', 7)
    """

    number: int = 1
    timestamp: int = 1
    coinbase: bytes = ZERO_ADDRESS  # or hex text, or a number
    gas_limit: int = 30_000_000
    base_fee: int = 0
    prev_randao: int = 0  # or 32 bytes
    difficulty: int = 0
    chain_id: int = 1
    excess_blob_gas: int = 0
    hashes: Mapping[int, bytes] | Callable[[int], bytes] = field(default_factory=dict)
    blob_base_fee_fraction: int | None = None  # overrides the fork's
    blob_max: int | None = None  # overrides the fork's
    version: int = field(init=False, compare=False, repr=False)  # changes with every change of a field

    if TYPE_CHECKING:  # normalised types; the constructor accepts other forms

        def __init__(
            self,
            number: Number = 1,
            timestamp: Number = 1,
            coinbase: AddressLike = ZERO_ADDRESS,
            gas_limit: Number = 30_000_000,
            base_fee: Number = 0,
            prev_randao: Word = 0,
            difficulty: Number = 0,
            chain_id: Number = 1,
            excess_blob_gas: Number = 0,
            hashes: Mapping[int, Word] | Callable[[int], Word] = ...,
            blob_base_fee_fraction: Number | None = None,
            blob_max: Number | None = None,
        ) -> None: ...

    def __setattr__(self, name: str, value: Any) -> None:
        read = _READERS.get(name)
        if read is not None:
            value = read(value, f"block {name}")
        object.__setattr__(self, name, value)
        object.__setattr__(self, "version", next(_versions))

    def hash_of(self, number: int) -> bytes:
        """The hash of one of the last 256 blocks, or zeros."""
        if not self.number - 256 <= number < self.number or number < 0:
            return bytes(32)
        found = self.hashes(number) if callable(self.hashes) else self.hashes.get(number, bytes(32))
        return to_hash(found, f"hash of block {number}")

    def keep(self) -> Callable[[], Block]:
        """A function that gives the fields their present values again, and returns the block."""
        version, kept = self.version, _FIELDS(self)
        listed = dict(self.hashes) if isinstance(self.hashes, dict) else None

        def restore() -> Block:
            if self.version != version:
                for name, value in zip(_READERS, kept, strict=True):
                    if getattr(self, name) is not value:
                        setattr(self, name, value)
            if listed is not None and isinstance(self.hashes, dict) and self.hashes != listed:
                self.hashes.clear()
                self.hashes.update(listed)
                object.__setattr__(self, "version", next(_versions))
            return self

        return restore

    def blob_base_fee(self, rules: Rules) -> int:
        """The price of a unit of blob gas, at most 2^256 - 1.

        EIP-4844 sets no bound. A fee that does not fit a word cannot be paid, so it stays at the largest
        word: BLOBBASEFEE answers that, and every blob transaction is rejected.
        """
        fraction = self.blob_base_fee_fraction or rules.blob_base_fee_fraction
        return blob_base_fee_of(self.excess_blob_gas, fraction) if fraction else 0


def blob_base_fee_of(excess: int, fraction: int) -> int:
    return _fake_exponential(1, excess, fraction) if excess else 1


def _fake_exponential(factor: int, numerator: int, denominator: int) -> int:
    """EIP-4844: factor * e^(numerator / denominator), by its Taylor series in integers; no more than a word holds.

    Below e^178 the terms vanish after some hundreds. Beyond it they grow, and the sum is over the bound as soon.
    """
    total, step, i = 0, factor * denominator, 1
    bound = WORD_MASK * denominator
    while step and total <= bound:
        total += step
        step = step * numerator // (denominator * i)
        i += 1
    return min(total // denominator, WORD_MASK)


def _to_hashes(value: Any, what: str) -> Any:
    """A function from numbers to hashes is asked when a program asks; so is a mapping that is not a dict."""
    if not (callable(value) or isinstance(value, Mapping)):
        raise BadValue(f"{what}: expected a mapping or a function from numbers to hashes, got {type(value).__name__}")
    if isinstance(value, dict):
        for number, found in value.items():
            if isinstance(number, str):
                raise BadValue(f"{what}: expected ints as keys, got str")
            to_hash(found, f"{what}[{to_number(number, f'a key of {what}')}]")
    return value


def _optional(value: Any, what: str) -> int | None:
    return None if value is None else to_number(value, what)


_READERS: dict[str, Callable[[Any, str], Any]] = {
    **dict.fromkeys(
        ("number", "timestamp", "gas_limit", "base_fee", "difficulty", "chain_id", "excess_blob_gas"), to_number
    ),
    "coinbase": to_address,
    "prev_randao": to_word,
    "hashes": _to_hashes,
    "blob_base_fee_fraction": _optional,
    "blob_max": _optional,
}
_FIELDS = attrgetter(*_READERS)
_SETTERS = [Block.__dict__[each.name].__set__ for each in fields(Block)]


def known_block(
    number: int,
    timestamp: int,
    coinbase: bytes,
    gas_limit: int,
    base_fee: int,
    prev_randao: int,
    difficulty: int,
    chain_id: int,
    excess_blob_gas: int,
    hashes: Callable[[int], bytes],
) -> Block:
    """A block whose fields are known to be right: a header has them. To check each takes longer than a small call."""
    block: Block = object.__new__(Block)
    values = (number, timestamp, coinbase, gas_limit, base_fee, prev_randao, difficulty, chain_id, excess_blob_gas)
    for put, value in zip(_SETTERS, (*values, hashes, None, None, next(_versions)), strict=True):
        put(block, value)
    return block


@dataclass(slots=True)
class Context:
    """The surroundings of a running transaction, the same for all of its frames."""

    fork: Fork
    block: Block
    origin: bytes = ZERO_ADDRESS
    gas_price: int = 0
    blob_hashes: tuple[bytes, ...] = ()
    deadline: float | None = None  # on time.monotonic's clock: what runs past it ends in TimeLimit
    work_left: int = 0  # where a run must be brief
    memory_limit: int = MEMORY_LIMIT  # bytes of EVM memory that all frames of a call may have together
    memory_used: int = 0  # of these, as far as the reference tier keeps it
    rules: Rules = None  # type: ignore[assignment]  # the fork's unless others are given
    precompiles: Mapping[bytes, Precompile] = None  # type: ignore[assignment]  # likewise
    always_warm: Container[bytes] = None  # type: ignore[assignment]  # the precompiles unless others are given
    carries: bool = False  # whether the transaction continues after the current message
    opcodes: Mapping[int, Any] | None = None  # a user's own, which the reference tier runs

    def __post_init__(self) -> None:
        if self.rules is None:
            self.rules = rules_of(self.fork)
        if self.precompiles is None:
            self.precompiles = precompiles_of(self.fork)
        if self.always_warm is None:
            self.always_warm = self.precompiles

    @property
    def prev_randao(self) -> int:
        """The block's difficulty until the merge made it PREVRANDAO (EIP-4399)."""
        return self.block.prev_randao if self.fork >= Fork.PARIS else self.block.difficulty

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
