"""The lives of `bench/lives.py`: each is a generator that does one step of a user's program at a time."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from random import Random

from fusevm import EVM, Chain
from fusevm.evm.assembly import assemble

Life = Callable[[str], Iterator[object]]
FIXTURES = Path(os.environ.get("FUSEVM_FIXTURES", "../shared/fixtures"))
GAS = 1 << 40


def at(number: int) -> bytes:
    """The address of the contract with this number."""
    return (0xC0DE << 32 | number).to_bytes(20, "big")


def word(number: int) -> bytes:
    return number.to_bytes(32, "big")


def contract(source: str, padding: int = 0) -> bytes:
    """Assembled, with so many bytes after it that never run: real contracts are mostly cold."""
    return assemble(source) + b"\xfe" + b"\x5b\x60\x01\x01\x56" * (padding // 5)


RETURN = " PUSH0 MSTORE PUSH1 32 PUSH0 RETURN"


def loop(body: str, times: str = "PUSH0 CALLDATALOAD") -> str:
    """Mixes a word with `body` as often as `times` says, and returns it. Stack in the body: word, counter."""
    return f"""{times} PUSH4 0x12345 again: JUMPDEST DUP2 ISZERO PUSH2 @end JUMPI {body}
        SWAP1 PUSH1 1 SWAP1 SUB SWAP1 PUSH2 @again JUMP end: JUMPDEST{RETURN}"""


MIX = "PUSH1 31 MUL DUP2 XOR DUP1 PUSH1 3 SHR XOR PUSH4 0x9e3779b9 ADD"
HASH = f"{MIX} DUP1 PUSH0 MSTORE PUSH1 32 PUSH0 KECCAK256 XOR"
STORE = f"{MIX} DUP2 PUSH1 15 AND SLOAD ADD DUP1 DUP3 PUSH1 15 AND SSTORE"


def calling(target: str, opcode: str = "CALL", data: str = "PUSH0 CALLDATASIZE") -> str:
    """Calls with all of the calldata, which is in memory from 0 on; leaves whether it succeeded."""
    value = "PUSH0 " if opcode == "CALL" else ""
    return f"PUSH0 PUSH0 CALLDATASIZE PUSH0 {value}{target} GAS {opcode}"


COPY = "CALLDATASIZE PUSH0 PUSH0 CALLDATACOPY "
BACK = " POP RETURNDATASIZE PUSH0 PUSH0 RETURNDATACOPY RETURNDATASIZE PUSH0 RETURN"


def forwarding(target: str, opcode: str = "DELEGATECALL") -> bytes:
    return assemble(COPY + calling(target, opcode) + BACK)


def proxy(target: bytes) -> bytes:
    """EIP-1167."""
    return bytes.fromhex("363d3d373d3d3d363d73") + target + bytes.fromhex("5af43d82803e903d91602b57fd5bf3")


def push(address: bytes) -> str:
    return f"PUSH20 0x{address.hex()}"


def machine(tier: str, *codes: bytes, fork: str = "osaka") -> EVM:
    evm = EVM(fork=fork, tier=tier)
    for number, code in enumerate(codes):
        evm.set_code(at(number), code)
    return evm


# -- who calls whom


def proxy_and_loop(tier: str) -> Iterator[object]:
    """an EIP-1167 proxy before a loop"""
    evm = machine(tier, proxy(at(1)), contract(loop(MIX), 4_000))
    while True:
        yield evm.call(at(0), word(500), gas=GAS).check()


def diamond(tier: str) -> Iterator[object]:
    """a diamond: the facet of each selector is looked up in storage and called by DELEGATECALL"""
    look_up = COPY + "PUSH0 CALLDATALOAD PUSH1 224 SHR SLOAD"
    head = assemble(f"{look_up} PUSH0 PUSH0 CALLDATASIZE PUSH0 DUP5 GAS DELEGATECALL{BACK}")
    bodies = [MIX, HASH, STORE, f"{MIX} NOT", f"{MIX} DUP1 MUL", f"{HASH} NOT"]
    evm = machine(tier, head, *(contract(loop(body, "PUSH1 4 CALLDATALOAD"), 6_000) for body in bodies))
    for number in range(len(bodies)):
        evm.set_storage(at(0), 0x1000 + number, int.from_bytes(at(number + 1), "big"))
    for step in count():
        yield evm.call(at(0), (0x1000 + step % len(bodies)).to_bytes(4, "big") + word(60), gas=GAS).check()


def router_pair_token(tier: str) -> Iterator[object]:
    """a router calls a pair, which calls two tokens: little arithmetic, much storage, many calls"""
    token = contract(
        "PUSH0 CALLDATALOAD PUSH0 MSTORE CALLER PUSH1 32 MSTORE PUSH1 64 PUSH0 KECCAK256 DUP1 SLOAD PUSH1 7 ADD DUP1 "
        "SWAP2 SSTORE PUSH1 1 SLOAD PUSH1 1 ADD PUSH1 1 SSTORE PUSH0 MSTORE PUSH1 32 PUSH0 LOG0 PUSH1 32 PUSH0 RETURN",
        5_000,
    )
    swap = "PUSH2 997 PUSH0 SLOAD MUL DUP1 PUSH3 1000000 ADD SWAP1 PUSH4 0x77359400 MUL DIV PUSH0 MSTORE "
    inner = "PUSH1 32 PUSH1 64 PUSH1 32 PUSH0 PUSH0 {} GAS CALL POP "
    pair = contract(swap + inner.format(push(at(2))) + inner.format(push(at(3))) + "PUSH1 32 PUSH1 64 RETURN", 9_000)
    router = contract(COPY + calling(push(at(1))) + BACK, 7_000)
    evm = machine(tier, router, pair, token, token)
    evm.set_storage(at(1), 0, 10**18)
    while True:
        yield evm.transact(bytes(19) + b"\1", at(0), word(5)).check()


def one_call_into_many(tier: str) -> Iterator[object]:
    """one call into 20 contracts of 8 KB, each with a loop"""
    return _many(tier, 8_000, 40)


def one_call_into_many_small(tier: str) -> Iterator[object]:
    """one call into 20 small contracts, each with a loop"""
    return _many(tier, 0, 40)


def _many(tier: str, padding: int, times: int) -> Iterator[object]:
    calls = " ".join(calling(push(at(number)), "STATICCALL") + " POP" for number in range(1, 21))
    loops = (contract(loop(f"{MIX} PUSH2 {number} ADD"), padding) for number in range(20))
    evm = machine(tier, assemble(COPY + calls + " STOP"), *loops)
    while True:
        yield evm.call(at(0), word(times), gas=GAS).check()


def rotation(tier: str) -> Iterator[object]:
    """40 contracts in rotation, each with a loop of its own"""
    evm = machine(tier, *(contract(loop(f"{MIX} PUSH2 {number} ADD"), 3_000) for number in range(40)))
    for step in count():
        yield evm.call(at(step % 40), word(200), gas=GAS).check()


def callers_of_a_library(tier: str) -> Iterator[object]:
    """30 callers of one library"""
    callers = (contract(COPY + calling(push(at(0)), "DELEGATECALL") + BACK, 100 * number) for number in range(30))
    evm = machine(tier, contract(loop(HASH), 5_000), *callers)
    for step in count():
        yield evm.call(at(1 + step % 30), word(50), gas=GAS).check()


def delegate_chain(tier: str) -> Iterator[object]:
    """a chain of ten DELEGATECALLs before a loop that writes storage"""
    evm = machine(tier, *(forwarding(push(at(number + 1))) for number in range(10)), contract(loop(STORE), 3_000))
    while True:
        yield evm.call(at(0), word(40), gas=GAS).check()


def heavy_callee(tier: str) -> Iterator[object]:
    """a thin caller before an interpreter that works for milliseconds"""
    body = f"{HASH} DUP1 PUSH2 0x3ff AND PUSH1 64 ADD DUP2 SWAP1 MSTORE DUP1 PUSH2 0x3e0 AND PUSH1 64 ADD MLOAD XOR"
    evm = machine(tier, contract(COPY + calling(push(at(1))) + BACK), contract(loop(f"{body} {MIX} {MIX}"), 8_000))
    while True:
        yield evm.call(at(0), word(5_000), gas=GAS).check()


def fractal(tier: str) -> Iterator[object]:
    """a thin caller before a contract that draws: fixed-point arithmetic, signed, until each pixel escapes"""
    square = "DUP1 MUL PUSH1 64 SAR"
    step = f"""DUP2 {square} DUP2 {square} SWAP1 SUB DUP6 ADD
        DUP3 DUP3 MUL PUSH1 63 SAR DUP6 ADD SWAP2 POP SWAP2 POP"""  # of x and y: x² - y² + a, 2xy + b
    pixel = f"""PUSH1 40 PUSH0 PUSH0
        more: JUMPDEST {step} DUP1 {square} DUP3 {square} ADD PUSH1 66 SHR PUSH2 @escaped JUMPI
        SWAP2 PUSH1 1 SWAP1 SUB SWAP2 DUP3 PUSH2 @more JUMPI
        escaped: JUMPDEST POP POP SWAP2 POP POP"""  # leaves the iterations that were left
    source = f"""PUSH0 PUSH0 CALLDATALOAD
        next: JUMPDEST DUP1 ISZERO PUSH2 @end JUMPI
        DUP1 PUSH1 20 SWAP1 MOD PUSH1 10 SUB PUSH1 59 SHL DUP2 PUSH1 20 SWAP1 DIV PUSH1 10 SUB PUSH1 60 SHL
        {pixel} SWAP1 SWAP2 ADD SWAP1 PUSH1 1 SWAP1 SUB PUSH2 @next JUMP
        end: JUMPDEST POP{RETURN}"""
    evm = machine(tier, contract(COPY + calling(push(at(1))) + BACK), contract(source, 8_000))
    while True:
        yield evm.call(at(0), word(400), gas=GAS).check()


def recursion(tier: str) -> Iterator[object]:
    """a contract that calls itself, with a loop at each depth"""
    deeper = f"""PUSH1 32 CALLDATALOAD DUP1 ISZERO PUSH2 @leaf JUMPI PUSH1 1 SWAP1 SUB PUSH1 32 MSTORE
        PUSH0 CALLDATALOAD PUSH0 MSTORE PUSH0 PUSH0 PUSH1 64 PUSH0 PUSH0 ADDRESS GAS CALL POP
        leaf: JUMPDEST {loop(MIX)}"""
    evm = machine(tier, contract(deeper, 3_000))
    while True:
        yield evm.call(at(0), word(30) + word(20), gas=GAS).check()


def interpreter(tier: str) -> Iterator[object]:
    """an interpreter in the EVM: a loop that chooses one of four instructions each time"""
    done = enumerate(("PUSH1 7 ADD", "PUSH1 3 MUL", "DUP1 PUSH1 5 SHR XOR", "PUSH4 0x9e3779b9 XOR"))
    choose = "".join(f"DUP1 PUSH1 {number} EQ PUSH2 @do{number} JUMPI " for number in range(4))
    each = " ".join(f"do{number}: JUMPDEST POP {does} PUSH2 @next JUMP" for number, does in done)
    evm = machine(tier, proxy(at(1)), contract(loop(f"DUP2 PUSH1 3 AND {choose} STOP {each} next: JUMPDEST"), 3_000))
    while True:
        yield evm.call(at(0), word(300), gas=GAS).check()


def many_functions(tier: str) -> Iterator[object]:
    """one contract with 40 functions, called at random, each a loop"""
    look_up = "".join(f"DUP1 PUSH2 {n} EQ PUSH2 @function{n} JUMPI " for n in range(40))
    functions = " ".join(
        f"function{n}: JUMPDEST "
        + loop(f"{MIX} PUSH2 {n} ADD", "PUSH1 4 CALLDATALOAD").replace("again", f"again{n}").replace("end", f"end{n}")
        for n in range(40)
    )
    evm, rng = machine(tier, contract(f"PUSH0 CALLDATALOAD PUSH1 224 SHR {look_up} STOP {functions}")), Random(5)
    while True:
        yield evm.call(at(0), rng.randrange(40).to_bytes(4, "big") + word(50), gas=GAS).check()


def failures(tier: str) -> Iterator[object]:
    """loops that run out of gas at different places"""
    evm, rng = machine(tier, proxy(at(1)), contract(loop(MIX), 3_000)), Random(3)
    while True:
        yield evm.call(at(0), word(10**6), gas=rng.randrange(30_000, 200_000))


# -- what changes with time


def fresh_machines(tier: str) -> Iterator[object]:
    """a machine of its own for every test, with the same contracts"""
    codes = proxy(at(1)), contract(loop(STORE), 3_000), contract(loop(HASH), 3_000)
    while True:
        evm = machine(tier, *codes)
        for times in (5, 30, 60):
            evm.call(at(0), word(times), gas=GAS).check()
            evm.simulate(at(2), word(times), gas=GAS).check()
        yield None


def fresh_deployments(tier: str) -> Iterator[object]:
    """a test suite: every test deploys contracts of its own and calls each a few times"""
    evm = EVM(tier=tier)
    for step in count():
        runtime = contract(loop(f"{MIX} PUSH3 {step % 977} ADD"), 600) + word(step)
        size = len(runtime)
        init = assemble(f"PUSH2 {size} PUSH1 12 PUSH0 CODECOPY PUSH2 {size} PUSH0 RETURN").ljust(12, b"\0") + runtime
        with evm.snapshot():
            address = evm.deploy(init, gas=30_000_000).check().address
            assert address is not None
            for times in (3, 20, 5, 60):
                evm.call(address, word(times), gas=GAS).check()
        yield None


def growing_inputs(tier: str) -> Iterator[object]:
    """inputs that grow: from a few iterations to thousands"""
    evm = machine(tier, contract(loop(MIX), 2_000))
    for step in count():
        yield evm.call(at(0), word(10 + (step // 50) % 3_000), gas=GAS).check()


def moving_loop(tier: str) -> Iterator[object]:
    """a program whose hot loop moves: eight loops in one contract, each hot for a while"""
    head = "".join(f"PUSH1 32 CALLDATALOAD PUSH1 {n} EQ PUSH2 @loop{n} JUMPI " for n in range(8)) + "STOP "
    loops = "".join(
        f"loop{n}: JUMPDEST "
        + loop(f"{MIX} PUSH2 {n} ADD").replace("again", f"again{n}").replace("end", f"end{n}")
        + " "
        for n in range(8)
    )
    evm = machine(tier, contract(head + loops, 2_000))
    for step in count():
        yield evm.call(at(0), word(500) + word(step // 4_000 % 8), gas=GAS).check()


def two_machines(tier: str) -> Iterator[object]:
    """two EVMs in turns, which share code"""
    codes = proxy(at(1)), contract(loop(STORE), 3_000)
    machines = machine(tier, *codes), machine(tier, *codes)
    for step in count():
        yield machines[step % 2].call(at(0), word(40), gas=GAS).check()


def two_threads(tier: str) -> Iterator[object]:
    """two threads with an EVM each, which share code"""
    pools = [ThreadPoolExecutor(1) for _ in range(2)]
    codes = proxy(at(1)), contract(loop(MIX), 3_000)
    machines = [pool.submit(machine, tier, *codes).result() for pool in pools]

    def work(evm: EVM) -> None:
        for _ in range(5):
            evm.call(at(0), word(2_000), gas=GAS).check()

    while True:
        for future in [pool.submit(work, evm) for pool, evm in zip(pools, machines, strict=True)]:
            future.result()
        yield None


def watched(tier: str) -> Iterator[object]:
    """calls between recordings, snapshots, set_storage and set_code"""
    code = contract(loop(STORE), 3_000)
    evm = machine(tier, proxy(at(1)), code)
    for step in count():
        if step % 10 == 3:
            with evm.record(storage=True):
                evm.call(at(0), word(60), gas=GAS).check()
        elif step % 10 == 5:
            evm.set_storage(at(0), step % 16, step)
        elif step % 10 == 7:
            evm.set_code(at(2 + step % 30), code[: -(step % 5)] or code)
        else:
            with evm.snapshot():
                evm.call(at(0), word(60), gas=GAS).check()
        yield None


def recorded(tier: str) -> Iterator[object]:
    """every call is recorded, as titanoboa and gas reporters do"""
    evm = machine(tier, proxy(at(1)), contract(loop(HASH), 3_000))
    while True:
        with evm.record():
            evm.call(at(0), word(300), gas=GAS).check()
        yield None


def anchored(tier: str) -> Iterator[object]:
    """an anchor around every call, as titanoboa's: some calls are transactions, some views"""
    evm = machine(tier, proxy(at(1)), contract(loop(STORE), 6_000), contract(loop(HASH), 2_000))
    for step in count():
        with evm.snapshot():
            if step % 3:
                evm.call(at(0), word(30), gas=GAS).check()
            else:
                evm.simulate(at(2), word(50), gas=GAS).check()
        yield None


