"""The ABI: signatures and JSON read alike, values encoded as Solidity does and decoded with their names."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from eth_abi.abi import encode
from hypothesis import given, settings
from hypothesis import strategies as st

from fusevm import BadValue, Log
from fusevm.abi import Abi, BadAbi, CannotDecode, Constructor, CustomError, Event, Function, Values, parse_type
from fusevm.chain.addresses import Address
from tokens import ABI, SIGNATURES

ALICE = "0x" + "a1" * 20


# -- signatures -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "signature"),
    [
        ("transfer(address,uint256)", "transfer(address,uint256)"),
        ("function transfer(address to, uint amount) external returns (bool)", "transfer(address,uint256)"),
        ("balanceOf(address)(uint256)", "balanceOf(address)"),
        ("f()", "f()"),
        ("f((uint,bool[])[2] calldata points, tuple(int8 a) last)", "f((uint256,bool[])[2],(int8))"),
        ("f(address payable to, string memory text, function callback)", "f(address,string,bytes24)"),
        ("error(uint256)", "error(uint256)"),
        ("function f ( byte b , fixed x ) ;", "f(bytes1,fixed128x18)"),
    ],
)
def test_a_function_has_its_canonical_signature(text: str, signature: str) -> None:
    assert Function.parse(text).signature == signature


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "expected a name"),
        ("transfer", "expected '('"),
        ("transfer(address", "expected ','"),
        ("transfer(address,)", "expected a name"),
        ("transfer(uint7)", "'uint7' is not a type"),
        ("transfer(uint0)", "'uint0' is not a type"),
        ("transfer(bytes33)", "'bytes33' is not a type"),
        ("transfer(IERC20 token)", "'IERC20' is not a type of the ABI (contracts are address"),
        ("transfer(uint256[x])", "'x' is not the size"),
        ("transfer(address a b)", "unexpected 'b'"),
        ("transfer(address) sideways", "unexpected 'sideways'"),
        ("transfer(address)!", "unexpected '!'"),
        ("f" + "(" * 40 + ")" * 40, "nested too deeply"),
    ],
)
def test_a_wrong_signature_is_refused_in_one_line(text: str, why: str) -> None:
    with pytest.raises(BadAbi) as caught:
        Function.parse(text)
    assert why in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_signature_of_another_kind_is_refused() -> None:
    with pytest.raises(BadAbi, match="expected a signature of Event, got Function"):
        Event.parse("function f()")


def test_selectors_and_topics_are_the_published_ones() -> None:
    abi = Abi(SIGNATURES)
    assert abi.functions.transfer.selector.hex() == "a9059cbb"
    assert f"{abi.events.Transfer.topic:064x}".startswith("ddf252ad1be2c89b69c2b068fc378daa")
    assert abi.errors.ERC20InsufficientBalance.selector.hex() == "e450d38c"


def test_signatures_and_json_give_the_same_interface() -> None:
    from_json, from_text = Abi(ABI), Abi(SIGNATURES)
    assert [each.signature for each in from_json] == [each.signature for each in from_text]
    assert from_json.events.Transfer == from_text.events.Transfer
    assert [str(each) for each in Abi([str(each) for each in from_text])] == [str(each) for each in from_text]


@pytest.mark.parametrize(
    ("entries", "why"),
    [
        ([{"type": "function"}], "ABI entry 0: no name"),
        ([{"type": "method", "name": "f"}], "ABI entry 0 (f): 'method' is not a kind of entry"),
        ([{"name": "f", "inputs": "none"}], "ABI entry 0 (f): the parameters are not a list of objects"),
        ([{"name": "f", "inputs": [{"name": "a"}]}], "ABI entry 0 (f): a parameter without a type"),
        ([{"name": "f", "inputs": [{"type": "uint7"}]}], "ABI entry 0 (f): 'uint7' is not a type"),
        ([{"name": "f", "inputs": [{"type": "uint8[x]"}]}], "ABI entry 0 (f): 'uint8[x]' is not a type"),
        ({"abi": []}, "an ABI is a list of entries or signatures, not dict"),
    ],
)
def test_a_malformed_abi_is_refused_with_the_place(entries: Any, why: str) -> None:
    with pytest.raises(BadAbi) as caught:
        Abi(entries)
    assert str(caught.value).startswith(why)


def test_tuples_and_arrays_of_json_are_types_too() -> None:
    inner = [{"type": "address", "name": "owner"}, {"type": "uint256[]", "name": "ids"}]
    abi = Abi([{"name": "f", "inputs": [{"type": "tuple[2][]", "name": "x", "components": inner}]}])
    assert abi.functions.f.signature == "f((address,uint256[])[2][])"


def test_what_older_compilers_wrote_is_read() -> None:
    abi = Abi([{"name": "f", "inputs": [], "constant": True}, {"name": "g", "payable": True}])
    assert abi.functions.f.mutability == "view"
    assert abi.functions.g.mutability == "payable"


# -- values -----------------------------------------------------------------------------------------------------------


def test_the_examples_of_soliditys_specification_are_encoded_so() -> None:
    assert Function.parse("baz(uint32,bool)").encode(69, True).hex() == "cdcd77c0" + f"{69:064x}" + f"{1:064x}"
    assert Function.parse("bar(bytes3[2])").encode([b"abc", b"def"]).hex() == (
        "fce353f6" + "616263".ljust(64, "0") + "646566".ljust(64, "0")
    )
    words = [0x123, 0x80, 0, 0xE0, 2, 0x456, 0x789, 13]
    expected = [f"{word:064x}" for word in words]
    expected[2] = b"1234567890".hex().ljust(64, "0")
    expected.append(b"Hello, world!".hex().ljust(64, "0"))
    encoded = Function.parse("f(uint256,uint32[],bytes10,bytes)").encode(
        0x123, [0x456, 0x789], b"1234567890", b"Hello, world!"
    )
    assert encoded.hex() == "8be65246" + "".join(expected)


@pytest.mark.parametrize(
    ("kind", "forms"),
    [
        ("address", [ALICE, "a1" * 20, b"\xa1" * 20, Address(ALICE), int("a1" * 20, 16)]),
        ("uint256", [255, "0xff"]),
        ("bytes", [b"\x01\x02", "0x0102", "0102", bytearray(b"\x01\x02")]),
        ("uint8[]", [[1, 2], (1, 2), iter([1, "0x2"])]),
        ("(uint8 a, bool b)", [(1, True), [1, True], {"b": True, "a": 1}]),
    ],
)
def test_every_usual_form_of_a_value_is_taken(kind: str, forms: list[Any]) -> None:
    function = Function.parse(f"f({kind})")
    assert len({function.encode(form) for form in forms}) == 1


@pytest.mark.parametrize(
    ("kind", "value", "why"),
    [
        ("uint8", 256, "f: argument x (uint8): 256 does not fit uint8"),
        ("uint8", -1, "f: argument x (uint8): -1 does not fit uint8"),
        ("int8", 128, "f: argument x (int8): 128 does not fit int8"),
        ("uint8", True, "f: argument x (uint8): expected an int or 0x hex text, got bool"),
        ("bool", 1, "f: argument x (bool): expected True or False, got int"),
        ("address", "0x01", "f: argument x (address): expected 20 bytes, got 1"),
        ("bytes4", b"abc", "f: argument x (bytes4): expected 4 bytes, got 3"),
        ("string", b"abc", "f: argument x (string): expected text, got bytes"),
        ("uint8[2]", [1], "f: argument x (uint8[2]): expected 2 items, got 1"),
        ("uint8[]", [1, 300], "f: argument x (uint8[])[1]: 300 does not fit uint8"),
        ("uint8[]", "0x01", "f: argument x (uint8[]): expected a list, got str"),
        ("(uint8 a)", {"b": 1}, "f: argument x ((uint8)): no 'a'; expected a"),
        ("(uint8 a)", {"a": 1, "b": 1}, "f: argument x ((uint8)): 'b' is not a member; expected a"),
        ("(uint8 a)", [1, 2], "f: argument x ((uint8)): expected 1 members, got 2"),
        ("string", "\ud800", "f: "),
        ("fixed128x18", 1.5, "f: argument x (fixed128x18): expected a Decimal or an int, got float"),
    ],
)
def test_a_value_that_does_not_fit_is_named(kind: str, value: Any, why: str) -> None:
    with pytest.raises(BadValue) as caught:
        Function.parse(f"f({kind} x)").encode(value)
    assert str(caught.value).startswith(why)
    assert "\n" not in str(caught.value)


def test_the_number_of_arguments_is_checked() -> None:
    with pytest.raises(BadValue, match=r"^transfer takes 2 arguments, 1 given$"):
        Function.parse("transfer(address,uint256)").encode(ALICE)


def _values_of(kind: str) -> st.SearchStrategy[Any]:
    return {
        "uint256": st.integers(0, 2**256 - 1),
        "uint8": st.integers(0, 255),
        "int128": st.integers(-(2**127), 2**127 - 1),
        "address": st.binary(min_size=20, max_size=20),
        "bool": st.booleans(),
        "bytes": st.binary(max_size=70),
        "bytes5": st.binary(min_size=5, max_size=5),
        "string": st.text(st.characters(codec="utf-8"), max_size=40),
    }[kind]


SCALARS = ("uint256", "uint8", "int128", "address", "bool", "bytes", "bytes5", "string")
Pair = tuple[str, st.SearchStrategy[Any]]


def _array(pair: Pair) -> st.SearchStrategy[Pair]:
    kind, values = pair
    dynamic = st.just((f"{kind}[]", st.lists(values, max_size=3)))
    return st.one_of(dynamic, st.just((f"{kind}[2]", st.lists(values, min_size=2, max_size=2))))


def _tuple(pairs: list[Pair]) -> Pair:
    return f"({','.join(kind for kind, _ in pairs)})", st.tuples(*(values for _, values in pairs))


TYPES: st.SearchStrategy[Pair] = st.recursive(
    st.sampled_from(SCALARS).map(lambda kind: (kind, _values_of(kind))),
    lambda inner: st.one_of(inner.flatmap(_array), st.lists(inner, min_size=1, max_size=3).map(_tuple)),
    max_leaves=5,
)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.data())
def test_what_is_encoded_is_what_eth_abi_encodes_and_decodes_to_itself(data: st.DataObject) -> None:
    pairs = data.draw(st.lists(TYPES, max_size=3))
    values = [data.draw(strategy) for _, strategy in pairs]
    kinds = [kind for kind, _ in pairs]
    function = Function.parse(f"f({','.join(kinds)}) returns ({','.join(kinds) or 'bool'})")
    encoded = function.encode(*values)
    assert encoded[4:] == encode(kinds, values)
    assert list(function.decode_arguments(encoded)) == values


def test_results_are_nothing_a_value_or_several_by_name() -> None:
    assert Function.parse("f()").decode(b"anything") is None
    assert Function.parse("f() returns (uint8)").decode(encode(["uint8"], [7])) == 7
    several = Function.parse("f() returns (uint8 low, bool)").decode(encode(["uint8", "bool"], [7, True]))
    assert several == (7, True)
    assert several.low == several["low"] == several[0] == 7
    assert several.as_dict() == {"low": 7, "1": True}


def test_addresses_are_decoded_to_addresses_that_print_in_hex() -> None:
    owner = Function.parse("f() returns (address)").decode(encode(["address"], [ALICE]))
    assert owner == b"\xa1" * 20
    assert str(owner).lower() == ALICE
    assert f"{owner}".lower() == ALICE


def test_structs_are_decoded_with_the_names_of_their_members() -> None:
    function = Function.parse("f() returns ((address owner, uint256[] ids)[] found)")
    found = function.decode(encode(["(address,uint256[])[]"], [[(ALICE, [1, 2])]]))
    assert found[0].ids == [1, 2]
    assert repr(found[0]) == f"(owner={Address(ALICE)}, ids=[1, 2])"


@pytest.mark.parametrize("output", [b"", b"\x01", bytes(31), b"\xff" * 32, bytes(31) + b"\x02"])
def test_output_that_is_something_else_cannot_be_decoded(output: bytes) -> None:
    with pytest.raises(CannotDecode, match=r"^what f returned: "):
        Function.parse("f() returns (bool)").decode(output)


def test_output_whose_arrays_all_share_one_tail_is_answered_quickly() -> None:
    """Offsets that point back would make a small output a huge value."""
    deep = Function.parse("f() returns (uint256" + "[]" * 10 + ")")
    bomb = (32).to_bytes(32, "big") + b"".join(
        (10).to_bytes(32, "big") + bytes(32) * 10 for _ in range(10)
    )  # every offset is zero: each level points at itself
    with pytest.raises(CannotDecode):
        deep.decode(bomb)


def test_values_survive_pickling() -> None:
    values = Values([1, Address(ALICE)], ["a", "b"], "Pair")
    twin = pickle.loads(pickle.dumps(values))
    assert (twin, twin.names, repr(twin)) == (values, values.names, repr(values))


# -- events, errors, calldata -----------------------------------------------------------------------------------------


def _word(value: int) -> bytes:
    return value.to_bytes(32, "big")


def test_a_log_is_decoded_by_its_event() -> None:
    abi = Abi(SIGNATURES)
    topic = abi.events.Transfer.topic
    log = Log(b"\xc0" * 20, (topic, int(ALICE, 16), 5), _word(77))
    event = abi.decode_log(log)
    assert event is not None
    assert (event["from"], event.to, event.value) == (Address(ALICE), Address(5), 77)
    assert (event.title, event.address, event.log) == ("Transfer", b"\xc0" * 20, log)
    assert repr(event) == f"Transfer(from={Address(ALICE)}, to={Address(5)}, value=77)"


@pytest.mark.parametrize(
    "log",
    [
        Log(bytes(20), (), b""),
        Log(bytes(20), (1,), b""),
        Log(bytes(20), (Abi(SIGNATURES).events.Transfer.topic, 1), _word(1)),  # a topic is missing
        Log(bytes(20), (Abi(SIGNATURES).events.Transfer.topic, 1, 2), b""),  # the data is missing
        Log(bytes(20), (Abi(SIGNATURES).events.Transfer.topic, 1 << 200, 2), _word(1)),  # not an address
    ],
)
def test_a_log_of_another_event_is_not_decoded(log: Log) -> None:
    assert Abi(SIGNATURES).decode_log(log) is None


def test_an_indexed_string_is_the_hash_that_the_log_has() -> None:
    event = Event.parse("event Named(string indexed name, bool indexed on)")
    assert list(event.decode(Log(bytes(20), (event.topic, 7, 1), b""))) == [_word(7), True]


def test_an_anonymous_event_is_known_by_its_topics_alone() -> None:
    abi = Abi(["event Quiet(uint256 indexed a, uint256 b) anonymous"])
    event = abi.decode_log(Log(bytes(20), (5,), _word(6)))
    assert event is not None
    assert list(event) == [5, 6]


def test_events_of_one_name_that_differ_in_what_is_indexed_are_told_apart() -> None:
    """ERC-20 and ERC-721 have the same signature of Transfer."""
    abi = Abi(
        [
            "event Transfer(address indexed from, address indexed to, uint256 value)",
            "error Other()",
        ]
    ) + Abi(["event Approval(address indexed a, address indexed b, uint256 indexed c)"])
    log = Log(bytes(20), (abi.events.Approval.topic, 1, 2, 3), b"")
    assert [each.title for each in abi.decode_logs([log])] == ["Approval"]


def test_reverts_are_explained() -> None:
    abi = Abi(SIGNATURES)
    broke = abi.errors.ERC20InsufficientBalance.encode(ALICE, 0, 1)
    assert abi.explain_revert(broke) == f"ERC20InsufficientBalance(sender={Address(ALICE)}, balance=0, needed=1)"
    assert abi.explain_revert(CustomError.parse("error Error(string)").encode('no "way"')) == r'Error("no \"way\"")'
    panic = CustomError.parse("error Panic(uint256)").encode(0x11)
    assert abi.explain_revert(panic) == "Panic(0x11: arithmetic underflow or overflow)"
    assert abi.explain_revert(b"\x01\x02\x03\x04") == "0x01020304"
    assert abi.explain_revert(broke[:-1]) == "0x" + broke[:-1].hex()
    assert abi.explain_revert(b"") is None


def test_calldata_says_which_function_it_calls() -> None:
    abi = Abi(SIGNATURES)
    call = abi.decode_call(abi.functions.transfer.encode(ALICE, 5))
    assert repr(call) == f"transfer(to={Address(ALICE)}, value=5)"
    with pytest.raises(CannotDecode, match="no function has the selector 0x01020304"):
        abi.decode_call(b"\x01\x02\x03\x04")


def test_an_overloaded_name_needs_a_signature() -> None:
    abi = Abi(SIGNATURES)
    with pytest.raises(BadValue, match=r"burn is the name of 2 functions: .*burn\(uint256\), burn\(address,uint256\)"):
        abi.functions["burn"]
    assert abi.functions["burn(uint)"].signature == "burn(uint256)"
    assert abi.functions["function burn(address owner, uint value)"].signature == "burn(address,uint256)"


def test_an_unknown_name_is_refused_with_those_there_are() -> None:
    abi = Abi(SIGNATURES)
    with pytest.raises(BadValue, match=r"no function 'mint' in the ABI; it has balanceOf, burn, name"):
        abi.functions["mint"]
    with pytest.raises(AttributeError, match=r"no event 'Mint' in the ABI; it has Transfer"):
        _ = abi.events.Mint


def test_the_constructors_arguments_have_no_selector() -> None:
    assert Constructor.parse("constructor(uint256 supply)").encode(7) == _word(7)
    assert Abi([]).constructor.encode() == b""


def test_types_have_canonical_names() -> None:
    assert parse_type("tuple(uint a, int b)[3][]").name == "(uint256,int256)[3][]"


def test_an_interface_survives_pickling() -> None:
    twin = pickle.loads(pickle.dumps(Abi(SIGNATURES)))
    assert [str(each) for each in twin] == [str(each) for each in Abi(SIGNATURES)]
