"""Contracts as people write them, on OpenZeppelin's and solady's libraries, compiled by solc; and one in Vyper.

`FUSEVM_CONTRACTS` names a folder that has the npm packages `@openzeppelin/contracts` and `solady`, `FUSEVM_SOLC` one
with solc, `FUSEVM_VYPER` a virtual environment with vyper. Without them they are installed for the session, and where
that cannot be done the tests are skipped with a reason.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from anvil import npm_folder
from fusevm.evm.keccak import keccak256

LIBRARIES = ("@openzeppelin/contracts@5", "solady@0.1")
INSTALL_SECONDS = 180

_SOLIDITY = """// SPDX-License-Identifier: MIT
pragma solidity ^0.8.26;

import {ERC20} from "@openzeppelin/contracts/token/ERC20/ERC20.sol";
import {ERC20Permit} from "@openzeppelin/contracts/token/ERC20/extensions/ERC20Permit.sol";
import {ERC20Votes} from "@openzeppelin/contracts/token/ERC20/extensions/ERC20Votes.sol";
import {Nonces} from "@openzeppelin/contracts/utils/Nonces.sol";
import {ERC721} from "@openzeppelin/contracts/token/ERC721/ERC721.sol";
import {IERC721Receiver} from "@openzeppelin/contracts/token/ERC721/IERC721Receiver.sol";
import {Ownable} from "@openzeppelin/contracts/access/Ownable.sol";
import {Clones} from "@openzeppelin/contracts/proxy/Clones.sol";
import {Address} from "@openzeppelin/contracts/utils/Address.sol";
import {IVotes} from "@openzeppelin/contracts/governance/utils/IVotes.sol";
import {Governor} from "@openzeppelin/contracts/governance/Governor.sol";
import {GovernorCountingSimple} from "@openzeppelin/contracts/governance/extensions/GovernorCountingSimple.sol";
import {GovernorVotes} from "@openzeppelin/contracts/governance/extensions/GovernorVotes.sol";
import {
    GovernorVotesQuorumFraction
} from "@openzeppelin/contracts/governance/extensions/GovernorVotesQuorumFraction.sol";
import {ERC20 as SoladyERC20} from "solady/src/tokens/ERC20.sol";
import {LibSort} from "solady/src/utils/LibSort.sol";

contract Token is ERC20, ERC20Permit, ERC20Votes, Ownable {
    constructor(uint256 supply) ERC20("Token", "TKN") ERC20Permit("Token") Ownable(msg.sender) {
        _mint(msg.sender, supply);
    }

    function mint(address to, uint256 amount) external onlyOwner {
        _mint(to, amount);
    }

    function sumTo(uint256 n) external pure returns (uint256 sum) {
        for (uint256 i = 1; i <= n; ++i) {
            if (i % 2 == 0) {
                sum += i;
            } else {
                sum += 2 * i;
            }
        }
    }

    function _update(address from, address to, uint256 amount) internal override(ERC20, ERC20Votes) {
        super._update(from, to, amount);
    }

    function nonces(address owner) public view override(ERC20Permit, Nonces) returns (uint256) {
        return super.nonces(owner);
    }
}

contract Art is ERC721 {
    uint256 public next;

    constructor() ERC721("Art", "ART") {}

    function mintTo(address to) external returns (uint256 id) {
        id = next++;
        _safeMint(to, id);
    }
}

contract Gallery is IERC721Receiver {
    uint256 public received;

    function onERC721Received(address, address, uint256 id, bytes calldata) external returns (bytes4) {
        require(id != 3, "not the third");
        ++received;
        return IERC721Receiver.onERC721Received.selector;
    }
}

contract Parliament is Governor, GovernorCountingSimple, GovernorVotes, GovernorVotesQuorumFraction {
    constructor(IVotes token) Governor("Parliament") GovernorVotes(token) GovernorVotesQuorumFraction(4) {}

    function votingDelay() public pure override returns (uint256) {
        return 1;
    }

    function votingPeriod() public pure override returns (uint256) {
        return 5;
    }
}