def block_of_transactions(tier: str) -> Iterator[object]:
    """blocks of mixed transactions: transfers, a token, a loop, a creation"""
    key = word(1)
    sender = "7e5f4552091a69125d5dfcb7b8c2659029395bdf"
    token = contract(
        "PUSH0 CALLDATALOAD DUP1 SLOAD PUSH1 1 ADD DUP1 SWAP2 SSTORE PUSH0 MSTORE PUSH1 32 PUSH0 LOG0 STOP", 3_000
    )
    genesis = {
        "config": {"chainId": 1, "londonBlock": 0, "terminalTotalDifficulty": 0, "shanghaiTime": 0, "cancunTime": 0},
        "gasLimit": hex(60_000_000),
        "baseFeePerGas": "0x7",
        "alloc": {
            sender: {"balance": hex(10**30)},
            at(0).hex(): {"code": "0x" + token.hex(), "balance": "0x0"},
            at(1).hex(): {"code": "0x" + contract(loop(MIX), 2_000).hex(), "balance": "0x0"},
        },
    }
    chain = Chain.from_json(genesis, tier=tier)
    for step in count():
        chain.submit(chain.sign(key, at(9), value=1))
        chain.submit(chain.sign(key, at(0), data=word(step % 5), gas_limit=100_000))
        chain.submit(chain.sign(key, at(1), data=word(2_000), gas_limit=3_000_000))
        chain.submit(chain.sign(key, at(1), data=word(300), gas_limit=3_000_000))
        yield chain.build(coinbase="0x" + "03" * 20)


