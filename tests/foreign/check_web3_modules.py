"""web3.py's own tests of providers, module by module: in the same process, and over HTTP and WebSocket to a node.

`FUSEVM_HOW` is `process`, `http` or `ws`; `FUSEVM_NODE` is the node's address, with web3.py's test chain id.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
import pytest_asyncio
from eth_utils import to_bytes
from web3 import AsyncWeb3, Web3, WebSocketProvider
from web3._utils.contract_sources.contract_data._custom_contract_data import EMITTER_ENUM
from web3._utils.contract_sources.contract_data.emitter_contract import EMITTER_CONTRACT_DATA
from web3._utils.contract_sources.contract_data.math_contract import MATH_CONTRACT_DATA
from web3._utils.contract_sources.contract_data.offchain_lookup import OFFCHAIN_LOOKUP_ABI, OFFCHAIN_LOOKUP_BYTECODE
from web3._utils.contract_sources.contract_data.panic_errors_contract import PANIC_ERRORS_CONTRACT_DATA
from web3._utils.contract_sources.contract_data.revert_contract import REVERT_CONTRACT_DATA
from web3._utils.contract_sources.contract_data.storage_contract import STORAGE_CONTRACT_DATA
from web3._utils.module_testing import (
    AsyncEthModuleTest,
    AsyncNetModuleTest,
    EthModuleTest,
    GoEthereumAsyncDebugModuleTest,
    GoEthereumAsyncTxPoolModuleTest,
    GoEthereumDebugModuleTest,
    GoEthereumTxPoolModuleTest,
    NetModuleTest,
    Web3ModuleTest,
)
from web3._utils.module_testing.persistent_connection_provider import PersistentConnectionProviderTest
from web3._utils.module_testing.utils import RequestMocker
from web3._utils.module_testing.web3_module import AsyncWeb3ModuleTest
from web3.providers.rpc import AsyncHTTPProvider, HTTPProvider

from fusevm.adapters.web3 import AsyncFusevmProvider, FusevmProvider
from fusevm.rpc import Config, Session

HOW, NODE = os.environ["FUSEVM_HOW"], os.environ.get("FUSEVM_NODE", "")
CHAIN_ID = 131277322940537  # that web3.py's tests expect
KEY = "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80"
CONTRACTS: dict[str, Any] = {
    "math": MATH_CONTRACT_DATA,
    "emitter": EMITTER_CONTRACT_DATA,
    "revert": REVERT_CONTRACT_DATA,
    "offchain_lookup": {"abi": OFFCHAIN_LOOKUP_ABI, "bytecode": OFFCHAIN_LOOKUP_BYTECODE},
    "panic_errors": PANIC_ERRORS_CONTRACT_DATA,
    "storage": STORAGE_CONTRACT_DATA,
}
# These look at transactions that no block has yet, as in web3.py's own run on eth-tester.
WAITING = ("unmined", "replace_transaction", "modify_transaction", "send_transaction", "strategy_bypassed")
SIGNING = "test_eth_sign_transaction", "test_async_eth_sign_transaction"
TYPED = "web3.py expects a text of eth-account's, which no node has; its asynchronous names middleware fails before"
BYTES_ALONE = "over the wire a signed transaction is its bytes, as anvil and viem have it; geth adds the fields"


class Chain:
    """With web3.py's contracts, a block with a transaction, one with a log, and empty ones."""

    def __init__(self, w3: Web3, session: Session | None) -> None:
        self.w3, self.session = w3, session
        self.account = w3.eth.accounts[0]
        self.deployments: dict[str, Any] = {}
        self.addresses: dict[str, Any] = {}
        for name, each in CONTRACTS.items():
            self.deployments[name] = w3.eth.contract(**each).constructor().transact({"from": self.account})
            self.addresses[name] = w3.eth.wait_for_transaction_receipt(self.deployments[name])["contractAddress"]
        self.ask("evm_mine")
        self.empty = w3.eth.get_block("latest")["hash"]
        self.sent = w3.eth.send_transaction({"from": self.account, "to": self.account, "value": 1, "gas": 21_000})
        self.with_transaction = w3.eth.wait_for_transaction_receipt(self.sent)["blockHash"]
        emitter = w3.eth.contract(address=self.addresses["emitter"], abi=EMITTER_CONTRACT_DATA["abi"])
        logs = emitter.functions.logDouble(EMITTER_ENUM["LogDoubleWithIndex"], 12345, 54321)
        self.logged = logs.transact({"from": self.account})
        self.with_log = w3.eth.wait_for_transaction_receipt(self.logged)["blockHash"]
        self.ask("evm_mine")

    def ask(self, method: str, *params: Any) -> Any:
        answer = self.w3.provider.make_request(method, params)
        assert "error" not in answer, answer
        return answer["result"]


