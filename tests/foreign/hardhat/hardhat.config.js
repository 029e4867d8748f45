// A project as people have them, but for the compiler: it is the one that npm has installed, since nothing is downloaded.
require("@nomicfoundation/hardhat-ethers");
require("@nomicfoundation/hardhat-chai-matchers");
const { subtask } = require("hardhat/config");
const { TASK_COMPILE_SOLIDITY_GET_SOLC_BUILD } = require("hardhat/builtin-tasks/task-names");

const { version } = require("solc/package.json");

subtask(TASK_COMPILE_SOLIDITY_GET_SOLC_BUILD, async () => ({
  compilerPath: require.resolve("solc/soljson.js"),
  isSolcJs: true,
  version,
  longVersion: require("solc").version().replace(".Emscripten.clang", ""),
}));

module.exports = {
  solidity: { version, settings: { optimizer: { enabled: true, runs: 200 } } },
  networks: { node: { url: process.env.NODE_URL, timeout: 60000 } },
  mocha: { reporter: "json" },
};
