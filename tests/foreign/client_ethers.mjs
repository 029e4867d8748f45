// Steps with ethers 6 against a node; one JSON line per step. Arguments: URL, creation code.
import { ethers } from "ethers";
const [url, code] = process.argv.slice(2);
const step = (name, value) => console.log(JSON.stringify([name, value], (_, v) => (typeof v === "bigint" ? v.toString() : v)));
const provider = new ethers.JsonRpcProvider(url, undefined, { cacheTimeout: -1, pollingInterval: 50 });
const wallet = new ethers.Wallet("0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80", provider);
const ABI = ["function set(uint256 x)", "function get() view returns (uint256)", "function fail()", "function failCustom()",
  "event Changed(address indexed by, uint256 x)", "error Refused(uint256 x)"];
step("network", (await provider.getNetwork()).chainId);
const bob = (await provider.send("eth_accounts", []))[1];
let receipt = await (await wallet.sendTransaction({ to: bob, value: 5n })).wait();
step("sent", [receipt.status, receipt.gasUsed, receipt.blockNumber, receipt.type]);
const contract = await (await new ethers.ContractFactory(ABI, code, wallet).deploy()).waitForDeployment();
step("deployed", await contract.getAddress());
step("estimate", await contract.set.estimateGas(7n));
receipt = await (await contract.set(7n)).wait();
step("event", [receipt.logs[0].args.by, receipt.logs[0].args.x, receipt.logs[0].index]);
step("get", await contract.get());
step("get before", await contract.get({ blockTag: receipt.blockNumber - 1 }));
step("logs", (await contract.queryFilter("Changed", 0)).length);
for (const name of ["fail", "failCustom"]) {
  for (const how of ["staticCall", "estimateGas"]) {
    try { await contract[name][how](); } catch (error) {
      step(`${name} ${how}`, [error.code, error.reason, error.revert && error.revert.name, error.data]);
    }
  }
}
receipt = await (await contract.fail({ gasLimit: 100000n })).wait().catch((error) => error.receipt);
step("failed", [receipt.status, receipt.gasUsed]);
try { await wallet.sendTransaction({ to: bob, nonce: 0, gasLimit: 21000n }); } catch (error) { step("nonce", error.code); }
try { await wallet.sendTransaction({ to: bob, value: 10n ** 30n, gasLimit: 21000n }); } catch (error) { step("poor", error.code); }
const signature = await provider.send("personal_sign", [ethers.hexlify(ethers.toUtf8Bytes("hello")), wallet.address]);
step("signed", [signature === await wallet.signMessage("hello"), ethers.verifyMessage("hello", signature)]);
const typed = [{ name: "App", version: "1", chainId: 31337 }, { Mail: [{ name: "to", type: "address" }, { name: "text", type: "string" }] }, { to: bob, text: "hi" }];
const signer = await provider.getSigner(0);
step("typed", (await signer.signTypedData(...typed)) === await wallet.signTypedData(...typed));
const block = await provider.getBlock("latest", true);
step("block", [block.number, block.gasUsed, block.prefetchedTransactions.length]);
step("access list", (await provider.send("eth_createAccessList", [{ from: wallet.address, to: await contract.getAddress(), data: contract.interface.encodeFunctionData("set", [1n]) }, "latest"])).accessList);
step("proof", (await provider.send("eth_getProof", [await contract.getAddress(), ["0x" + "00".repeat(32)], "latest"])).storageProof[0].value);
const fees = await provider.getFeeData();
step("fees", [fees.maxFeePerGas > 0n, fees.maxPriorityFeePerGas]);
provider.destroy();
