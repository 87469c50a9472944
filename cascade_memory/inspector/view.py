"""What a page is made from: the memory, the namespace, who asks, what they ask for, and the addresses of other pages.

Addresses lead below the place where the application is mounted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias
from urllib.parse import urlencode

from cascade_memory import CascadeMemory, Episode
from cascade_memory.domain import SOURCES
from cascade_memory.errors import InvalidInput
from cascade_memory.inspector.remembered import Remembered

Link: TypeAlias = Callable[..., str]


def linking(root: str, namespace: str) -> Link:
    """Return a function that writes addresses: ids and namespaces may be any text, so they are never part of a path.

    >>> linking("/memory", "a/b")("case", id="x y", sort=None)
    '/memory/case?ns=a%2Fb&id=x+y'
    """

    def link(page: str, **query: Any) -> str:
        given = {"ns": namespace, **{name.rstrip("_"): value for name, value in query.items() if value not in (None, "")}}
        return f"{root}/{page}?{urlencode(given, errors='replace')}"

    return link


class Missing(Exception):
    """Raised if there is nothing at the address of a page."""


class Elsewhere(Exception):
    """Raised to send the browser to another page, mostly after an action."""

    def __init__(self, address: str) -> None:
        super().__init__(address)
        self.address = address


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """A request for a page, after all checks.

    ``visitor`` is the name under which actions are recorded; ``form`` is the token that every form must contain.
    """

    memory: CascadeMemory
    namespace: str
    namespaces: tuple[str, ...]
    query: Mapping[str, str]
    link: Link
    edit: bool
    visitor: str
    form: str
    remembered: Remembered
    rate: float = 1.0  # the share of episodes about which people are asked
    fields: Mapping[str, str] = field(default_factory=dict[str, str])
    acts: Mapping[str, Act] = field(default_factory=dict[str, "Act"])

    def filled(self, name: str) -> str:
        """Return the content of a required field of a form; raise ``InvalidInput`` if it is empty."""
        found = self.fields.get(name, "")
        if not found.strip():
            raise InvalidInput(f"the form lacks its field {name}: go back, and fill it in")
        return found

    def subject(self) -> tuple[str, str]:
        """Return what a form is about: "case" or "episode", and its id."""
        what = self.fields.get("what")
        if what not in ("case", "episode"):
            raise InvalidInput("this form does not say whether it is about a case or an episode")
        return what, self.filled("id")

    def asked(self, name: str) -> str | None:
        """Return a parameter of the address; None if it is missing or empty."""
        return self.query.get(name) or None

    def choice(self, name: str, options: tuple[str, ...], default: str | None = None) -> str | None:
        """Return a parameter of the address if it is one of some options; anything else counts as not given."""
        found = self.query.get(name)
        return found if found in options else default

    def episode(self, episode_id: str) -> Episode:
        """Return an episode of this namespace; raise ``Missing`` if there is none."""
        found = self.memory.episodes.get(episode_id) if episode_id else None
        if found is None:
            raise Missing(f"There is no episode {episode_id!r} in the namespace {self.namespace!r}.")
        return found

    @property
    def source(self) -> str | None:
        """The source by which a list is filtered."""
        return self.choice("source", SOURCES)


@dataclass(frozen=True, slots=True)
class Rendered:
    """The name of a template, and the values for it. ``reload``: seconds after which the page is loaded again."""

    template: str
    values: Mapping[str, Any]
    status: int = 200
    reload: int | None = None


Page: TypeAlias = Callable[[View], Rendered]
Deed: TypeAlias = Callable[[View, str], "str | Rendered"]  # gets the name of the act; returns the next page, or its address


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """What a form of a page does: it is recorded with the name of the visitor, and leads to another page.

    If ``do`` returns the address of that page, the address ends with ``done=`` and the name of the act. The page then shows the
    text ``said``. If the name is followed by a hyphen and a key of ``variants``, the page shows the text of that variant. With
    ``done=unchanged`` the page says that nothing had to be changed.
    """

    do: Deed
    about: str  # the name of the page of what it is about
    said: str = ""
    variants: Mapping[str, str] = field(default_factory=dict[str, str])

    @classmethod
    def each(cls, do: Deed, about: str, said: Mapping[str, str], **variants: str) -> dict[str, Act]:
        """Make acts that share ``do`` and differ in what the page says afterwards.

        >>> sorted(Act.each(lambda view, name: name, "case", {"pin": "It is pinned.", "unpin": "It is not."}))
        ['pin', 'unpin']
        """
        return {name: cls(do=do, about=about, said=text, variants=variants) for name, text in said.items()}
