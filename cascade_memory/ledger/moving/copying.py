"""Copies all rows of a ledger into an empty one of another database, and compares what arrived."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

from cascade_memory.errors import InvalidInput, StoreCorrupt
from cascade_memory.ledger.audit import Checking, Fault, as_stored, contradictions
from cascade_memory.ledger.belonging import begin_generation
from cascade_memory.ledger.database import Connection
from cascade_memory.ledger.declaring import Table
from cascade_memory.ledger.moving.field_values import comparable, portable
from cascade_memory.ledger.moving.pages import Row, Sum, insert, pages
from cascade_memory.ledger.numbering import FORGOTTEN, go_on_after, greatest_keys
from cascade_memory.ledger.redeeming import is_own
from cascade_memory.ledger.schema import TABLES

# Shows how far it is: takes pages, what is being done, and the number of rows.
Shown: TypeAlias = Callable[[Iterable["list[Row]"], str, int], Iterable["list[Row]"]]

_OWN = ("identity", "generation", FORGOTTEN)  # facts that each memory has for itself: by them it is told from its copies


class Copying:
    """One move of a ledger: the copying of all its rows, and the comparison of the two databases.

    ``places`` are the names of the source and of the target, for messages to people. ``show`` gets the pages of rows, and shows
    the progress.
    """

    def __init__(self, source: Connection, target: Connection, places: tuple[str, str], show: Shown) -> None:
        self._source, self._target, self._places, self._show = source, target, places, show

    def run(self) -> dict[str, int]:
        """Copy everything, inside the transactions of the caller; return the number of rows of each table."""
        self._refuse_unless_empty()
        with as_stored(self._source):
            for fault in contradictions(self._source):
                raise self._damaged(fault)
            checking = Checking(self._source)
            sums = {table.name: self._copied(table, checking) for table in TABLES}
        go_on_after(self._target, greatest_keys(self._source))
        for table in TABLES:
            if self._arrived(table) != sums[table.name]:
                raise StoreCorrupt(
                    f"the rows of {table.name} in {self._places[1]} are not those of {self._places[0]}: nothing was moved. "
                    "Try again, and report this if it happens again"
                )
        begin_generation(self._target)  # whoever has the empty memory open must open it again
        return {name: one.rows for name, one in sums.items()}

    def _refuse_unless_empty(self) -> None:
        for table in TABLES:
            if table.name != "meta" and self._target.execute(f"SELECT 1 FROM {table.name} LIMIT 1").fetchone() is not None:
                raise InvalidInput(
                    f"there is a memory in {self._places[1]} already; nothing was moved. Name a new folder or an empty database"
                )
        self._target.execute("DELETE FROM meta WHERE key <> 'identity'")

    def _damaged(self, fault: Fault) -> StoreCorrupt:
        return StoreCorrupt(
            f"{self._places[0]} holds a row that cannot be moved: {fault}. Nothing was moved; "
            "repair it first: cascade-memory data doctor --fix"
        )

    def _copied(self, table: Table, checking: Checking) -> Sum:
        found, place = Sum(), table.names.index(table.called)
        for rows in self._pages(self._source, table, "moving"):
            for row in rows:
                reason = checking.wrong(table, table.names, row) or _unfit(table, row)
                if reason is not None:
                    raise self._damaged(Fault(table.name, row[place], reason))
                found.add(comparable(self._source, row) if table.is_of_fields else row)
            fit = portable(self._source, table, rows) if table.is_of_fields else rows
            if isinstance(fit, Fault):
                raise self._damaged(fit)
            insert(self._target, table, fit)
        return found

    def _arrived(self, table: Table) -> Sum:
        found = Sum()
        for rows in self._pages(self._target, table, "checking"):
            for row in rows:
                found.add(comparable(self._target, row) if table.is_of_fields else row)
        return found

    def _pages(self, connection: Connection, table: Table, verb: str) -> Iterator[list[Row]]:
        (total,) = connection.execute(f"SELECT count(*) FROM {table.name}").fetchone()
        for rows in self._show(pages(connection, table), f"{verb} {table.name}", int(total)):
            fit = rows if table.name != "meta" else [row for row in rows if not _stays(row[0])]
            if fit:
                yield fit


def _stays(fact: object) -> bool:
    """Say whether a fact (a row of the table ``meta``, here its name) is not copied, because it concerns one database only.

    Examples are the identity of a database, and what a Chroma has received from it.
    """
    return isinstance(fact, str) and (fact in _OWN or fact.startswith("mirror") or is_own(fact))


def _unfit(table: Table, row: Row) -> str | None:
    """Return why a row cannot be stored in another database, whose columns have one type each; None if it can be stored."""
    for column, value in zip(table.columns, row, strict=True):
        if column.type is None or (value is None and column.optional):
            continue
        if type(value) is not column.type:
            return f"{column.name} is no {_NAMES[column.type]}"
        if isinstance(value, str) and "\x00" in value:
            return f"{column.name} contains a NUL character, which PostgreSQL cannot store"
    return None


_NAMES: dict[type, str] = {int: "whole number", float: "number", str: "text", bytes: "array"}
