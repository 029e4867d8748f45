"""Scopes, declarations and arity: what solc checks of a parsed program, with its error numbers and places.

Two passes over each object's code. The first enters every name into the scope that sees it and finds clashes; only if
there are none does the second check uses. Arguments are checked from the last to the first, as they are evaluated.
"""

from __future__ import annotations

from fusevm.evm.forks import LATEST
from fusevm.yul.syntax.ast import (
    Assignment,
    Block,
    Expression,
    ExpressionStatement,
    ForLoop,
    FunctionCall,
    FunctionDefinition,
    Identifier,
    If,
    Literal,
    LiteralKind,
    Location,
    Object,
    Statement,
    Switch,
    VariableDeclaration,
)
from fusevm.yul.syntax.dialect import Builtin, Dialect, dialect_for
from fusevm.yul.syntax.errors import ErrorKind, ErrorList, TooManyErrors, YulError
from fusevm.yul.syntax.parser import parse_with_errors
from fusevm.yul.syntax.scopes import FunctionSymbol, Scope, ScopeFiller, VariableSymbol
from fusevm.yul.syntax.walk import calls_of

_DECLARATION, _TYPE, _SYNTAX, _WARNING = ErrorKind.DECLARATION, ErrorKind.TYPE, ErrorKind.SYNTAX, ErrorKind.WARNING
_MAX_STRING_BYTES = 32

# Calling an opcode that a later fork brought: solc's number for each. Any other is simply not found.
_LATER_OPCODES = {
    "returndatacopy": 7756, "returndatasize": 4778, "staticcall": 1503, "shl": 6612, "shr": 7458, "sar": 2054,
    "create2": 6166, "extcodehash": 7110, "chainid": 1561, "selfbalance": 7721, "basefee": 5430, "blobbasefee": 6679,
    "blobhash": 8314, "mcopy": 7755, "tstore": 6243, "tload": 6243, "clz": 4948,
}  # fmt: skip
_EOF_OPCODES = {"extcall", "extdelegatecall", "extstaticcall"}


