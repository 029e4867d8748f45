"""What native code and Python share in memory: a frame, the engine around it, storage slots and the journal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fusevm.evm.forks import Rules
from fusevm.evm.opcodes import CONTEXT_WORDS
from fusevm.native.lang import Struct, ptr, u64, u256
from fusevm.native.lang.types import Pointer

if TYPE_CHECKING:
    question = int
else:
    question = Pointer()  # a function of Python that native code calls with an address; it answers a status

STACK_ALIGN = 1 << 16  # a frame's stack starts at a multiple of this: its height is in the pointer's low bits
WORD = 32
FRAME_MEMORY = 1 << 25  # bytes a frame may have natively, for 2,150,000,000 gas: hashing them takes less than 0.1 s


class Status:
    """Why native code came back."""

    STOP = 0
    RETURN = 1
    REVERT = 2
    SYNC = 3  # Python must execute the instruction at frame.pc, then continue
    REFILL = 4  # the slice of gas is used up
    OUT_OF_GAS = 5
    STACK = 6  # underflow or overflow
    INVALID_JUMP = 7
    INVALID_OPCODE = 8
    STATIC_WRITE = 9
    RETURNDATA = 10
    CAP = 11  # one of the engine's own limits, not the EVM's
    ERROR = 12  # a callback failed; Python holds the exception
    CALLING = 13  # a child frame is ready to run; never reaches Python
    PROBE = 14  # a section begins, and a probe is set
    MORE = 15  # the plain schedule must be written on from frame.pc; never reaches Python


class NativeFrame(Struct):
    """One call. Native code keeps ip, sp and gas in registers, and here whenever it returns."""

    # what differs between two calls of the same code; Python writes these at once
    gas: u64  # of the running slice
    reserve: u64  # gas not yet granted
    data: ptr
    data_size: u64
    account: u64  # number of the account whose storage this is
    static: u64
    blank: u64  # its storage was empty as the call began: Python need not be asked
    address: u256
    caller: u256
    value: u256
    # what does not
    ip: ptr
    sp: ptr
    memory: ptr
    memory_size: u64  # bytes, a multiple of 32
    load_limit: u64  # offsets below this can be loaded or stored as a whole word
    zeroed: u64  # from memory_size up to this, if that is more, memory is zero already
    schedule: ptr
    jumps: ptr  # u32 by pc: where in the schedule a JUMPDEST is, 0 where there is none
    code: ptr
    code_size: u64
    returned: ptr  # what the last call returned
    returned_size: u64
    output_offset: u64  # RETURN and REVERT: where in memory, and how much
    output_size: u64
    pc: u64  # of the instruction Python must do
    call_offset: u64  # where in memory the running call's output goes, and how much
    call_size: u64
    journal_mark: u64  # lengths of journal and logs as this frame began, and the refund counter
    log_mark: u64
    refund_mark: u64
    in_python: u64  # whether Python has an object for this frame, and must see it end
    serial: u64  # distinguishes frames at the same depth
    code_account: u64  # number of the account the code came from
    creates: u64  # its output is the code of the account it runs for
    engine: ptr
    depth: u64


HELD = 2  # of `Call.keep`


class Call(Struct):
    """A call from outside, as Python describes it."""

    engine: ptr
    rest: ptr  # of its first frame: what goes with the code
    gas: u64
    reserve: u64
    data_size: u64
    account: u64
    static: u64
    blank: u64
    fresh: u64  # whether nothing is to be kept of the calls before
    keep: u64  # whether what it changes stays so, if it succeeds; HELD: Python takes over what the transaction keeps
    address: u256  # twenty bytes, highest first, as the two after it
    caller: u256
    origin: u256
    value: u256


class Many(Struct):
    """Calls from outside that run one after another, and where their results go."""

    engine: ptr
    calls: ptr  # of Call: each is of one of these
    kinds: ptr  # u32 by number: of which; zero where all are of the first
    sizes: ptr  # u64 by number: bytes of data; zero where all have `size`
    size: u64
    data: ptr  # of the next one; it follows that of the one before
    place: u64  # number of the next one
    end: u64  # number after the last
    fresh: u64  # whether nothing is to be kept of the calls before
    gas: u64  # to be used before Python checks signals
    outcomes: ptr  # of CallOutcome, by number
    outputs: ptr  # bytes, one output after another, as are the logs
    output_size: u64
    output_limit: u64
    output_base: u64  # bytes of outputs that Python has taken, as of logs
    logs: ptr
    log_size: u64
    log_limit: u64
    log_base: u64
    changes: ptr  # of SlotChange: slots that changed, of calls that are kept
    change_count: u64
    change_limit: u64
    refunds: u64  # calls that have one
    overrides: ptr  # of SlotChange: slots that have other values for one call
    override_ends: ptr  # u64 by number: how many of them there are up to the end of its own; zero where there are none
    override: u64  # number of the next call's first


class CallOutcome(Struct):
    """How a call ended that did not need Python."""

    reverted: u64
    gas_used: u64
    refund: u64  # before its cap
    output_end: u64  # where it ends; it begins where the one before ends
    log_end: u64


class Engine(Struct, Rules, words=CONTEXT_WORDS.values()):
    """What all frames share; with the rules of the fork, and the words of the block and the transaction."""

    # how a call from outside ended; Python reads these at once
    gas_left: u64
    output_offset: u64
    output_size: u64
    change_count: u64  # slots that changed: those of them that are in `changes`
    log_size: u64  # bytes
    refund: u64
    dirty_count: u64  # accounts that changed and Python does not know about
    heavy: u64  # whether tables grew so large that their pages should go back to the machine
    wanted: u64  # whether Python must see this call end, because of what it has said in it or learned of it
    # a precompile that Python must run, and what came of it
    asked_data: ptr
    asked_size: u64
    asked_gas: u64
    answer_size: u64  # the output is in `output`; FAILED if there is none
    answer_gas: u64  # what is left
    # the rest
    slot_count: u64
    account_count: u64
    journal_count: u64
    committed: u64  # journal entries that `commit` has seen
    carries: u64  # whether Python has transient storage of messages before this one
    changes: ptr  # of SlotChange
    change_limit: u64
    frame: ptr  # the running one
    frames: ptr  # the first
    enter: ptr
    serial: u64
    slots: ptr
    slot_limit: u64
    slot_index: ptr
    slot_hints: ptr  # u32 by bits of the key: number of the slot that may have it
    journal: ptr
    journal_limit: u64
    accounts: ptr  # and after the last, one to look at an account without keeping it
    account_limit: u64
    account_index: ptr
    epoch: u64  # moves on with every call from outside, and whenever Python may have changed accounts
    call_epoch: u64  # before the running call began: of accounts it knows, but must ask for again
    kept_epoch: u64  # accounts described before are not good any more
    first_caller: u256  # of the running call from outside, as is the next
    first_address: u256
    logs: ptr
    log_limit: u64
    output: ptr  # what the last call returned is kept here
    block_hashes: ptr  # 256 of BlockHash
    blob_hashes: ptr
    blob_count: u64
    dirty: ptr  # places of accounts in their table
    init_codes: ptr  # of InitCode
    init_mask: u64
    plain_words: ptr  # all plain schedules
    plain_count: u64  # words written
    plain_limit: u64
    plain_origins: ptr
    origin_count: u64
    plain_tables: ptr  # of PlainCode: one after another
    plain_used: u64  # bytes of these
    kept_codes: ptr  # the code of contracts made in this call
    kept_size: u64
    kept_limit: u64
    run_precompile: question  # of an account
    load_account: question  # of an account
    load_block_hash: question  # of a BlockHash
    load_slot: question  # of a slot
    load_code: question  # of an account: the schedule of its code
    load_init_code: question  # of init code: its schedule
    hash_code: question  # of an account: the hash of its code
    take_notes: question  # of the engine: they have filled their place
    hashes: ptr  # of Hashed; zero where none are kept
    hash_hits: u64
    hash_misses: u64
    hash_credit: u64  # remaining misses before inputs are looked up only rarely
    hash_skipped: u64  # inputs that might have been looked up since
    moduli: ptr  # of Modulus
    memory_end: ptr  # where the arena ends
    hashed: u64  # words since the clock was checked
    memory_light: ptr  # a call that goes no further leaves no pages to give back
    secret_0: u64  # of the tables' hash
    secret_1: u64
    secret_2: u64
    secret_3: u64
    # of recordings alone
    notes: ptr
    note_limit: u64
    note_size: u64  # bytes written
    note_start: u64  # of them before the running call from outside
    noted_logs: u64  # bytes of logs that are among the notes
    noted_key: u256  # of the storage that was noted last, and the one before
    older_key: u256
    wants_logs: u64
    calling: u64  # the kind of the call that begins
    meters: ptr  # of Meter, by depth; zero where gas is not measured
    first_delegate: u256  # whose code a call from outside runs (EIP-7702)
    number: u256  # BLOCKHASH reads it too
    coinbase: u256  # is warm from the start
    origin: u256  # is passed with each call


QUESTIONS = Engine.names(question)


class StorageSlot(Struct):
    """A storage slot that has been touched: persistent, or transient where account's top bit is set."""

    hash: u64
    next: u64
    account: u64
    flags: u64
    key: u256
    value: u256
    original: u256


