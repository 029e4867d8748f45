// SPDX-License-Identifier: MIT
pragma solidity ^0.8.0;

/// Breaks after two calls in the right order, each with a number of a few.
contract TwoStep {
    bool armed;
    bool broken;

    function arm(uint256 key) external {
        armed = key % 64 == 42;
    }

    function fire(uint256 power) external {
        if (armed && power > 1000 && power < 5000) broken = true;
    }

    function ok() external view returns (bool) {
        return !broken;
    }
}
