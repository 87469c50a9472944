"""How a table of the ledger is declared: its columns and what they may hold, its indexes, and what its rows belong to.

All else that the ledger must know of a table follows from this: the statements that create it in each database, the check of
its rows, which rows are orphaned, what is deleted with an episode, a case or a namespace, and what a move copies.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from cascade_memory.domain.validation import GREATEST, check_number, check_whole, check_word

Row: TypeAlias = Mapping[str, Any]
Rule: TypeAlias = Callable[[object, str], object]  # takes a value and the name of its column, and raises InvalidInput

INTEGER, REAL, TEXT, BLOB = "INTEGER", "REAL", "TEXT", "BLOB"
ANY = ""  # a value of metadata: SQLite stores it as it is, other databases as bytes
_TYPES: dict[str, type | None] = {INTEGER: int, REAL: float, TEXT: str, BLOB: bytes, ANY: None}


def whole(low: int = 0, high: int = GREATEST) -> Rule:
    """Return the rule for a whole number.

    >>> whole(1)(2, "copies")
    2
    """
    return lambda value, name: check_whole(value, name, low, high)


def between(low: float, high: float) -> Rule:
    """Return the rule for a number from ``low`` to ``high``."""
    return lambda value, name: check_number(value, name, low, high)


def one_of(*words: str) -> Rule:
    """Return the rule for a text that is one of ``words``."""
    return lambda value, name: check_word(value, words, name)


@dataclass(frozen=True, slots=True)
class Column:
    """A column, and the rule for its values. ``about`` is a comment for people in the statement that creates the table.

    >>> Column("thread", TEXT, optional=True).sql
    'thread TEXT'
    >>> Column("opened_by", INTEGER, refers="episode(key)").sql
    'opened_by INTEGER NOT NULL REFERENCES episode(key)'
    """

    name: str
    kind: str
    rule: Rule | None = None  # without one, any value will do
    optional: bool = False
    default: float | str | None = None  # also what a row has that a version without this column wrote
    unique: bool = False
    key: bool = False  # names the row
    counts: bool = False  # a key that is never given twice
    refers: str = ""  # the key of another table, which the database checks: "episode(key)"
    cascades: bool = False  # the database deletes the row with the one that it refers to, even for an older version
    of: tuple[str, ...] = ()  # the table of the row that this one belongs to; if there are several, that is in one of them
    stays: bool = False  # says something about this ledger only: no export has it
    dated: bool = False  # a time by the wall clock; one in the future was noted by a wrong clock
    said: bool = False  # words of a run or a person: where an observer exports the row, an import takes secrets out of them
    about: str = ""

    @property
    def sql(self) -> str:
        """The declaration of the column in the statement that creates the table."""
        default = (
            f"'{self.default}'" if isinstance(self.default, str) else f"{self.default:g}" if self.default is not None else ""
        )
        words = (
            *(self.name, self.kind),
            "PRIMARY KEY" if self.key else "" if self.optional else "NOT NULL",
            "AUTOINCREMENT" if self.key and self.counts else "",
            "UNIQUE" if self.unique else "",
            f"DEFAULT {default}" if default else "",
            f"REFERENCES {self.refers}" if self.refers else "",
            "ON DELETE CASCADE" if self.cascades else "",
        )
        return " ".join(word for word in words if word)

    @property
    def type(self) -> type | None:
        """The Python type of its values; None for metadata, which may have several."""
        return _TYPES[self.kind]

    @property
    def before(self) -> float | str | None:
        """The value that the column gets in a row of an older version, which has no such column."""
        return float(self.default) if self.kind == REAL and isinstance(self.default, (int, float)) else self.default


@dataclass(frozen=True, slots=True)
class Index:
    """An index. In the database its name is that of its table, followed by an underscore and ``name``."""

    name: str
    columns: str
    where: str = ""
    unique: bool = False

    def sql(self, table: str) -> str:
        """Return the statement that creates the index.

        >>> Index("actor", "namespace, actor", where="actor IS NOT NULL").sql("cases")
        'CREATE INDEX cases_actor ON cases(namespace, actor) WHERE actor IS NOT NULL'
        """
        unique, where = "UNIQUE " if self.unique else "", f" WHERE {self.where}" if self.where else ""
        return f"CREATE {unique}INDEX {table}_{self.name} ON {table}({self.columns}){where}"


UNDONE = "EXISTS (SELECT 1 FROM action AS taken WHERE taken.undoes = action.key)"  # SQL on a row of ``action``


@dataclass(frozen=True, slots=True)
class ActionKind:
    """A kind of action that a capability adds to the audit log; the capability's ``Observer`` takes such actions back."""

    name: str
    done: str  # what the log says was done: "warning retired"
    group: tuple[str, ...]  # only the latest action of one of these kinds on a subject can be taken back
    stands: str  # SQL on a row of ``action``: whether what the action did is still there
    of_actor: bool = False  # whether its subject is an actor, and not the id of something


