"""Computes the value of an expression by walking its tree. No code of a script is ever compiled or run by Python itself.

The operators that can make something huge in one step are checked first.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from cascade_memory.evaluation.environments.sandbox.functions import NOTHING, Depth, Function, Scope
from cascade_memory.evaluation.environments.sandbox.values import attribute

_MOST_BITS, _MOST_ITEMS = 100_000, 10_000_000
_SEQUENCES = (str, list, tuple)
_CONVERSIONS: Mapping[int, Callable[[Any], Any]] = {-1: lambda value: value, ord("s"): str, ord("r"): repr, ord("a"): ascii}


def _power(base: Any, exponent: Any) -> Any:
    if isinstance(base, int) and isinstance(exponent, int) and abs(base) > 1 and base.bit_length() * exponent > _MOST_BITS:
        raise ValueError(f"the result of {type(base).__name__} ** {type(exponent).__name__} is too large")
    return base**exponent


def _shifted(value: Any, by: Any) -> Any:
    if isinstance(by, int) and by > _MOST_BITS:
        raise ValueError("the result of << is too large")
    return value << by


def _times(one: Any, other: Any) -> Any:
    for sequence, count in ((one, other), (other, one)):
        if isinstance(sequence, _SEQUENCES) and isinstance(count, int) and len(sequence) * count > _MOST_ITEMS:
            raise ValueError(f"the result of * has too many items: {len(sequence) * count:,}")
    if isinstance(one, int) and isinstance(other, int) and one.bit_length() + other.bit_length() > _MOST_BITS:
        raise ValueError("the result of * is too large")
    return one * other


BINARY: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: _times,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: _power,
    ast.LShift: _shifted,
    ast.RShift: operator.rshift,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
}
UNARY: Mapping[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.UAdd: operator.pos,
    ast.USub: operator.neg,
    ast.Not: operator.not_,
    ast.Invert: operator.invert,
}
COMPARISONS: Mapping[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.In: lambda one, many: one in many,
    ast.NotIn: lambda one, many: one not in many,
}


def power(base: Any, exponent: Any) -> Any:
    """Compute a power; raise ``ValueError`` if it would be huge."""
    return _power(base, exponent)


class Expressions:
    """Evaluates the nodes of expressions."""

    def __init__(self) -> None:
        self.depth = Depth()
        self._known: Mapping[type[ast.AST], Callable[[Any, Scope], Any]] = {
            ast.Constant: lambda node, _: node.value,
            ast.Name: lambda node, scope: scope.get(node.id),
            ast.Attribute: lambda node, scope: attribute(self.value(node.value, scope), node.attr),
            ast.Subscript: self._item,
            ast.Slice: self._slice,
            ast.BinOp: lambda node, scope: BINARY[type(node.op)](self.value(node.left, scope), self.value(node.right, scope)),
            ast.UnaryOp: lambda node, scope: UNARY[type(node.op)](self.value(node.operand, scope)),
            ast.BoolOp: self._bool,
            ast.Compare: self._compare,
            ast.IfExp: lambda node, scope: self.value(node.body if self.value(node.test, scope) else node.orelse, scope),
            ast.Call: self._call,
            ast.List: lambda node, scope: self._several(node.elts, scope),
            ast.Tuple: lambda node, scope: tuple(self._several(node.elts, scope)),
            ast.Set: lambda node, scope: set(self._several(node.elts, scope)),
            ast.Dict: self._dict,
            ast.ListComp: lambda node, scope: list(self._comprehended(node, scope)),
            ast.GeneratorExp: lambda node, scope: list(self._comprehended(node, scope)),  # a list: a generator has a frame
            ast.SetComp: lambda node, scope: set(self._comprehended(node, scope)),
            ast.DictComp: self._dict_comprehended,
            ast.JoinedStr: lambda node, scope: "".join(str(self.value(one, scope)) for one in node.values),
            ast.FormattedValue: self._formatted,
            ast.Lambda: self._lambda,
            ast.NamedExpr: self._named,
        }

    def value(self, node: ast.AST, scope: Scope) -> Any:
        """Compute the value of an expression."""
        return self._known[type(node)](node, scope)

    def _several(self, nodes: Sequence[ast.AST], scope: Scope) -> list[Any]:
        values: list[Any] = []
        for node in nodes:
            if isinstance(node, ast.Starred):
                values.extend(self.value(node.value, scope))
            else:
                values.append(self.value(node, scope))
        return values

    def _item(self, node: ast.Subscript, scope: Scope) -> Any:
        value = self.value(node.value, scope)
        if isinstance(value, type):
            raise TypeError("a type has no items here")
        return value[self.value(node.slice, scope)]

    def _slice(self, node: ast.Slice, scope: Scope) -> slice:
        return slice(*(None if one is None else self.value(one, scope) for one in (node.lower, node.upper, node.step)))

    def _bool(self, node: ast.BoolOp, scope: Scope) -> Any:
        stops = isinstance(node.op, ast.Or)
        value: Any = None
        for one in node.values:
            value = self.value(one, scope)
            if bool(value) is stops:
                break
        return value

    def _compare(self, node: ast.Compare, scope: Scope) -> Any:
        left = self.value(node.left, scope)
        result: Any = True
        for op, right_node in zip(node.ops, node.comparators, strict=True):
            right = self.value(right_node, scope)
            result = COMPARISONS[type(op)](left, right)
            if op is not node.ops[-1] and not result:  # a condition over a column has no truth, and needs none here
                break
            left = right
        return result

    def _call(self, node: ast.Call, scope: Scope) -> Any:
        function = self.value(node.func, scope)
        args = self._several(node.args, scope)
        keywords: dict[str, Any] = {}
        for one in node.keywords:
            value = self.value(one.value, scope)
            added = {one.arg: value} if one.arg is not None else dict(value)
            if any(not isinstance(name, str) or name.startswith("_") for name in added):
                raise TypeError('names of arguments must not begin with "_"')
            keywords.update(added)
        return function(*args, **keywords)

    def _dict(self, node: ast.Dict, scope: Scope) -> dict[Any, Any]:
        found: dict[Any, Any] = {}
        for key, value in zip(node.keys, node.values, strict=True):
            if key is None:
                found.update(self.value(value, scope))
            else:
                found[self.value(key, scope)] = self.value(value, scope)
        return found

    def _comprehended(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp, scope: Scope) -> Iterator[Any]:
        for inner in self._loops(node.generators, scope):
            yield self.value(node.elt, inner)

    def _dict_comprehended(self, node: ast.DictComp, scope: Scope) -> dict[Any, Any]:
        loops = self._loops(node.generators, scope)
        return {self.value(node.key, inner): self.value(node.value, inner) for inner in loops}

    def _loops(self, generators: Sequence[ast.comprehension], scope: Scope) -> Iterator[Scope]:
        if not generators:
            yield scope
            return
        first, *rest = generators
        for one in self.value(first.iter, scope):
            inner = Scope(scope)
            self.assign(first.target, one, inner)
            if all(self.value(test, inner) for test in first.ifs):
                yield from self._loops(rest, inner)

    def _formatted(self, node: ast.FormattedValue, scope: Scope) -> str:
        value = _CONVERSIONS[node.conversion](self.value(node.value, scope))
        return format(value, "" if node.format_spec is None else self.value(node.format_spec, scope))

    def _lambda(self, node: ast.Lambda, scope: Scope) -> Function:
        return self.function("lambda", node.args, scope, lambda inner: self.value(node.body, inner))

    def _named(self, node: ast.NamedExpr, scope: Scope) -> Any:
        value = self.value(node.value, scope)
        self.assign(node.target, value, scope)
        return value

    def function(self, name: str, parameters: ast.arguments, scope: Scope, body: Callable[[Scope], Any]) -> Function:
        """Make a function of the script; the default values of its parameters are computed now, not at a call."""
        defaults = [self.value(one, scope) for one in parameters.defaults]
        keyword_defaults = [NOTHING if one is None else self.value(one, scope) for one in parameters.kw_defaults]
        return Function(name, parameters, defaults, keyword_defaults, scope, body, self.depth)

    def assign(self, target: ast.AST, value: Any, scope: Scope) -> None:
        """Assign a value to a name or an item, or unpack it into several of them. Attributes cannot be set."""
        if isinstance(target, ast.Name):
            scope.set(target.id, value)
        elif isinstance(target, ast.Subscript):
            self.value(target.value, scope)[self.value(target.slice, scope)] = value
        elif isinstance(target, (ast.Tuple, ast.List)):
            self._unpack(target.elts, list(value), scope)
        else:
            raise TypeError("only names and items can be set here, no attributes")

    def _unpack(self, targets: Sequence[ast.AST], values: list[Any], scope: Scope) -> None:
        starred = [place for place, one in enumerate(targets) if isinstance(one, ast.Starred)]
        if len(values) != len(targets) and not (starred and len(values) >= len(targets) - 1):
            raise ValueError(f"{len(values)} values cannot be unpacked into {len(targets)} names")
        if starred:
            end = starred[0] + len(values) - len(targets) + 1
            values[starred[0] : end] = [values[starred[0] : end]]
        for one, value in zip(targets, values, strict=True):
            self.assign(one.value if isinstance(one, ast.Starred) else one, value, scope)
