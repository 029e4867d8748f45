"""Odd arguments, in every place of the public API: an answer, or one line of `BadValue` that names the place."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fusevm import EVM, Block, Call, Checks, EngineLimit, ExecutionFailed, Rejected, SourceError
from fusevm.abi import Abi, Artifact
from fusevm.chain.signed import sign
from fusevm.chain.transaction import Transaction
from fusevm.tracing.sources.contracts import Sources
from fusevm.values import BadValue

HERE, ALICE = "0x" + "c0" * 20, "0x" + "a1" * 20
SIGNED = sign(Transaction(b"", bytes.fromhex("b0" * 20), gas_limit=21_000, nonce=0), bytes(31) + b"\1", chain_id=1)
REFUSED = (BadValue, Rejected, EngineLimit, ExecutionFailed, SourceError)
DEEP = 3_000
HUGE = 10**10_000


def nested(inner: Any, wrap: Callable[[Any], Any]) -> Any:
    for _ in range(DEEP):
        inner = wrap(inner)
    return inner


def tuples(inner: dict[str, Any]) -> dict[str, Any]:
    return nested(inner, lambda each: {"type": "tuple", "name": "x", "components": [each]})


def function(*inputs: Any, name: Any = "f") -> list[dict[str, Any]]:
    return [{"type": "function", "name": name, "inputs": list(inputs), "outputs": []}]


class Odd:
    """Nothing that anyone expects."""


ODD: dict[str, Any] = {
    "None": None,
    "True": True,
    "5": 5,
    "-1": -1,
    "huge": HUGE,
    "minus huge": -HUGE,
    "1.5": 1.5,
    "nan": float("nan"),
    "infinite": float("inf"),
    "no text": "",
    "text": "latest",
    "a surrogate": "\ud800",
    "hex and a surrogate": "0x\ud800",
    "nul": "a\0b",
    "digits": "9" * 10_000,
    "hex digits": "0x" + "f" * 10_000,
    "Arabic digits": "٣",
    "lines": "a\nb",
    "no bytes": b"",
    "bytes": b"\xff" * 33,
    "an array": bytearray(b"abc"),
    "[]": [],
    "[None]": [None],
    "[[]]": [[]],
    "[huge]": [HUGE],
    "pairs": [(1, 2), 3],
    "a deep list": nested([], lambda each: [each]),
    "a deep tuple": nested((), lambda each: (each,)),
    "a deep dict": nested({}, lambda each: {"abi": each}),
    "{}": {},
    "{None: None}": {None: None},
    "{address: 5}": {HERE: 5},
    "{address: {}}": {HERE: {"balance": [], "state": 5, "code": {}, "nonce": HUGE}},
    "{address: slots}": {HERE: {"stateDiff": {"\ud800": HUGE}}},
    "{huge: 1}": {HUGE: 1},
    "{surrogate: 1}": {"\ud800": 1},
    "a set": {1, 2},
    "a generator": iter([5]),
    "an object": Odd(),
    "a class": Odd,
    "a function": len,
    "a deep array type": function({"name": "a", "type": "uint256" + "[]" * DEEP}),
    "deep tuples": function(tuples({"type": "uint256", "name": "x"})),
    "a huge name": function(name=HUGE),
    "a huge type": function({"name": "a", "type": HUGE}),
    "a name with a surrogate": function(name="\ud800"),
    "a type with a surrogate": function({"name": "a", "type": "uint\ud800"}),
    "a type of a huge size": function({"name": "a", "type": "uint" + "9" * 10_000}),
    "an array of a huge size": function({"name": "a", "type": f"uint256[{'9' * 10_000}]"}),
    "a deep signature": ["function f(" + "(" * DEEP + "uint256" + ")" * DEEP + " x)"],
    "JSON with a huge integer": '{"abi": [], "x": ' + "1" * 10_000 + "}",
    "deep JSON": "[" * 100_000,
    "deep JSON that ends": '{"abi": ' + "[" * DEEP + "]" * DEEP + "}",
}

GIVEN: dict[str, Any] = {  # where an argument must be given
    "to": HERE,
    "address": ALICE,
    "sender": ALICE,
    "artifact": {"abi": [], "bytecode": "0x60fe60005360016000f3"},
    "access_list": [],
    "balance": 1,
    "nonce": 1,
    "key": 1,
    "value": 1,
    "code": "00",
    "initcode": "00",
    "calls": [b""],
    "checkpoint": 1,
    "dump": {},
    "name": "mainnet",
    "sources": Sources(),
    "transaction": SIGNED,
    "url": "http://127.0.0.1:1",
}
FREE = {"self", "cls", "arguments", "options", "fields", "sources"}  # of any kind, or an object of ours


def use(found: Any) -> None:
    """What is opened is entered; what is an iterator is read."""
    if hasattr(found, "__enter__"):
        with found:
            pass


def places() -> Iterator[tuple[str, str]]:
    """Every parameter of every public method, and every property that can be assigned."""
    for name, member in inspect.getmembers(EVM):
        if name.startswith("_") or name in ("fork_from",):  # that one asks a node
            continue
        if isinstance(member, property):
            if member.fset is not None:
                yield name, "="
            continue
        for parameter in inspect.signature(member).parameters.values():
            if parameter.name not in FREE:
                yield name, parameter.name


def attempt(method: str, place: str, value: Any) -> None:
    evm = EVM(timeout=5)
    evm.set_balance(ALICE, 10**20)
    if place == "=":
        setattr(evm, method, value)
        evm.call(HERE)
        return
    bound = getattr(evm, method)
    named = {
        each.name: GIVEN[each.name]
        for each in inspect.signature(bound).parameters.values()
        if each.default is each.empty and each.name not in FREE - {"sources"}
    }
    use(bound(**{**named, place: value}))


def refused(run: Callable[[], Any]) -> None:
    """It answers, or says in one line of text that can be printed what is wrong."""
    try:
        run()
    except REFUSED as error:
        text = str(error)
        assert text.encode("utf-8").strip()
        assert "\n" not in text
        assert len(text) < 1_000


@pytest.mark.parametrize(("method", "place"), list(places()))
def test_an_odd_argument_is_answered_or_refused_in_one_line(method: str, place: str) -> None:
    for value in ODD.values():
        refused(lambda value=value: attempt(method, place, value))


@pytest.mark.parametrize("name", ODD)
def test_an_odd_block_call_or_check_is_refused_in_one_line(name: str) -> None:
    value = ODD[name]
    for kind in (Block, Call, Checks):
        for field in inspect.signature(kind).parameters:
            refused(lambda kind=kind, field=field: EVM().simulate_many([kind(**{field: value})], HERE))
    refused(lambda: Artifact.read(value))
    refused(lambda: Abi(value))
    refused(lambda: EVM().simulate_many([value], HERE))
    refused(lambda: EVM().call_many(value, HERE))


PLAIN = (st.none(), st.booleans(), st.integers(), st.floats(), st.binary(max_size=40), st.text(max_size=50))
NAMES = ("abi", "bytecode", "type", "name", "inputs", "balance", "storage", "number", HERE)
KEYS = st.one_of(st.sampled_from(NAMES), st.text(st.characters(), max_size=5), st.integers(), st.none())
ANYTHING = st.recursive(
    st.one_of(
        *PLAIN,
        st.text(st.characters(categories=["Cs"]), max_size=3),
        st.sampled_from(list(ODD)).map(lambda name: ODD[name]),
        st.sampled_from(NAMES),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.tuples(inner, inner), st.dictionaries(KEYS, inner, max_size=4)
    ),
    max_leaves=12,
)


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.sampled_from(list(places())), ANYTHING)
def test_whatever_is_given_is_answered_or_refused_in_one_line(place: tuple[str, str], value: Any) -> None:
    refused(lambda: attempt(*place, value))


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(ANYTHING)
def test_whatever_an_artifact_is_it_is_read_or_refused_in_one_line(value: Any) -> None:
    refused(lambda: Artifact.read(value))
    refused(lambda: Artifact.read({"abi": value, "bytecode": value}).creation_code())
    refused(lambda: Abi([value]))


def test_a_simulation_takes_what_a_call_takes() -> None:
    takes = set(inspect.signature(EVM.simulate).parameters)
    assert set(inspect.signature(EVM.call).parameters) <= takes
    evm = EVM()
    evm.set_code(HERE, "6001600055")
    assert evm.simulate(HERE, gas=100_000).ok
    assert not evm.simulate(HERE, gas=100_000, static=True).ok
    assert evm.simulate(HERE, code="325f5260205ff3", origin=ALICE).output[12:].hex() == ALICE[2:]
    listed = [(HERE, [0])]
    assert evm.simulate(HERE, access_list=listed).gas_used == evm.simulate(HERE).gas_used - 2_100
    assert evm.simulate(HERE, access_list=listed, charge_access_list=True).gas_used > evm.simulate(HERE).gas_used
    with pytest.raises(BadValue, match="a deployment"):
        evm.simulate(None, "00", static=True)
    assert evm.get_storage(HERE, 0) == 0
