"""What the inspector's pages ask for: the fields of their forms, the links, and the names that its handlers read."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

from cascade_memory import inspector

# How a handler reads a field of each method: functions that get its name, and mappings that hold it.
_READING = {"GET": {"asked", "choice"}, "POST": {"_field"}}
_READ_FROM = {"GET": {"query", "query_params"}, "POST": {"fields"}}


@dataclass
class Form:
    """A form as a page shows it, with what its fields hold."""

    method: str
    path: str
    fields: dict[str, str] = field(default_factory=dict)
    texts: set[str] = field(default_factory=set)  # the fields in which people write a text of their own


class Found(HTMLParser):
    """The forms and links of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.forms: list[Form] = []
        self.links: list[tuple[str, dict[str, str]]] = []
        self._writing: str | None = None  # the name of the textarea whose text comes
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note a form, a field or a link."""
        given = {name: value or "" for name, value in attrs}
        if tag == "form":
            self.forms.append(Form(given["method"], urlsplit(given["action"]).path))
        elif tag in ("input", "select", "textarea") and "name" in given:
            ticked = given.get("type") != "checkbox"
            self.forms[-1].fields[given["name"]] = given.get("value", "") if ticked else ""
            self._writing = given["name"] if tag == "textarea" else None
            self.forms[-1].texts |= {given["name"]} if tag == "textarea" else set()
        elif tag == "a" and given.get("href", "").startswith("/"):
            address = urlsplit(given["href"])
            self.links.append((address.path, dict(parse_qsl(address.query, errors="surrogateescape"))))

    def handle_data(self, data: str) -> None:
        """Fill a textarea."""
        if self._writing is not None:
            self.forms[-1].fields[self._writing] += data.removeprefix("\n")

    def handle_endtag(self, tag: str) -> None:
        """End a textarea."""
        if tag == "textarea":
            self._writing = None


@functools.cache
def names_read(method: str) -> frozenset[str]:
    """Return the names of the fields that the inspector's code reads from addresses (GET) or from forms (POST)."""
    return frozenset(
        node.value
        for file in Path(inspector.__file__).parent.glob("*.py")
        for call in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(call, ast.Call) and _reads(call.func, method)
        for node in call.args[:2]
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value
    )


def _reads(called: ast.expr, method: str) -> bool:
    if isinstance(called, ast.Attribute) and called.attr == "get":
        return _name_of(called.value) in _READ_FROM[method]
    return _name_of(called) in _READING[method]


def _name_of(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


class Noting(dict[str, str]):
    """Fields that note which of them are read."""

    def __init__(self, fields: dict[str, str], noted: set[str]) -> None:
        super().__init__(fields)
        self._noted = noted

    def get(self, key: str, default: str | None = None) -> str | None:  # type: ignore[override]
        """Read a field."""
        self._noted.add(key)
        return super().get(key, default)

    def __getitem__(self, key: str) -> str:
        self._noted.add(key)
        return super().__getitem__(key)

    def __contains__(self, key: object) -> bool:
        self._noted.add(str(key))
        return super().__contains__(key)

    def items(self) -> Iterator[tuple[str, str]]:  # type: ignore[override]
        """Refuse: who reads all fields reads some that nobody has named."""
        raise AssertionError("a page reads all fields at once: its fields are not known")

    __iter__ = keys = values = items  # type: ignore[assignment]
