"""``cascade-memory data``: checks, repairs, copies, moves and forgets what is stored, in a folder or in PostgreSQL."""

from __future__ import annotations

import argparse
import itertools
import json
import os
import sys
from collections.abc import Sequence
from typing import IO, TYPE_CHECKING

from cascade_memory.cli import forgetting
from cascade_memory.cli.arguments import check_writable
from cascade_memory.cli.bench_options import A_MODEL
from cascade_memory.cli.groups import Commands, actor, add_actor
from cascade_memory.cli.opening import URL, existing, place
from cascade_memory.cli.tables import print_done, print_json, print_table
from cascade_memory.domain.display import counted
from cascade_memory.domain.validation import check_path
from cascade_memory.errors import InvalidInput

if TYPE_CHECKING:
    from cascade_memory.memory.stored_texts import StoredSecret

_MOST_IDS = 3  # of secrets, that a row names
_TODO_WITH_SECRETS = (
    "Change these secrets where they are valid: whoever could read the folder may have them. Then forget what holds them: "
    "cascade-memory data forget PATH --namespace NAME --case ID --purge (or --episode ID). A search goes with the next --purge "
    "of its namespace. Backups and exports that were made before keep them: delete those. What comes in now has placeholders."
)
_NAMED = {"cases": "cases", "episodes": "episode", "outcomes": "outcome", "expired cases": "expired"}


def add(groups: Commands) -> None:
    """Add the group."""
    data = groups.group("data", "check, repair, copy, move and forget what is stored")
    _add_doctor(data)
    data.on_memory("rebuild", rebuild, "build the Chroma folder again from the ledger", namespace=False)
    command = data.on_memory("reindex", reindex, "embed all cases again with another embedder", namespace=False)
    command.add_argument("--embedder", required=True, metavar="NAME", help=f"minilm, chroma, hashing, or {A_MODEL}")
    _add_backup(data)
    _add_transfer(data)
    _add_databases(data)
    forgetting.add(data)


def _add_doctor(data: Commands) -> None:
    about = "check that ledger, index and Chroma agree; exit 1 if not"
    command = data.on_memory("doctor", doctor, about, namespace=False)
    command.add_argument("--fix", action="store_true", help="repair what can be repaired without losing data")
    command.add_argument("--secrets", action="store_true", help="look for secrets in all that is stored instead; exit 1 if any")


def _add_backup(data: Commands) -> None:
    about = "copy the memory into a new folder; it may be in use meanwhile"
    command = data.on_memory("backup", backup, about, namespace=False)
    command.add_argument("target", help="the new folder")
    command = data.command("restore", restore, "restore a backup; nothing is removed before the backup is checked")
    command.add_argument("backup", help="the folder that data backup made")
    command.add_argument("path", help="the folder of the memory; it must not be open anywhere")
    command.add_argument("--replace", action="store_true", help="replace an existing memory")


def _add_transfer(data: Commands) -> None:
    command = data.on_memory("export", export, "write everything as JSON lines", namespace=False)
    command.add_argument("file", help="target file, or - for standard output")
    command.add_argument("--force", action="store_true", help="replace an existing file")
    command = data.on_memory("import", import_, "read what data export wrote; the folder may be new", namespace=False)
    command.add_argument("file", help="source file, or - for standard input")
    add_actor(command)


def doctor(options: argparse.Namespace) -> int:
    """Examine the folder, or look for secrets in it."""
    if options.secrets:
        return _doctor_secrets(options)
    with existing(options) as memory:
        checks = memory.data.examine(fix=options.fix)
    if options.json:
        print_json([check.as_dict() for check in checks])
    else:
        rows = [["ok" if check.ok else "WRONG", check.name, check.detail] for check in checks]
        print_table(f"examination of {place(options)}", ["", "what", "finding"], rows)
    return 0 if all(check.ok for check in checks) else 1


def _doctor_secrets(options: argparse.Namespace) -> int:
    """Count the stored secrets by kind and place."""
    with existing(options) as memory:
        found = memory.data.find_secrets()
    if options.json:
        print_json({"secrets": [one.as_dict() for one in found], "todo": _TODO_WITH_SECRETS if found else None})
    elif not found:
        print(f"no secrets found in {place(options)}")
    else:
        print_table(f"secrets in {place(options)}", ["kind", "where", "namespace", "secrets", "ids"], _secret_rows(found))
        print(_TODO_WITH_SECRETS)
    return 1 if found else 0


