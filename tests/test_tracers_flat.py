"""`flatCallTracer` and `muxTracer`: the forms of their answers."""

from __future__ import annotations

from typing import Any

import pytest

from fusevm import EVM
from fusevm.values import BadValue

CALLER, CALLED, HASHER = "0x" + "c0" * 20, "0x" + "c1" * 20, "0x" + "00" * 19 + "02"
REVERTS = "5f5ffd"


def calling(*addresses: str) -> str:
    """Code that calls each of them with all its gas."""
    return "".join(f"5f5f5f5f5f73{each[2:]}5af150" for each in addresses)


def trace(tracer: str, *addresses: str, **config: Any) -> Any:
    evm = EVM()
    evm.set_code(CALLER, calling(*addresses))
    evm.set_code(CALLED, REVERTS)
    return evm.trace_call(CALLER, gas=200_000, tracer=tracer, config=config)


def test_calls_stand_one_after_another_with_their_place_in_the_tree() -> None:
    found = trace("flatCallTracer", CALLED, CALLED)
    assert [(each["traceAddress"], each["subtraces"]) for each in found] == [([], 2), ([0], 0), ([1], 0)]
    assert [each["action"]["to"] for each in found] == [CALLER, CALLED, CALLED]


def test_errors_are_geths_or_paritys() -> None:
    assert trace("flatCallTracer", CALLED)[1]["error"] == "execution reverted"
    assert trace("flatCallTracer", CALLED, convertParityErrors=True)[1]["error"] == "Reverted"


def test_precompiles_are_left_out_unless_they_are_asked_for() -> None:
    assert [each["traceAddress"] for each in trace("flatCallTracer", HASHER, CALLED)] == [[], [0]]
    assert len(trace("flatCallTracer", HASHER, CALLED, includePrecompiles=True)) == 3


def test_several_tracers_answer_by_their_names_as_each_does_alone() -> None:
    several = trace("muxTracer", CALLED, callTracer={"onlyTopCall": True}, prestateTracer=None, noopTracer={})
    assert several == {
        "callTracer": trace("callTracer", CALLED, onlyTopCall=True),
        "prestateTracer": trace("prestateTracer", CALLED),
        "noopTracer": {},
    }


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"muxTracer": {}}, "muxTracer within muxTracer"),
        ({"noSuchTracer": {}}, "'noSuchTracer' is not known"),
        ({"callTracer": {"deep": True}}, "callTracer has no option 'deep'"),
    ],
)
def test_what_is_not_known_among_several_is_named(config: Any, said: str) -> None:
    with pytest.raises(BadValue, match=said):
        trace("muxTracer", CALLED, **config)
