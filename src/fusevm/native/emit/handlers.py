"""Handlers: native code for a sequence of opcodes, derived from what each opcode means.

A sequence is run over a virtual stack. Words it takes from the run-time stack are read when first needed; at the end
those slots whose content changed are written, and the next handler is called by a tail call. No handler is handwritten,
neither that of ADD nor that of DUP2 MSTORE PUSH: both are derived here.

An opcode in a sequence may have an operand, after the handler's address in the schedule:

    PUSH     a word that fits 64 bits          PUSHW       four words, the lowest first
    JUMP@    the target                        JUMPI@      the target if the condition holds
    SECTION  gas, and stack bounds, of what    GASSECTION  gas of what follows
             follows
    COPY, EXCHANGE: depths of words, 32 bits each
    PC, SYNC, PROBE, CALL and the like: the program counter.

The vocabulary is in `state`. Opcodes that make words of words are in `opcodes`, which regions share; jumps and calls in
`control` and `outside`; below those that only concern the stack.
"""

from __future__ import annotations

from llvmlite import ir

from fusevm.analysis.symbolic import ACTIONS, OPERATES, PUSHES
from fusevm.evm.opcodes import BY_NAME, CONTEXT_WORDS
from fusevm.evm.words import MEANINGS
from fusevm.native.emit.control import CONTROL
from fusevm.native.emit.emitter import I8, I64, I256
from fusevm.native.emit.opcodes import EMITTED, FRAME_SIZES, FRAME_WORDS, NOTED, emit, noted_name
from fusevm.native.emit.outside import OUTSIDE
from fusevm.native.emit.state import CONVENTION, HANDLER, Handler, Opcode, symbol_of
from fusevm.native.layout import WORD
from fusevm.native.runtime import moduli
from fusevm.schedule.sections import COPY, SWAP

__all__ = [
    "ARRANGED",
    "CONVENTION",
    "FRAME_SIZES",
    "FRAME_WORDS",
    "HANDLER",
    "I8",
    "I64",
    "SPECIAL",
    "HandlerBuilder",
    "noted_name",
    "symbol_of",
]

# DUP, SWAP and POP. What a PUSH pushes is an operand of the handler.
ARRANGED = {name: action for name, action in ACTIONS.items() if action.kind not in (PUSHES, OPERATES)}

# Alone in their handlers, these read their words where they are: as arguments all would be copied once more.
IN_PLACE = {("MULMOD",): moduli.mulmod_on_stack}


class HandlerBuilder(Handler):
    """Derives the handler of one sequence into a module."""

    def derive(self) -> ir.Function:
        for name in self.sequence:
            self._opcode(name)
            if self.build.block.is_terminated:
                return self.function
        self.write_back()
        self.go_on(self.next_ip())
        return self.function

    def _opcode(self, name: str) -> None:
        if self.sequence in IN_PLACE:
            self.call(IN_PLACE[self.sequence], self.frame, self.sp)
            self.sp = self.slot_address(BY_NAME[name].pops - 1)
        elif name in ARRANGED:
            self.stack.arrange(ARRANGED[name])
        elif name in SPECIAL:
            SPECIAL[name](self)
        else:
            result = emit(self, name, [self.pop() for _ in range(BY_NAME[name.removesuffix("!")].pops)])
            if result is not None:
                self.push(result)


def push(handler: Handler) -> None:
    handler.push(handler.build.zext(handler.next_operand(I64), I256))


def push_wide(handler: Handler) -> None:
    address = handler.build.gep(handler.ip, [ir.Constant(I64, 8 * handler.operand)], source_etype=I8)
    handler.operand += 4
    handler.push(handler.build.load(address, typ=I256, align=8))


def copy_deep(handler: Handler) -> None:
    """DUP of a word as deep as the operand says."""
    depth = handler.next_operand(I64)
    handler.write_back()
    handler.push(handler.build.load(_deep(handler, depth), typ=I256, align=8))


def swap_deep(handler: Handler) -> None:
    """Exchanges the words at two depths, 32 bits of the operand each."""
    build, depths = handler.build, handler.next_operand(I64)
    handler.write_back()
    one = _deep(handler, build.and_(depths, ir.Constant(I64, 0xFFFFFFFF)))
    other = _deep(handler, build.lshr(depths, ir.Constant(I64, 32)))
    words = [build.load(place, typ=I256, align=8) for place in (one, other)]
    for word, place in zip(words, (other, one), strict=True):
        build.store(word, place, align=8)


def _deep(handler: Handler, depth: ir.Value) -> ir.Value:
    offset = handler.build.mul(depth, ir.Constant(I64, -WORD))
    return handler.build.gep(handler.sp, [offset], source_etype=I8)


STACK: dict[str, Opcode] = {"PUSH": push, "PC": push, "PUSHW": push_wide}
STACK |= {COPY: copy_deep, SWAP: swap_deep}
SPECIAL = STACK | CONTROL | OUTSIDE
NAMES = [*MEANINGS, *FRAME_WORDS, *FRAME_SIZES, *CONTEXT_WORDS, *ARRANGED, *EMITTED, *NOTED, *SPECIAL]
