"""Passes over stack code: each reduces the size or gas of a program of blocks and preserves its behaviour."""

from __future__ import annotations

from fusevm.codegen.blocks import ISZERO, LABEL, POP, PUSH, SYMBOL, Code, StackBlock, StackProgram, Terminator
from fusevm.codegen.ordering import COMMUTATIVE, FREE
from fusevm.codegen.weights import together
from fusevm.evm.opcodes import BY_NAME

_SWAP1 = Code("SWAP1")
_MAX_ENDS = 200  # blocks whose tails are compared with each other
_TOP = (1 << 256) - 1


def thread_jumps(program: StackProgram) -> None:
    """Jump threading: edges and labels of a block that only jumps are redirected to its final target."""
    ends = {label: _where_it_ends(program, label) for label in program.blocks if label}
    new = {label: end for label, end in ends.items() if end != label}
    program.redirect(new)
    for block in program.blocks.values():
        if block.end is Terminator.BRANCH and block.targets[0] == block.targets[1]:
            block.code.append(POP.at(block.where))
            block.end, block.targets = Terminator.JUMP, block.targets[:1]
    program.drop_unreached()


def _where_it_ends(program: StackProgram, label: int) -> int:
    """The final target after blocks that only jump; the label itself if these form a cycle."""
    at, seen = label, {label}
    while program.blocks[at].end is Terminator.JUMP and not program.blocks[at].code:
        at = program.blocks[at].targets[0]
        if at in seen:
            return label
        seen.add(at)
    return at


def join_blocks(program: StackProgram) -> None:
    """Merges a block with its successor if nothing else refers to that."""
    references = program.references()
    for label in list(program.blocks):
        block = program.blocks.get(label)
        while block is not None and block.end is Terminator.JUMP:
            target = block.targets[0]
            if target == block.label or target == 0 or references[target] != 1:
                break
            after = program.blocks.pop(target)
            block.code += after.code
            block.end, block.targets, block.where = after.end, after.targets, after.where


def merge_equal_blocks(program: StackProgram) -> bool:
    """Merges blocks with the same code and the same successors."""
    seen: dict[object, int] = {}
    new: dict[int, int] = {}
    for label, block in program.blocks.items():
        key = (tuple(block.code), block.end, block.targets)
        if key in seen and label:
            new[label] = seen[key]
            one = program.blocks[seen[key]]
            one.weight = together(one.weight, block.weight)
            program.merge(one, block, len(block.code))
        else:
            seen.setdefault(key, label)
    if new:
        program.redirect(new)
        program.drop_unreached()
    return bool(new)


def merge_tails(program: StackProgram, saves: int, runs: int) -> None:
    """Tail merging: a tail that several blocks share is written once and jumped to.

    A jump costs 4 bytes and 12 gas, so this is done where the bytes saved are worth the gas; the gas of tails that
    revert does not count.
    """
    ends: dict[object, list[StackBlock]] = {}
    for block in program.blocks.values():
        if block.end in (Terminator.HALT, Terminator.JUMP, Terminator.RETURN, Terminator.CALL) and len(block.code) > 1:
            ends.setdefault((block.end, block.targets, tuple(block.code[-2:])), []).append(block)
    for blocks in ends.values():
        for start in range(0, len(blocks), _MAX_ENDS):
            group = blocks[start : start + _MAX_ENDS]
            while len(group) > 1:
                best = _best_tail(group, saves, runs)
                if best is None:
                    break
                length, members = best
                group = [block for block in group if block not in members]
                group.append(_cut(program, members, length))
    thread_jumps(program)


def _best_tail(group: list[StackBlock], saves: int, runs: int) -> tuple[int, list[StackBlock]] | None:
    """The length of the tail, and the blocks that share it, that save most."""
    best: tuple[float, int, list[StackBlock]] | None = None
    sharing = [group]
    length = 2
    while sharing:
        longer: dict[tuple[int, Code], list[StackBlock]] = {}
        for number, members in enumerate(sharing):
            gain = _gain(members, length, saves, runs)
            if gain > 0 and (best is None or gain > best[0]):
                best = gain, length, members
            for block in members:
                if len(block.code) > length:
                    longer.setdefault((number, block.code[-length - 1]), []).append(block)
        sharing = [members for members in longer.values() if len(members) > 1]
        length += 1
    return None if best is None else best[1:]


def _cut(program: StackProgram, members: list[StackBlock], length: int) -> StackBlock:
    """Outlines the common tail of these blocks into a new block."""
    tail = program.new(together(*(block.weight for block in members)), members[0].function)
    tail.code = members[0].code[-length:]
    tail.end, tail.targets, tail.where = members[0].end, members[0].targets, members[0].where
    for block in members:
        if block is not members[0]:
            program.merge(tail, block, length)
        block.where = block.code[-length].where
        block.code = block.code[:-length]
        block.end, block.targets = Terminator.JUMP, (tail.label,)
    return tail


