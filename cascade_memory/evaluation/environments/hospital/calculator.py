"""Computes arithmetic without names: numbers, signs and operators."""

from __future__ import annotations

import ast
from typing import Any

from cascade_memory.evaluation.environments.sandbox.operators import BINARY, UNARY
from cascade_memory.evaluation.environments.sandbox.syntax import Refused, read_script

_LARGEST = 10**300


def calculated(formula: str) -> float:
    """Compute a formula of numbers and operators; raise ``ValueError`` if that is not possible.

    >>> calculated("(12 + 3) / 2")
    7.5
    """
    try:
        body = read_script(formula.strip()).body
        if len(body) != 1 or not isinstance(body[0], ast.Expr):
            raise ValueError("one formula is needed")
        value = _value(body[0].value)
    except (SyntaxError, Refused, ArithmeticError, TypeError, MemoryError, RecursionError) as error:
        raise ValueError(str(error)) from error
    if type(value) not in (int, float) or not abs(value) <= _LARGEST:  # nan is not below anything
        raise ValueError("the result is no real number, or it is too large")
    return value


def _value(node: ast.expr) -> Any:
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        return node.value
    if isinstance(node, ast.BinOp):
        return BINARY[type(node.op)](_value(node.left), _value(node.right))
    if isinstance(node, ast.UnaryOp):
        return UNARY[type(node.op)](_value(node.operand))
    raise ValueError("a formula may have only numbers and operators")
