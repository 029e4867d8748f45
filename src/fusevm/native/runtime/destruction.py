"""Native code for SELFDESTRUCT. In the subset of `lang`.

Python does it where an empty account is touched, a precompile's is created, or Python made the account itself.
"""

from __future__ import annotations

from fusevm.evm.gas import selfdestruct_cost
from fusevm.native.lang import inlined, load, ptr, slt, u64, u256
from fusevm.native.layout import (
    ACCOUNT_CREATED,
    ACCOUNT_DESTROYED,
    ACCOUNT_DOOMED,
    ACCOUNT_ENTRY,
    ACCOUNT_NEW,
    ACCOUNT_WARM,
    Account,
    Engine,
    NativeFrame,
    Undo,
)
from fusevm.native.runtime.frames import ASK_PYTHON, DONE
from fusevm.native.runtime.memory import BROKEN, CAPPED, STATIC, charge
from fusevm.native.runtime.outside import (
    ADDRESS_MASK,
    ensure,
    find_account,
    is_absent,
    is_alive,
    is_creatable,
    may_visit,
    set_balance,
    warm,
)
from fusevm.native.runtime.storage import account_entry, journal_full, mark_dirty


@inlined
def self_destruct(frame: NativeFrame, gas: u64, top: ptr, _kind: u64, _ip: ptr) -> u64:
    """DONE where the frame ends, its gas written; or why not."""
    engine = Engine(frame.engine)
    if frame.static != 0:
        return STATIC
    address = load(u256, top - 32) & ADDRESS_MASK
    allowed = may_visit(frame, gas, address)
    if allowed != DONE:
        return allowed
    heir = Account(find_account(engine, address))
    own = Account(find_account(engine, frame.address))
    if heir == 0 or own == 0:
        return BROKEN
    balance = own.balance
    alive = is_alive(heir)
    absent = u64(alive == 0 and is_absent(engine, heir) != 0)
    if alive == 0 and absent == 0 and is_creatable(engine, heir) == 0:
        return ASK_PYTHON
    if (own.flags & ACCOUNT_NEW) != 0 or heir.balance + balance < balance:
        return ASK_PYTHON
    cold = u64(engine.access_sets != 0 and (heir.flags & ACCOUNT_WARM) == 0)
    creates = u64(balance != 0 and alive == 0)
    if absent != 0:
        creates = engine.selfdestruct_new_account  # EIP-150; before it is free
    gas = charge(frame, gas, selfdestruct_cost(engine, cold, creates))
    if slt(gas, 0):
        return gas
    if cold != 0 and warm(engine, heir) == 0:
        return CAPPED
    if absent != 0 and ensure(engine, heir) == 0:
        return CAPPED
    destroys = u64(engine.selfdestruct_only_new == 0 or (own.flags & ACCOUNT_CREATED) != 0)
    if destroys != 0 and (own.flags & (ACCOUNT_DESTROYED | ACCOUNT_DOOMED)) == 0:
        if journal_full(engine) != 0:
            return CAPPED
        engine.refund += engine.selfdestruct_refund
        entry = Undo(account_entry(engine, own, ACCOUNT_ENTRY))
        entry.flags = own.flags
        own.flags = own.flags | ACCOUNT_DESTROYED
        mark_dirty(engine, own)
    if balance != 0 and (heir != own or destroys != 0):  # what it sends to itself is lost
        if heir != own and set_balance(engine, heir, heir.balance + balance) == 0:
            return CAPPED
        if set_balance(engine, own, u256(0)) == 0:
            return CAPPED
    frame.gas = gas
    return DONE
