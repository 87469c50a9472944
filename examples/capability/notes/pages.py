"""The inspector's page of notes."""

from __future__ import annotations

from cascade_memory.inspector import Rendered, View


def notes(view: View) -> Rendered:
    """List the newest notes, each with its case."""
    return Rendered("notes.html", {"notes": view.memory.notes.all()})


PAGES = {"notes": notes}
TABS = (("notes", "Notes"),)
