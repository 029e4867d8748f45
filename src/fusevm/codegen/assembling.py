"""Stack code to assembler items: a jump unless the target is the next block, a label for every jump target."""

from __future__ import annotations

from fusevm.codegen.blocks import (
    LABEL,
    PUSH,
    SETIMMUTABLE,
    SYMBOL,
    VERBATIM,
    Code,
    StackBlock,
    StackProgram,
    Terminator,
)
from fusevm.codegen.constants import MAX_WEIGHT, pushed
from fusevm.evm.assembler import CALLS, NO_CALL, RETURNS, Assembly, EntryLabel, Item, ItemKind
from fusevm.ir.functions import SymbolKind, Unit

_KINDS = {
    SymbolKind.DATA_SIZE: ItemKind.DATA_SIZE,
    SymbolKind.DATA_OFFSET: ItemKind.DATA_OFFSET,
    SymbolKind.IMMUTABLE: ItemKind.IMMUTABLE,
    SymbolKind.LIBRARY: ItemKind.LIBRARY,
}


def assembly_of(program: StackProgram, unit: Unit, runs: int) -> Assembly:
    assembly = Assembly(unit.fork)
    labels = {label: assembly.new_label() for label in program.order}
    following = dict(zip(program.order, program.order[1:], strict=False))
    wanted = _wanted(program, following)
    entries = {label: name for name, label in program.functions.items() if label and label in labels}
    for label in program.order:
        block = program.blocks[label]
        _begin(assembly, block, unit, labels[label], label in wanted, entries.get(label))
        for code in block.code:
            assembly.at(code.where)
            _write(assembly, code, unit, labels, runs * min(block.weight, MAX_WEIGHT))
        if block.end is Terminator.RETURN:
            assembly.at(block.where, RETURNS)
            assembly.named_op("JUMP")
        elif block.end is Terminator.BRANCH:
            assembly.at(block.where)
            assembly.jump_if(labels[block.targets[0]])
        if block.needs_jump(following.get(label)):
            target = block.targets[-1]
            calls = block.end is Terminator.CALL or (target in entries and block.function != target)
            assembly.at(block.where, CALLS if calls else NO_CALL)
            assembly.jump(labels[target])
    return assembly


def _begin(assembly: Assembly, block: StackBlock, unit: Unit, label: int, wanted: bool, function: str | None) -> None:
    """Emits the block's label; that of a function is recorded even if nothing jumps to it."""
    assembly.at(block.code[0].where if block.code else block.where)
    if function is not None and function in unit.functions:
        entered = unit.functions[function]
        assembly.entries[function] = EntryLabel(label, len(entered.params), entered.results)
        assembly.at(entered.where)
        if not wanted:
            assembly.items.append(Item(ItemKind.LABEL, label=label, source=assembly.source))
    if wanted:
        assembly.label(label)


def _wanted(program: StackProgram, following: dict[int, int]) -> set[int]:
    """The blocks that need a JUMPDEST: jump targets and pushed labels."""
    wanted: set[int] = set()
    for label, block in program.blocks.items():
        wanted.update(block.labels())
        if block.end is Terminator.BRANCH:
            wanted.add(block.targets[0])
        if block.needs_jump(following.get(label)):
            wanted.add(block.targets[-1])
    return wanted


def _write(assembly: Assembly, code: Code, unit: Unit, labels: dict[int, int], runs: float) -> None:
    if code.op == PUSH:
        assembly.raw(pushed(code.number, unit, runs), 1)
    elif code.op == LABEL:
        assembly.label_reference(labels[code.number])
    elif code.op == SYMBOL:
        symbol = unit.symbols[code.number]
        assembly.reference(_KINDS[symbol.kind], symbol.name)
    elif code.op == SETIMMUTABLE:
        assembly.reference(ItemKind.ASSIGN_IMMUTABLE, unit.symbols[code.number].name, -2)
    elif code.op == VERBATIM:
        verbatim = unit.verbatims[code.number]
        assembly.raw(verbatim.data, verbatim.outputs - verbatim.inputs)
    else:
        assembly.named_op(code.op)
