"""Reads a script and, before anything runs, refuses what the interpreter does not know."""

from __future__ import annotations

import ast

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
    cascade_memory.evaluation.environments.sandbox.syntax.Refused: line 1: With cannot be used here
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
