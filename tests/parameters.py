"""Every public parameter of the library, and values that each sort of parameter has to refuse."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

from hypothesis import strategies as st

from fusevm import EVM, Authorization, Block, Hooks, UnknownFork
from fusevm.evm.forks import fork_named
from fusevm.tiers import TIERS

HERE, ALICE = b"\xc0" * 20, b"\xa1" * 20
BLOB = b"\x01" + bytes(31)


def hexed(data: bytes) -> str:
    return "0x" + data.hex()


class Indexed:
    """An int of another library, such as numpy's."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __index__(self) -> int:
        return self.number


class Parameter(NamedTuple):
    name: str  # as the message has to name it
    kind: str
    give: Callable[[EVM, Any], object]


def method(name: str, *before: Any, **fixed: Any) -> Callable[[str], Callable[[EVM, Any], object]]:
    """Ways to call a method of the EVM with one keyword left open."""
    return lambda keyword: lambda evm, value: getattr(evm, name)(*before, **fixed, **{keyword: value})


def of(make: Callable[[str], Callable[[EVM, Any], object]], **kinds: str) -> list[Parameter]:
    return [Parameter(name, kind, make(name)) for name, kind in kinds.items()]


def assigning(name: str) -> Callable[[EVM, Any], object]:
    return lambda evm, value: setattr(evm, name, value)


def assigning_to_block(name: str) -> Callable[[EVM, Any], object]:
    return lambda evm, value: setattr(evm.block, name, value)


def block_with(name: str) -> Callable[[EVM, Any], object]:
    return lambda evm, value: Block(**{name: value})


def authorization_with(name: str) -> Callable[[EVM, Any], object]:
    fields = {"chain_id": 1, "address": HERE, "nonce": 0, "y_parity": 0, "r": 1, "s": 1}
    return lambda evm, value: Authorization(**{**fields, name: value})


def evm_with(name: str) -> Callable[[EVM, Any], object]:
    return lambda evm, value: EVM(**{"tier": "reference", name: value})


def in_positions(name: str) -> list[Parameter]:
    get, put = f"get_{name}", f"set_{name}"
    good: dict[str, Any] = {"code": b"", "balance": 0, "nonce": 0}
    return [
        Parameter("address", "address", lambda evm, value: getattr(evm, get)(value)),
        Parameter("address", "address", lambda evm, value: getattr(evm, put)(value, good[name])),
    ]


_MESSAGE = {"value": "number", "caller": "address", "gas": "number64", "gas_price": "number"}
_EVM = {
    "fork": "fork", "tier": "tier", "block": "block?", "state": "state?", "hooks": "hooks", "timeout": "seconds",
}  # fmt: skip
_BLOCK = {
    "number": "number", "timestamp": "number", "coinbase": "address", "gas_limit": "number", "base_fee": "number",
    "prev_randao": "word", "difficulty": "number", "chain_id": "number", "excess_blob_gas": "number",
    "hashes": "hashes", "blob_base_fee_fraction": "number?", "blob_max": "number?",
}  # fmt: skip
_AUTHORIZATION = {
    "chain_id": "number", "address": "address", "nonce": "number64", "y_parity": "number8", "r": "word", "s": "word",
}  # fmt: skip
_HOOKS = dict.fromkeys(("on_opcode", "on_storage", "on_call", "on_return"), "function")

PARAMETERS: dict[str, list[Parameter]] = {
    "EVM": of(evm_with, **_EVM),
    "EVM, assigned": of(assigning, **(_EVM | {"block": "block", "state": "state"})),
    "call": [
        *of(method("call"), to="address"),
        *of(method("call", HERE), data="bytes", origin="address?", static="flag", **_MESSAGE),
    ],
    "deploy": [
        *of(method("deploy"), initcode="bytes"),
        *of(method("deploy", b"\0"), salt="word?", origin="address?", **_MESSAGE),
    ],
    "simulate": [
        *of(method("simulate"), to="address?"),
        *of(method("simulate", HERE), data="bytes", **_MESSAGE),
    ],
    "transact": [
        *of(method("transact"), sender="address"),
        *of(
            method("transact", ALICE),
            to="address?", data="bytes", value="number", gas="number64?", nonce="number64?", gas_price="number?",
            max_fee="number?", access_list="access list?", blob_hashes="blob hashes?", authorizations="authorizations?",
        ),
        *of(method("transact", ALICE, max_fee=10), max_priority_fee="number?"),
        *of(method("transact", ALICE, blob_hashes=[BLOB]), max_blob_fee="number"),
    ],
    "get_, set_": [
        *in_positions("code"),
        *in_positions("balance"),
        *in_positions("nonce"),
        *of(method("set_code", HERE), code="bytes"),
        *of(method("set_balance", HERE), balance="number"),
        *of(method("set_nonce", HERE), nonce="number64"),
        *of(method("get_storage", HERE), key="word"),
        *of(method("set_storage", HERE, value=1), key="word"),
        *of(method("set_storage", HERE, 1), value="word"),
        *of(method("get_storage", key=0), address="address"),
        *of(method("set_storage", key=0, value=1), address="address"),
    ],
    "Block": of(block_with, **_BLOCK),
    "Block, assigned": of(assigning_to_block, **_BLOCK),
    "Authorization": of(authorization_with, **_AUTHORIZATION),
    "Hooks": of(lambda name: lambda evm, value: Hooks(**{name: value}), memory="flag", **_HOOKS),
}  # fmt: skip

