"""The pages of cases: a list that can be searched, filtered and sorted, and one case with everything about it."""

from __future__ import annotations

from typing import Any, cast, get_args

from cascade_memory.domain import SOURCES, CaseOrder, Sort, named
from cascade_memory.errors import InvalidInput
from cascade_memory.inspector.actions import told
from cascade_memory.inspector.filtering import CaseFilter
from cascade_memory.inspector.shown import cut, is_cut, solved, steps_of
from cascade_memory.inspector.view import Rendered, View

PER_PAGE = 50
SORTS = (
    ("newest", "newest first"),
    ("oldest", "oldest first"),
    ("shown", "most often shown"),
    ("successes", "most successes"),
    ("use", "predicted use"),
)
STATES = (("pinned", "pinned"), ("hidden", "never shown"))
_READ = ("newest", "oldest")  # the orders that the ledger reads without sorting


def cases(view: View) -> Rendered:
    """List cases."""
    sort = cast("Sort", view.choice("sort", get_args(Sort), "newest"))
    filter_ = CaseFilter.of(view.query)
    values: dict[str, Any] = {
        "filter": filter_,
        "sort": sort,
        "sorts": SORTS,
        "sources": SOURCES,
        "states": STATES,
        "error": None,
        "page": None,
        "later": view.asked("after") is not None,
        "waits": False,
    }
    try:
        order = None
        if sort not in _READ and not filter_.any:
            order = _order(view, sort)
            if order is None:
                return Rendered("cases.html", {**values, "waits": True}, reload=1)
        values["page"] = view.memory.cases.page(
            **filter_.options, sort=sort, after=view.asked("after"), limit=PER_PAGE, order=order
        )
    except InvalidInput as error:
        return Rendered("cases.html", {**values, "error": str(error)}, status=400)
    return Rendered("cases.html", values)


def _order(view: View, sort: Sort) -> CaseOrder | None:
    made = view.remembered.get(("order", sort, view.namespace), lambda: view.memory.cases.order(sort))
    return None if made is None else made.value


def case(view: View) -> Rendered:
    """Show one case."""
    case_id, whole = view.query.get("id", ""), view.asked("whole") is not None
    found = view.memory.cases.get(case_id)
    text = solved(found.solution)
    near = view.remembered.get(("near", view.namespace, found.id), lambda: view.memory.cases.neighbours(found.id))
    after = view.asked("after")
    return Rendered(
        "case.html",
        {
            "case": found,
            "trust": named(found.trust),
            "query": cut(found.query, whole),
            "text": cut(text, whole),
            "text_whole": text,
            "trajectory": steps_of(found.solution),
            "whole": whole,
            "can_be_whole": is_cut(found.query) or is_cut(text),
            "verified": view.memory.episodes.outcomes(case_id=found.id),
            "neighbours": None if near is None else near.value,
            "shown_in": view.memory.cases.shown_in(found.id, after=after),
            "later": after is not None,
            **told(view, found.id),
        },
    )