class SlotChange(Struct):
    """A slot as a call from outside left it."""

    account: u64
    key: u256
    value: u256


class Account(Struct):
    """An account as Python described it at some epoch: in this call, or in one before if it has not changed since.

    Python's own is the one that counts, except for what is kept, and undone, here: balance and nonce, and all of a
    contract that is made natively.
    """

    hash: u64
    next: u64
    address: u256
    epoch: u64
    # what Python writes at once
    number: u64  # by which Python and storage slots know it
    flags: u64
    nonce: u64
    balance: u256
    code_hash: u256
    code: ptr
    code_size: u64
    schedule: ptr
    jumps: ptr
    entry: ptr  # where the schedule begins; of a precompile, its native code, zero where Python must be asked
    delegate: u256  # the account whose code runs in place of its own (EIP-7702)


ACCOUNT_WARM = 1
ACCOUNT_PLAIN = 2  # has code of its own: no precompile, no delegation
ACCOUNT_VOID = 4  # has no code and is not a precompile
ACCOUNT_BLANK = 8  # its storage was empty as the call began
ACCOUNT_ALIVE = 16  # not empty (before EIP-161: there), so that value can be sent there and nothing else changes
ACCOUNT_DIRTY = 32  # in the dirty list: Python does not know its changes
ACCOUNT_PRECOMPILE = 64
ACCOUNT_STORED = 128  # has storage
ACCOUNT_CREATED = 256  # made here in this call
ACCOUNT_CODED = 512  # its code changed and Python does not know
ACCOUNT_TRACELESS = 1024  # a call to it without value changes nothing but what its code changes
ACCOUNT_DELEGATED = 2048  # runs the code of another account
ACCOUNT_HASHED = 4096  # the hash of its code is known
ACCOUNT_DESTROYED = 8192  # marked here to be removed when the transaction ends
ACCOUNT_DOOMED = 16384  # marked so by Python
ACCOUNT_NEW = 32768  # made in this transaction by Python
ACCOUNT_ENSURED = 65536  # is there, though it may be empty, because it was made here in this call (before EIP-161)


