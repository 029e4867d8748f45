// SPDX-License-Identifier: MIT
pragma solidity ^0.8.0;

/// An ERC-20 of shares in a vault that rounds the wrong way when it pays out: the other holders lose.
contract Shares {
    mapping(address => uint256) public balanceOf;
    uint256 public totalSupply = 1000;
    uint256 public assets = 1999;

    event Transfer(address indexed from, address indexed to, uint256 amount);

    constructor() {
        balanceOf[msg.sender] = totalSupply;
    }

    function transfer(address to, uint256 amount) external returns (bool) {
        balanceOf[msg.sender] -= amount;
        balanceOf[to] += amount;
        emit Transfer(msg.sender, to, amount);
        return true;
    }

    function deposit(uint256 amount) external {
        require(amount <= 1e24, "too much");
        uint256 shares = amount * totalSupply / assets;
        balanceOf[msg.sender] += shares;
        totalSupply += shares;
        assets += amount;
    }

    function withdraw(uint256 amount) external {
        uint256 shares = amount * totalSupply / assets; // rounded down, where it must be up
        require(shares > 0, "nothing");
        balanceOf[msg.sender] -= shares;
        totalSupply -= shares;
        assets -= amount;
    }

    /// A share is never worth less than in the beginning.
    function ok() external view returns (bool) {
        return assets * 1000 >= totalSupply * 1999;
    }
}