contract Sol is SoladyERC20 {
    function name() public pure override returns (string memory) {
        return "Sol";
    }

    function symbol() public pure override returns (string memory) {
        return "SOL";
    }

    function mint(address to, uint256 amount) external {
        _mint(to, amount);
    }

    function sorted(uint256[] memory words) external pure returns (uint256[] memory) {
        LibSort.sort(words);
        return words;
    }
}

contract Child {
    uint256 public value;
    error TooLarge(uint256 given, uint256 most);

    constructor() payable {}

    function set(uint256 to) external payable {
        if (to > 100) revert TooLarge(to, 100);
        require(to != 13, "unlucky");
        assert(to != 14);
        value = to;
    }

    function leave(address payable to) external {
        selfdestruct(to);
    }
}

contract Workshop {
    address public last;
    event Made(address child);

    receive() external payable {}

    function make(bytes32 salt) external payable returns (address made) {
        made = address(new Child{salt: salt, value: msg.value}());
        last = made;
        emit Made(made);
    }

    function makePlain() external returns (address made) {
        made = address(new Child());
        last = made;
        emit Made(made);
    }

    function makeAndLeave() external {
        Child child = new Child{value: address(this).balance}();
        child.leave(payable(msg.sender));
    }

    function clone(address child) external returns (address made) {
        made = Clones.clone(child);
        last = made;
        Child(made).set(5);
    }

    function set(address child, uint256 to) external {
        Child(child).set(to);
    }

    function tryToSet(address child, uint256 to) external returns (bool done) {
        try Child(child).set(to) {
            done = true;
        } catch {
            emit Made(child);
        }
    }

    function send(address payable to, uint256 amount) external {
        Address.sendValue(to, amount);
    }

    function pay(address payable to, uint256 amount) external returns (bool done) {
        (done, ) = to.call{value: amount}("");
    }

    function recover(bytes32 digest, uint8 v, bytes32 r, bytes32 s) external view returns (address, bytes32, uint256) {
        return (ecrecover(digest, v, r, s), sha256(abi.encode(digest)), msg.sender.balance);
    }

    function burn() external pure {
        assembly {
            invalid()
        }
    }
}
"""

VYPER = """# pragma version ^0.4.0

balances: HashMap[address, uint256]
total: public(uint256)

event Moved:
    amount: uint256

@deploy
def __init__(amount: uint256):
    self.balances[msg.sender] = amount
    self.total = amount

@internal
def _move(source: address, to: address, amount: uint256) -> bool:
    assert to != empty(address), "nobody"
    if amount == 0:
        return False
    self.balances[source] -= amount
    self.balances[to] += amount
    log Moved(amount=amount)
    return True

@external
def move(to: address, amount: uint256) -> bool:
    return self._move(msg.sender, to, amount)

@external
@view
def sum(n: uint256) -> uint256:
    s: uint256 = 0
    for i: uint256 in range(n, bound=100):
        if i % 2 == 0:
            s += i
        else:
            s += 2 * i
    return s
"""

_SCRIPT = """const fs = require('fs'), path = require('path'), solc = require('solc');
const folder = process.argv[1];
const read = name => ({contents: fs.readFileSync(path.join(folder, 'node_modules', name), 'utf8')});
const output = solc.compile(fs.readFileSync(0, 'utf8'), {import: name => {
  try { return read(name); } catch (error) { return {error: String(error)}; } }});
