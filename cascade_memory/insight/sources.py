"""Who wrote what, as objects that people look at: a row for each source, and the cases that came and went since a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, overload

from cascade_memory.domain.display import by_whom, counted, moment, number, shorten
from cascade_memory.domain.provenance import ChangedCase, SourceRow
from cascade_memory.domain.trust import named
from cascade_memory.errors import MissingExtra
from cascade_memory.looks.card import Card, Grid, Notes
from cascade_memory.visible import on_one_line, visible

_SHOWN = 50  # rows of a table for people
_HEAD = ("who", "cases", "episodes", "outcomes", "mean reward", "shown", "success when shown", "first seen", "last seen")
_CHANGES = ("when", "what", "who", "trust", "task")


class Sources(Sequence[SourceRow]):
    """A row for each actor and channel of a namespace, those with the most cases first."""

    def __init__(self, namespace: str, rows: Sequence[SourceRow]) -> None:
        self.namespace, self._rows = namespace, tuple(rows)

    @overload
    def __getitem__(self, place: int) -> SourceRow: ...

    @overload
    def __getitem__(self, place: slice) -> Sequence[SourceRow]: ...

    def __getitem__(self, place: int | slice) -> SourceRow | Sequence[SourceRow]:
        """Return one row, or some."""
        return self._rows[place]

    def __len__(self) -> int:
        """Count the rows."""
        return len(self._rows)

    def as_dicts(self) -> list[dict[str, Any]]:
        """Convert to plain values, ready for JSON."""
        return [asdict(row) for row in self._rows]

    def to_pandas(self) -> Any:
        """Return a ``DataFrame`` with a row for each source."""
        return _frame(self.as_dicts(), SourceRow, times=("first_seen", "last_seen"))

    def table(self) -> list[list[str]]:
        """Return the cells of a table for people."""
        return [_cells(row) for row in self._rows[:_SHOWN]]

    @property
    def head(self) -> tuple[str, ...]:
        """The names of the columns."""
        return _HEAD

    def __repr__(self) -> str:
        """Summarise in one line."""
        return visible(f"Sources({len(self)} in namespace {self.namespace!r})")

    def __str__(self) -> str:
        """Format as a plain-text table."""
        return _plain(_HEAD, self.table())

    def _repr_html_(self) -> str:
        more = [f"and {len(self) - _SHOWN:,} more"] if len(self) > _SHOWN else []
        grid = Grid(_HEAD, self.table(), numbers=range(1, 7))
        return Card("Sources", f"namespace {self.namespace}", [grid, Notes(more)]).html()


@dataclass(frozen=True, slots=True, kw_only=True)
class Diff:
    """The cases that came and went since a moment.

    ``went`` are the cases that expired or were evicted, and can still be brought back. Of forgotten cases, only their number is
    left, from the audit log.
    """

    namespace: str
    since: float
    came: tuple[ChangedCase, ...]
    went: tuple[ChangedCase, ...]
    forgotten: int = 0

    def by_source(self) -> dict[tuple[str | None, str | None], tuple[int, int]]:
        """Return how many cases of each actor and channel came, and how many went; those with the most changes first."""
        came = Counter((one.actor, one.channel) for one in self.came)
        went = Counter((one.actor, one.channel) for one in self.went)
        return {key: (came[key], went[key]) for key, _ in (came + went).most_common()}

    def __iter__(self) -> Iterator[ChangedCase]:
        """Yield all changes in the order of time."""
        return iter(sorted((*self.came, *self.went), key=lambda one: one.at))

    def __len__(self) -> int:
        """Count the changes, without forgotten cases."""
        return len(self.came) + len(self.went)

    def as_dict(self) -> dict[str, Any]:
        """Convert to plain values, ready for JSON."""
        return asdict(self)

    def to_pandas(self) -> Any:
        """Return a ``DataFrame`` with a row for each case that came or went, in the order of time."""
        return _frame([asdict(one) for one in self], ChangedCase, times=("at",))

    @property
    def head(self) -> tuple[str, ...]:
        """The names of the columns."""
        return _CHANGES

    def table(self) -> list[list[str]]:
        """Return the cells of a table of the latest changes, for people."""
        return [
            [moment(one.at), one.why, by_whom(one.actor, one.channel), named(one.trust), shorten(one.query, 60)]
            for one in list(self)[-_SHOWN:]
        ]

    def notes(self) -> list[str]:
        """Say in sentences what came and went."""
        counts = [
            f"{by_whom(*source)}: {came:,} came, {went:,} went" for source, (came, went) in list(self.by_source().items())[:10]
        ]
        forgotten = [f"forgotten: {counted(self.forgotten, 'case')}"] if self.forgotten else []
        return [
            f"since {moment(self.since)}: {counted(len(self.came), 'case')} came, {len(self.went):,} went",
            *counts,
            *forgotten,
        ]

    def __repr__(self) -> str:
        """Summarise in one line."""
        return visible(
            f"Diff({counted(len(self.came), 'case')} came and {len(self.went)} went in namespace {self.namespace!r})"
        )

    def __str__(self) -> str:
        """Format as plain text."""
        return "\n".join(map(on_one_line, self.notes())) + (f"\n{_plain(_CHANGES, self.table())}" if len(self) else "")

    def _repr_html_(self) -> str:
        grid = Grid(_CHANGES, self.table())
        return Card("Diff", f"namespace {self.namespace}", [Notes(self.notes()), grid]).html()


def _cells(row: SourceRow) -> list[str]:
    worked = number(row.succeeded / row.shown) if row.shown else number(None)
    return [
        by_whom(row.actor, row.channel),
        *(f"{count:,}" for count in (row.cases, row.episodes, row.outcomes)),
        *(number(row.mean_reward), f"{row.shown:,}", worked),
        *(moment(row.first_seen), moment(row.last_seen)),
    ]


def _plain(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [list(head), *([on_one_line(cell) for cell in row] for row in rows)]
    widths = [max(len(line[place]) for line in lines) for place in range(len(head))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines)


def _frame(rows: Sequence[dict[str, Any]], kind: type, times: Sequence[str]) -> Any:
    try:
        import pandas as pd  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise MissingExtra("to_pandas() needs pandas: pip install pandas") from error
    frame: Any = pd.DataFrame(rows, columns=list(kind.__dataclass_fields__))
    for name in times:
        frame[name] = pd.to_datetime(frame[name].astype("float64"), unit="s", utc=True).astype("datetime64[ns, UTC]")
    return frame
