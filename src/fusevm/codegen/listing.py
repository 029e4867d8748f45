"""Compiled code as readable assembly: labels, offsets, and function entries. `fusevm asm` reads it back."""

from __future__ import annotations

from fusevm.codegen.yul import CompiledObject
from fusevm.evm.assembly import disassemble
from fusevm.evm.bytecode import instructions
from fusevm.evm.forks import Fork

DATA_PER_LINE = 32


def listing(compiled: CompiledObject, fork: Fork, deep: bool = True) -> str:
    """The code of an object; `deep`: and of its sub-objects, each after a line that names it."""
    lines = [f'; object "{compiled.name}", {len(compiled.code)} bytes', *_code(compiled, fork)]
    text = "\n".join(lines)
    if not deep:
        return text
    return "\n\n".join([text, *(listing(child, fork) for child in compiled.children.values())])


def _code(compiled: CompiledObject, fork: Fork) -> list[str]:
    """Missing library addresses are printed as zero."""
    size = _end_of_code(compiled, fork)
    starts = {f"; {entry.pc:#06x}": name for name, entry in compiled.functions.items()}
    lines: list[str] = []
    for line in disassemble(compiled.code[:size], fork, labels=True).splitlines():
        name = starts.get(line[line.find(";") :])
        if name is not None:
            entry = compiled.functions[name]
            at = -1 if lines and lines[-1].endswith(":") else len(lines)
            lines.insert(at, f"; function {name}: {entry.parameters} in, {entry.results} out")
        lines.append(line)
    data = compiled.code[size:]
    for start in range(0, len(data), DATA_PER_LINE):
        part = data[start : start + DATA_PER_LINE]
        lines.append(f"DATA 0x{part.hex():<{2 * DATA_PER_LINE}} ; {size + start:#06x}")
    return lines


def _end_of_code(compiled: CompiledObject, fork: Fork) -> int:
    last = max(compiled.locations, default=-1)
    return last + next(instructions(compiled.code[last:], fork)).size if last >= 0 else 0
