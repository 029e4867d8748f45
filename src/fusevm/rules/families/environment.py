"""What the machine promises about its environment. No word arithmetic can prove these: each names where it is said."""

# ruff: noqa: F403, F405
from fusevm.rules.families.notation import *

ADDRESS_BITS = Const("2^160-1", lambda bits: (1 << min(bits, 160)) - 1)
TWENTY_BYTES = "Yellow Paper 4.1: an address is 160 bits"
TRUNCATED = "Yellow Paper H.2: an address operand is taken modulo 2^160"

HOLDERS = (("address", ADDRESS()), ("caller", CALLER()), ("origin", ORIGIN()), ("coinbase", COINBASE()))
READERS = (("balance", BALANCE), ("extcodesize", EXTCODESIZE), ("extcodehash", EXTCODEHASH))

ENVIRONMENT = family(
    "environment",
    rule("balance-of-self", BALANCE(ADDRESS()), SELFBALANCE(), solc=205, axiom="EIP-1884"),
    *(
        rule(f"and-{name}", AND(holder, ADDRESS_BITS), holder, solc=113 + 2 * place, use=YUL, axiom=TWENTY_BYTES)
        for place, (name, holder) in enumerate(HOLDERS)
    ),
    *(
        rule(f"and-{name}-turned", AND(ADDRESS_BITS, holder), holder, solc=114 + 2 * place, use=YUL, axiom=TWENTY_BYTES)
        for place, (name, holder) in enumerate(HOLDERS)
    ),
    *(
        rule(f"and-{name}-covered", AND(holder, A), holder, covers(A, ADDRESS_BITS), axiom=TWENTY_BYTES)
        for name, holder in HOLDERS
    ),
    *(
        rule(f"shr-{name}", SHR(A, holder), 0, covers((1 << A) - 1, ADDRESS_BITS), A < BITS, axiom=TWENTY_BYTES)
        for name, holder in HOLDERS
    ),
    *(
        rule(f"{name}-truncates", reader(AND(X, A)), reader(X), covers(A, ADDRESS_BITS), axiom=TRUNCATED)
        for name, reader in READERS
    ),
)
