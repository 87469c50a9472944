"""Tables and progress bars in a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import TracebackType

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from cascade_memory.visible import visible


def print_table(title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table. Markup in texts is not interpreted, and invisible characters are made visible."""
    table = Table(title=_plain(title) or None, title_justify="left", show_header=any(head))
    for column in head:
        table.add_column(_plain(column), overflow="fold")
    for row in rows:
        table.add_row(*(_plain(cell) for cell in row))
    Console().print(table)


def print_whole(line: str) -> None:
    """Print a line that users copy: it is never wrapped, however long it is."""
    Console().print(_plain(line), soft_wrap=True, highlight=False)


def _plain(text: str) -> str:
    return escape(visible(text))


class LiveDemo:
    """A progress bar that shows the success of every contender so far."""

    def __init__(self, tasks: int, *, quiet: bool) -> None:
        self._progress = Progress(
            TextColumn("{task.completed:>4}/{task.total} tasks"),
            BarColumn(bar_width=24),
            TextColumn("{task.description}"),
            TimeRemainingColumn(),
            disable=quiet,
        )
        self._task = self._progress.add_task("", total=tasks)

    def __enter__(self) -> LiveDemo:
        """Start the bar."""
        self._progress.start()
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        """Stop the bar."""
        self._progress.stop()

    def update(self, done: int, successes: Mapping[str, Sequence[bool]]) -> None:
        """Show the progress and the success so far."""
        standing = "  ".join(f"{name} {100 * sum(steps) / max(1, len(steps)):.0f}%" for name, steps in successes.items())
        self._progress.update(self._task, completed=done, description=standing)