NESTED: list[Any] = []
for _ in range(5_000):
    NESTED = [NESTED]

_huge = st.sampled_from([1 << 256, 1 << 4096, -1, -(1 << 300), 10**6000])
_objects = st.sampled_from(
    [object(), object, len, 3 + 4j, Decimal(1), Fraction(1, 2), NESTED, {1}, range(3), Indexed(-1)]
)
_flags = st.booleans()
_floats = st.floats()
_not_numbers = st.text().filter(lambda text: not text.strip().lower().startswith("0x")) | st.sampled_from(
    ["0x", "0xg", "0x-1", "0x1_0", "0x 1", "1", "0b1", "\n", "0x" + "f" * 65]
)
_lists = st.lists(st.integers(), max_size=3) | st.dictionaries(st.text(), st.integers(), max_size=3)
_not_hex = st.sampled_from(["0xg", "0x1", "abc", "x" * 40, "0x" + "é" * 40, "0x12\n34", "0x0x12"])
_long = st.binary(min_size=33, max_size=70)
_nothing = st.none()
_no_name = st.text().filter(lambda text: text not in TIERS and not is_fork(text))  # some are drawn from the source
_no_list = st.integers() | st.text() | st.binary() | _floats | _flags


def is_fork(text: str) -> bool:
    try:
        fork_named(text)
    except UnknownFork:
        return False
    return True


def bits_over(bits: int) -> st.SearchStrategy[Any]:
    return st.integers(min_value=1 << bits) | st.integers(max_value=-1)


_number = _objects | _flags | _floats | _not_numbers | _lists | _huge | _nothing
# Lists that are wrong somewhere inside.
MALFORMED: dict[str, list[Any]] = {
    "access list": [
        [HERE], [(HERE,)], [(HERE, [], [])], [(b"short", [])], [(HERE, [-1])], [(HERE, ["zz"])], [(HERE, "0x12")],
        [(HERE, None)], [(HERE, 5)], [(HERE, [b"\1" * 33])], {HERE: []}, [{"address": hexed(HERE)}], [{}], [NESTED],
        [{"address": hexed(HERE), "storageKeys": [], "more": 1}], [{"address": 5.5, "storageKeys": []}], [None],
        [(HERE, {0: 1})], [(HERE, [1.5])], [(HERE, [True])],
    ],
    "blob hashes": [
        [b"\1"], [None], [-1], ["0x01"], [1.5], [[]], {BLOB: 1}, [BLOB + b"\0"], [1 << 256],
    ],
    "authorizations": [
        [None], [1], [{}], [(1, HERE, 0, 0, 1, 1)], [{"chainId": 1}], {}, [NESTED],
        [{"chainId": "1", "address": hexed(HERE), "nonce": "0x0", "yParity": "0x0", "r": "0x1", "s": "0x1"}],
    ],
}  # fmt: skip

WRONG: dict[str, st.SearchStrategy[Any]] = {
    "number": _number | st.binary() | bits_over(256),
    "number64": _number | st.binary() | bits_over(64) | st.just("0x1" + "0" * 16),
    "number8": _number | st.binary() | bits_over(8),
    "word": _number | _long | bits_over(256),
    "address": _objects | _flags | _floats | _lists | _huge | _nothing | _not_hex | bits_over(160)
    | st.binary().filter(lambda data: len(data) != 20) | st.sampled_from(["", "0x", "0x12", "0x" + "11" * 21]),
    "bytes": _objects | _flags | _floats | _lists | _nothing | _not_hex | st.integers(),
    "flag": _objects | _floats | _lists | _nothing | st.integers() | st.text() | st.binary(),
    "seconds": st.sampled_from([object(), "1", b"1", [], float("nan"), -1, -0.5, 3 + 4j, 10**6000, True]),
    "fork": _objects | _floats | _lists | _nothing | st.integers() | _no_name | st.binary(),
    "tier": _objects | _floats | _lists | _nothing | st.integers() | _no_name | st.binary(),
    "block": _objects | _lists | _nothing | st.integers() | st.text(),
    "state": _objects | _lists | _nothing | st.integers() | st.text(),
    "hooks": _objects | _lists | st.integers() | st.text(),
    "function": _lists | st.integers() | st.text() | st.binary(),
    "hashes": st.integers() | st.text() | st.binary() | _nothing | st.lists(st.binary())
    | st.sampled_from([{1: b"short"}, {"1": bytes(32)}, {-1: bytes(32)}, {1.5: bytes(32)}, {1: "0x12"}, {1: None}]),
    "access list": _no_list | st.sampled_from(MALFORMED["access list"]),
    "blob hashes": _no_list | st.sampled_from(MALFORMED["blob hashes"]),
    "authorizations": _no_list | st.sampled_from(MALFORMED["authorizations"]),
}  # fmt: skip


def wrong(kind: str) -> st.SearchStrategy[Any]:
    plain = kind.rstrip("?")
    return WRONG[plain].filter(lambda value: value is not None) if kind.endswith("?") else WRONG[plain]
