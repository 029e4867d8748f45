"""The helper for tests against anvil: it starts a node, and the node answers."""

from __future__ import annotations

import pytest

from anvil import ACCOUNT, Anvil, RpcError

pytestmark = pytest.mark.long  # real tools, installed for it

REVERTS = bytes.fromhex("602a5f5260205ffd")  # revert(0, 32) with 42 in memory


def deploying(runtime: bytes) -> bytes:
    return bytes((0x60, len(runtime), 0x80, 0x60, 9, 0x5F, 0x39, 0x5F, 0xF3)) + runtime


def test_a_node_deploys_and_answers_calls(anvil: Anvil) -> None:
    address = anvil.deploy(deploying(bytes.fromhex("60035f5260205ff3")))
    assert int.from_bytes(anvil.call(address), "big") == 3
    assert int(anvil.ask("eth_getBalance", "0x" + ACCOUNT.hex(), "latest"), 16) > 10**20


def test_a_reverted_call_tells_its_data(anvil: Anvil) -> None:
    address = anvil.deploy(deploying(REVERTS))
    with pytest.raises(RpcError) as raised:
        anvil.call(address)
    assert raised.value.data == f"0x{42:064x}"
