"""The fold engine: instructions are created by `emit`, which passes each through

    FOLD (rules) → CSE (reuse an equal one) → FWD (loads) or DSE (stores) → append

The result of a rule is NEXTFOLD (try the next rule), RETRYFOLD (an instruction to fold again), LEFTFOLD, RIGHTFOLD or
another operand, or a constant. The least specific rule of each opcode selects the next stage (`Then`: CSEFOLD, EMITFOLD
and so on). For guards it is DROPFOLD, FAILFOLD or, by a condition, either (`guards.cond`). `raw` bypasses the pipeline.
"""

from __future__ import annotations

from fusevm.evm.forks import LATEST, Fork, rules_of
from fusevm.evm.gas import exponent_cost
from fusevm.evm.opcodes import ACCESS, BY_NAME, GAS, MSIZE, STORAGE, TRANSIENT
from fusevm.ir.builder import Builder, NeverReached
from fusevm.ir.fold import forward, guards, stores
from fusevm.ir.fold.compiled import Folding, keys_of, table_of
from fusevm.ir.fold.guards import Verdict
from fusevm.ir.fold.memory_facts import MemoryFacts
from fusevm.ir.fold.recorder import FoldRecorder, shown_value
from fusevm.ir.fold.stages import DISPATCH, EVERYTHING, Mode, Stage, Then
from fusevm.ir.fold.stats import Stats
from fusevm.ir.functions import DependencyBlock
from fusevm.ir.values import (
    CONST,
    PREPAYABLE,
    READS_MEMORY,
    TRAITS,
    WRITES_MEMORY,
    Value,
    traits_of,
)
from fusevm.rules.matching import Match
from fusevm.rules.pattern import Meta, Node, Tree, is_constant

CHAIN_STEPS = 64  # how far CSE looks back along a chain
RETRIES = 48  # how often one instruction is folded again
_ACCESS = ACCESS.value
_OBSERVERS = GAS.value | MSIZE.value
_STORAGE, _TRANSIENT, _MSIZE = STORAGE.value, TRANSIENT.value, MSIZE.value


def fuel_for(instructions: int) -> int:
    """The budget of rule applications for this many instructions."""
    return 1_000 + 16 * instructions


