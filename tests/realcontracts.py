"""Contracts as people deploy them, on OpenZeppelin's and solady's libraries: compiled by npm's solc for tests.

`FUSEVM_CONTRACTS` names a folder with the npm packages; without it they are installed for the session.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from anvil import npm_folder
from fusevm.evm.keccak import keccak256

PACKAGES = ("solc@0.8", "@openzeppelin/contracts", "solady", "@uniswap/v3-core@1")
SOURCES = {
    "Coin.sol": """// SPDX-License-Identifier: MIT
pragma solidity ^0.8.26;
import {ERC20} from "@openzeppelin/contracts/token/ERC20/ERC20.sol";
import {ERC20Burnable} from "@openzeppelin/contracts/token/ERC20/extensions/ERC20Burnable.sol";
import {ERC20Permit} from "@openzeppelin/contracts/token/ERC20/extensions/ERC20Permit.sol";
import {Ownable} from "@openzeppelin/contracts/access/Ownable.sol";
contract Coin is ERC20, ERC20Burnable, ERC20Permit, Ownable {
    constructor() ERC20("Coin", "CN") ERC20Permit("Coin") Ownable(msg.sender) { _mint(msg.sender, 1e24); }
    function mint(address to, uint256 amount) external onlyOwner { _mint(to, amount); }
}""",
    "Safe.sol": """// SPDX-License-Identifier: MIT
pragma solidity ^0.8.26;
import {ERC4626, ERC20, IERC20} from "@openzeppelin/contracts/token/ERC20/extensions/ERC4626.sol";
contract Safe is ERC4626 {
    constructor(IERC20 coin) ERC20("Safe", "SF") ERC4626(coin) {}
}""",
    "Badge.sol": """// SPDX-License-Identifier: MIT
pragma solidity ^0.8.26;
import {ERC721Enumerable, ERC721} from "@openzeppelin/contracts/token/ERC721/extensions/ERC721Enumerable.sol";
import {Strings} from "@openzeppelin/contracts/utils/Strings.sol";
contract Badge is ERC721Enumerable {
    constructor() ERC721("Badge", "BG") {}
    function mint(address to, uint256 many) external { for (uint256 i; i < many; ++i) _mint(to, totalSupply() + 1); }
    function tokenURI(uint256 id) public view override returns (string memory) {
        return string.concat("badge/", Strings.toString(id), "/", Strings.toHexString(ownerOf(id)));
    }
}""",
    "Tools.sol": """// SPDX-License-Identifier: MIT
pragma solidity ^0.8.26;
import {FixedPointMathLib} from "solady/src/utils/FixedPointMathLib.sol";
import {LibSort} from "solady/src/utils/LibSort.sol";
import {LibString} from "solady/src/utils/LibString.sol";
import {SSTORE2} from "solady/src/utils/SSTORE2.sol";
import {MerkleProofLib} from "solady/src/utils/MerkleProofLib.sol";
import {ECDSA} from "solady/src/utils/ECDSA.sol";
import {Clones} from "@openzeppelin/contracts/proxy/Clones.sol";
import {EnumerableSet} from "@openzeppelin/contracts/utils/structs/EnumerableSet.sol";
import {Multicall} from "@openzeppelin/contracts/utils/Multicall.sol";
import {ReentrancyGuardTransient} from "@openzeppelin/contracts/utils/ReentrancyGuardTransient.sol";
contract Tools is Multicall, ReentrancyGuardTransient {
    using EnumerableSet for EnumerableSet.UintSet;
    EnumerableSet.UintSet private members;
    address public stored;
    uint256 public count;
    event Counted(address indexed who, uint256 count, bytes note);
    error Refused(uint256 code, string why);
    function root(uint256 x) external pure returns (uint256) { return FixedPointMathLib.sqrt(x); }
    function power(int256 x) external pure returns (int256) { return FixedPointMathLib.expWad(x); }
    function sorted(uint256 seed, uint256 many) external pure returns (uint256[] memory a) {
        a = new uint256[](many);
        for (uint256 i; i < many; ++i) a[i] = uint256(keccak256(abi.encode(seed, i))) >> 200;
        LibSort.sort(a);
    }
    function text(uint256 x) external pure returns (string memory) { return LibString.toString(x); }
    function store(bytes calldata data) external { stored = SSTORE2.write(data); }
    function load() external view returns (bytes memory) { return SSTORE2.read(stored); }
    function proven(bytes32[] calldata proof, bytes32 at, bytes32 leaf) external pure returns (bool) {
        return MerkleProofLib.verifyCalldata(proof, at, leaf);
    }
    function signer(bytes32 digest, bytes calldata signature) external view returns (address) {
        return ECDSA.tryRecover(digest, signature);
    }
    function add(uint256 x) external returns (bool) { return members.add(x); }
    function remove(uint256 x) external returns (bool) { return members.remove(x); }
    function values() external view returns (uint256[] memory) { return members.values(); }
    function guarded(bytes calldata note) external nonReentrant returns (uint256) {
        emit Counted(msg.sender, ++count, note);
        return count;
    }
    function reenter() external nonReentrant { this.guarded(""); }
    function refuse(uint256 code) external pure { revert Refused(code, "no"); }
    function clone(bytes32 salt) external returns (address) { return Clones.cloneDeterministic(address(this), salt); }
    function pay(address payable to) external payable {
        (bool ok,) = to.call{value: msg.value}("");
        require(ok, "pay");
    }
    function around() external view returns (uint256, uint256, address, uint256, uint256, bytes32) {
        bytes32 parent = blockhash(block.number - 1);
        return (block.number, block.chainid, block.coinbase, block.basefee, gasleft() / 1e9, parent);
    }
    receive() external payable {}
}""",
}
_WANTED = ["abi", "evm.bytecode.object", "evm.deployedBytecode.object", "evm.methodIdentifiers"]
_SCRIPT = """const fs = require('fs'), path = require('path'), solc = require('solc');
const find = name => { const at = path.join(process.cwd(), 'node_modules', name);
  return fs.existsSync(at) ? {contents: fs.readFileSync(at, 'utf8')} : {error: 'no ' + name}; };
