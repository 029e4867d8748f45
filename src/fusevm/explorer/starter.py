"""The contract that the explorer shows where no file is given."""

from __future__ import annotations

STARTER_NAME = "counter.yul"
STARTER = """\
// Edit me: everything to the right follows. Click a line to see what became of it.
object "Counter" {
    code {
        datacopy(0, dataoffset("Counter_deployed"), datasize("Counter_deployed"))
        return(0, datasize("Counter_deployed"))
    }
    object "Counter_deployed" {
        code {
            switch shr(224, calldataload(0))
            case 0x7cf5dab0 /* increment(uint256) */ {
                let sum := checked_add(sload(slot()), calldataload(4))
                sstore(slot(), sum)
                return_word(sum)
            }
            case 0xef0baad9 /* sumTo(uint256) */ {
                let total := 0
                for { let i := 0 } lt(i, add(calldataload(4), 1)) { i := add(i, 1) } {
                    total := checked_add(total, mul(i, 1))
                }
                return_word(total)
            }
            default { revert(0, 0) }

            function slot() -> s { s := 0 }
            function checked_add(x, y) -> sum {
                sum := add(x, y)
                if lt(sum, x) { revert(0, 0) }
            }
            function return_word(value) {
                mstore(0, value)
                return(0, 32)
            }
        }
    }
}
"""
