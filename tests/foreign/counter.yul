// What client scripts call: set(uint256), get(), fail() with a text, failCustom() with an error of its own.
object "Counter" {
    code {
        datacopy(0, dataoffset("runtime"), datasize("runtime"))
        return(0, datasize("runtime"))
    }
    object "runtime" {
        code {
            switch shr(224, calldataload(0))
            case 0x60fe47b1 { // set(uint256)
                sstore(0, calldataload(4))
                mstore(0, calldataload(4))
                // Changed(address,uint256)
                log2(0, 32, 0xb52dda022b6c1a1f40905a85f257f689aa5d69d850e49cf939d688fbe5af5946, caller())
            }
            case 0x6d4ce63c { // get()
                mstore(0, sload(0))
                return(0, 32)
            }
            case 0xa9cc4718 { // fail()
                mstore(0, shl(224, 0x08c379a0))
                mstore(4, 32)
                mstore(36, 7)
                mstore(68, "no more")
                revert(0, 100)
            }
            default { // Refused(uint256)
                mstore(0, shl(224, 0x590a5151))
                mstore(4, 42)
                revert(0, 36)
            }
        }
    }
}
