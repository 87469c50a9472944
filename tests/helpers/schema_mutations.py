"""Ledgers whose tables somebody has changed: with SQLite's own statements, in the table that holds these, and in the header."""

from __future__ import annotations

import contextlib
import gzip
import random
import re
import sqlite3
import struct
from collections.abc import Callable, Sequence
from pathlib import Path

from cascade_memory.ledger.schema import APPLICATION_ID, STATEMENTS
from cascade_memory.ledger.sqlite import SQLiteLedger

_FIXTURES = Path(__file__).parent.parent / "fixtures"
_WORD = re.compile(r"\s+|--[^\n]*|'(?:[^']|'')*'|\w+|.", re.DOTALL)
_MORE = (
    "UNIQUE", "NOT NULL", "PRIMARY KEY", "COLLATE NOCASE", "COLLATE RTRIM", "CHECK (1)", "CHECK (0)", "CHECK (length(id) < 40)",
    "DEFAULT 'x'", "DEFAULT 7", "ON CONFLICT IGNORE", "ON CONFLICT REPLACE", "REFERENCES cases(key) ON DELETE CASCADE",
    "REFERENCES namespace(id) ON UPDATE SET NULL", "DEFERRABLE INITIALLY DEFERRED", "GENERATED ALWAYS AS (1)", "AS (7)", "DESC",
    "STRICT", "WITHOUT ROWID", "AUTOINCREMENT", ", more", ", more INTEGER DEFAULT 1", ", UNIQUE (namespace)", ", CHECK (1)",
    "/* said */", "-- said\n", "\N{NO-BREAK SPACE}", "x\N{NO-BREAK SPACE}", "'", '"', "", " ", "\n", "WHERE 1", "OR 1",
)  # fmt: skip
_ROWS = (
    ("trigger", "evil", "cases", "CREATE TRIGGER evil AFTER INSERT ON cases BEGIN DELETE FROM outcome; END"),
    ("table", "cases", "cases", "CREATE TRIGGER cases AFTER INSERT ON cases BEGIN DELETE FROM outcome; END"),
    ("index", "cases_actor", "cases", "CREATE TRIGGER cases_actor AFTER INSERT ON cases BEGIN DELETE FROM outcome; END"),
    ("view", "evil", "evil", "CREATE VIEW evil AS SELECT * FROM cases"),
    ("table", "sqlite_stat1", "sqlite_stat1", "CREATE TRIGGER sqlite_stat1 AFTER INSERT ON cases BEGIN SELECT 1; END"),
    ("table", "sqlite_stat4", "sqlite_stat4", "CREATE TABLE sqlite_stat4(tbl,idx,neq,nlt,ndlt,sample,more)"),
    ("index", "sqlite_autoindex_cases_3", "cases", None),
    ("index", "sqlite_autoindex_cases_1", "cases", "CREATE UNIQUE INDEX sqlite_autoindex_cases_1 ON cases(copies)"),
    ("table", "more", "more", "CREATE TABLE more (x)"),
    ("virtual", "more", "more", "CREATE VIRTUAL TABLE more USING fts5(x)"),
)
_STATEMENTS = (
    "ANALYZE", "REINDEX", "VACUUM", "PRAGMA user_version = 0", "PRAGMA user_version = 3", "PRAGMA user_version = 7",
    "PRAGMA user_version = -8", "PRAGMA application_id = 1", "DROP INDEX cases_namespace", "DROP TABLE event",
    "CREATE INDEX i ON cases(abs(copies))", "CREATE UNIQUE INDEX i ON cases(source)", "CREATE TEMP TABLE cases (x)",
    "ALTER TABLE event ADD COLUMN more", "ALTER TABLE event RENAME COLUMN payload TO load",
    "ALTER TABLE event RENAME TO events",
    "ALTER TABLE event DROP COLUMN payload", "PRAGMA journal_mode = DELETE",
    "PRAGMA default_cache_size = 2147483647",
    "INSERT INTO sqlite_sequence VALUES ('evil', 5)", "INSERT INTO sqlite_sequence VALUES (NULL, NULL)",
    "INSERT INTO sqlite_sequence VALUES ('cases', 'x')", "ANALYZE; UPDATE sqlite_stat1 SET stat = 'unordered sz=0 noskipscan'",
    "ANALYZE; INSERT INTO sqlite_stat1 VALUES ('cases', 'cases_actor', '9223372036854775807 1 1')",
)  # fmt: skip
_HEADER = (16, 18, 19, 20, 21, 22, 23, 28, 32, 36, 40, 44, 48, 52, 56, 64, 92, 96)  # where its fields begin