# -- real contracts

HEAVY = (
    "erc20-transfer", "evmone-blake2b_shifts", "evmone-sha1_shifts", "evmone-structarray_alloc", "revmc-hash_10k",
    "snailtracer", "ten-thousand-hashes", "evmone-snailtracer",
)  # fmt: skip
SHORT = "revmc-airdrop", "revmc-bswap64_opt", "revmc-counter", "revmc-uniswap_v2_pair", "revmc-weth"


def _through_a_caller(tier: str, *names: str) -> Iterator[object]:
    calls = []
    for name in names:
        found = json.loads((FIXTURES / "bench" / f"{name}.json").read_text())
        evm = EVM(fork=found["fork"], tier=tier)
        for address, account in found["pre"].items():
            evm.set_code(address, account["code"])
            evm.set_balance(address, int(account["balance"], 16))
            for key, value in account["storage"].items():
                evm.set_storage(address, int(key, 16), int(value, 16))
        call = found["call"]
        source = COPY + calling(push(bytes.fromhex(call["to"][2:]))) + BACK
        evm.set_code(at(0), assemble(source.replace("PUSH0", "PUSH1 0")))  # forks before Shanghai, too
        calls.append((evm, call["data"], call["caller"]))
    while True:
        for evm, data, caller in calls:
            with evm.snapshot():
                evm.call(at(0), data, caller=caller, gas=GAS).check()
            yield None


