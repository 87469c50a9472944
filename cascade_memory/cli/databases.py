"""``cascade-memory data move`` and ``data migrate``: memories in PostgreSQL."""

from __future__ import annotations

import argparse
import json
import os

from cascade_memory.cli.groups import Commands
from cascade_memory.cli.opening import URL
from cascade_memory.cli.tables import print_json
from cascade_memory.errors import InvalidInput

_NAMED = {"cases": "cases", "episodes": "episode", "outcomes": "outcome", "expired cases": "expired"}


def add(data: Commands) -> None:
    """Add the commands."""
    about = "copy a memory from a folder into a PostgreSQL database, or back; the source stays as it is"
    command = data.command("move", move, about)
    about = "the folder or the URL (postgresql://...) of the memory; it must not be open anywhere"
    command.add_argument("source", help=about)
    command.add_argument("target", help="the URL of a database or the folder that is to hold it, and holds no memory yet")
    command.add_argument("--while-open", action="store_true", help="move a database even though others have it open")
    command = data.command("migrate", migrate, "bring the schema of a PostgreSQL database up to date")
    about = f"the URL of the database (default: the environment variable {URL})"
    command.add_argument("url", nargs="?", default=os.environ.get(URL), help=about)
    about = "change nothing, and print the statements for a role that may run them; without a URL, those for an empty database"
    command.add_argument("--print-sql", action="store_true", help=about)


def move(options: argparse.Namespace) -> int:
    """Copy a memory into a database, or back."""
    from cascade_memory.assembly.move import move as move_memory

    progress = False if options.json else None
    rows = move_memory(options.source, options.target, while_open=options.while_open, progress=progress)
    if options.json:
        print_json(rows)
        return 0
    print("moved and compared: " + ", ".join(f"{rows[table]:,} {name}" for name, table in _NAMED.items()))
    print("The source is unchanged, and still holds everything: from now on, open the memory in its new place only.")
    return 0


def migrate(options: argparse.Namespace) -> int:
    """Bring the schema of a database up to date, or print the SQL statements that do so."""
    from cascade_memory.assembly.folder import Folder
    from cascade_memory.assembly.place import place_of
    from cascade_memory.ledger.postgres.steps import script

    if not options.url:
        if not options.print_sql:
            raise InvalidInput(f"name the URL of the database, or set {URL} to it; --print-sql needs none")
        print(script(None), end="")
        return 0
    place = place_of(options.url)
    if isinstance(place, Folder):
        raise InvalidInput(f"{place} is a folder, which is upgraded when it is opened; name the URL of a database")
    from cascade_memory.ledger.postgres.migration import migrate_at, script_for

    if options.print_sql:
        print(script_for(options.url), end="")
        return 0
    before, now = migrate_at(options.url)
    if options.json:
        print(json.dumps({"before": before, "now": now}))
        return 0
    was = "is new" if before is None else "was up to date" if before == now else f"was upgraded from version {before}"
    print(f"{place} has the schema of version {now}; it {was}")
    return 0