class _Checker:
    """Second pass: uses, arity, literals."""

    def __init__(self, dialect: Dialect, errors: ErrorList, scopes: dict[int, Scope], data_names: set[str]) -> None:
        self.dialect = dialect
        self.errors = errors
        self.scopes = scopes
        self.data_names = data_names
        self.scope = Scope()

    # -- statements ---------------------------------------------------------------------------------------------------

    def block(self, block: Block) -> None:
        outer, self.scope = self.scope, self.scopes[id(block)]
        for statement in block.statements:
            self.statement(statement)
        self.scope = outer

    def statement(self, statement: Statement) -> None:
        if isinstance(statement, ExpressionStatement):
            self.expression_statement(statement)
        elif isinstance(statement, Assignment):
            self.assignment(statement)
        elif isinstance(statement, VariableDeclaration):
            self.declaration(statement)
        elif isinstance(statement, Block):
            self.block(statement)
        elif isinstance(statement, If):
            self.one_value(statement.condition)
            self.block(statement.body)
        elif isinstance(statement, Switch):
            self.switch(statement)
        elif isinstance(statement, ForLoop):
            self.loop(statement)
        elif isinstance(statement, FunctionDefinition):
            self.function(statement)

    def expression_statement(self, statement: ExpressionStatement) -> None:
        before = self.errors.count
        values = self.expression(statement.expression)
        if values and self.errors.count == before:
            message = f"a call that stands alone must return nothing, but this returns {_values(values)}: use pop()"
            self.errors.add(_TYPE, 3083, message, statement.location)

    def assignment(self, assignment: Assignment) -> None:
        seen: set[str] = set()
        for target in assignment.targets:
            if target.name in seen:
                message = f"'{target.name}' occurs more than once on the left of the assignment"
                self.errors.add(_DECLARATION, 9005, message, assignment.location)
            seen.add(target.name)
        values = self.expression(assignment.value)
        if values != len(assignment.targets):
            message = f"{len(assignment.targets)} variables cannot be assigned {_values(values)}"
            self.errors.add(_DECLARATION, 8678, message, assignment.location)
        for target in assignment.targets:
            self.assigned(target)

    def assigned(self, target: Identifier) -> None:
        found = self.scope.find(target.name)
        if found is None:
            self.errors.add(_DECLARATION, 4634, f"'{target.name}' is not declared", target.location)
        elif isinstance(found, FunctionSymbol):
            self.errors.add(_TYPE, 2657, f"'{target.name}' is a function and cannot be assigned to", target.location)
        elif not found.active:
            self.errors.add(_DECLARATION, 1133, f"'{target.name}' is used before it is declared", target.location)

    def declaration(self, declaration: VariableDeclaration) -> None:
        for variable in declaration.variables:
            self.valid_name(variable.name, variable.location)
        if declaration.value is not None:
            values = self.expression(declaration.value)
            if values != len(declaration.variables):
                message = f"{len(declaration.variables)} variables cannot be given {_values(values)}"
                self.errors.add(_DECLARATION, 3812, message, declaration.location)
        for variable in declaration.variables:
            self.activate(self.scope, variable.name)

    def activate(self, scope: Scope, name: str) -> None:
        variable = scope.names[name]
        assert isinstance(variable, VariableSymbol)
        variable.active = True

    def function(self, function: FunctionDefinition) -> None:
        self.valid_name(function.name, function.location)
        for variable in (*function.parameters, *function.returns):
            self.valid_name(variable.name, variable.location)
            self.activate(self.scopes[id(function)], variable.name)
        self.block(function.body)

    def switch(self, switch: Switch) -> None:
        if len(switch.cases) == 1 and switch.cases[0].value is None:
            self.errors.add(_WARNING, 9592, "switch with only a default case", switch.location)
        self.one_value(switch.expression)
        seen: set[int] = set()
        for case in switch.cases:
            if case.value is not None:
                before = self.errors.count
                self.literal(case.value)
                if self.errors.count == before and case.value.value in seen:
                    self.errors.add(_DECLARATION, 6792, f'duplicate case "{case.value.text}"', case.location)
                seen.add(case.value.value)
            self.block(case.body)

    def loop(self, loop: ForLoop) -> None:
        outer = self.scope
        self.block(loop.pre)
        self.scope = self.scopes[id(loop.pre)]
        self.one_value(loop.condition)
        self.block(loop.body)
        self.block(loop.post)
        self.scope = outer

    # -- expressions: each returns how many values it gives -----------------------------------------------------------

    def one_value(self, expression: Expression) -> None:
        values = self.expression(expression)
        if values != 1:
            message = f"expected an expression of one value, but this gives {_values(values)}"
            self.errors.add(_TYPE, 3950, message, expression.location)

    def expression(self, expression: Expression) -> int:
        if isinstance(expression, Identifier):
            return self.identifier(expression)
        if isinstance(expression, FunctionCall):
            return self.call(expression)
        return self.literal(expression)

    def literal(self, literal: Literal) -> int:
        if literal.kind is LiteralKind.STRING and len(literal.text) > _MAX_STRING_BYTES:
            message = f"the string is too long ({len(literal.text)} > {_MAX_STRING_BYTES} bytes)"
            self.errors.add(_TYPE, 3069, message, literal.location)
        elif literal.value >> 256:
            self.errors.add(_TYPE, 6708, "the number is too large (more than 256 bits)", literal.location)
        return 1

    def identifier(self, identifier: Identifier) -> int:
        found = self.scope.find(identifier.name)
        if found is None:
            self.errors.add(_DECLARATION, 8198, f"'{identifier.name}' is not declared", identifier.location)
        elif isinstance(found, FunctionSymbol):
            self.errors.add(_TYPE, 6041, f"the function '{identifier.name}' must be called", identifier.location)
        elif not found.active:
            message = f"'{identifier.name}' is used before it is declared"
            self.errors.add(_DECLARATION, 4990, message, identifier.location)
        return 1

    def call(self, call: FunctionCall) -> int:
        builtin = self.dialect.builtin(call.name)
        function = builtin or self.user_function(call.function)
        if builtin is not None:
            self.warn_about(builtin, call.function.location)
        if function is not None and len(call.arguments) != function.parameters:
            message = f"'{call.name}' expects {function.parameters} arguments but got {len(call.arguments)}"
            self.errors.add(_TYPE, 7000, message, call.function.location)
        for index in reversed(range(len(call.arguments))):
            kind = builtin.literal_kind(index) if builtin is not None else None
            if kind is None or not self.literal_argument(call, index, kind):
                self.one_value(call.arguments[index])
        return function.returns if function is not None else 0

    def user_function(self, name: Identifier) -> FunctionSymbol | None:
        found = self.scope.find(name.name)
        if isinstance(found, FunctionSymbol):
            return found
        if found is not None:
            self.errors.add(_TYPE, 4202, f"'{name.name}' is a variable and cannot be called", name.location)
        elif name.name in _EOF_OPCODES:
            self.errors.add(_TYPE, 4328, f"'{name.name}' is only available in EOF", name.location)
        elif (code := _LATER_OPCODES.get(name.name)) is not None and dialect_for(LATEST).is_builtin(name.name):
            message = f"'{name.name}' is not available at {self.dialect.fork.label}"
            self.errors.add(_TYPE, code, message, name.location)
        else:
            self.errors.add(_DECLARATION, 4619, f"the function '{name.name}' is not declared", name.location)
        return None

    def warn_about(self, builtin: Builtin, location: Location) -> None:
        if builtin.name == "selfdestruct":
            message = "selfdestruct is deprecated: since Cancun it only sends the balance, outside of the creating call"
            self.errors.add(_WARNING, 1699, message, location)
        elif builtin.name == "tstore" and all(error.code != 2394 for error in self.errors.errors):
            message = "transient storage outlives the call, until the transaction's end: clear it yourself"
            self.errors.add(_WARNING, 2394, message, location)
        elif builtin.name == "pc":
            self.errors.add(_SYNTAX, 2450, "pc is not available in strict assembly", location)

    def literal_argument(self, call: FunctionCall, index: int, kind: LiteralKind) -> bool:
        """Whether the argument is a good name for the builtin, so that it needs no checking as a value."""
        argument = call.arguments[index]
        if not isinstance(argument, Literal):
            self.errors.add(_TYPE, 9114, f"'{call.name}' expects a literal", call.function.location)
        elif argument.kind is not kind:
            self.errors.add(_TYPE, 5859, f"'{call.name}' expects a {kind.value} literal", argument.location)
        elif kind is LiteralKind.STRING:
            if call.name in ("datasize", "dataoffset") and argument.text not in self.data_names:
                self.errors.add(_TYPE, 3517, f'unknown data object "{argument.text}"', argument.location)
            elif call.name.startswith("verbatim_") and not argument.text:
                self.errors.add(_TYPE, 1844, "verbatim needs bytecode", argument.location)
            return True
        return False

    def valid_name(self, name: str, location: Location) -> None:
        if name.endswith("."):
            self.errors.add(_SYNTAX, 3384, f"'{name}' is not a valid identifier: it ends with a dot", location)
        if ".." in name:
            self.errors.add(_SYNTAX, 7771, f"'{name}' is not a valid identifier: consecutive dots", location)
        if self.dialect.is_reserved(name):
            self.errors.add(_DECLARATION, 5017, f"the identifier '{name}' is reserved", location)


