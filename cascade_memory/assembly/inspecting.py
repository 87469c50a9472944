"""What ``memory.inspect()`` returns, without importing the inspector, which stands above this package."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from typing_extensions import Self

PACKAGE = "cascade_memory.inspector"
NEEDED = ("starlette", "jinja2", "uvicorn")
REMEDY = 'which the extra "inspector" installs: pip install "cascade-memory[inspector]"'


class Inspecting(Protocol):
    """A running inspector; a notebook shows a link to it."""

    @property
    def address(self) -> str:
        """Where it listens."""
        ...

    @property
    def link(self) -> str:
        """A new link that lets one browser in, once."""
        ...

    def close(self) -> None:
        """Stop it; the memory stays open."""
        ...

    def __enter__(self) -> Self:
        """Use it in a ``with`` block that stops it."""
        ...

    def __exit__(self, *_: object) -> None:
        """Stop."""
        ...