@pytest.fixture(scope="session")
def made() -> Chain:
    if HOW == "process":
        session = Session(Config(chain_id=CHAIN_ID))
        return Chain(Web3(FusevmProvider(session)), session)
    return Chain(Web3(HTTPProvider(NODE)), None)


@pytest.fixture
def chain(made: Chain, request: pytest.FixtureRequest) -> Iterator[Chain]:
    """What a test does to it is undone."""
    name = request.node.name
    if "sign_typed_data" in name and ("invalid" in name or "async_w3" in request.fixturenames):
        pytest.skip(TYPED)
    if HOW != "process" and name.startswith(SIGNING):
        pytest.skip(BYTES_ALONE)
    kept = made.ask("evm_snapshot")
    if any(part in name for part in WAITING) and "already_mined" not in name:
        made.ask("evm_setAutomine", False)
    if isinstance(request.instance, PersistentConnectionProviderTest):
        made.ask("evm_setIntervalMining", 1)
    yield made
    made.ask("evm_setIntervalMining", 0)
    made.ask("evm_setAutomine", True)
    assert made.ask("evm_revert", kept)


@pytest.fixture
def w3(chain: Chain) -> Web3:
    return Web3(HTTPProvider(NODE) if chain.session is None else FusevmProvider(chain.session))


@pytest_asyncio.fixture
async def async_w3(chain: Chain) -> AsyncIterator[AsyncWeb3]:
    if chain.session is not None:
        yield AsyncWeb3(AsyncFusevmProvider(chain.session))
    elif HOW == "http":
        found = AsyncWeb3(AsyncHTTPProvider(NODE))
        yield found
        await found.provider.disconnect()
    else:
        async with AsyncWeb3(WebSocketProvider(NODE.replace("http", "ws"), request_timeout=10)) as connected:
            yield connected


@pytest.fixture(scope="module", params=[lambda text: to_bytes(hexstr=text), str], ids=["bytes", "text"])
def address_conversion_func(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture
def request_mocker() -> Any:
    return RequestMocker


def of_chain(name: str, found: Callable[[Chain], Any]) -> None:
    """Fixtures of that name, for web3.py's plain tests and for its asynchronous ones."""
    for each in (name, f"async_{name}"):
        globals()[each] = pytest.fixture(name=each)(lambda chain, found=found: found(chain))


def of_address(name: str, contract: str) -> None:
    def found(chain: Chain, address_conversion_func: Any) -> Any:
        return address_conversion_func(chain.addresses[contract])

    for each in (name, f"async_{name}"):
        globals()[each] = pytest.fixture(name=each)(found)


def of_contract(contract: str) -> None:
    def made(provider: Any, chain: Chain) -> Any:
        return provider.eth.contract(address=chain.addresses[contract], **CONTRACTS[contract])

    name = f"{contract}_contract"
    globals()[name] = pytest.fixture(name=name)(lambda w3, chain: made(w3, chain))
    globals()[f"async_{name}"] = pytest.fixture(name=f"async_{name}")(lambda async_w3, chain: made(async_w3, chain))


for _name in CONTRACTS:
    of_contract(_name)
of_address("math_contract_address", "math")
of_address("emitter_contract_address", "emitter")
of_chain("math_contract_deploy_txn_hash", lambda chain: chain.deployments["math"])
of_chain("keyfile_account_pkey", lambda chain: KEY)
of_chain("keyfile_account_address", lambda chain: chain.account)
of_chain("keyfile_account_address_dual_type", lambda chain: chain.account)
of_chain("mined_txn_hash", lambda chain: chain.sent)
of_chain("txn_hash_with_log", lambda chain: chain.logged)
of_chain("empty_block", lambda chain: chain.w3.eth.get_block(chain.empty))
of_chain("block_with_txn", lambda chain: chain.w3.eth.get_block(chain.with_transaction))
of_chain("block_with_txn_with_log", lambda chain: chain.w3.eth.get_block(chain.with_log))
of_chain("skip_if_testrpc", lambda chain: lambda w3: None)


class Client:
    def _check_web3_client_version(self, client_version: str) -> None:
        assert "fusevm/" in client_version


if HOW != "ws":

    class TestWeb3(Client, Web3ModuleTest): ...

    class TestEth(EthModuleTest): ...

    class TestNet(NetModuleTest): ...

    class TestDebug(GoEthereumDebugModuleTest): ...

    class TestTxPool(GoEthereumTxPoolModuleTest): ...


class TestAsyncWeb3(Client, AsyncWeb3ModuleTest): ...


class TestAsyncEth(AsyncEthModuleTest): ...


class TestAsyncNet(AsyncNetModuleTest): ...


class TestAsyncDebug(GoEthereumAsyncDebugModuleTest): ...


class TestAsyncTxPool(GoEthereumAsyncTxPoolModuleTest): ...


if HOW == "ws":

    class TestSubscriptions(PersistentConnectionProviderTest): ...
