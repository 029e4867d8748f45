// A constant-product pool of two tokens, reduced to its arithmetic: what a trade brings, and what it leaves.
// Slots: 0 and 1 the reserves, 2 the fee in hundredths of a percent.
object "Pool" {
    code {
        datacopy(0, dataoffset("Pool_deployed"), datasize("Pool_deployed"))
        return(0, datasize("Pool_deployed"))
    }
    object "Pool_deployed" {
        code {
            require(iszero(callvalue()))
            switch shr(224, calldataload(0))
            case 0x94b918de /* swap(uint256): gives the first token, returns how much of the second it brings */ {
                let given := calldataload(4)
                require(given)
                let first := sload(0)
                let second := sload(1)
                let after_fee := checked_mul(given, sub(10000, sload(2)))
                let bought := div(checked_mul(after_fee, second), add(checked_mul(first, 10000), after_fee))
                require(lt(bought, second))
                sstore(0, add(first, given))
                sstore(1, sub(second, bought))
                mstore(0, given)
                mstore(32, bought)
                log2(0, 64, 0x737761700000000000000000000000000000000000000000000000000000000, caller())
                mstore(0, bought)
                return(0, 32)
            }
            case 0x0902f1ac /* getReserves() */ {
                mstore(0, sload(0))
                mstore(32, sload(1))
                return(0, 64)
            }
            default { revert(0, 0) }

            function require(condition) { if iszero(condition) { revert(0, 0) } }
            function checked_mul(x, y) -> product {
                product := mul(x, y)
                require(or(iszero(x), eq(div(product, x), y)))
            }
        }
    }
}
