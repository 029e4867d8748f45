"""Profile, coverage and stack traces of real contracts: a token of OpenZeppelin's, and one in Vyper."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from fusevm import EVM, Hooks, Result, Step
from fusevm.tracing.profile.coverage import file_coverage, is_line
from fusevm.tracing.profile.lines import gas_table
from fusevm.tracing.profile.samples import tree_of
from fusevm.tracing.profile.stacks import sampled
from fusevm.tracing.sources.artifacts import read_sources
from fusevm.tracing.sources.contracts import CompiledCode, Sources
from tracedcontracts import Compiled, call, solidity_contracts, vyper_contracts, word  # noqa: F401

pytestmark = pytest.mark.long  # real tools, installed for it

ME, OTHER = b"\xaa" * 20, b"\x0b" * 20
TIERS = ("reference", "native", "auto")
TRANSFERS = [
    call("transfer(address,uint256)", OTHER, 5),
    call("transfer(address,uint256)", OTHER, 10**30),  # more than there is
    call("transfer(address,uint256)", 0, 5),
    call("approve(address,uint256)", OTHER, 7),
    call("delegate(address)", ME),
    call("transfer(address,uint256)", OTHER, 6),
    call("mint(address,uint256)", OTHER, 6),
    call("sumTo(uint256)", 9),
]
MOVES = [
    call("move(address,uint256)", OTHER, 5),
    call("move(address,uint256)", OTHER, 0),
    call("move(address,uint256)", OTHER, 10**30),
    call("move(address,uint256)", 0, 5),
    call("sum(uint256)", 9),
]


class Deployed:
    """A contract with its sources, and calls of it."""

    def __init__(self, compiled: Compiled, name: str, argument: int, calls: list[bytes], folder: Path) -> None:
        self.sources: Sources = read_sources([compiled.write(folder)])
        self.contract = next(each for each in self.sources if each.name == name and each.runtime.code)
        self.evm = EVM()
        address = self.evm.deploy(compiled.creation(name) + word(argument), caller=ME).check().address
        assert address is not None
        self.address = address
        self.calls = calls

    def run(self) -> list[Result]:
        with self.evm.snapshot():
            return [self.evm.call(self.address, data, caller=ME) for data in self.calls]


@pytest.fixture(scope="module", params=["Token", "Purse"])
def deployed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Deployed:
    folder = tmp_path_factory.mktemp(request.param)
    if request.param == "Token":
        return Deployed(request.getfixturevalue("solidity"), "Token", 10**24, TRANSFERS, folder)
    return Deployed(request.getfixturevalue("vyper"), "Purse", 10**24, MOVES, folder)


@pytest.fixture
def token(solidity: Compiled, tmp_path: Path) -> Deployed:
    return Deployed(solidity, "Token", 10**24, TRANSFERS, tmp_path)


@pytest.fixture
def purse(vyper: Compiled, tmp_path: Path) -> Deployed:
    return Deployed(vyper, "Purse", 1_000, MOVES, tmp_path)


# -- gas --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tier", TIERS)
def test_all_gas_is_in_the_table_and_in_the_flame_graph(deployed: Deployed, tier: str) -> None:
    deployed.evm.tier = tier
    with deployed.evm.record(gas=True) as recording:
        used = sum(result.gas_used for result in deployed.run())
    assert gas_table(recording, deployed.sources).total == used
    with sampled(deployed.evm, deployed.sources) as samples:
        deployed.run()
    assert samples.total == used


def test_the_table_is_the_same_on_every_tier(deployed: Deployed) -> None:
    tables = []
    for deployed.evm.tier in TIERS:
        with deployed.evm.record(gas=True) as recording:
            deployed.run()
        tables.append(gas_table(recording, deployed.sources))
    assert tables[0] == tables[1] == tables[2]


def test_a_tokens_gas_goes_to_its_balances(token: Deployed) -> None:
    token.calls = TRANSFERS[:1]
    with token.evm.record(gas=True) as recording:
        token.run()
    table = gas_table(recording, token.sources)
    assert max(table.functions, key=lambda name: table.functions[name]) == "ERC20._update"
    path, line = max(table.lines, key=lambda place: table.lines[place])
    assert path == "@openzeppelin/contracts/token/ERC20/ERC20.sol"
    assert table.texts[path, line] == "_balances[to] += value;"
    assert table.lines[path, line] > 22_100  # a new slot


def test_the_flame_graph_of_a_transfer_follows_its_functions(token: Deployed) -> None:
    token.calls = TRANSFERS[:1]
    with sampled(token.evm, token.sources) as samples:
        token.run()
    tree = tree_of(samples, "all")
    names = []
    while tree.below:
        tree = max(tree.below, key=lambda below: below.total)
        names.append(tree.call.name)
    assert names == [
        "Token: transfer(address,uint256)",
        "ERC20.transfer",
        "ERC20._transfer",
        "Token._update",
        "ERC20Votes._update",
        "ERC20._update",
    ]


# -- coverage ---------------------------------------------------------------------------------------------------------


class Counted:
    """A count of its own: by pc of one account's code, from every step of the reference tier."""

    def __init__(self, address: bytes) -> None:
        self.address = address
        self.hits: Counter[int] = Counter()
        self.taken: Counter[int] = Counter()
        self.passed: Counter[int] = Counter()

    def hooks(self) -> Hooks:
        return Hooks(on_opcode=self._step)

    def _step(self, step: Step) -> None:
        if step.address != self.address:
            return
        self.hits[step.pc] += 1
        if step.name == "JUMPI" and step.error is None:
            (self.taken if step.stack[-2] else self.passed)[step.pc] += 1

    def lines(self, compiled: CompiledCode) -> dict[tuple[str, int], int]:
        found: dict[tuple[str, int], int] = {}
        for pc, place in compiled.map.places.items():
            if is_line(place, place.function):
                key = (place.file.path, place.line)
                found[key] = max(found.get(key, 0), self.hits[pc])
        return found


