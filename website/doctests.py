"""Shows the doctests of docstrings as code: without a fence, Markdown takes ``>>>`` for three quotations."""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension, Object

_DOCTEST = re.compile(r"^>>> .*(?:\n.+)*", re.MULTILINE)


class Doctests(Extension):
    """Puts a fence around each doctest that stands in no section of its own."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Change the docstring of one object."""
        if obj.docstring is not None:
            obj.docstring.value = fenced(obj.docstring.value)


def fenced(docstring: str) -> str:
    """Return the docstring with a fence around each doctest."""
    return _DOCTEST.sub(lambda found: f"```pycon\n{found.group()}\n```", docstring)
