"""Checks every row of a ledger for invalid values. Uses bounded memory and a few microseconds per row."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from cascade_memory.domain.actions import check_known_actor
from cascade_memory.domain.case import WHY
from cascade_memory.domain.interruptible import interruptible
from cascade_memory.domain.records import CHANGES
from cascade_memory.domain.validation import check_id, check_moment, check_namespace, check_query, check_whole, check_word
from cascade_memory.errors import InvalidInput
from cascade_memory.ledger import failure_rules, rules
from cascade_memory.ledger.database import Connection
from cascade_memory.ledger.facts import LONGEST, fact
from cascade_memory.ledger.schema import TABLES
from cascade_memory.ports.embedder import noted

Check: TypeAlias = Callable[[rules.Row], object]

_ADDED = {
    **{"holdout": 0.0, "novelty": 1.0, "verified_at": 0.0, "verified_run": 0.0, "agents_words": 0, "pinned": 0, "hidden": 0},
    **{"trust": 3, "why": "expired"},
}
_NAMESPACES = 2**62  # greatest id: ids are only names, so large ones do no harm


@dataclass(frozen=True, slots=True)
class Fault:
    """A row that cannot be used, and the reason."""

    table: str
    key: Any
    reason: str

    def __str__(self) -> str:
        """Name the row and the reason."""
        return f"{self.table} {self.key!r}: {self.reason}"


class Undecodable(str):
    """A text that is not UTF-8; every rule rejects it."""

    raw: bytes


def _text(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        text = Undecodable(raw.decode("utf-8", "replace"))
        text.raw = raw
        return text


@interruptible
def as_stored(connection: Connection) -> Generator[None, None, None]:
    """Read texts that are not UTF-8 as ``Undecodable`` instead of failing; other databases store no such texts."""
    if not isinstance(connection, sqlite3.Connection):
        yield
        return
    before = connection.text_factory
    try:
        connection.text_factory = _text
        yield
    finally:
        connection.text_factory = before


def first_fault(connection: Connection) -> Fault | None:
    """Return the first row that cannot be used, or None."""
    return next(iter(faults(connection, 1)), None)


def faults(connection: Connection, limit: int) -> list[Fault]:
    """Return up to ``limit`` rows that cannot be used."""
    found: list[Fault] = []
    with as_stored(connection):
        for fault in _all(connection):
            found.append(fault)
            if len(found) == limit:
                break
    return found


def _all(connection: Connection) -> Iterator[Fault]:
    there = _tables(connection)
    for table, (key, check) in row_checks(connection).items():
        if table in there:
            yield from _rows(connection, table, key, check)
    yield from contradictions(connection)


def row_checks(connection: Connection) -> dict[str, tuple[str, Check]]:
    """Return, for each table, the column that names a row and the rule for its rows."""
    dimension = _dimension(connection)

    def case_vector(row: rules.Row) -> None:
        rules.unit_vector(row["vector"], dimension)

    def field(owner: str) -> tuple[str, Check]:
        def check(row: rules.Row) -> None:
            check_whole(row[owner], owner)
            check_whole(row["namespace"], "namespace", 1, _NAMESPACES)
            rules.field(row if isinstance(connection, sqlite3.Connection) else {**row, "value": ""})  # others encode the value

        return owner, check

    def failure(row: rules.Row) -> None:
        _numbered(row)
        failure_rules.failure(row)
        rules.unit_vector(row["vector"], dimension)

    return {
        "meta": ("key", _meta),
        "sqlite_sequence": ("name", lambda row: check_whole(row["seq"], "seq")),
        "namespace": ("id", lambda row: (check_whole(row["id"], "id", 1, _NAMESPACES), check_namespace(row["name"]))),
        "episode": ("key", _episode),
        "episode_vector": ("key", case_vector),
        "attempt": ("episode", rules.attempt),
        "judged_attempt": ("episode", rules.attempt),
        "solution": ("id", _solution),
        "cases": ("key", _case),
        "case_text": ("key", _case_text),
        "case_vector": ("key", case_vector),
        "field": field("cases_key"),
        "recall": ("key", _recall),
        "outcome": ("key", _outcome),
        "addition": ("key", _addition),
        "outcome_field": field("outcome"),
        "addition_field": field("addition"),
        "episode_field": field("episode"),
        "expired": ("key", _expired),
        "expired_vector": ("key", case_vector),
        "expired_field": field("expired"),
        "change": ("seq", _change),
        "event": ("key", _event),
        "action": ("key", rules.action),
        "failure": ("key", failure),
        "checked": ("key", _checked),
        "warning_decision": ("key", _decision),
    }


def contradictions(connection: Connection) -> Iterator[Fault]:
    """Yield rows that contradict rows of other tables."""
    yield from _unsettled(connection)
    yield from _unreferred(connection)


def _tables(connection: Connection) -> set[str]:
    """Return the tables: a file may be of an older version and lack some, and only SQLite has one for its counters."""
    if not isinstance(connection, sqlite3.Connection):
        return set(re.findall(r"CREATE TABLE (\w+)", TABLES))
    return {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()}


def _rows(connection: Connection, table: str, key: str, check: Check) -> Iterator[Fault]:
    cursor = connection.execute(f"SELECT * FROM {table}")
    names = [column[0] for column in cursor.description]
    place = names.index(key)
    for values in cursor:
        reason = wrong(check, names, values)
        if reason is not None:
            yield Fault(table, values[place], reason)


def wrong(check: Check, names: Sequence[str], values: Sequence[Any]) -> str | None:
    """Return why a row cannot be used; None if it can."""
    if any(type(value) is Undecodable for value in values):
        broken = next(name for name, value in zip(names, values, strict=True) if type(value) is Undecodable)
        return f"{broken} is not UTF-8"
    row = _Upgraded(zip(names, values, strict=True))
    try:
        check(row)
    except InvalidInput as error:
        return str(error)
    return None


class _Upgraded(dict[str, Any]):
    """A row; columns that an older version does not have yet get the value that the upgrade gives them."""

    def __missing__(self, name: str) -> Any:
        return _ADDED.get(str(name))


def _dimension(connection: Connection) -> int | None:
    """Return the length of a vector, if the ledger has any."""
    note = fact(connection, "embedder")
    if note is None:
        first = connection.execute("SELECT length(vector) FROM case_vector LIMIT 1").fetchone()
        return None if first is None else int(first[0] or 0) // 4
    try:
        return embedder_of(note)[1]
    except InvalidInput:
        return None


def embedder_of(text: object) -> tuple[str, int]:
    """Parse the folder's note about its embedder into (identity, dimension)."""
    found = noted(text)
    if found is None:
        raise InvalidInput("the note of the embedder cannot be read")
    return found


