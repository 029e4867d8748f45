const { expect } = require("chai");
const { ethers } = require("hardhat");
const helpers = require("@nomicfoundation/hardhat-network-helpers");
const { anyValue } = require("@nomicfoundation/hardhat-chai-matchers/withArgs");
const { PANIC_CODES } = require("@nomicfoundation/hardhat-chai-matchers/panic");

const DAY = 86400;

async function deployed() {
  const [alice, bob] = await ethers.getSigners();
  const vault = await ethers.deployContract("Vault", [DAY]);
  await vault.waitForDeployment();
  return { vault, alice, bob };
}

describe("a vault", () => {
  it("is deployed with its delay", async () => {
    const { vault } = await helpers.loadFixture(deployed);
    expect(await vault.delay()).to.equal(DAY);
    expect(await ethers.provider.getCode(vault)).to.not.equal("0x");
  });

  it("is not deployed without one", async () => {
    await expect(ethers.deployContract("Vault", [0])).to.be.revertedWith("no delay");
  });

  it("takes ether, with an event", async () => {
    const { vault, bob } = await helpers.loadFixture(deployed);
    await expect(vault.connect(bob).deposit({ value: 5n })).to.emit(vault, "Deposited").withArgs(bob.address, 5n);
    expect(await vault.balanceOf(bob)).to.equal(5n);
    expect(await vault.queryFilter(vault.filters.Deposited(bob))).to.have.lengthOf(1);
  });

  it("takes ether without a call", async () => {
    const { vault, alice } = await helpers.loadFixture(deployed);
    await expect(alice.sendTransaction({ to: vault, value: 7n })).to.changeEtherBalances([alice, vault], [-7n, 7n]);
  });

  it("keeps it until the lock is over", async () => {
    const { vault, alice } = await helpers.loadFixture(deployed);
    await vault.deposit({ value: 9n });
    await expect(vault.withdraw(9n)).to.be.revertedWithCustomError(vault, "Locked").withArgs(alice.address, anyValue);
    const until = await vault.lockedUntil(alice);
    await helpers.time.increaseTo(until);
    expect(await helpers.time.latest()).to.equal(until);
    await expect(vault.withdraw(9n)).to.changeEtherBalance(alice, 9n);
  });

  it("gives no more than there is", async () => {
    const { vault } = await helpers.loadFixture(deployed);
    await expect(vault.withdraw(1n)).to.be.revertedWithPanic(PANIC_CODES.ARITHMETIC_OVERFLOW);
    await expect(vault.owner(0)).to.be.revertedWithPanic(PANIC_CODES.ARRAY_ACCESS_OUT_OF_BOUNDS);
  });

  it("serves accounts that are impersonated", async () => {
    const { vault } = await helpers.loadFixture(deployed);
    const somebody = "0x00000000000000000000000000000000000dead1";
    await helpers.setBalance(somebody, 10n ** 18n);
    await helpers.impersonateAccount(somebody);
    const signer = await ethers.getSigner(somebody);
    await vault.connect(signer).deposit({ value: 3n });
    await helpers.stopImpersonatingAccount(somebody);
    expect(await vault.balanceOf(somebody)).to.equal(3n);
  });

  it("can be changed by hand", async () => {
    const { vault, alice } = await helpers.loadFixture(deployed);
    const slot = ethers.keccak256(ethers.AbiCoder.defaultAbiCoder().encode(["address", "uint256"], [alice.address, 0]));
    await helpers.setStorageAt(vault.target, slot, 77);
    expect(await vault.balanceOf(alice)).to.equal(77n);
    expect(BigInt(await helpers.getStorageAt(vault.target, slot))).to.equal(77n);
  });
});

describe("the chain", () => {
  it("mines blocks on demand, and goes back to a snapshot", async () => {
    const before = await helpers.time.latestBlock();
    const snapshot = await helpers.takeSnapshot();
    await helpers.mine(5, { interval: 60 });
    expect(await helpers.time.latestBlock()).to.equal(before + 5);
    await snapshot.restore();
    expect(await helpers.time.latestBlock()).to.equal(before);
  });

  it("estimates gas, and keeps transactions while it does not mine", async () => {
    const [alice, bob] = await ethers.getSigners();
    expect(await ethers.provider.estimateGas({ from: alice, to: bob })).to.equal(21000n);
    await ethers.provider.send("evm_setAutomine", [false]);
    const sent = await alice.sendTransaction({ to: bob, value: 1n });
    expect(await ethers.provider.getTransactionReceipt(sent.hash)).to.equal(null);
    await helpers.mine();
    await ethers.provider.send("evm_setAutomine", [true]);
    expect((await sent.wait()).status).to.equal(1);
  });

  it("has base fees, coinbases and randomness by hand", async () => {
    await helpers.setNextBlockBaseFeePerGas(10n ** 9n);
    await helpers.setCoinbase("0x00000000000000000000000000000000000c01ba");
    await helpers.mine();
    const block = await ethers.provider.getBlock("latest");
    expect(block.baseFeePerGas).to.equal(10n ** 9n);
    expect(block.miner.toLowerCase()).to.equal("0x00000000000000000000000000000000000c01ba");
  });
});
