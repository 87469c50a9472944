"""Reads a script, refuses before anything runs what the interpreter does not know, and runs its statements."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from cascade_memory.evaluation.environments.sandbox.expressions import BINARY, Expressions
from cascade_memory.evaluation.environments.sandbox.functions import Scope
from cascade_memory.evaluation.environments.sandbox.names import ERRORS, modules
from cascade_memory.evaluation.environments.sandbox.values import Caught

MOST_CHARACTERS, MOST_NODES, MOST_DEPTH = 20_000, 10_000, 100
_EXPRESSIONS = (
    *(ast.BoolOp, ast.NamedExpr, ast.BinOp, ast.UnaryOp, ast.Lambda, ast.IfExp, ast.Dict, ast.Set, ast.ListComp, ast.SetComp),
    *(ast.DictComp, ast.GeneratorExp, ast.Compare, ast.Call, ast.FormattedValue, ast.JoinedStr, ast.Constant, ast.Attribute),
    *(ast.Subscript, ast.Starred, ast.Name, ast.List, ast.Tuple, ast.Slice),
)
_STATEMENTS = (
    *(ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr, ast.If, ast.For, ast.While, ast.Break, ast.Continue, ast.Pass),
    *(ast.FunctionDef, ast.Return, ast.Try, ast.Raise, ast.Assert, ast.Import, ast.ImportFrom, ast.Delete, ast.Global),
    ast.Nonlocal,
)
_PARTS = (
    *(ast.Module, ast.comprehension, ast.arguments, ast.arg, ast.keyword, ast.ExceptHandler, ast.alias),
    *(ast.expr_context, ast.boolop, ast.operator, ast.unaryop, ast.cmpop),
)
_KNOWN = (*_EXPRESSIONS, *_STATEMENTS, *_PARTS)
_CONSTANTS = (str, int, float, bool, type(None))


class Refused(Exception):
    """A script uses something that is not in the small part of Python that the sandbox runs."""


def read_script(code: str) -> ast.Module:
    """Parse a script and check every part of it.

    >>> type(read_script("answer = 6 * 7")).__name__
    'Module'
    >>> read_script("with x: pass")
    Traceback (most recent call last):
    cascade_memory.evaluation.environments.sandbox.statements.Refused: line 1: With cannot be used here
    """
    if len(code) > MOST_CHARACTERS:
        raise Refused(f"the code has {len(code):,} characters; at most {MOST_CHARACTERS:,} are read")
    try:
        tree = ast.parse(code)
    except (RecursionError, MemoryError):
        raise Refused("the code is nested too deeply") from None
    level: list[ast.AST] = [tree]
    depth = nodes = 0
    while level:
        depth += 1
        nodes += len(level)
        if depth > MOST_DEPTH or nodes > MOST_NODES:
            raise Refused(f"the code is nested too deeply or too long: at most {MOST_DEPTH} levels and {MOST_NODES:,} parts")
        for node in level:
            _check(node)
        level = [child for node in level for child in ast.iter_child_nodes(node)]
    return tree


def _check(node: ast.AST) -> None:
    line = getattr(node, "lineno", None)
    where = f"line {line}: " if line else ""
    if not isinstance(node, _KNOWN):
        raise Refused(f"{where}{type(node).__name__} cannot be used here")
    if isinstance(node, ast.Constant) and not isinstance(node.value, _CONSTANTS):
        raise Refused(f"{where}a constant of type {type(node.value).__name__} cannot be used here")
    if isinstance(node, ast.FunctionDef) and node.decorator_list:
        raise Refused(f"{where}decorators cannot be used here")
    for name in _names(node):
        if isinstance(node, ast.Name) and name == "__name__":
            continue  # if __name__ == "__main__"
        if name.startswith("__") or (isinstance(node, ast.Attribute) and name.startswith("_")):
            raise Refused(f'{where}names that begin with "__", and attributes that begin with "_", cannot be used ({name!r})')


def _names(node: ast.AST) -> list[str]:
    found: list[str] = []
    for field in ("id", "attr", "arg", "name", "asname", "module"):
        value = getattr(node, field, None)
        if isinstance(value, str):
            found.append(value)
    if isinstance(node, (ast.Global, ast.Nonlocal)):
        found += node.names
    return found


class _Break(BaseException):
    pass


class _Continue(BaseException):
    pass


class _Return(BaseException):
    def __init__(self, value: Any) -> None:
        self.value = value


class Interpreter:
    """Runs a script that ``read_script`` has checked.

    >>> from cascade_memory.evaluation.environments.sandbox.statements import read_script
    >>> scope = Scope(given={"sum": sum})
    >>> Interpreter().run(read_script("answer = sum(n * n for n in [1, 2, 3])").body, scope)
    >>> scope.get("answer")
    14
    """

    def __init__(self) -> None:
        self.line = 0  # the line that runs now, for messages
        self._expressions = Expressions()
        self._modules = modules()
        self._handled: list[Exception] = []  # the errors that the running handlers have caught, for a bare raise
        self._known: Mapping[type[ast.stmt], Callable[[Any, Scope], None]] = {
            ast.Expr: lambda node, scope: self._value(node.value, scope),
            ast.Assign: self._assign,
            ast.AnnAssign: self._annotated,
            ast.AugAssign: self._augmented,
            ast.If: lambda node, scope: self.run(node.body if self._value(node.test, scope) else node.orelse, scope),
            ast.For: self._for,
            ast.While: self._while,
            ast.Break: self._break,
            ast.Continue: self._continue,
            ast.Pass: self._pass,
            ast.FunctionDef: self._define,
            ast.Return: self._return,
            ast.Try: self._try,
            ast.Raise: self._raise,
            ast.Assert: self._assert,
            ast.Import: self._import,
            ast.ImportFrom: self._import_from,
            ast.Delete: self._delete,
            ast.Global: self._global,
            ast.Nonlocal: self._nonlocal,
        }

    def run(self, statements: Sequence[ast.stmt], scope: Scope) -> None:
        """Run statements one after the other."""
        for one in statements:
            self.line = one.lineno
            self._known[type(one)](one, scope)

    def _value(self, node: ast.AST, scope: Scope) -> Any:
        return self._expressions.value(node, scope)

    def _assign(self, node: ast.Assign, scope: Scope) -> None:
        value = self._value(node.value, scope)
        for target in node.targets:
            self._expressions.assign(target, value, scope)

    def _annotated(self, node: ast.AnnAssign, scope: Scope) -> None:
        if node.value is not None:
            self._expressions.assign(node.target, self._value(node.value, scope), scope)

    def _augmented(self, node: ast.AugAssign, scope: Scope) -> None:
        operate = BINARY[type(node.op)]
        if isinstance(node.target, ast.Subscript):
            held, key = self._value(node.target.value, scope), self._value(node.target.slice, scope)
            held[key] = operate(held[key], self._value(node.value, scope))
            return
        self._expressions.assign(node.target, operate(self._value(node.target, scope), self._value(node.value, scope)), scope)

    def _for(self, node: ast.For, scope: Scope) -> None:
        for one in self._value(node.iter, scope):
            self._expressions.assign(node.target, one, scope)
            try:
                self.run(node.body, scope)
            except _Continue:
                continue
            except _Break:
                return
        self.run(node.orelse, scope)

    def _while(self, node: ast.While, scope: Scope) -> None:
        while self._value(node.test, scope):
            try:
                self.run(node.body, scope)
            except _Continue:
                continue
            except _Break:
                return
        self.run(node.orelse, scope)

    def _pass(self, *_: object) -> None:
        pass

    def _break(self, *_: object) -> None:
        raise _Break

    def _continue(self, *_: object) -> None:
        raise _Continue

    def _define(self, node: ast.FunctionDef, scope: Scope) -> None:
        def body(inner: Scope) -> Any:
            try:
                self.run(node.body, inner)
            except _Return as returned:
                return returned.value
            return None

        scope.set(node.name, self._expressions.function(node.name, node.args, scope, body))

    def _return(self, node: ast.Return, scope: Scope) -> None:
        raise _Return(None if node.value is None else self._value(node.value, scope))

    def _try(self, node: ast.Try, scope: Scope) -> None:
        try:
            try:
                self.run(node.body, scope)
            except Exception as error:  # noqa: BLE001 - the script may catch any error of its own
                self._handle(node, error, scope)
            else:
                self.run(node.orelse, scope)
        finally:
            self.run(node.finalbody, scope)

    def _handle(self, node: ast.Try, error: Exception, scope: Scope) -> None:
        for handler in node.handlers:
            if handler.type is None or isinstance(error, self._errors(self._value(handler.type, scope))):
                if handler.name is not None:
                    scope.set(handler.name, Caught(error))
                self._handled.append(error)
                try:
                    self.run(handler.body, scope)
                finally:
                    self._handled.pop()
                return
        raise error

    def _errors(self, named: Any) -> tuple[type[Exception], ...]:
        kinds = named if isinstance(named, tuple) else (named,)
        if not all(kind in ERRORS.values() for kind in kinds):
            raise TypeError("except needs the name of an error")
        return kinds

    def _raise(self, node: ast.Raise, scope: Scope) -> None:
        if node.exc is None:
            raise self._handled[-1] if self._handled else RuntimeError("raise needs an error here")
        what: Any = self._value(node.exc, scope)
        error = what.error if isinstance(what, Caught) else what() if what in ERRORS.values() else what
        if not isinstance(error, Exception):
            raise TypeError("only errors can be raised")
        raise error

    def _assert(self, node: ast.Assert, scope: Scope) -> None:
        if not self._value(node.test, scope):
            raise AssertionError("" if node.msg is None else str(self._value(node.msg, scope)))

    def _import(self, node: ast.Import, scope: Scope) -> None:
        for one in node.names:
            scope.set(one.asname or one.name, self._module(one.name))

    def _import_from(self, node: ast.ImportFrom, scope: Scope) -> None:
        module = self._module(("." * node.level) + (node.module or ""))
        for one in node.names:
            if one.name not in module.names:
                raise ImportError(f"{one.name!r} cannot be imported from {module.name}")
            scope.set(one.asname or one.name, module.names[one.name])

    def _module(self, name: str) -> Any:
        if name not in self._modules:
            raise ImportError(f"{name!r} cannot be imported here; {', '.join(self._modules)} can")
        return self._modules[name]

    def _global(self, node: ast.Global, scope: Scope) -> None:
        for name in node.names:
            scope.declare_global(name)

    def _nonlocal(self, node: ast.Nonlocal, scope: Scope) -> None:
        for name in node.names:
            scope.declare_nonlocal(name)

    def _delete(self, node: ast.Delete, scope: Scope) -> None:
        for target in node.targets:
            if isinstance(target, ast.Name):
                scope.remove(target.id)
            elif isinstance(target, ast.Subscript):
                del self._value(target.value, scope)[self._value(target.slice, scope)]
            else:
                raise TypeError("only names and items can be deleted here")