@pytest.mark.parametrize("tier", TIERS)
def test_coverage_is_a_count_by_hooks(deployed: Deployed, tier: str) -> None:
    counted = Counted(deployed.address)
    deployed.evm.hooks = counted.hooks()
    deployed.run()
    deployed.evm.hooks, deployed.evm.tier = None, tier
    with deployed.evm.record(coverage=True) as recording:
        deployed.run()
    (codes,) = recording.coverage.values()
    assert codes.hits == counted.hits
    assert (codes.taken, codes.passed) == (counted.taken, counted.passed)
    files = file_coverage([codes], Sources([deployed.contract]))
    found = {(file.file.path, line): hits for file in files for line, hits in file.lines.items() if hits}
    begins = {(file.file.path, file.file.line_at(each.start)) for file in files for each in file.functions}
    expected = {key: hits for key, hits in counted.lines(deployed.contract.runtime).items() if hits}
    assert {key: hits for key, hits in found.items() if key not in begins} == {
        key: hits for key, hits in expected.items() if key not in begins
    }


def lines_of(deployed: Deployed, path: str) -> tuple[dict[str, int], dict[str, tuple[int, int]]]:
    """Hits of lines and branches by the text of the line."""
    with deployed.evm.record(coverage=True) as recording:
        deployed.run()
    files = file_coverage(recording.coverage.values(), Sources([deployed.contract]))
    found = next(file for file in files if file.file.path == path)
    branches = {found.file.line(each.line): (each.taken, each.passed) for each in found.branches.values()}
    return {found.file.line(line): hits for line, hits in found.lines.items()}, branches


def test_a_loop_in_solidity_is_counted(token: Deployed) -> None:
    lines, branches = lines_of(token, "Contracts.sol")
    assert lines["if (i % 2 == 0) {"] == 9
    assert lines["sum += i;"] == 4
    assert lines["sum += 2 * i;"] == 5
    assert lines["return super.nonces(owner);"] == 0
    assert branches["if (i % 2 == 0) {"] == (5, 4)


def test_a_loop_in_vyper_is_counted(purse: Deployed) -> None:
    lines, branches = lines_of(purse, "Purse.vy")
    assert (lines["s += i"], lines["s += 2 * i"]) == (5, 4)
    assert branches["if i % 2 == 0:"] == (4, 5)
    assert branches["if amount == 0:"] == (2, 1)
    assert branches['assert to != empty(address), "nobody"'] == (3, 1)
    assert lines["log Moved(amount=amount)"] == 1


# -- stack traces -----------------------------------------------------------------------------------------------------


def traced(deployed: Deployed, data: bytes, caller: bytes = ME) -> list[str]:
    found = deployed.evm.stack_trace(deployed.address, data, sources=deployed.sources, caller=caller)
    assert found is not None
    return [found.reason, *(f"{line.function}: {line.text}" for line in found.lines)]


def test_a_custom_error_is_traced_to_the_statement_that_names_it(token: Deployed) -> None:
    """The optimiser lets all reverts share their end, which is made from a statement of another function."""
    reason, *lines = traced(token, call("transfer(address,uint256)", OTHER, 10**30))
    assert reason.startswith("reverted: ERC20InsufficientBalance(sender=0x")
    assert lines == [
        "ERC20._update: revert ERC20InsufficientBalance(from, fromBalance, value);",
        "ERC20Votes._update: super._update(from, to, value);",
        "Token._update: super._update(from, to, amount);",
        "ERC20._transfer: _update(from, to, value);",
        "ERC20.transfer: _transfer(owner, to, value);",
    ]


def test_a_modifier_is_part_of_the_trace(token: Deployed) -> None:
    reason, *lines = traced(token, call("mint(address,uint256)", OTHER, 1), caller=OTHER)
    assert reason.startswith("reverted: OwnableUnauthorizedAccount(account=0x")
    assert [line.partition(":")[0] for line in lines] == ["Ownable._checkOwner", "Ownable.onlyOwner", "Token.mint"]


def test_a_failure_in_another_contract_is_traced_through_both(solidity: Compiled, tmp_path: Path) -> None:
    art = Deployed(solidity, "Art", 0, [], tmp_path)
    gallery = art.evm.deploy(solidity.creation("Gallery")).check().address
    assert gallery is not None
    for _ in range(3):
        art.evm.call(art.address, call("mintTo(address)", gallery)).check()
    reason, *lines = traced(art, call("mintTo(address)", gallery))
    assert reason == 'reverted: Error("not the third")'
    assert lines[0] == 'Gallery.onERC721Received: require(id != 3, "not the third");'
    assert lines[-1] == "Art.mintTo: _safeMint(to, id);"


def test_vyper_says_which_check_failed(purse: Deployed) -> None:
    found = purse.evm.stack_trace(
        purse.address, call("move(address,uint256)", OTHER, 5_000), sources=purse.sources, caller=ME
    )  # fmt: skip
    assert str(found) == (
        "reverted\n"
        "    at Purse._move (Purse.vy:19): safesub\n"
        "        self.balances[source] -= amount\n"
        "    at Purse.move (Purse.vy:26)"
    )  # fmt: skip
    assert traced(purse, call("move(address,uint256)", 0, 5))[0] == 'reverted: Error("nobody")'
