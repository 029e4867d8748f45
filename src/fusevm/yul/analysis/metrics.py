"""What code costs: its size in nodes, the cost of evaluating an expression again, and gas over a contract's life."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fusevm.evm.forks import Fork, Rules, rules_of
from fusevm.evm.gas import calldata_cost, deposit_cost
from fusevm.evm.opcodes import BY_NAME
from fusevm.yul.syntax.ast import (
    Block,
    Break,
    Continue,
    Expression,
    ForLoop,
    FunctionCall,
    FunctionDefinition,
    Identifier,
    If,
    Leave,
    Literal,
    LiteralKind,
    Switch,
    VariableDeclaration,
)
from fusevm.yul.syntax.dialect import Dialect
from fusevm.yul.syntax.walk import children, nodes

_WEIGHTS: dict[type, int] = {FunctionCall: 1, If: 2, ForLoop: 3, Break: 2, Continue: 2, Leave: 2, FunctionDefinition: 1}


def code_size(root: Any, with_functions: bool = False) -> int:
    """Nodes that become code, weighted. Function definitions below the root count only if asked for."""
    size = 0
    for node in nodes(root, into_functions=with_functions):
        kind = node.__class__
        if kind is Literal:
            size += node.unlimited or node.value != 0
        elif kind is Switch:
            size += 1 + 2 * len(node.cases)
        elif kind is not FunctionDefinition or with_functions:
            size += _WEIGHTS.get(kind, 0)
    return size


_CHEAP, _MIDDLE = 2, 8  # gas of the cheapest opcodes, and of the most expensive arithmetic ones
_DEAR = 50


def code_cost(dialect: Dialect, expression: Expression) -> int:
    """The approximate cost of rematerialising the expression instead of keeping its value."""
    if isinstance(expression, Identifier):
        return 1
    if isinstance(expression, Literal):
        return _literal_cost(dialect, expression)
    cost = _call_cost(dialect, expression.function.name)
    for argument in expression.arguments:
        cost += code_cost(dialect, argument)
    return cost


def _call_cost(dialect: Dialect, name: str) -> int:
    builtin = dialect.builtin(name)
    op = builtin.opcode if builtin is not None else None
    if op is None or (op.dynamic and not op.gas):
        return _DEAR
    gas = op.gas_at(dialect.fork)
    if gas <= _CHEAP:
        return 0
    return 2 if gas <= _MIDDLE else _DEAR


def _literal_cost(dialect: Dialect, literal: Literal) -> int:
    if literal.kind is LiteralKind.BOOLEAN:
        return 1
    if literal.kind is LiteralKind.STRING:
        return 1 + len(literal.text)
    if literal.value == 0:
        return 0 if dialect.fork >= Fork.SHANGHAI else 1
    return byte_length(literal.value)


def byte_length(value: int) -> int:
    return (value.bit_length() + 7) // 8


_PUSH, _PUSH0, _DUP, _JUMP, _JUMPDEST = (BY_NAME[name].gas for name in ("PUSH1", "PUSH0", "DUP1", "JUMP", "JUMPDEST"))
_PRICED = ("keccak256", "exp")  # solc counts one unit of these, and of copies none


@dataclass(frozen=True, slots=True)
class GasMeter:
    """Gas of running an expression `runs` times plus that of having its bytes. `runs` is None in creation code."""

    dialect: Dialect
    runs: int | None

    def costs(self, expression: Expression) -> int:
        run, data = self._measure(expression)
        return self.total(run, data)

    def total(self, run: int, data: int) -> int:
        return run * (1 if self.runs is None else self.runs) + data

    def literal(self, value: int) -> tuple[int, int]:
        """Gas to push the value once, gas to have it."""
        if value == 0 and self.dialect.fork >= Fork.SHANGHAI:
            return _PUSH0, self.byte()
        return _PUSH, self.byte() + self._bytes(value.to_bytes(max(1, byte_length(value)), "big"))

    def instruction(self, name: str) -> tuple[int, int]:
        """Gas to run the builtin once, its operands aside, and gas to have it."""
        builtin = self.dialect.builtin(name)
        if builtin is None or builtin.opcode is None:
            raise ValueError(f"the gas of {name} is not known")
        gas = builtin.opcode.gas_at(self.dialect.fork)
        if name in _PRICED:
            gas += sum(getattr(self.rules, price.rule) for price in builtin.opcode.prices)
        return gas, self.byte()

    @property
    def rules(self) -> Rules:
        return rules_of(self.dialect.fork)

    def byte(self) -> int:
        """Kept as code, or sent with the transaction that creates the contract."""
        return self.rules.code_byte if self.runs is not None else self.rules.calldata_nonzero

    def _bytes(self, data: bytes) -> int:
        if self.runs is not None:
            return deposit_cost(self.rules, len(data))
        zeros = data.count(0)
        return calldata_cost(self.rules, zeros, len(data) - zeros)

    def _measure(self, expression: Expression) -> tuple[int, int]:
        if isinstance(expression, Identifier):
            return _DUP, self.byte()
        if isinstance(expression, Literal):
            return self.literal(expression.value)
        run, data = self.instruction(expression.function.name)
        for argument in expression.arguments:
            more_run, more_data = self._measure(argument)
            run, data = run + more_run, data + more_data
        return run, data


def estimated_gas(dialect: Dialect, block: Block) -> int:
    """Static gas of every instruction in the text, each counted once: a figure to compare two texts by."""
    gas = 0
    for node in nodes(block):
        kind = node.__class__
        if kind is Literal:
            gas += _PUSH if node.value else _PUSH0
        elif kind is Identifier:
            gas += _DUP
        elif kind is FunctionCall:
            builtin = dialect.builtin(node.function.name)
            op = builtin.opcode if builtin is not None else None
            gas += op.gas_at(dialect.fork) if op is not None else 0 if builtin is not None else _USER_CALL
    return gas


def estimated_bytes(dialect: Dialect, block: Block) -> int:
    """Bytes of every instruction in the text, each counted once: a figure to compare two texts by."""
    size = 0
    for node in nodes(block):
        kind = node.__class__
        if kind is Literal:
            size += 1 + (byte_length(node.value) or dialect.fork < Fork.SHANGHAI)
        elif kind is Identifier:
            size += 1
        elif kind is FunctionCall:
            size += 1 if dialect.builtin(node.function.name) is not None else _CALL_BYTES
        elif kind is Switch:
            size += len(node.cases) * _BRANCH_BYTES
        else:
            size += _BYTES.get(kind, 0)
    return size


# What a node costs of the parser's depth, beside the one of every statement and expression.
_PARSER_LEVELS = {VariableDeclaration: 1, ForLoop: 1, FunctionDefinition: 1, Switch: 1, FunctionCall: 1}


def parser_depth(root: Block) -> int:
    """How deep the parser would have to go to read the block again; compare with `depth.MAX_PARSER_DEPTH`."""
    deepest = 0
    work: list[tuple[Any, int]] = [(root, 1)]
    while work:
        node, depth = work.pop()
        deepest = max(deepest, depth)
        for inner in children(node):
            levels = 1 + _PARSER_LEVELS.get(inner.__class__, 0)
            if inner.__class__ is Block and node.__class__ is Block:
                levels += 1  # a block that is a statement
            work.append((inner, depth + levels))
    return deepest


# A jump is PUSH2 and JUMP, with a JUMPDEST where it lands.
_BRANCH_BYTES = 5
_CALL_BYTES = 3 + _BRANCH_BYTES  # the return label as well
_BYTES = {If: _BRANCH_BYTES, ForLoop: 2 * _BRANCH_BYTES, Break: 4, Continue: 4, Leave: 4, FunctionDefinition: 2}
_USER_CALL = _PUSH + 2 * (_JUMP + _JUMPDEST)  # return label, jump, jump destination, jump back, jump destination