class InitCode(Struct):
    """Init code that ran before; one for each value of some bits of its hash."""

    hash: u64
    size: u64
    code: ptr
    schedule: ptr  # zero where nothing is known
    jumps: ptr
    entry: ptr


class PlainOp(Struct):
    """A byte of code as plain schedules know it."""

    handler: u64
    gas: u64
    pops: u64
    delta: u64  # of the stack's height
    immediate: u64  # bytes after it
    role: u64
    ending: u64
    operand: u64  # how deep it reaches, if DUP16 and SWAP16 do not
    variants: u64  # number of the first of 256 rows, by the byte after it; zero where there is one only


class BlockHash(Struct):
    number: u64  # plus one; zero where nothing is kept
    hash: u256


class Hashed(Struct):
    """Bytes whose Keccak-256 was computed before: this, then the bytes. One for each value of some bits of a hash."""

    size: u64  # zero where nothing is known
    word: u256


class Modulus(Struct):
    """A modulus that MULMOD met, and once it came often enough, what makes its next use quick."""

    modulus: u256  # zero where there is none
    divisor: u256  # the modulus shifted so that its top bit is set
    negated: u256  # 2^256 minus the divisor
    reciprocal: u256  # of the divisor
    limb: u64  # the reciprocal of the divisor's two top limbs
    complement: u64  # the negated divisor where it has one limb, else zero
    shift: u64
    uses: u64


class LogHeader(Struct):
    """A log: this, its topics, its data padded to eight bytes."""

    address: u256
    topics: u64
    size: u64


SLOT_WARM = 1
SLOT_DIRTY = 2
TRANSIENT = 1 << 63


class Undo(Struct):
    """One journal entry: a slot, or something of an account, as it was."""

    slot: u64  # its place in the table of slots, or, where one of the below is added, of accounts
    flags: u64  # or the nonce
    value: u256


ENTRY_SHIFT = 61
ACCOUNT_ENTRY = 1 << ENTRY_SHIFT  # its warmth
BALANCE_ENTRY = 2 << ENTRY_SHIFT
NONCE_ENTRY = 3 << ENTRY_SHIFT
CREATION_ENTRY = 4 << ENTRY_SHIFT  # it was not there
