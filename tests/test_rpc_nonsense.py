"""Whatever a request's parameters are, the error names what is wrong with them: nothing of ours breaks."""

from __future__ import annotations

import json
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from fusevm.rpc import Config, Session
from fusevm.rpc.dispatch import answer
from fusevm.rpc.errors import INTERNAL_ERROR
from fusevm.rpc.methods import METHODS

ALICE = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266"
ASKING_OTHERS = ("anvil_reset", "hardhat_reset")  # a node to fork, wherever that is
LEFT = sorted(set(METHODS) - set(ASKING_OTHERS))

leaves = (
    some.none()
    | some.booleans()
    | some.integers()
    | some.integers(-(2**300), 2**300)
    | some.integers(0, 5)
    | some.floats()
    | some.text(max_size=8)
    | some.text(some.characters(categories=["Cs"]), min_size=1, max_size=3)
    | some.sampled_from([ALICE, "latest", "pending", "0x", "0x1", "0xzz", "0x" + "00" * 32, "0x" + "ff" * 40, "1e9"])
)
NAMES = (
    "from to data input value gas gasPrice maxFeePerGas nonce type chainId accessList authorizationList topics "
    "address blobVersionedHashes fromBlock blockHash blockNumber tracer tracerConfig stateOverrides blockOverrides "
    "code balance stateDiff types domain primaryType message blockStateCalls calls blocks timestamp"
)
names = some.sampled_from([*NAMES.split(), ALICE])
values = some.recursive(
    leaves,
    lambda each: some.lists(each, max_size=3) | some.dictionaries(names | some.text(max_size=3), each, max_size=4),
    max_leaves=8,
)


def asked(session: Session, method: str, params: Any) -> dict[str, Any]:
    """The answer as a client has it: the request is JSON, and so is what comes back."""
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
    found: dict[str, Any] = json.loads(json.dumps(answer(body, session.request)))
    return found


def broken(found: dict[str, Any]) -> bool:
    """Whether an exception that nobody foresaw was answered. Code that halts is told by the same number, in words."""
    error = found.get("error", {})
    return error.get("code") == INTERNAL_ERROR and not error["message"].startswith(("EVM error", "no storage slot"))


ODD = (
    None,
    7,
    -1,
    True,
    "",
    "0x",
    "zz",
    [],
    {},
    [[]],
    1.5,
    {"from": 3},
    [{}],
    2**300,
    "\ud800",
    {"": []},
    [1.5],
    [[{}, 0]],
)
GOOD = (ALICE, "0x1", "latest", "0x" + "00" * 32, {"from": ALICE})


@pytest.mark.parametrize("method", LEFT)
def test_no_method_breaks_on_one_parameter_that_makes_no_sense(method: str) -> None:
    session = Session(Config(timestamp=1_800_000_000, accounts=2))
    found = METHODS[method]
    for odd, good in product(ODD, GOOD):
        for place in range(min(found.most, 4)):
            params = [good] * min(max(found.least, place + 1), found.most)
            params[place] = odd
            answered = asked(session, method, params)
            assert not broken(answered), (params, answered)


@settings(max_examples=1_000, deadline=None)
@given(some.sampled_from(LEFT), some.lists(values, max_size=4))
def test_no_method_breaks_on_any_parameters(method: str, params: list[Any]) -> None:
    session = Session(Config(timestamp=1_800_000_000, accounts=2), call_seconds=0.5)
    answered = asked(session, method, params)
    assert not broken(answered), answered