console.log(output);"""


class Compiled:
    """The output of a compiler in standard JSON, with the sources, as a build info of Hardhat has them."""

    def __init__(self, form: dict[str, Any]) -> None:
        self.form = form

    def contract(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = next(each[name] for each in self.form["output"]["contracts"].values() if name in each)
        return found

    def creation(self, name: str) -> bytes:
        return bytes.fromhex(self.contract(name)["evm"]["bytecode"]["object"].removeprefix("0x"))

    def write(self, folder: Path) -> Path:
        path = folder / "build.json"
        path.write_text(json.dumps(self.form))
        return path


def call(signature: str, *words: int | bytes | str) -> bytes:
    """Call data of a function with arguments of one word each."""
    return keccak256(signature.encode())[:4] + b"".join(map(word, words))


def word(value: int | bytes | str) -> bytes:
    if isinstance(value, int):
        return value.to_bytes(32, "big")
    data = bytes.fromhex(value.removeprefix("0x")) if isinstance(value, str) else value
    return data.rjust(32, b"\0")


@pytest.fixture(scope="session", name="solidity")
def solidity_contracts(tmp_path_factory: pytest.TempPathFactory) -> Compiled:
    """The contracts above, with the optimiser on."""
    solc = npm_folder(tmp_path_factory, "FUSEVM_SOLC", ["solc@0.8"])
    return _solidity(solc, npm_folder(tmp_path_factory, "FUSEVM_CONTRACTS", LIBRARIES))


@pytest.fixture(scope="session", name="vyper")
def vyper_contracts(tmp_path_factory: pytest.TempPathFactory) -> Compiled:
    """The contract in Vyper."""
    return _vyper(_vyper_folder(tmp_path_factory))


@cache
def _solidity(solc: Path, libraries: Path) -> Compiled:
    wanted = ["abi", "evm.bytecode", "evm.deployedBytecode", "evm.methodIdentifiers"]
    settings = {
        "optimizer": {"enabled": True, "runs": 200},
        "evmVersion": "cancun",
        "outputSelection": {"*": {"*": wanted}},
    }
    request = {"language": "Solidity", "sources": {"Contracts.sol": {"content": _SOLIDITY}}, "settings": settings}
    text = _output_of(["node", "-e", _SCRIPT, str(libraries)], request, solc)
    output = json.loads(text[text.index("{") :])
    errors = [each["formattedMessage"] for each in output.get("errors", ()) if each["severity"] == "error"]
    assert not errors, errors[0]
    sources = {
        name: {"content": _SOLIDITY if name == "Contracts.sol" else (libraries / "node_modules" / name).read_text()}
        for name in output["sources"]
    }
    return Compiled({"input": {"sources": sources}, "output": output})


@cache
def _vyper(folder: Path) -> Compiled:
    sources = {"Purse.vy": {"content": VYPER}}
    settings = {"outputSelection": {"*": ["*"]}, "evmVersion": "cancun"}
    request = {"language": "Vyper", "sources": sources, "settings": settings}
    output = json.loads(_output_of([str(folder / "bin" / "vyper-json")], request, folder))
    return Compiled({"input": {"sources": sources}, "output": output})


def _output_of(command: list[str], request: dict[str, Any], folder: Path) -> str:
    return subprocess.run(
        command,
        cwd=folder,
        input=json.dumps(request),
        capture_output=True,
        text=True,
        check=True,
        timeout=INSTALL_SECONDS,
    ).stdout


def _vyper_folder(factory: pytest.TempPathFactory) -> Path:
    given = os.environ.get("FUSEVM_VYPER")
    if given is not None:
        assert (Path(given) / "bin" / "vyper-json").is_file(), f"FUSEVM_VYPER is {given}, which has no vyper"
        return Path(given)
    folder = factory.mktemp("vyper")
    try:
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True, timeout=INSTALL_SECONDS)
        install = [str(folder / "bin" / "pip"), "install", "-q", "vyper>=0.4,<0.5"]
        subprocess.run(install, capture_output=True, check=True, timeout=INSTALL_SECONDS)
    except (subprocess.SubprocessError, OSError) as error:
        pytest.skip(f"pip could not install vyper: {error}")
    return folder