def _secret_rows(found: Sequence[StoredSecret]) -> list[list[str]]:
    grouped: dict[tuple[str, str, str], list[StoredSecret]] = {}
    for one in found:
        grouped.setdefault((one.kind, one.where, one.namespace), []).append(one)
    return [[*group, f"{sum(one.count for one in same):,}", _secret_ids(same)] for group, same in sorted(grouped.items())]


def _secret_ids(same: Sequence[StoredSecret]) -> str:
    ids = list(dict.fromkeys(one.id for one in same if one.id is not None))
    more = f" and {len(ids) - _MOST_IDS:,} more (--json names all)" if len(ids) > _MOST_IDS else ""
    return ", ".join(ids[:_MOST_IDS]) + more


def rebuild(options: argparse.Namespace) -> int:
    """Build Chroma again from the ledger."""
    with existing(options) as memory:
        memory.data.rebuild()
        cases = memory.stats(everywhere=True).cases
    print_done(options, {"rebuilt": cases}, f"Chroma was rebuilt with {counted(cases, 'case')}")
    return 0


def reindex(options: argparse.Namespace) -> int:
    """Embed all cases again, with another embedder."""
    from cascade_memory.assembly.reindex import reindex as reindex_folder

    cases = reindex_folder(options.path, options.embedder, progress=None if not options.json else False)
    print_done(options, {"reindexed": cases, "embedder": options.embedder}, f"{counted(cases, 'case')} embedded again")
    return 0


def _check_both(options: argparse.Namespace, stream: str) -> None:
    """Raise an error if only one of the two names, memory and file, was given: argparse takes it for the file."""
    if not options.path:
        raise InvalidInput(
            f"only {options.file!r} was named: name the memory and the file, {options.called} MEMORY FILE, where FILE may be - "
            f"for the standard {stream}"
        )


def export(options: argparse.Namespace) -> int:
    """Export the memory as JSON lines."""
    _check_both(options, "output")
    if options.file != "-":
        place(options).check_there()
        if check_path(options.file, "the file").is_file() and not options.force:
            raise InvalidInput(f"there is already a file {options.file}: name another one, or pass --force to replace it")
        check_writable(options.file, "the file")
    with existing(options) as memory:
        if options.file == "-":
            memory.data.export(sys.stdout, progress=False)
            return 0
        lines = memory.data.export(options.file)
    print_done(options, {"lines": lines, "file": options.file}, f"{lines:,} lines written to {options.file}")
    return 0


def import_(options: argparse.Namespace) -> int:
    """Import JSON lines."""
    from cascade_memory.assembly.cascade import CascadeMemory
    from cascade_memory.assembly.embedders import StoredVectors
    from cascade_memory.memory.transfer import lines_of, read_header

    _check_both(options, "input")
    source = sys.stdin if options.file == "-" else _readable(options.file)
    with source as file:
        lines = lines_of(file)
        header = read_header(first := next(lines, ""))
        embedder = "stored" if _is_there(options) else StoredVectors(header["embedder"], header["dimension"])
        with CascadeMemory(options.path, embedder=embedder, chroma=options.chroma) as memory:
            count = memory.acting(actor=actor(options)).data.import_(itertools.chain([first], lines))
    print_done(options, {"imported": count}, f"{counted(count, 'record')} imported")
    return 0


def _is_there(options: argparse.Namespace) -> bool:
    try:
        place(options).check_there()
    except InvalidInput:
        return False
    return True


def backup(options: argparse.Namespace) -> int:
    """Copy a memory into a new folder."""
    with existing(options) as memory:
        held = memory.data.backup(options.target)
    print_done(options, held, f"backed up: {_counted(held)}")
    return 0


def restore(options: argparse.Namespace) -> int:
    """Restore a backup."""
    from cascade_memory.assembly.restore import restore as restore_folder

    held = restore_folder(options.backup, options.path, replace=options.replace)
    print_done(options, held, f"restored: {_counted(held)}")
    return 0


def _counted(held: dict[str, int]) -> str:
    return ", ".join(f"{count:,} {what}" for what, count in held.items())


def _readable(file: str) -> IO[str]:
    try:
        return check_path(file, "the file").open(encoding="utf-8")
    except OSError as error:
        raise InvalidInput(f"cannot read {file}: {error}") from error


def _add_databases(data: Commands) -> None:
    """Add ``move`` and ``migrate``."""
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