def is_namespace(number: object) -> bool:
    """Tell whether a value is a valid namespace id."""
    return type(number) is int and 1 <= number <= _NAMESPACES


def _meta(row: rules.Row) -> None:
    key, value = row["key"], row["value"]
    if type(key) is not str or type(value) is not str:
        raise InvalidInput("a fact about the folder must be a text")
    if len(value) > LONGEST:
        raise InvalidInput(f"a fact about the folder has at most {LONGEST:,} bytes")
    if key == "embedder":
        embedder_of(value)
    elif key.startswith("compacted:") and not (value.isascii() and value.isdigit() and len(value) <= 16):
        raise InvalidInput("it must be the key of an outcome")
    elif key == "identity" and not (value.isascii() and value.isalnum() and len(value) <= 64):
        raise InvalidInput("the identity of a folder is letters and digits")
    elif key.startswith("mirror"):
        _mark(value)


def _mark(value: str) -> None:
    mark = rules.json_object(value, "the note about Chroma")
    if not {"key", "seq", "clean"} <= set(mark):
        raise InvalidInput("the note about Chroma cannot be read")
    check_whole(mark["key"], "key")
    check_whole(mark["seq"], "seq")


def _numbered(row: rules.Row) -> None:
    check_whole(row["key"], "key", 1)
    check_whole(row["namespace"], "namespace", 1, _NAMESPACES)


def _episode(row: rules.Row) -> None:
    _numbered(row)
    rules.episode(row)
    _metadata(row)
    if row["reported"] is not None:
        check_whole(row["reported"], "reported")


