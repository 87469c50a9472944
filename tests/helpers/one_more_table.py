"""A library whose ledger has one table more: it is declared, and nothing else knows of it. Run in a process of its own.

python one_more_table.py FOLDER [URL]: prints what became of its rows as JSON.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
import sys
from pathlib import Path

from cascade_memory.domain.validation import check_id
from cascade_memory.ledger import rules, schema
from cascade_memory.ledger.declaring import BLOB, INTEGER, REAL, TEXT, Column, Index, Table, between, whole

MARK = Table(
    "mark",
    (
        Column("key", INTEGER, whole(1), key=True, counts=True),
        Column("episode", INTEGER, of=("episode",), refers="episode(key)"),
        Column("namespace", INTEGER, rules.NAMESPACE, of=("namespace",)),
        Column("said", TEXT, check_id, about="what somebody noted, in a word"),
        Column("weight", REAL, between(0.0, 1.0), default=1),
        Column("at", REAL, dated=True, default=0),
        Column("picture", BLOB, optional=True),
    ),
    indexes=(Index("said", "namespace, said"),),
    nested="marks",
)
OF_MARK = Table(
    "of_mark", (Column("mark", INTEGER, key=True, of=("mark",), refers="mark(key)"), Column("more", TEXT)), about="of a mark"
)
schema.TABLES = (*schema.TABLES, MARK, OF_MARK)
schema.STATEMENTS = (*schema.STATEMENTS, *MARK.statements, *OF_MARK.statements)

from inside import engine_of  # noqa: E402 - from here on the library has these tables

from cascade_memory import CascadeMemory  # noqa: E402
from cascade_memory.assembly.move import move  # noqa: E402
from cascade_memory.ledger.connections import Connections  # noqa: E402

_ALL = "SELECT mark.key, episode.id, mark.said, mark.weight, mark.picture, of_mark.more FROM mark " + (
    "JOIN episode ON episode.key = mark.episode LEFT JOIN of_mark ON of_mark.mark = mark.key ORDER BY mark.key"
)


def opened(place: Path | str) -> CascadeMemory:
    """Open a memory."""
    return CascadeMemory(place, embedder="hashing", learn="inline")


def marked(memory: CascadeMemory, word: str) -> str:
    """Reward an episode and note something about it; return its id."""
    episode = memory.recall(f"a task that is {word}").episode_id
    memory.reward(episode, 1.0, solution=word)
    with engine_of(memory).parts.ledger.connections.write(durable=True) as connection:
        key = "SELECT key, namespace FROM episode WHERE id = ?"
        of, namespace = connection.execute(key, (episode,)).fetchone()
        new = "INSERT INTO mark (episode, namespace, said, picture) VALUES (?, ?, ?, ?) RETURNING key"
        (mark,) = connection.execute(new, (of, namespace, word, word.encode())).fetchone()
        connection.execute("INSERT INTO of_mark VALUES (?, ?)", (mark, "more"))
    return episode


def rows(memory: CascadeMemory) -> list[list[object]]:
    """Return what is in the tables."""
    with engine_of(memory).parts.ledger.connections.read() as connection:
        found = connection.execute(_ALL).fetchall()
    return [[*one[:4], bytes(one[4]).decode(), one[5]] for one in found]


def edited(folder: Path, *statements: str) -> None:
    """Change the file of a folder that is closed."""
    with contextlib.closing(sqlite3.connect(folder / "ledger.sqlite3", isolation_level=None)) as file:
        for statement in statements:
            file.execute(statement)


def found_and_mended(folder: Path) -> tuple[list[str], bool]:
    """Return what the doctor finds, and whether all is well after it has mended that."""
    with opened(folder) as memory:
        wrong = [check.detail for check in memory.data.examine() if not check.ok]
        memory.data.examine(fix=True)
        return wrong, all(check.ok for check in memory.data.examine())


def lived(place: Path | str, folder: Path) -> dict[str, object]:
    """Do with the tables what a ledger does with all of them; return what became of their rows."""
    said: dict[str, object] = {}
    with opened(place) as memory:
        first, second = marked(memory, "one"), marked(memory, "two")
        said["written"] = [first, second], rows(memory)
        memory.data.export(folder / "exported.jsonl")
        memory.forget(episode_id=first)
        said["after an episode was forgotten"] = rows(memory)
    with opened(folder / "imported") as memory:
        memory.data.import_(folder / "exported.jsonl")
        said["imported"] = rows(memory)
        memory.forget(everything=True)
        said["after all was forgotten"] = rows(memory), engine_of(memory).parts.ledger.maintenance.orphans()
    return said


def main() -> None:
    """Run in a folder, and with a database if there is one."""
    folder, *urls = Path(sys.argv[1]), *sys.argv[2:]
    said = lived(folder / "memory", folder)
    with opened(folder / "memory") as memory:
        marked(memory, "three")
    if urls:
        said["moved"] = move(folder / "memory", urls[0], progress=False)["mark"]
        with opened(urls[0]) as memory:
            said["in the database"] = rows(memory)
            marked(memory, "four")
        move(urls[0], folder / "back", progress=False)
        with opened(folder / "back") as memory:
            said["back"] = rows(memory)
    else:
        edited(folder / "memory", "UPDATE mark SET weight = 7 WHERE said = 'three'")
        said["a wrong value"] = found_and_mended(folder / "memory")
        edited(folder / "memory", "UPDATE mark SET at = 9e9")
        said["a time ahead"] = found_and_mended(folder / "memory")
        edited(folder / "memory", "PRAGMA foreign_keys = OFF", "DELETE FROM mark")
        said["rows of nothing"] = found_and_mended(folder / "memory")
        edited(folder / "memory", "DROP INDEX mark_said")
        try:
            Connections(folder / "memory" / "ledger.sqlite3")
        except OSError as error:
            said["another structure"] = str(error)
    sys.stdout.write(json.dumps(said))


if __name__ == "__main__":
    main()
