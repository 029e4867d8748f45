// Steps with viem against a node, over HTTP and over WebSocket; one JSON line per step. Arguments: URL, creation code.
import { createPublicClient, createTestClient, createWalletClient, http, webSocket, parseAbi } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { foundry } from "viem/chains";
const [url, code] = process.argv.slice(2);
const step = (name, value) => console.log(JSON.stringify([name, value], (_, v) => (typeof v === "bigint" ? v.toString() : v)));
const abi = parseAbi(["function set(uint256 x)", "function get() view returns (uint256)", "function fail()", "function failCustom()",
  "event Changed(address indexed by, uint256 x)", "error Refused(uint256 x)"]);
const account = privateKeyToAccount("0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80");
for (const transport of [http(url), webSocket(url.replace("http", "ws"))]) {
  const open = createPublicClient({ chain: foundry, transport, pollingInterval: 50 });
  const wallet = createWalletClient({ account, chain: foundry, transport });
  const tools = createTestClient({ mode: "anvil", chain: foundry, transport });
  step("chain", await open.getChainId());
  const { contractAddress: address } = await open.waitForTransactionReceipt({ hash: await wallet.deployContract({ abi, bytecode: code }) });
  step("deployed", address);
  const seen = [];
  const stop = open.watchContractEvent({ address, abi, eventName: "Changed", onLogs: (logs) => seen.push(...logs) });
  await new Promise((resolve) => setTimeout(resolve, 300));
  const receipt = await open.waitForTransactionReceipt({ hash: await wallet.writeContract({ address, abi, functionName: "set", args: [7n] }) });
  step("set", [receipt.status, receipt.gasUsed, receipt.type]);
  step("get", await open.readContract({ address, abi, functionName: "get" }));
  for (let wait = 0; wait < 100 && !seen.length; wait++) await new Promise((resolve) => setTimeout(resolve, 50));
  step("watched", seen.map((log) => [log.args.by, log.args.x]));
  stop();
  for (const functionName of ["fail", "failCustom"]) {
    try { await open.simulateContract({ address, abi, functionName, account }); } catch (error) {
      const reverted = error.walk((each) => each.name === "ContractFunctionRevertedError");
      step(functionName, [reverted && reverted.reason, reverted && reverted.data && reverted.data.errorName]);
    }
  }
  try { await wallet.sendTransaction({ to: address, nonce: 0, gas: 21000n }); } catch (error) { step("nonce", error.walk((each) => each.name !== error.name).name); }
  try { await wallet.sendTransaction({ to: account.address, value: 10n ** 30n, gas: 21000n }); } catch (error) { step("poor", /funds/i.test(error.message)); }
  const other = "0x00000000000000000000000000000000000000aa";
  await tools.setBalance({ address: other, value: 10n ** 18n });
  await tools.impersonateAccount({ address: other });
  const hash = await wallet.sendTransaction({ account: other, to: address, data: "0x60fe47b1" + "00".repeat(31) + "09" });
  step("impersonated", (await open.waitForTransactionReceipt({ hash })).status);
  step("nine", await open.readContract({ address, abi, functionName: "get" }));
  const before = (await open.getBlock()).timestamp;
  await tools.increaseTime({ seconds: 1000 });
  await tools.mine({ blocks: 2 });
  step("time", (await open.getBlock()).timestamp - before >= 1000n);
  step("overrides", await open.readContract({ address, abi, functionName: "get", stateOverride: [{ address, stateDiff: [{ slot: "0x" + "00".repeat(32), value: "0x" + "00".repeat(31) + "0b" }] }] }));
  step("block", Object.keys(await open.getBlock()).filter((key) => key !== "totalDifficulty").sort());
  const snapshot = await tools.snapshot();
  await tools.setStorageAt({ address, index: 0, value: "0x" + "00".repeat(31) + "21" });
  step("33", await open.readContract({ address, abi, functionName: "get" }));
  await tools.revert({ id: snapshot });
  step("nine again", await open.readContract({ address, abi, functionName: "get" }));
}
process.exit(0);
