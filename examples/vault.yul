// A small vault: deposits are counted per account, interest is compounded in a loop, and a total can be hashed.
// Written the way generated code looks: helper functions for everything, checks everywhere, nothing optimised by hand.
object "Vault" {
    code {
        sstore(total_slot(), 0)
        sstore(owner_slot(), caller())
        datacopy(0, dataoffset("Vault_deployed"), datasize("Vault_deployed"))
        return(0, datasize("Vault_deployed"))
        function total_slot() -> slot { slot := 0 }
        function owner_slot() -> slot { slot := 1 }
    }
    object "Vault_deployed" {
        code {
            require(iszero(callvalue()))
            switch selector()
            case 0xb6b55f25 /* deposit(uint256) */ {
                deposit(caller(), argument(0))
                return_word(1)
            }
            case 0x70a08231 /* balanceOf(address) */ {
                return_word(balance_of(as_address(argument(0))))
            }
            case 0x18160ddd /* totalSupply() */ {
                return_word(sload(total_slot()))
            }
            case 0xbff1208d /* compound(uint256,uint256) */ {
                return_word(compound(argument(0), argument(1)))
            }
            case 0x7b73359a /* digest(uint256) */ {
                return_word(digest(argument(0)))
            }
            default { revert(0, 0) }

            function selector() -> s { s := div(calldataload(0), exp(2, 224)) }
            function argument(index) -> value {
                let position := add(4, mul(index, 32))
                require(iszero(lt(calldatasize(), add(position, 32))))
                value := calldataload(position)
            }
            function as_address(word) -> value {
                value := and(word, sub(exp(2, 160), 1))
                require(eq(word, value))
            }
            function require(condition) { if iszero(condition) { revert(0, 0) } }
            function return_word(value) {
                mstore(0, value)
                return(0, 32)
            }
            function total_slot() -> slot { slot := 0 }
            function balance_slot(account) -> slot {
                mstore(0, account)
                mstore(32, 2)
                slot := keccak256(0, 64)
            }
            function balance_of(account) -> value { value := sload(balance_slot(account)) }
            function checked_add(x, y) -> sum {
                sum := add(x, y)
                require(iszero(lt(sum, x)))
            }
            function deposit(account, amount) {
                sstore(balance_slot(account), checked_add(balance_of(account), amount))
                sstore(total_slot(), checked_add(sload(total_slot()), amount))
                mstore(0, amount)
                log2(0, 32, 0x90890809c654f11d6e72a28fa60149770a0d11ec6c92319d6ceb2bb0a4ea1a15, account)
            }
            // amount * 1.05 ^ years, in whole units
            function compound(amount, years) -> value {
                value := amount
                for { let year := 0 } lt(year, years) { year := add(year, 1) } {
                    value := div(mul(value, 105), 100)
                }
            }
            // a chain of hashes
            function digest(rounds) -> value {
                for { let i := 0 } lt(i, rounds) { i := add(i, 1) } {
                    mstore(0, value)
                    mstore(32, i)
                    value := keccak256(0, 64)
                }
            }
        }
    }
}
