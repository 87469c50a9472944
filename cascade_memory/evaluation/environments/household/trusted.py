"""Keeps a game file from running code: its grammar may hold Python expressions, which the engine evaluates."""

from __future__ import annotations

import ast
from functools import lru_cache
from typing import Any

from cascade_memory.errors import InvalidInput

_READABLE = frozenset({"name", "id", "type", "definite", "indefinite"})  # what a text may say about a thing


@lru_cache(maxsize=4_096)
def is_harmless(expression: str) -> bool:
    """Say whether an expression only joins texts and the names of things, as those of ALFWorld's own games do.

    >>> is_harmless("o.indefinite + ' ' + o.name"), is_harmless("__import__('os').system('ls')"), is_harmless("o.name.format")
    (True, False, False)
    """
    if len(expression) > 1_000:
        return False
    try:
        return _joins_names(ast.parse(expression.strip(), mode="eval").body)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False


def _joins_names(node: ast.expr) -> bool:
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, ast.Add) and _joins_names(node.left) and _joins_names(node.right)
    if isinstance(node, ast.BoolOp):  # "the name, or else the id"
        return all(_joins_names(one) for one in node.values)
    if isinstance(node, ast.Attribute):
        return isinstance(node.value, ast.Name) and node.attr in _READABLE
    return isinstance(node, ast.Name) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def guard(texts: Any) -> None:
    """Make ``texts``, the engine's module that evaluates expressions, raise before it evaluates one that is not harmless."""
    symbol = getattr(texts, "EvalSymbol", None)
    if symbol is None or not hasattr(symbol, "derive"):
        raise InvalidInput("how this version of textworld evaluates texts is not known to be safe: install textworld 1.7")
    derive = symbol.derive

    def checked(self: Any, context: Any = None) -> Any:
        if not is_harmless(str(self.expression)):
            raise InvalidInput(f"the game holds code in its texts, which is not run: {str(self.expression)[:80]!r}")
        return derive(self, context)

    symbol.derive = checked
