"""A pytest plugin: `evm` and `chain` fixtures that every test finds as the set-up left them, and a gas report.

`evm_session` and `evm_module` are the same machine, for set-up that many tests share: what a module's fixtures do to it
is undone at the module's end, what a test does at the test's. `chain_session`, `chain_module` and `chain` likewise.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from fusevm.adapters.gas_report import GasReport
    from fusevm.adapters.metered import MeteredChain, MeteredEVM

_WORKER_KEY = "fusevm_gas"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("fusevm")
    group.addoption(
        "--fusevm-gas-report",
        nargs="?",
        const="-",
        metavar="FILE",
        help="show the gas that calls on the fixtures evm and chain used; or write it to FILE, as JSON",
    )
    parser.addini("fusevm_fork", "the fork of the fixtures evm and chain (default: the latest)", default="osaka")
    parser.addini("fusevm_tier", "the tier of the fixtures evm and chain", default="auto")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--fusevm-gas-report") is not None:
        config.pluginmanager.register(_Reporter(config), "fusevm-gas-reporter")


class _Reporter:
    """Collects what the processes of a run have counted, and shows it at the end."""

    def __init__(self, config: pytest.Config) -> None:
        from fusevm.adapters.gas_report import GasReport

        self.config = config
        self.report = GasReport()

    def pytest_sessionfinish(self) -> None:
        output = getattr(self.config, "workeroutput", None)  # of a worker of pytest-xdist
        if output is not None:
            output[_WORKER_KEY] = self.report.rows()

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        self.report.merge(getattr(node, "workeroutput", {}).get(_WORKER_KEY, ()))

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        from fusevm.adapters.gas_report import table

        rows, where = self.report.rows(), self.config.getoption("--fusevm-gas-report")
        if where != "-":
            Path(where).write_text(json.dumps(rows, indent=2) + "\n", "utf-8")
            return
        terminalreporter.section("gas")
        for line in table(rows) if rows else ["no calls on the fixtures evm and chain"]:
            terminalreporter.line(line)


@pytest.fixture(scope="session")
def gas_report(pytestconfig: pytest.Config) -> GasReport:
    """`gas_report.name(address, "Token", abi)` gives a contract and its functions names in the report."""
    from fusevm.adapters.gas_report import GasReport

    reporter: Any = pytestconfig.pluginmanager.get_plugin("fusevm-gas-reporter")
    return GasReport() if reporter is None else reporter.report


@pytest.fixture(scope="session")
def evm_session(pytestconfig: pytest.Config, gas_report: GasReport) -> MeteredEVM:
    """The machine, for set-up that all tests share."""
    from fusevm.adapters.metered import MeteredEVM

    machine = MeteredEVM(pytestconfig.getini("fusevm_fork"), pytestconfig.getini("fusevm_tier"))
    machine.report = gas_report
    return machine


@pytest.fixture(scope="module")
def evm_module(evm_session: MeteredEVM) -> Iterator[MeteredEVM]:
    """The machine, for set-up that the tests of a module share."""
    yield from _checkpointed(evm_session)


@pytest.fixture
def evm(evm_module: MeteredEVM) -> Iterator[MeteredEVM]:
    """The machine; what a test does to it is undone."""
    yield from _checkpointed(evm_module)


def _checkpointed(machine: MeteredEVM) -> Iterator[MeteredEVM]:
    before = machine.checkpoint()
    yield machine
    machine.revert(before)


@pytest.fixture(scope="session")
def chain_session(pytestconfig: pytest.Config, gas_report: GasReport) -> MeteredChain:
    """A development chain with ten funded accounts, for set-up that all tests share."""
    from fusevm.adapters.metered import MeteredChain
    from fusevm.devchain import dev_genesis, dev_keys
    from fusevm.evm.secp256k1 import address_of_key

    keys = dev_keys()
    genesis = dev_genesis(pytestconfig.getini("fusevm_fork"), [address_of_key(key) for key in keys])
    made = MeteredChain(genesis, keys=keys, tier=pytestconfig.getini("fusevm_tier"))
    made.report = gas_report
    return made


@pytest.fixture(scope="module")
def chain_module(chain_session: MeteredChain) -> Iterator[MeteredChain]:
    """The chain, for set-up that the tests of a module share."""
    yield from _kept(chain_session)


@pytest.fixture
def chain(chain_module: MeteredChain) -> Iterator[MeteredChain]:
    """The chain; blocks that a test mines are not of it afterwards."""
    yield from _kept(chain_module)


def _kept(made: MeteredChain) -> Iterator[MeteredChain]:
    before = made.snapshot()
    yield made
    made.revert(before)
