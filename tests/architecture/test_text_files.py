"""Text is UTF-8 on every system: each call that opens a text file names the encoding, which is another one on Windows."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import cascade_memory

PACKAGE = Path(cascade_memory.__file__).parent
FOLDERS = [PACKAGE, Path(__file__).parents[2] / "examples"]
_POSITION = {"read_text": 0, "write_text": 1}  # of the encoding among the arguments
_OPENING = ("open", "fdopen", "NamedTemporaryFile", "SpooledTemporaryFile", "TemporaryFile")
_CALLED = re.compile(rf"\b({'|'.join((*_POSITION, *_OPENING, 'run', 'Popen'))})\(")


def without_encoding(tree: ast.AST) -> Iterator[int]:
    """Yield the lines with calls that read or write text in the encoding of the system."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        given = {one.arg: one.value for one in node.keywords}
        if "encoding" in given:
            continue
        whole_file = name in _POSITION and len(node.args) <= _POSITION[name]
        of_child = name in ("run", "Popen") and _is_true(given.get("text"))
        if whole_file or of_child or (name in _OPENING and "b" not in _mode(name, node, given)):
            yield node.lineno


def _is_true(value: ast.expr | None) -> bool:
    return isinstance(value, ast.Constant) and value.value is True


def _mode(name: str, node: ast.Call, given: dict[str | None, ast.expr]) -> str:
    """Return the mode in which a call opens a file; "b" if it opens something else, such as a memory or an archive."""
    words = [one.value for one in (*node.args[:2], given.get("mode")) if isinstance(one, ast.Constant)]
    modes = [word for word in words if isinstance(word, str) and word and set(word) <= set("rwaxbt+")]
    if modes:
        return modes[0]
    return "r" if name == "open" and isinstance(node.func, ast.Name) and len(node.args) == 1 else "b"


@pytest.mark.slow
@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_every_text_file_names_its_encoding(folder: Path):
    texts = [(path, path.read_text(encoding="utf-8")) for path in folder.rglob("*.py")]
    trees = [(path, ast.parse(text)) for path, text in texts if _CALLED.search(text)]  # to parse the others takes seconds
    assert trees
    assert [f"{path.relative_to(folder)}:{line}" for path, tree in trees for line in without_encoding(tree)] == []


@pytest.mark.parametrize(
    "code",
    ["open(p)", "open(p, 'w')", "p.open('a')", "p.read_text()", "p.write_text(t)", "os.fdopen(h, 'w')", "run(c, text=True)"],
)
def test_a_call_without_one_is_found(code: str):
    assert list(without_encoding(ast.parse(code))) == [1]


@pytest.mark.parametrize(
    "code",
    [
        "open(p, 'rb')",
        "p.open('r+b')",
        "p.read_text('utf-8')",
        "p.write_text(t, 'ascii')",
        "memory.open()",
        "open(p, encoding=e)",
    ],
)
def test_other_calls_are_left_alone(code: str):
    assert list(without_encoding(ast.parse(code))) == []