def _gain(members: list[StackBlock], length: int, saves: int, runs: int) -> float:
    tail = members[0].code[-length:]
    size = sum(size_of(code) for code in tail)
    end = members[0].end
    if end is Terminator.JUMP or end is Terminator.CALL:
        size += 4
    elif end is Terminator.RETURN:
        size += 1
    whole = sum(len(block.code) == length for block in members)  # these need no jump: they are the tail
    jumps = len(members) - 1
    saved = size * (len(members) - 1) - 4 * jumps - 1
    if whole:
        saved = size * (len(members) - 1) - 4 * (len(members) - whole) - (0 if whole == len(members) else 1)
    cold = end is Terminator.HALT and tail[-1].op in ("REVERT", "INVALID")
    weight = 0.0 if cold else sum(block.weight for block in members) - max(block.weight for block in members)
    return saved * saves - 12 * weight * runs


def size_of(code: Code) -> int:
    """The approximate size in bytes."""
    if code.op == PUSH:
        return 1 + (code.number.bit_length() + 7) // 8
    if code.op == LABEL:
        return 3
    return {"SYMBOL": 4, "SETIMMUTABLE": 10, "VERBATIM": 4}.get(code.op, 1)


def peephole(program: StackProgram) -> None:
    """Removes moves that cancel each other or do not matter to the next instruction."""
    for block in program.blocks.values():
        out: list[Code] = []
        for code in block.code:
            while out:
                last = out[-1]
                if code == _SWAP1 and last == _SWAP1:
                    out.pop()
                    break
                if last == _SWAP1 and code.op in COMMUTATIVE:
                    out.pop()
                    continue
                if last == _SWAP1 and code.op in _MIRRORED:
                    out.pop()
                    code = Code(_MIRRORED[code.op]).at(code.where)
                    continue
                if code == _SWAP1 and last.op == "DUP1":
                    break
                if code == POP and (last.op in (PUSH, LABEL, "SYMBOL") or last.op.startswith("DUP")):
                    out.pop()
                    break
                if code == ISZERO and last == ISZERO and len(out) > 1 and out[-2] == ISZERO:
                    out.pop()
                    break
                out.append(code)
                break
            else:
                out.append(code)
        if block.end is Terminator.BRANCH:
            while len(out) > 1 and out[-1] == ISZERO and out[-2] == ISZERO:
                del out[-2:]
            if out and out[-1] == ISZERO:
                out.pop()
                block.targets = block.targets[::-1]
        block.code = _without_moves_before_halt(out) if block.end is Terminator.HALT else out


def _without_moves_before_halt(code: list[Code]) -> list[Code]:
    """A frame that ends needs its operands, and no order of what is below them."""
    pushes = BY_NAME[code[-1].op].pops if code and code[-1].op in BY_NAME else len(code)
    at = len(code) - 1 - pushes
    if at < 0 or any(each.op not in (PUSH, LABEL, SYMBOL) for each in code[at:-1]):
        return code
    end = at
    while end and (code[end - 1] == POP or code[end - 1].op.startswith("SWAP")):
        end -= 1
    return code[:end] + code[at:]


_MIRRORED = {"LT": "GT", "GT": "LT", "SLT": "SGT", "SGT": "SLT"}


def negated(code: list[Code]) -> list[Code]:
    """Code for the inverted condition: zero where this leaves a non-zero word, non-zero where it leaves zero."""
    last, where = (code[-1].op, code[-1].where) if code else ("", None)
    if last == "ISZERO":
        return code[:-1]
    if last == "EQ":
        return [*code[:-1], Code("SUB").at(where)]
    if last in ("SUB", "XOR"):
        return [*code[:-1], Code("EQ").at(where)]
    if last in ("LT", "GT") and len(code) > 1:
        constant = code[-2]
        if constant.op == PUSH:  # c < x → c + 1 > x; c > x → c - 1 < x
            moved = constant.number + (1 if last == "LT" else -1)
            if 0 <= moved <= _TOP and size_of(Code(PUSH, moved)) <= size_of(constant):
                return [*code[:-2], Code(PUSH, moved).at(where), Code("GT" if last == "LT" else "LT").at(where)]
        elif len(code) > 2 and code[-3].op == PUSH and _only_pushes(constant):  # x < c → x > c - 1; x > c → x < c + 1
            moved = code[-3].number + (1 if last == "GT" else -1)
            if 0 <= moved <= _TOP and size_of(Code(PUSH, moved)) <= size_of(code[-3]):
                turned = Code("LT" if last == "GT" else "GT").at(where)
                return [*code[:-3], Code(PUSH, moved).at(where), constant, turned]
    return [*code, ISZERO.at(where)]


def _only_pushes(code: Code) -> bool:
    return code.op == LABEL or (code.op.startswith("DUP") and code.op != "DUP1") or code.op in FREE


def turns_freely(block: StackBlock) -> bool:
    return len(negated(block.code)) <= len(block.code)


def negate(block: StackBlock) -> None:
    """Inverts a branch: negates its condition and swaps its targets."""
    block.code = negated(block.code)
    block.targets = block.targets[::-1]
