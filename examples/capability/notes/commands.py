"""``cascade-memory notes``: list, pin and unpin notes on cases."""

from __future__ import annotations

import argparse
import dataclasses
from datetime import datetime, timezone

from cascade_memory.cli import Commands, actor, add_actor, existing, print_done, print_json, print_table


def add(groups: Commands) -> None:
    """Add the group."""
    notes = groups.group("notes", "pin notes to cases")
    list_notes = notes.on_memory("list", list_, "list the newest notes, or those on a case from the oldest on")
    list_notes.add_argument("--case", metavar="ID", help="the id of a case")
    list_notes.add_argument("--limit", type=int, default=50, metavar="N", help="without --case: at most so many (50)")
    pin_one = notes.on_memory("pin", pin, "pin a note to a case")
    pin_one.add_argument("--case", required=True, metavar="ID", help="the id of the case")
    pin_one.add_argument("--text", required=True, help="up to 2,000 characters")
    add_actor(pin_one)
    unpin_one = notes.on_memory("unpin", unpin, "delete a note")
    unpin_one.add_argument("--note", required=True, metavar="ID", help="the id of the note")
    add_actor(unpin_one)


def list_(options: argparse.Namespace) -> int:
    """List notes."""
    with existing(options, options.namespace) as memory:
        found = memory.notes.all(options.limit) if options.case is None else memory.notes.of(options.case)
    if options.json:
        print_json([dataclasses.asdict(note) for note in found])
    else:
        rows = [(note.id, note.case_id, _day(note.at), note.actor or "", note.text) for note in found]
        print_table("", ("note", "case", "written", "by", "text"), rows)
    return 0


def pin(options: argparse.Namespace) -> int:
    """Pin a note."""
    with existing(options, options.namespace, actor(options)) as memory:
        note = memory.notes.pin(options.case, options.text)
    print_done(options, {"case": options.case, "note": note}, f"pinned note {note} to case {options.case}")
    return 0


def unpin(options: argparse.Namespace) -> int:
    """Delete a note."""
    with existing(options, options.namespace, actor(options)) as memory:
        memory.notes.unpin(options.note)
    print_done(options, {"unpinned": options.note}, f"deleted note {options.note}")
    return 0


def _day(at: float) -> str:
    return f"{datetime.fromtimestamp(at, timezone.utc):%Y-%m-%d}"