@dataclass(frozen=True)
class Table:
    """A table. Conditions in SQL (``orphaned``, ``purged``) are used in statements on the table alone, without an alias."""

    name: str
    columns: tuple[Column, ...]
    about: str = ""
    key: tuple[str, ...] = ()  # if several columns name a row together
    unique: tuple[str, ...] = ()  # columns whose values are unique together: "namespace, pair"
    indexes: tuple[Index, ...] = ()
    rule: Callable[[Row], object] | None = None  # what the values of a row say together
    needs: tuple[str, ...] = ()  # a row without one of the same key in these tables is of no use
    orphaned: str = ""  # which rows belong to nothing, if that is more than that their owner is gone
    purged: str = ""  # which rows a purge of their namespace deletes, since nobody could find them any more
    counted: str = ""  # the name under which an answer counts what was deleted here
    nested: str = ""  # the name under which the record of its owner lists its rows in an export, if that lists them as they are

    @functools.cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(column.name for column in self.columns)

    @functools.cached_property
    def listed(self) -> str:
        """The names of the columns, with commas between them, for a statement."""
        return ", ".join(self.names)

    @functools.cached_property
    def keys(self) -> tuple[str, ...]:
        """The columns that together identify a row."""
        return self.key or tuple(column.name for column in self.columns if column.key)

    @functools.cached_property
    def places(self) -> tuple[int, ...]:
        """The positions of the columns of ``keys``."""
        return tuple(map(self.names.index, self.keys))

    @functools.cached_property
    def is_of_fields(self) -> bool:
        """Whether the table holds metadata, one row per value."""
        return any(column.type is None for column in self.columns)

    @functools.cached_property
    def owner(self) -> Column | None:
        """The column that says to which row of another table a row belongs; None if it belongs to a namespace at most."""
        return next((column for column in self.columns if column.of not in ((), ("namespace",))), None)

    @functools.cached_property
    def called(self) -> str:
        """The column that identifies a row in messages to people: its key, or the key of the row to which it belongs."""
        return self.owner.name if self.key and self.owner is not None else self.keys[0]

    @functools.cached_property
    def counter(self) -> str | None:
        """The key column, if no key is ever given twice; None otherwise."""
        return next((column.name for column in self.columns if column.key and column.counts), None)

    @functools.cached_property
    def dated(self) -> str | None:
        """The column that says when a row was written."""
        return next((column.name for column in self.columns if column.dated), None)

    @functools.cached_property
    def is_of_a_namespace(self) -> bool:
        """Whether its rows say to which namespace they belong."""
        return any(column.of == ("namespace",) for column in self.columns)

    @functools.cached_property
    def travelling(self) -> tuple[str, ...]:
        """The columns that are exported. Left out are keys, references to rows, and what means nothing outside this ledger."""
        return tuple(one.name for one in self.columns if not (one.key or one.of or one.refers or one.stays))

    @functools.cached_property
    def statements(self) -> tuple[str, ...]:
        """The statements that create the table and its indexes in SQLite."""
        parts = [(column.sql, column.about) for column in self.columns]
        parts += [(f"PRIMARY KEY ({', '.join(self.key)})", "")] if self.key else []
        parts += [(f"UNIQUE ({columns})", "") for columns in self.unique]
        last = len(parts) - 1
        lines = [f"  {sql}{',' * (place < last)}{_comment(about)}" for place, (sql, about) in enumerate(parts)]
        begin, end = f"CREATE TABLE {self.name} ({_comment(self.about)}", f"){' WITHOUT ROWID' * self.is_unnumbered}"
        return ("\n".join([begin, *lines, end]), *(index.sql(self.name) for index in self.indexes))

    @property
    def is_unnumbered(self) -> bool:
        """Whether SQLite stores the table without row numbers (``WITHOUT ROWID``), since its key alone identifies a row."""
        return bool(self.key) or any(column.key and column.kind == TEXT for column in self.columns)

    def with_last(self, name: str) -> Table:
        """Return the table with a column moved to the end, where it is if an upgrade has added it."""
        moved = self.column(name)
        return dataclasses.replace(self, columns=(*(one for one in self.columns if one is not moved), moved))

    def column(self, name: str) -> Column:
        """Return a column."""
        return self.columns[self.names.index(name)]

    @functools.cached_property
    def _rules(self) -> tuple[tuple[str, Rule, bool], ...]:
        return tuple((one.name, one.rule, one.optional) for one in self.columns if one.rule is not None)

    def check(self, row: Row, names: Collection[str] | None = None) -> None:
        """Raise InvalidInput for a row that cannot be used; ``names`` are the columns that it has, if these are not all."""
        self.check_values(row, names)
        if self.rule is not None:
            self.rule(row)

    def check_values(self, row: Row, names: Collection[str] | None) -> None:
        """Raise for a value that its column cannot have."""
        for name, rule, optional in self._rules:  # every row of a backup comes here
            if (names is None or name in names) and not ((value := row[name]) is None and optional):
                rule(value, name)


def _comment(about: str) -> str:
    """Return a comment, without commas: to drop a last column, SQLite cuts the statement at the last comma it finds."""
    return f"  -- {about.replace(',', ';')}" if about else ""
