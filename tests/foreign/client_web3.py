"""Steps with web3.py against a node; prints what clients see, one JSON line per step. Arguments: URL, creation code."""

import json
import sys

from web3 import Web3
from web3.exceptions import ContractCustomError, ContractLogicError, Web3RPCError

url, code = sys.argv[1:]
w3 = Web3(Web3.HTTPProvider(url))
KEY = "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80"
ABI = json.loads("""[
 {"type":"function","name":"set","inputs":[{"name":"x","type":"uint256"}],"outputs":[],"stateMutability":"nonpayable"},
 {"type":"function","name":"get","inputs":[],"outputs":[{"name":"","type":"uint256"}],"stateMutability":"view"},
 {"type":"function","name":"fail","inputs":[],"outputs":[],"stateMutability":"nonpayable"},
 {"type":"function","name":"failCustom","inputs":[],"outputs":[],"stateMutability":"nonpayable"},
 {"type":"event","name":"Changed","inputs":[{"name":"by","type":"address","indexed":true},
  {"name":"x","type":"uint256","indexed":false}],"anonymous":false}]""")


def step(name, value):
    print(json.dumps([name, value], default=str), flush=True)


step("connected", w3.is_connected())
step("chain", w3.eth.chain_id)
alice = w3.eth.account.from_key(KEY)
bob = w3.eth.accounts[1]
step("accounts", w3.eth.accounts)
step("balance", w3.eth.get_balance(bob))
sent = w3.eth.send_transaction({"from": alice.address, "to": bob, "value": 5, "gas": 21_000})
receipt = w3.eth.wait_for_transaction_receipt(sent)
step("sent", [receipt["status"], receipt["gasUsed"], receipt["blockNumber"], receipt["type"], receipt["from"]])
deployed = w3.eth.contract(abi=ABI, bytecode=code).constructor().transact({"from": alice.address})
address = w3.eth.wait_for_transaction_receipt(deployed)["contractAddress"]
step("deployed", address)
contract = w3.eth.contract(address=address, abi=ABI)
step("estimate", contract.functions.set(7).estimate_gas({"from": alice.address}))
built = contract.functions.set(7).build_transaction(
    {"from": alice.address, "nonce": w3.eth.get_transaction_count(alice.address), "gas": 100_000}
)
raw = alice.sign_transaction(built).raw_transaction
receipt = w3.eth.wait_for_transaction_receipt(w3.eth.send_raw_transaction(raw))
events = contract.events.Changed().process_receipt(receipt)
step("event", [events[0]["args"]["by"], events[0]["args"]["x"], events[0]["logIndex"]])
step("logs", len(contract.events.Changed().get_logs(from_block=0)))
step("get", contract.functions.get().call())
step("get before", contract.functions.get().call(block_identifier=receipt["blockNumber"] - 1))
for name in ("fail", "failCustom"):
    for how in ("call", "estimate_gas"):
        try:
            getattr(contract.functions[name](), how)({"from": alice.address})
        except (ContractLogicError, ContractCustomError) as error:
            step(f"{name} {how}", [type(error).__name__, str(error.data)])
receipt = w3.eth.wait_for_transaction_receipt(
    contract.functions.fail().transact({"from": alice.address, "gas": 100_000})
)
step("failed", [receipt["status"], receipt["gasUsed"]])
try:
    w3.eth.send_raw_transaction(raw)
except Web3RPCError as error:
    step("again", "nonce too low" in str(error))
try:
    w3.eth.send_transaction({"from": alice.address, "to": bob, "value": 10**30, "gas": 21_000})
except Web3RPCError as error:
    step("poor", "insufficient funds" in str(error).lower())
block = w3.eth.get_block("latest", full_transactions=True)
step("block", sorted(set(block) - {"totalDifficulty"}))
step("transaction", sorted(block["transactions"][0]))
step("receipt", sorted(receipt))
step("storage", w3.eth.get_storage_at(address, 0).hex())
step("code", w3.eth.get_code(address).hex() == code.removeprefix("0x")[-2 * len(w3.eth.get_code(address)) :])
step("nonce", w3.eth.get_transaction_count(alice.address))
snapshot = w3.provider.make_request("evm_snapshot", [])["result"]
contract.functions.set(9).transact({"from": alice.address})
step("nine", contract.functions.get().call())
step("revert", w3.provider.make_request("evm_revert", [snapshot])["result"])
step("seven", contract.functions.get().call())
step("fees", len(w3.eth.fee_history(2, "latest", [50])["baseFeePerGas"]))
step("missing", w3.provider.make_request("eth_getTransactionByHash", ["0x" + "00" * 32])["result"])
