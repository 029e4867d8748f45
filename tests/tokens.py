"""The token of examples/token.yul as an artifact, in the forms of several build tools."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from fusevm.codegen.yul import compile_object
from fusevm.yul.syntax.parser import parse_object

SOURCE = Path(__file__).resolve().parent.parent / "examples" / "token.yul"

SIGNATURES = [
    "constructor(uint256 supply)",
    "function name() view returns (string)",
    "function totalSupply() view returns (uint256)",
    "function balanceOf(address owner) view returns (uint256)",
    "function transfer(address to, uint256 value) returns (bool)",
    "function burn(uint256 value)",
    "function burn(address owner, uint256 value)",
    "event Transfer(address indexed from, address indexed to, uint256 value)",
    "error ERC20InsufficientBalance(address sender, uint256 balance, uint256 needed)",
    "error ERC20InvalidReceiver(address receiver)",
]


def _listed(*parameters: str) -> list[dict[str, Any]]:
    split = (each.split() for each in parameters)
    return [
        {"type": words[0], "name": words[-1] if len(words) > 1 else "", "indexed": "indexed" in words}
        for words in split
    ]


# fmt: off
ABI: list[dict[str, Any]] = [
    {"type": "constructor", "inputs": _listed("uint256 supply"), "stateMutability": "nonpayable"},
    {"type": "function", "name": "name", "inputs": [], "outputs": _listed("string"), "stateMutability": "view"},
    {"type": "function", "name": "totalSupply", "inputs": [], "outputs": _listed("uint256")},
    {"type": "function", "name": "balanceOf", "inputs": _listed("address owner"), "outputs": _listed("uint256")},
    {"type": "function", "name": "transfer", "inputs": _listed("address to", "uint256 value"),
     "outputs": _listed("bool")},
    {"type": "function", "name": "burn", "inputs": _listed("uint256 value"), "outputs": []},
    {"type": "function", "name": "burn", "inputs": _listed("address owner", "uint256 value"), "outputs": []},
    {"type": "event", "name": "Transfer",
     "inputs": _listed("address indexed from", "address indexed to", "uint256 value")},
    {"type": "error", "name": "ERC20InsufficientBalance",
     "inputs": _listed("address sender", "uint256 balance", "uint256 needed")},
    {"type": "error", "name": "ERC20InvalidReceiver", "inputs": _listed("address receiver")},
    {"type": "receive", "stateMutability": "payable"},
]
# fmt: on


@cache
def codes() -> tuple[str, str]:
    """Creation and runtime code in hex."""
    compiled = compile_object(parse_object(SOURCE.read_text()))
    assert compiled.runtime is not None
    return compiled.code.hex(), compiled.runtime.code.hex()


def artifacts() -> dict[str, Any]:
    """The same contract in the form of each tool."""
    creation, runtime = codes()
    standard = {"abi": ABI, "evm": {"bytecode": {"object": creation}, "deployedBytecode": {"object": runtime}}}
    interface = {"abi": ABI[1:2], "evm": {"bytecode": {"object": ""}}}
    combined = {"abi": ABI, "bytecode": "0x" + creation, "bytecode_runtime": "0x" + runtime}
    return {
        "foundry": {
            "abi": ABI,
            "bytecode": {"object": "0x" + creation, "sourceMap": "", "linkReferences": {}},
            "deployedBytecode": {"object": "0x" + runtime},
        },
        "hardhat": {
            "_format": "hh-sol-artifact-1",
            "contractName": "Token",
            "abi": ABI,
            "bytecode": "0x" + creation,
            "deployedBytecode": "0x" + runtime,
            "linkReferences": {},
        },
        "solc standard JSON": {"contracts": {"a.sol": {"Token": standard, "IToken": interface}}, "sources": {}},
        "solc combined JSON": {"contracts": {"a.sol:Token": {"abi": ABI, "bin": creation, "bin-runtime": runtime}}},
        "vyper combined JSON": {"token.vy": combined, "version": "0.4.3"},
        "vyper standard JSON": {"contracts": {"token.vy": {"token": standard}}, "compiler": "vyper-0.4.3"},
        "ethpm": {
            "abi": ABI,
            "contractName": "Token",
            "deploymentBytecode": {"bytecode": "0x" + creation},
            "runtimeBytecode": {"bytecode": "0x" + runtime},
        },
    }