def _values(count: int) -> str:
    return f"{count} value" if count == 1 else f"{count} values"


# -- whole objects ----------------------------------------------------------------------------------------------------


def data_names(obj: Object) -> set[str]:
    """What datasize and dataoffset may name: the object itself, its children, and theirs after a dot."""
    own = obj.name or "object"
    names = set() if "." in own else {own}
    for child in obj.children:
        if "." in child.name:
            continue
        names.add(child.name)
        if isinstance(child, Object):
            names |= {f"{child.name}.{inner}" for inner in data_names(child) if inner != child.name}
    return names


def _check_object(obj: Object, dialect: Dialect, errors: ErrorList) -> None:
    filler, before = ScopeFiller(errors), errors.count
    filler.block(obj.code)
    if errors.count == before:
        _Checker(dialect, errors, filler.scopes, data_names(obj)).block(obj.code)
    for child in obj.children:
        if isinstance(child, Object):
            _check_object(child, dialect, errors)


def analyze(obj: Object, dialect: Dialect | None = None, source: str | None = None) -> list[YulError]:
    """All complaints about a parsed object, warnings included. `source` (as bytes' text) gives lines and columns."""
    errors = ErrorList(source)
    _analyze_into(errors, obj, dialect or dialect_for())
    return errors.errors


def _analyze_into(errors: ErrorList, obj: Object, dialect: Dialect) -> None:
    try:
        _check_object(obj, dialect, errors)
        if errors.count == 0 and _lacks_immutables(obj):
            message = "some immutables are read but never assigned"
            errors.add(ErrorKind.CODE_GENERATION, 1284, message)
    except TooManyErrors:
        pass
    except RecursionError:  # never of a tree that was parsed: see depth.py
        errors.add(ErrorKind.SYNTAX, 7319, "too deeply nested")


def check(source: str | bytes, dialect: Dialect | None = None) -> tuple[Object | None, list[YulError]]:
    """Parse and analyse: the object, None if it is not even well-formed, and every complaint in order."""
    dialect = dialect or dialect_for()
    obj, errors = parse_with_errors(source, dialect)
    if obj is not None:
        _analyze_into(errors, obj, dialect)
    return obj, errors.errors


def _lacks_immutables(obj: Object) -> bool:
    """A sub-object reads an immutable that the code deploying it never assigns."""
    assigned = _immutables(obj, "setimmutable")
    subs = [child for child in obj.children if isinstance(child, Object)]
    return any(_immutables(sub, "loadimmutable") - assigned or _lacks_immutables(sub) for sub in subs)


def _immutables(obj: Object, function: str) -> set[str]:
    arguments = [argument for call in calls_of(obj.code, function) for argument in call.arguments]
    return {argument.text for argument in arguments if isinstance(argument, Literal) and argument.unlimited}
