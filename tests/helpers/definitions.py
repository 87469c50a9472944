"""What is defined in some files, by the names that others can use."""

from __future__ import annotations

import ast
import re


class Definitions(ast.NodeVisitor):
    """What is defined in some files: not what a function calls its variables, which nobody outside can use."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.arguments: dict[str, set[str]] = {}  # of a function, or of a class: those of its constructor, or its fields
        self.members: dict[str, set[str]] = {}  # of a class
        self.bases: dict[str, set[str]] = {}
        self.types: dict[tuple[str, str], set[str]] = {}  # (class or "", name): the words of its annotation
        self.strings: set[str] = set()
        self._class = ""

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        outer, self._class = self._class, node.name
        self._define(node.name, inside=outer)
        self.members.setdefault(node.name, set())
        self.arguments.setdefault(node.name, set())
        self.bases.setdefault(node.name, set()).update(last_name(base) for base in node.bases)
        self.generic_visit(node)
        self._class = outer

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        arguments = {one.arg for one in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)}
        self._define(node.name, inside=self._class)
        self.names |= arguments
        self.arguments.setdefault(self._class if node.name == "__init__" else node.name, set()).update(arguments)
        self._annotate(node.name, node.returns)
        for one in ast.walk(node):
            if isinstance(one, ast.Attribute):
                if self._class and isinstance(one.ctx, ast.Store):
                    self.members[self._class].add(one.attr)
            elif isinstance(one, ast.Constant):
                self.visit_Constant(one)
            # A tool of the server: a function within a function, that is registered.
            elif isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef)) and one is not node and one.decorator_list:
                self.names |= {one.name, *(argument.arg for argument in one.args.args)}

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if isinstance(node.target, ast.Name):
            self._define(node.target.id, inside=self._class)
            self.arguments.setdefault(self._class, set()).add(node.target.id)
            self._annotate(node.target.id, node.annotation)
        self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Store):
            self._define(node.id, inside=self._class)

    def visit_alias(self, node: ast.alias) -> None:
        self.names.add((node.asname or node.name).split(".")[-1])

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, str):
            self.strings.add(node.value)

    def _define(self, name: str, *, inside: str) -> None:
        self.names.add(name)
        if inside:
            self.members.setdefault(inside, set()).add(name)

    def _annotate(self, name: str, annotation: ast.expr | None) -> None:
        if annotation is not None:
            self.types.setdefault((self._class, name), set()).update(re.findall(r"\w+", ast.unparse(annotation)))

    def members_of(self, classes: set[str]) -> set[str]:
        """Return the members of some classes, inherited ones as well."""
        found: set[str] = set()
        seen: set[str] = set()
        while classes:
            found |= {member for one in classes for member in self.members.get(one, ())}
            seen |= classes
            classes = {base for one in classes for base in self.bases.get(one, ())} - seen
        return found

    def type_of(self, classes: set[str], name: str) -> set[str]:
        """Return the classes of ours that an attribute of some classes holds, or that it returns when it is called."""
        words: set[str] = set()
        for one in classes:
            words |= self.types.get((one, name), set()) or self.type_of(self.bases.get(one, set()), name)
        return words & set(self.members)


def last_name(node: ast.expr) -> str:
    return re.findall(r"\w+", ast.unparse(node))[0] if not isinstance(node, ast.Attribute) else node.attr