def short_contracts(tier: str) -> Iterator[object]:
    """short real contracts in rotation, through a thin caller"""
    return _through_a_caller(tier, *SHORT)


def heavy_contracts(tier: str) -> Iterator[object]:
    """the larger bench files in rotation, through a thin caller"""
    return _through_a_caller(tier, *HEAVY)


def thin_snailtracer(tier: str) -> Iterator[object]:
    """snailtracer, through a thin caller"""
    return _through_a_caller(tier, "snailtracer")


def random_world(tier: str) -> Iterator[object]:
    """60 contracts that call one another; who is called moves as time goes on"""
    rng, codes = Random(11), []
    for number in range(60):
        body = rng.choice((MIX, HASH, STORE, f"{MIX} {MIX}"))
        quarter = "PUSH0 CALLDATALOAD PUSH1 2 SHR PUSH0 MSTORE PUSH0 PUSH0 PUSH1 32 PUSH0 PUSH0"
        inner = f"{quarter} {push(at(rng.randrange(60)))} GAS CALL POP "
        codes.append(contract((inner if number % 3 else "") + loop(body), rng.randrange(0, 9_000)))
    evm = machine(tier, *codes)
    for step in count():
        first = step // 3_000 % 50
        yield evm.call(at(first + rng.randrange(10)), word(rng.choice((4, 16, 64))), gas=30_000_000)


LIVES: dict[str, Life] = {
    life.__name__: life
    for life in (
        proxy_and_loop, diamond, router_pair_token, one_call_into_many, one_call_into_many_small, rotation,
        callers_of_a_library, delegate_chain, heavy_callee, fractal, recursion, interpreter, many_functions, failures,
        fresh_machines, fresh_deployments, growing_inputs, moving_loop,
        two_machines, two_threads, watched, recorded, anchored, block_of_transactions, short_contracts, heavy_contracts,
        thin_snailtracer, random_world,
    )
}  # fmt: skip
