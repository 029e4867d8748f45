/// An ERC-20 token in Yul: the parts that examples and tests need.
/// Its constructor takes the first supply, an ABI-encoded uint256 after the code, and gives it to the caller.
object "Token" {
    code {
        let start := datasize("Token")
        if lt(codesize(), add(start, 32)) { revert(0, 0) }
        codecopy(0, start, 32)
        let supply := mload(0)
        sstore(0, supply)
        mstore(0, caller())
        mstore(32, 1)
        sstore(keccak256(0, 64), supply)
        mstore(0, supply)
        // Transfer(address indexed from, address indexed to, uint256 value)
        log3(0, 32, 0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef, 0, caller())
        datacopy(0, dataoffset("Token_deployed"), datasize("Token_deployed"))
        return(0, datasize("Token_deployed"))
    }
    object "Token_deployed" {
        code {
            if callvalue() { revert(0, 0) }
            switch shr(224, calldataload(0))
            case 0x18160ddd /* totalSupply() */ { answer(sload(0)) }
            case 0x70a08231 /* balanceOf(address) */ { answer(sload(balance_slot(argument(0)))) }
            case 0xa9059cbb /* transfer(address,uint256) */ {
                move(argument(0), argument(1))
                answer(1)
            }
            case 0x42966c68 /* burn(uint256) */ { burn(argument(0)) }
            case 0x9dc29fac /* burn(address,uint256) */ {
                if iszero(eq(argument(0), caller())) { fail("not your tokens", 15) }
                burn(argument(1))
            }
            case 0x06fdde03 /* name() */ {
                mstore(0, 32)
                mstore(32, 10)
                mstore(64, "Fuse token")
                return(0, 96)
            }
            default { revert(0, 0) }

            function argument(at) -> word {
                let place := add(4, mul(at, 32))
                if lt(calldatasize(), add(place, 32)) { revert(0, 0) }
                word := calldataload(place)
            }

            function answer(word) {
                mstore(0, word)
                return(0, 32)
            }

            function balance_slot(owner) -> slot {
                mstore(0, owner)
                mstore(32, 1)
                slot := keccak256(0, 64)
            }

            // Error(string), for text of up to 32 bytes
            function fail(text, size) {
                mstore(0, shl(224, 0x08c379a0))
                mstore(4, 32)
                mstore(36, size)
                mstore(68, text)
                revert(0, 100)
            }

            function take(amount) {
                let slot := balance_slot(caller())
                let held := sload(slot)
                if lt(held, amount) {
                    // ERC20InsufficientBalance(address sender, uint256 balance, uint256 needed)
                    mstore(0, shl(224, 0xe450d38c))
                    mstore(4, caller())
                    mstore(36, held)
                    mstore(68, amount)
                    revert(0, 100)
                }
                sstore(slot, sub(held, amount))
            }

            function move(to, amount) {
                if iszero(to) {
                    // ERC20InvalidReceiver(address receiver)
                    mstore(0, shl(224, 0xec442f05))
                    mstore(4, 0)
                    revert(0, 36)
                }
                take(amount)
                let slot := balance_slot(to)
                sstore(slot, add(sload(slot), amount))
                told(caller(), to, amount)
            }

            function burn(amount) {
                let supply := sload(0)
                if gt(amount, supply) {
                    // Panic(0x11): an overflow
                    mstore(0, shl(224, 0x4e487b71))
                    mstore(4, 0x11)
                    revert(0, 36)
                }
                take(amount)
                sstore(0, sub(supply, amount))
                told(caller(), 0, amount)
            }

            function told(from, to, amount) {
                mstore(0, amount)
                log3(0, 32, 0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef, from, to)
            }
        }
    }
}
