// SPDX-License-Identifier: MIT
pragma solidity ^0.8.0;

/// Breaks at one number of 2^256.
contract Magic {
    bool broken;

    function guess(uint256 number) external {
        if (number == 0x1badb002) broken = true;
    }

    function ok() external view returns (bool) {
        return !broken;
    }
}