console.log(solc.compile(fs.readFileSync(0, 'utf8'), {import: find}));"""


class Built(NamedTuple):
    """What solc made of a contract."""

    creation: bytes
    runtime: bytes
    abi: list[dict[str, Any]]
    selectors: dict[str, str]  # by signature


class Compiled(NamedTuple):
    creation: bytes
    selectors: dict[str, str]  # by signature

    def data(self, signature: str, *words: int | bytes) -> bytes:
        """Call data; each word is a number, or 32 bytes (or more: whatever follows) as they are."""
        assert signature in self.selectors, signature
        return keccak256(signature.encode())[:4] + encoded(*words)


def encoded(*words: int | bytes) -> bytes:
    return b"".join(each if isinstance(each, bytes) else (each % (1 << 256)).to_bytes(32, "big") for each in words)


def tail(data: bytes) -> bytes:
    """Bytes as the last argument of a call: their length, and themselves padded."""
    return encoded(len(data)) + data + bytes(-len(data) % 32)


@pytest.fixture(scope="session")
def contracts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Compiled]:
    folder = npm_folder(tmp_path_factory, "FUSEVM_CONTRACTS", PACKAGES)
    return compile_contracts(folder)


def compile_contracts(folder: Path) -> dict[str, Compiled]:
    return {name: Compiled(built.creation, built.selectors) for name, built in compile_sources(folder).items()}


def compile_sources(folder: Path) -> dict[str, Built]:
    answer = compiled(folder, SOURCES, *_WANTED)
    return {
        name.removesuffix(".sol"): _built(found[name.removesuffix(".sol")])
        for name, found in answer["contracts"].items()
        if name in SOURCES
    }


def _built(form: dict[str, Any]) -> Built:
    evm = form["evm"]
    codes = (bytes.fromhex(evm[kind]["object"]) for kind in ("bytecode", "deployedBytecode"))
    return Built(*codes, form["abi"], evm["methodIdentifiers"])


def compiled(folder: Path, sources: dict[str, str], *wanted: str) -> dict[str, Any]:
    """solc's output for sources that import the packages of that folder."""
    request = {
        "language": "Solidity",
        "sources": {name: {"content": content} for name, content in sources.items()},
        "settings": {
            "optimizer": {"enabled": True, "runs": 200},
            "evmVersion": "cancun",
            "outputSelection": {"*": {"*": wanted}},
        },
    }
    command = ["node", "-e", _SCRIPT]
    text = json.dumps(request)
    done = subprocess.run(command, cwd=folder, input=text, capture_output=True, text=True, check=True, timeout=300)
    answer: dict[str, Any] = json.loads(done.stdout)
    wrong = [each["formattedMessage"] for each in answer.get("errors", ()) if each["severity"] == "error"]
    assert not wrong, wrong[0]
    return answer