def _metadata(row: rules.Row) -> None:
    """Reject metadata that is invalid, if there is any."""
    if row["metadata"] is not None:
        rules.metadata_of(row["metadata"])


def _solution(row: rules.Row) -> None:
    check_whole(row["id"], "id", 1)
    check_whole(row["namespace"], "namespace", 1, _NAMESPACES)
    rules.hex_of(row["digest"], "digest")


def _case(row: rules.Row) -> None:
    _numbered(row)
    rules.case(row)
    check_whole(row["solution"], "solution", 1)
    rules.hex_of(row["pair"], "pair")


def _case_text(row: rules.Row) -> None:
    rules.solution(row["solution_kind"], row["solution"], needed=True)
    rules.metadata_of(row["metadata"])


def _recall(row: rules.Row) -> None:
    _numbered(row)
    if "forgot" not in row:  # of an older version
        k, forgot = rules.k_and_forgot(row["k"])
        row = _Upgraded(row, k=k, forgot=forgot)
    rules.recall(row)


def _outcome(row: rules.Row) -> None:
    _numbered(row)
    rules.outcome(row)
    _metadata(row)
    if row["cases_key"] is not None:
        check_whole(row["cases_key"], "cases_key")


def _addition(row: rules.Row) -> None:
    _numbered(row)
    check_whole(row["cases_key"], "cases_key", 1)
    rules.addition(row)
    rules.metadata_of(row["metadata"])


def _expired(row: rules.Row) -> None:
    _numbered(row)
    check_id(row["id"], "id")
    check_query(row["query"])
    rules.hex_of(row["pair"], "pair")
    check_whole(row["copies"], "copies", 1)
    check_moment(row["expired_at"], "expired_at")
    check_moment(row["until_run"], "until_run")
    check_word(row["why"], WHY, "why")
    check_known_actor(row["actor"])
    rest = rules.json_object(row["record"], "the record")
    rules.case(_Upgraded({**rest, "id": row["id"], "query": row["query"], "copies": row["copies"]}))
    rules.solution(rest.get("kind"), rest.get("text"), needed=True)
    rules.metadata_of(rest.get("metadata"))
    rules.hex_of(rest.get("digest"), "digest")


def _checked(row: rules.Row) -> None:
    _numbered(row)
    failure_rules.check(row)


def _decision(row: rules.Row) -> None:
    _numbered(row)
    check_id(row["action"], "action")
    check_id(row["warning"], "warning")
    failure_rules.decision(row)


def _change(row: rules.Row) -> None:
    check_whole(row["seq"], "seq", 1)
    check_whole(row["namespace"], "namespace", 0, _NAMESPACES)
    check_word(row["kind"], CHANGES, "kind")
    check_whole(row["ref"], "ref")
    if row["id"] is not None:
        check_id(row["id"], "id")


def _event(row: rules.Row) -> None:
    check_moment(row["at"], "at")
    if type(row["kind"]) is not str or type(row["payload"]) is not str:
        raise InvalidInput("kind and payload must be texts")


def _unsettled(connection: Connection) -> Iterator[Fault]:
    """Yield episodes whose status contradicts their outcomes."""
    rows = connection.execute(
        """SELECT key, status, n FROM (SELECT key, status, (SELECT count(*) FROM outcome
             WHERE outcome.episode = episode.key AND withdrawn_at IS NULL) AS n FROM episode) AS counted
           WHERE n <> CASE status WHEN 'settled' THEN 1 ELSE 0 END"""
    )
    for key, status, n in rows:
        yield Fault("episode", key, f"it is {status} and has {n} outcomes that stand")


def _unreferred(connection: Connection) -> Iterator[Fault]:
    """Yield cases whose solution does not exist, and namespaces that have content but no name."""
    for (key,) in connection.execute("SELECT key FROM cases WHERE solution NOT IN (SELECT id FROM solution)"):
        yield Fault("cases", key, "its solution is not among the solutions")
    used = "SELECT namespace FROM cases UNION SELECT namespace FROM episode"
    for (number,) in connection.execute(f"SELECT * FROM ({used}) AS used WHERE namespace NOT IN (SELECT id FROM namespace)"):
        if is_namespace(number):  # otherwise the rows themselves are reported
            yield Fault("namespace", number, "it holds cases or episodes but has no name")