def bases(place: Path) -> list[Path]:
    """Make empty ledgers: a new one, one of version 1, and that one upgraded."""
    made = [place / name for name in ("new.sqlite3", "old.sqlite3", "upgraded.sqlite3")]
    SQLiteLedger(made[0]).close()
    written = place / "written.sqlite3"
    written.write_bytes(gzip.decompress((_FIXTURES / "ledger-v1.sqlite3.gz").read_bytes()))
    with contextlib.closing(sqlite3.connect(written)) as old:
        found = [
            sql for (sql,) in old.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite%'")
        ]
    for file in made[1:]:
        with contextlib.closing(sqlite3.connect(file)) as empty:
            for sql in found:
                empty.execute(sql)
            empty.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            empty.execute("PRAGMA user_version = 1")
    SQLiteLedger(made[2]).close()
    return made


def mutated(file: Path, rng: random.Random) -> str:
    """Change the tables of a ledger in one way, or in several; return how."""
    said: list[str] = []
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        how = rng.choice([_words] * 8 + [_parts] * 6 + [_row] * 3 + [_statement] * 2)
        with contextlib.suppress(sqlite3.Error):
            said.append(f"{how.__name__}: {how(file, rng)}")
    return "; ".join(said)


def _words(file: Path, rng: random.Random) -> str:
    """Change words of a statement: one goes, comes, comes twice, is another one, or two change places."""
    words_of = [*map(str.strip, _WORD.findall("\n".join(STATEMENTS)))]

    def other(sql: str) -> str:
        words = _WORD.findall(sql)
        first, second = rng.randrange(2, len(words)), rng.randrange(2, len(words))
        how = rng.choice(["swap", "swap", "gone", "twice", "more", "more", "another", "case", "quoted", "comment"])
        if how == "swap":
            words[first], words[second] = words[second], words[first]
        elif how == "gone":
            del words[first]
        elif how == "twice":
            words.insert(second, words[first])
        elif how == "more":
            words[first] = f"{words[first]} {rng.choice(_MORE)} "
        elif how == "another":
            words[first] = rng.choice(words_of)
        elif how == "case":
            words[first] = words[first].swapcase()
        elif how == "quoted":
            words[first] = rng.choice(['"{}"', "[{}]", "`{}`", "'{}'"]).format(words[first])
        else:
            words[first] += rng.choice([" /* ' */ ", " -- ;\n", "\t", "\r\n"])
        return "".join(words)

    return _with_statement(file, rng, other)


def _parts(file: Path, rng: random.Random) -> str:
    """Change columns and constraints: two change places, or what follows their names; one gets more, or goes."""

    def other(sql: str) -> str:
        begin, _, rest = sql.partition("(")
        inside, _, end = rest.rpartition(")")
        parts = re.split(r",(?![^(]*\))", re.sub(r"--[^\n]*", "", inside))
        first, second = rng.randrange(len(parts)), rng.randrange(len(parts))
        how = rng.choice(["places", "rest", "constraint", "constraint", "more", "gone", "end"])
        (a, some), (b, others) = (_name_and_rest(parts[place]) for place in (first, second))
        if how == "places":
            parts[first], parts[second] = parts[second], parts[first]
        elif how == "rest":
            parts[first], parts[second] = f"{a} {others}", f"{b} {some}"
        elif how == "constraint" and some.split():
            moved = rng.choice(["UNIQUE", "NOT NULL", "PRIMARY KEY", "AUTOINCREMENT", some.split()[-1]])
            parts[first] = parts[first].replace(moved, "", 1)
            parts[second] = f"{parts[second]} {moved}"
        elif how == "more":
            parts[first] = f"{parts[first]} {rng.choice(_MORE)}"
        elif how == "gone":
            del parts[first]
        else:
            end = f"{end} {rng.choice(_MORE)}"
        return f"{begin}({','.join(parts)}){end}"

    return _with_statement(file, rng, other)