class Folder(Builder):
    recorder: FoldRecorder | None = None  # is told every change, if set

    def __init__(
        self,
        fork: Fork = LATEST,
        mode: Mode = Mode.EXECUTION,
        stages: Stage = EVERYTHING,
        keeps_growth: bool = True,
    ) -> None:
        self.fork, self.mode, self.stages = fork, mode, stages
        self.keeps_growth = keeps_growth  # MSIZE is observed
        self.folds = bool(stages & Stage.FOLD)
        self.shares = bool(stages & Stage.CSE)
        self.forwards = self.folds and self.shares and bool(stages & Stage.FWD)
        self.unmakes = self.folds and bool(stages & Stage.DSE)
        self.guards_growth = mode is Mode.EXECUTION and self.folds
        self.table = table_of(fork, mode is Mode.EXECUTION)
        self.stats = Stats()
        self.clock = 0
        self.fuel = 1 << 62  # rule applications left; once spent, FOLD is skipped
        self.world = MemoryFacts()
        self.constant_guard: Value | None = None  # the block's check of memory up to a constant
        self.dead: set[int] = set()
        super().__init__()

    # -- blocks -----------------------------------------------------------------------------------------------------

    def begin(self, block: DependencyBlock) -> None:
        super().begin(block)
        self.constant_guard = None
        self.know(block)

    def know(self, block: DependencyBlock) -> None:
        """Sets the facts on entry to the block: none, if it is folded on its own."""
        self.chains = {}
        self.world = MemoryFacts()

    def is_available(self, value: Value) -> bool:
        """Whether the value is computed on every path to the current block."""
        return True

    def sweep(self) -> None:
        """Removes dead stores from the block."""
        if self.dead:
            self.block.instructions = [value for value in self.block.instructions if value.id not in self.dead]
            self.dead.clear()

    def kill(self, store: Value, why: str) -> None:
        if store.id not in self.dead and not store.keep:
            self.dead.add(store.id)
            self.stats.stores_dropped += 1
            if self.recorder is not None:
                at = self.block.instructions.index(store)
                before = self.block.instructions[at - 1] if at else None
                self.recorder.dropped(store.where, why, store.op, store.args, before)

    # -- emission ---------------------------------------------------------------------------------------------------

    def emit(self, op: str, args: tuple[Value, ...] = (), pc: int = 0) -> Value | None:
        match DISPATCH[op]:
            case Then.CSE:
                return self.pure(op, args, pc)
            case Then.READ:
                return self.read(op, args, pc)
            case Then.FWD if self.forwards:
                return self.load(op, args, pc)
            case Then.DSE if self.unmakes and self.store(op, args):
                return None
            case Then.EXP:
                return self.exp(args, pc)
        return self.effect(op, args, pc)

    def pure(self, op: str, args: tuple[Value, ...], pc: int = 0) -> Value:
        if self.folds and self.fuel > 0:
            folded = self.fold(op, args)
            if isinstance(folded, Value):
                return folded
            op, args = folded
            if not TRAITS[op].pure:  # a rule replaced a pure instruction by one that reads the world
                return self.read(op, args, pc)
        return self.share(op, args, 0) or self.append(op, args, pc)

    def append(self, op: str, args: tuple[Value, ...], pc: int = 0) -> Value:
        """Appends a pure instruction; the engine for programs may hoist it to an earlier block."""
        return self.raw(op, args, pc)

    def read(self, op: str, args: tuple[Value, ...], pc: int) -> Value:
        """An instruction that only reads the world (and warms what it reads): pure as long as that is not written."""
        if self.folds and self.fuel > 0:
            folded = self.fold(op, args)
            if isinstance(folded, Value):
                return folded
            op, args = folded
        traits = TRAITS[op]
        epoch = self.world.epoch(traits.reads & ~_ACCESS)
        if not traits.observes:
            shared = self.share(op, args, epoch)
            if shared is not None:
                return shared
        value = self.effect(op, args, pc)
        value.epoch = epoch
        return value

    def share(self, op: str, args: tuple[Value, ...], epoch: int) -> Value | None:
        """CSE along the chain of the opcode. The search ends at the operands: an equal instruction is younger."""
        if not self.shares:
            return None
        oldest = max([arg.id for arg in args], default=-1)
        candidate, steps = self.chains.get(op), CHAIN_STEPS
        while candidate is not None and candidate.id > oldest and steps:
            if candidate.args == args and candidate.epoch == epoch and self.is_available(candidate):
                self.stats.shared += 1
                if self.recorder is not None:
                    self.recorder.changed(self.where, "shared", op, args, candidate)
                return candidate
            candidate, steps = candidate.prev, steps - 1
        return None

    # -- FOLD -------------------------------------------------------------------------------------------------------

    def fold(self, op: str, args: tuple[Value, ...]) -> Value | tuple[str, tuple[Value, ...]]:
        """The value that replaces the instruction, or the instruction in normal form."""
        for _ in range(RETRIES):
            args = self.ordered(op, args)
            result = self.match(op, args)
            if result is None:
                break
            if isinstance(result, Value):
                return result
            op, args = result
        return op, args

    @staticmethod
    def ordered(op: str, args: tuple[Value, ...]) -> tuple[Value, ...]:
        """Canonical order of commutative operands: the younger one to the left; literals are the oldest."""
        if BY_NAME[op].commutes and args[0].id < args[1].id:
            return (args[1], args[0], *args[2:])
        return args

    def match(self, op: str, args: tuple[Value, ...]) -> Value | tuple[str, tuple[Value, ...]] | None:
        buckets = self.table.buckets
        for key in keys_of(op, args) if op in self.table.roots else ():
            for folding in buckets.get(key, ()):
                found = folding.match(*args)
                if found is not None and (folding.grows <= 0 or self.pays(folding, args)):
                    return self.rewritten(op, args, found, "rule")
        return None

    def rewritten(
        self, op: str, args: tuple[Value, ...], found: Match[Value], why: str
    ) -> Value | tuple[str, tuple[Value, ...]]:
        """The instruction after the rule that was found for it."""
        rule = found.rule
        self.fuel -= 1
        self.stats.folded += 1
        self.stats.rules[rule.name] += 1
        result = self.apply(rule.result, found)
        if self.recorder is not None:
            self.recorder.changed(self.where, why, op, args, result, rule)
        return result

    def pays(self, folding: Folding, args: tuple[Value, ...]) -> bool:
        """A result of several instructions pays only if the ones it replaces have no other use."""
        for path in folding.inner:
            value = args[path[0]]
            for place in path[1:]:
                value = value.args[place]
            if value.uses > (1 if len(path) > 1 else 0) or self.is_shared(value):
                return False
        return True

    def is_shared(self, value: Value) -> bool:
        """Whether it will have several uses, where that is known beforehand."""
        return False

    def apply(self, result: Tree, found: Match[Value]) -> Value | tuple[str, tuple[Value, ...]]:
        """Builds the result of a rule: inner instructions are emitted, the outermost is returned to be folded again."""
        if is_constant(result):
            return self.const(found.rule.number(result, found.constants))
        if isinstance(result, Meta):
            return found.values[result.name]
        assert isinstance(result, Node)
        return result.op, tuple([self.built(arg, found) for arg in result.args])

    def built(self, result: Tree, found: Match[Value]) -> Value:
        built = self.apply(result, found)
        if isinstance(built, Value):
            return built
        op, args = built
        return (
            self.pure(op, args) if TRAITS[op].pure else self.paid_exp(args) if op == "EXP" else self.read(op, args, 0)
        )

    # -- EXP: dynamic gas by the exponent, and a pure power ---------------------------------------------------------

    def exp(self, args: tuple[Value, ...], pc: int) -> Value:
        """The power folds like any pure value; its dynamic gas must be charged in any case."""
        if not self.folds:
            return self.effect("EXP", args, pc)
        exponent = args[1]
        if exponent.op == CONST:
            if self.mode is Mode.EXECUTION:
                self.charge(exponent_cost(rules_of(self.fork), exponent.number.bit_length()))
            return self.paid_exp(args, pc)
        folded = self.fold("EXP", args) if self.fuel > 0 else ("EXP", args)
        if not isinstance(folded, Value):
            op, args = folded
            if op == "EXP":
                shared = self.share("EXP", args, 0)
                if shared is None and args[1] is exponent:
                    return self.effect("EXP", args, pc)
                folded = shared or self.paid_exp(args, pc)
            else:
                folded = self.pure(op, args, pc)
        if self.mode is Mode.EXECUTION:
            self.effect("EXPGAS", (exponent,), pc)
        return folded

    def paid_exp(self, args: tuple[Value, ...], pc: int = 0) -> Value:
        folded = self.fold("EXP", args)
        if isinstance(folded, Value):
            return folded
        op, args = folded
        if op != "EXP":
            return self.pure(op, args, pc)
        shared = self.share("EXP", args, 0)
        if shared is not None:
            return shared
        value = self.raw("EXP", args, pc)
        value.prechecked = self.mode is Mode.EXECUTION
        return value

    # -- FWD and DSE ------------------------------------------------------------------------------------------------

    def load(self, op: str, args: tuple[Value, ...], pc: int) -> Value:
        if op == "MLOAD":
            known = forward.load_memory(self, args[0])
        elif op == "KECCAK256":
            known = forward.hash_memory(self, args)
        else:
            known = forward.load_slot(self, op, args[0])
        if known is None:
            return self.effect(op, args, pc)
        self.stats.forwarded += 1
        if self.recorder is not None:
            self.recorder.changed(self.where, "forwarded", op, args, known)
            self.drop(f"forwarded: what it loads is known: {shown_value(known)}", op, args)
        if op in PREPAYABLE and self.guards_growth:
            self.prepay(op, args)
        return known

    def drop(self, why: str, op: str, args: tuple[Value, ...]) -> None:
        """Tells the recorder, if there is one, about an instruction that is not emitted."""
        if self.recorder is not None:
            instructions = self.block.instructions
            self.recorder.dropped(self.where, why, op, args, instructions[-1] if instructions else None)

    def store(self, op: str, args: tuple[Value, ...]) -> bool:
        """Whether the store is redundant; if not, removes earlier stores that it overwrites."""
        if op in ("MSTORE", "MSTORE8"):
            if stores.stores_nothing_new(self, op, args):
                self.stats.stores_dropped += 1
                self.drop("dead store: memory holds this word already", op, args)
                if self.guards_growth:
                    self.prepay(op, args)
                return True
            stores.kill_overwritten(self, op, args)
            return False
        if op == "SSTORE" and self.mode is Mode.EXECUTION:
            return False  # its cost and its refund are observable
        if stores.slot_holds(self, op, args):
            self.stats.stores_dropped += 1
            self.drop("dead store: the slot holds this word already", op, args)
            return True
        stores.kill_overwritten_slot(self, op, args)
        return False

    # -- instructions with effects ----------------------------------------------------------------------------------

    def effect(self, op: str, args: tuple[Value, ...], pc: int) -> Value:
        """Appends the instruction, in execution mode after its checks, and notes its effects."""
        paid = self.guards_growth and op in PREPAYABLE and op != "EXP" and self.prepay(op, args)
        value = self.raw(op, args, pc)
        value.prechecked = paid
        self.note(value)
        return value

    def prepay(self, op: str, args: tuple[Value, ...]) -> bool:
        """Emits the checks of a memory access before it and charges its dynamic gas with the section, if constant."""
        opcode, rules = PREPAYABLE[op], rules_of(self.fork)
        if any(args[price.operand].op != CONST for price in opcode.prices):
            return False
        for rule, operand, unit in opcode.prices:
            size = args[operand].number
            if size >= guards.BEYOND_ALL_GAS:
                raise NeverReached
            self.charge(getattr(rules, rule) * -(-size // unit))
        for offset, length in opcode.touches:
            self.guard(args[offset], self.const(-length) if length < 0 else args[length])
        return True

    def guard(self, offset: Value, size: Value) -> None:
        self.stats.checks += 1
        verdict = guards.reach(self, offset, size)
        if verdict is Verdict.FAIL:
            raise NeverReached
        if verdict is Verdict.KEEP:
            self.note(self.raw("REACH", (offset, size)))
        elif verdict is Verdict.DROP:
            self.stats.checks_dropped += 1

    def note(self, value: Value) -> None:
        world, op, traits = self.world, value.op, traits_of(value)
        touched = traits.reads | traits.writes
        if traits.writes:
            self.clock += 1
            world.write(traits.writes, self.clock)
        if traits.reads & _OBSERVERS:
            world.observer = value.id
            self.constant_guard = None
        if op in READS_MEMORY or op in WRITES_MEMORY or traits.reads & _MSIZE:
            world.remember_memory(value)
            if not value.prechecked:
                self.note_growth(value)
        if touched & _STORAGE:
            world.remember(world.storage, value)
        if touched & _TRANSIENT:
            world.remember(world.transient, value)

    def note_growth(self, value: Value) -> None:
        for offset, length in READS_MEMORY.get(value.op, ()) + WRITES_MEMORY.get(value.op, ()):
            start, size = value.args[offset], -length if length < 0 else value.args[length].number
            if start.op == CONST and (length < 0 or value.args[length].op == CONST) and size:
                self.world.reach = max(self.world.reach, -(-(start.number + size) // 32) * 32)
