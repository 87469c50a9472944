"""What commands print: sentences, JSON, tables, and progress bars in a terminal."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any

from cascade_memory.visible import indented, on_one_line, visible

if TYPE_CHECKING:
    from rich.text import Text


def print_json(data: Any) -> None:
    """Print data as JSON."""
    print(json.dumps(data, indent=2))


def print_done(options: argparse.Namespace, data: Mapping[str, Any], text: str) -> None:
    """Print the sentence ``text``, which says what was done; with ``--json``, print ``data`` instead."""
    if options.json:
        print_json(data)
    else:
        print(on_one_line(text))


def print_table(title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table. Markup in texts is not interpreted, invisible characters are made visible, and a cell has one line."""
    from rich.console import Console
    from rich.table import Table

    table = Table(title=_plain(title) if title else None, title_justify="left", show_header=any(head))
    for column in head:
        table.add_column(_plain(column), overflow="fold")
    for row in rows:
        table.add_row(*(_line(cell) for cell in row))
    Console().print(table)


def print_whole(line: str) -> None:
    """Print a line that users copy: it is never wrapped, however long it is."""
    from rich.console import Console

    Console().print(_line(line), soft_wrap=True, highlight=False)


def print_text(name: str, text: str) -> None:
    """Print a text of several lines under its name. They are indented, so that none looks like the name of another text."""
    from rich.console import Console

    Console().print(_plain(f"\n{name}:\n  {indented(text)}"), soft_wrap=True, highlight=False)


def print_record(name: str, fields: Mapping[str, str]) -> None:
    """Print an id on its own line, so that users can copy it, and its fields below, cut at the terminal's width."""
    from rich.console import Console

    console = Console()
    console.print(_line(name), soft_wrap=True, highlight=False)
    width = max(len(field) for field in fields)
    for field, value in fields.items():
        console.print(_line(f"  {field.ljust(width)}  {value}"), no_wrap=True, overflow="ellipsis", highlight=False)


def _plain(text: str) -> Text:
    from rich.text import Text

    return Text(visible(text))  # which neither markup nor the names of emoji change


def _line(text: str) -> Text:
    from rich.text import Text

    return Text(on_one_line(text))


class LiveDemo:
    """A progress bar that shows the success so far of each memory that the demo compares."""

    def __init__(self, tasks: int, *, quiet: bool) -> None:
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

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