def _name_and_rest(part: str) -> tuple[str, str]:
    name, _, rest = part.strip().partition(" ")
    return name, rest


def _with_statement(file: Path, rng: random.Random, other: Callable[[str], str]) -> str:
    with _writable(file) as connection:
        rows = connection.execute("SELECT rowid, sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
        row, sql = rng.choice(rows)
        changed = other(sql)
        connection.execute("UPDATE sqlite_master SET sql = ? WHERE rowid = ?", (changed, row))
        return changed


def _row(file: Path, rng: random.Random) -> str:
    """Change the rows that name tables: one goes, comes, or has the name, the kind or the page of another."""
    with _writable(file) as connection:
        rows = connection.execute("SELECT rowid, type, name, tbl_name, rootpage FROM sqlite_master").fetchall()
        one, another = rng.sample(rows, 2)
        column = rng.choice(["rootpage", "rootpage", "name", "tbl_name", "type", "gone", "new", "new", "order"])
        if column == "gone":
            connection.execute("DELETE FROM sqlite_master WHERE rowid = ?", one[:1])
        elif column == "new":
            kind, name, table, sql = new = rng.choice(_ROWS)
            row = (rng.choice([-5, 1, 10_000]), kind, name, table, 0 if "TRIGGER" in str(sql) else one[4], sql)
            connection.execute(
                "INSERT OR IGNORE INTO sqlite_master (rowid, type, name, tbl_name, rootpage, sql) VALUES (?,?,?,?,?,?)", row
            )
            return repr(new)
        elif column == "order":
            connection.execute("UPDATE sqlite_master SET rowid = 20000 WHERE rowid = ?", one[:1])
        else:
            value = dict(zip(("type", "name", "tbl_name", "rootpage"), another[1:], strict=True))[column]
            value = rng.choice([value, value, value, None, 0, -1, 10**6, "x", b"\xff"])
            connection.execute(f"UPDATE sqlite_master SET {column} = ? WHERE rowid = ?", (value, one[0]))
        return f"{column} of {one[2]}, {another[2]}"


def _statement(file: Path, rng: random.Random) -> str:
    statement = rng.choice(_STATEMENTS)
    with contextlib.closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.executescript(statement)
    return statement


def mutated_header(file: Path, rng: random.Random) -> str:
    content = bytearray(file.read_bytes())
    place, value = rng.choice(_HEADER), rng.choice([0, 1, 2, 3, 4, 5, 2**16, 2**31, 2**32 - 1])
    size = 1 if 18 <= place <= 23 else 4
    content[place : place + size] = struct.pack(">I", value)[-size:]
    file.write_bytes(content)
    return f"byte {place} is {value}"


@contextlib.contextmanager
def _writable(file: Path):
    with contextlib.closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        yield connection


def normal_form(file: Path) -> Sequence[object]:
    """Return all that a ledger's behaviour can depend on, without comments, spaces and the order of rows."""
    with contextlib.closing(sqlite3.connect(file, isolation_level=None)) as connection:
        rows = connection.execute("SELECT type, name, tbl_name, coalesce(sql, '') FROM sqlite_master").fetchall()
        facts = ("encoding", "auto_vacuum", "page_size", "user_version", "journal_mode")
        values = [connection.execute(f"PRAGMA {fact}").fetchone()[0] for fact in facts]
        left = (re.sub(r"\s+", " ", re.sub(r"--[^\n]*|/\*.*?\*/", " ", sql)) for *_, sql in rows)
        spaceless = ((*row[:3], re.sub(r" ?([(),=<>]) ?", r"\1", sql).strip()) for row, sql in zip(rows, left, strict=True))
        return (*values, *sorted(spaceless))
