"""The type that ``memory.inspect()`` returns. It does not import the inspector, which is in a higher layer."""

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
        """The address at which the inspector listens."""
        ...

    @property
    def link(self) -> str:
        """A new link that lets one browser in, once."""
        ...

    def close(self) -> None:
        """Stop the inspector; the memory stays open."""
        ...

    def __enter__(self) -> Self:
        """Use the inspector in a ``with`` block that stops it at the end."""
        ...

    def __exit__(self, *_: object) -> None:
        """Stop the inspector."""
        ...
