"""The filter of the list of cases: which cases the list shows, and what is deleted if all of them are forgotten."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast, get_args

from cascade_memory.domain import SOURCES, State, digest
from cascade_memory.errors import InvalidInput
from cascade_memory.inspector.view import Missing, View

_MOST = 10_000  # cases that are forgotten at once: their texts are read to list them


@dataclass(frozen=True, slots=True)
class CaseFilter:
    """What a list of cases is filtered by: words, a source, metadata (as JSON), and a state."""

    search: str
    source: str | None
    where: str
    state: str | None

    @classmethod
    def of(cls, given: Mapping[str, str]) -> CaseFilter:
        """Read a filter from the address of a page, or from the fields of a form; unknown choices count as not given."""
        source, state = given.get("source"), given.get("state")
        return cls(
            search=given.get("q", ""),
            source=source if source in SOURCES else None,
            where=given.get("where", "").strip(),
            state=state if state in get_args(State) else None,
        )

    @property
    def any(self) -> bool:
        """True if the filter has at least one condition."""
        return bool(self.search.strip() or self.source or self.where or self.state)

    @property
    def by_metadata(self) -> bool:
        """True if the filter has metadata only: forgetting then also deletes the episodes with matching metadata."""
        return bool(self.where) and not (self.search.strip() or self.source or self.state)

    @property
    def query(self) -> dict[str, str | None]:
        """The filter as parameters of a page's address, or as fields of a form."""
        return {"q": self.search, "source": self.source, "where": self.where, "state": self.state}

    @property
    def options(self) -> dict[str, Any]:
        """The filter as options of ``memory.cases.page``."""
        return {"search": self.search, "source": self.source, "where": self._metadata(), "state": self.state}

    def _metadata(self) -> Mapping[str, Any] | None:
        if not self.where:
            return None
        try:
            found = json.loads(self.where)
        except (ValueError, RecursionError) as error:
            raise InvalidInput(f'a filter is JSON, such as {{"user": "ann"}}: {error}') from error
        if not isinstance(found, dict):
            raise InvalidInput('a filter is a JSON object, such as {"user": "ann"}')
        return cast("dict[str, Any]", found)

    def to_forget(self, view: View) -> ToForget:
        """Return what ``forget`` needs to delete all cases that match the filter now."""
        if not self.any:
            raise InvalidInput("filter the cases first: memory.forget(everything=True) forgets a whole namespace")
        found = view.memory.cases.page(**self.options, limit=_MOST)
        if found.after is not None:
            raise InvalidInput(f"more than {_MOST:,} cases match: narrow the filter, or use memory.forget in Python")
        if not found.items and not self.by_metadata:
            raise Missing("No case matches.")
        ids = sorted(case.id for case in found.items)
        named = {"where": self._metadata()} if self.by_metadata else {"case_ids": ids}
        return ToForget(named=named, seen=digest("\n".join(ids)))


@dataclass(frozen=True, slots=True)
class ToForget:
    """What is forgotten: options for ``forget``, and a digest of the matching cases, which changes when other cases match."""

    named: Mapping[str, Any]
    seen: str
