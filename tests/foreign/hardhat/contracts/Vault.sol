// SPDX-License-Identifier: MIT
pragma solidity ^0.8.20;

/// Ether by owner, with a lock; what a test project typically has.
contract Vault {
    error Locked(address owner, uint256 until);

    event Deposited(address indexed owner, uint256 amount);

    uint256 public immutable delay;
    mapping(address => uint256) public balanceOf;
    mapping(address => uint256) public lockedUntil;
    address[] private owners;

    constructor(uint256 delay_) {
        require(delay_ > 0, "no delay");
        delay = delay_;
    }

    receive() external payable {
        deposit();
    }

    function deposit() public payable {
        if (balanceOf[msg.sender] == 0) owners.push(msg.sender);
        balanceOf[msg.sender] += msg.value;
        lockedUntil[msg.sender] = block.timestamp + delay;
        emit Deposited(msg.sender, msg.value);
    }

    function withdraw(uint256 amount) external {
        if (block.timestamp < lockedUntil[msg.sender]) revert Locked(msg.sender, lockedUntil[msg.sender]);
        balanceOf[msg.sender] -= amount;
        (bool done, ) = msg.sender.call{value: amount}("");
        require(done, "not taken");
    }

    function owner(uint256 place) external view returns (address) {
        return owners[place];
    }
}
