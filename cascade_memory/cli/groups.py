"""Commands and their groups, and the options that most of them have.

These are the memory, the namespace, ``--json``, and who acts; and for lists how many rows, from which source and which time.

Each group has a module whose ``add`` declares it: its name, and each command with its options and the function that runs it.
That function imports what needs numpy or a memory, so that help texts and error messages need not wait for these imports.
"""

from __future__ import annotations

import argparse
import itertools
import json
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from cascade_memory.cli.arguments import Parser, positive
from cascade_memory.cli.opening import add_namespace, add_place
from cascade_memory.domain.actions import login_name
from cascade_memory.domain.trust import CHANNELS, LEVELS
from cascade_memory.errors import InvalidInput

T = TypeVar("T")
READABLE = 200  # the number of characters of each text in a list
_WHO = "who does it, for the audit log (default: the login name)"
Run = Callable[[argparse.Namespace], int]


def add_length(command: argparse.ArgumentParser, *, either_end: bool = True) -> None:
    """Add the options that say how much is listed, and from which end."""
    command.add_argument("--limit", type=positive, default=20, metavar="N", help="how many (default 20)")
    command.add_argument("--all", action="store_true", help="all of them")
    if either_end:
        command.add_argument("--oldest-first", action="store_true")


def first(every: Iterable[T], options: argparse.Namespace) -> list[T]:
    """Return as many of the rows as the options say."""
    return list(every if options.all else itertools.islice(every, options.limit))


def add_source(command: argparse.ArgumentParser, what: str) -> None:
    """Add ``--actor`` and ``--channel``, which list only rows of one actor, or rows that came through one channel."""
    command.add_argument("--actor", metavar="NAME", help=f'only {what}; "" for nobody named')
    command.add_argument("--channel", choices=CHANNELS, help="only what came through this door")


def add_time(command: argparse.ArgumentParser) -> None:
    """Add ``--since`` and ``--until``, which list only rows from one moment on, or before one."""
    since = "from this moment on: a date, such as 2026-11-24, or how long ago, such as 7d or 2h"
    command.add_argument("--since", metavar="WHEN", help=since)
    command.add_argument("--until", metavar="WHEN", help="before this moment")


def add_trust(command: argparse.ArgumentParser) -> None:
    """Add ``--trust``, which lists only cases of one level of trust."""
    command.add_argument("--trust", choices=list(LEVELS), help="only cases that are trusted exactly like this source")


def filters(options: argparse.Namespace) -> dict[str, Any]:
    """Return the filters that a command line names."""
    named = {"by_actor": "actor", "by_channel": "channel", "since": "since", "until": "until", "trust": "trust"}
    return {name: getattr(options, option) for name, option in named.items() if hasattr(options, option)}


def parsed_where(text: str | None) -> Any:
    """Read a metadata filter from a command line."""
    if text is None:
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"--where must be JSON: {error}") from error


class Commands:
    """The commands of a parser: of the program, or of one of its groups."""

    def __init__(self, parser: Parser, what: str = "command") -> None:
        self._parsers = parser.add_subparsers(dest=what, required=True, metavar=what.upper(), parser_class=Parser)
        parser.needs_command = True

    def group(self, name: str, about: str) -> Commands:
        """Add a group, and return its commands."""
        return Commands(self._parsers.add_parser(name, help=about, description=_sentence(about)))

    def command(self, name: str, run: Run, about: str, *, json: bool = True) -> argparse.ArgumentParser:
        """Add a command; it takes ``--json`` unless it is a server."""
        command = self._parsers.add_parser(name, help=about, description=_sentence(about))
        if json:
            command.add_argument("--json", action="store_true", help="print JSON instead of a table")
        command.set_defaults(run=run, called=command.prog)
        return command

    def on_memory(self, name: str, run: Run, about: str, *, namespace: bool = True) -> argparse.ArgumentParser:
        """Add a command that opens a memory; it takes ``--namespace`` unless it is about all namespaces."""
        command = self.command(name, run, about)
        add_place(command)
        if namespace:
            add_namespace(command)
        return command


def _sentence(about: str) -> str:
    return f"{about[0].upper()}{about[1:]}."


def add_actor(command: argparse.ArgumentParser) -> None:
    """Add the option ``--actor``, which says who acts."""
    command.add_argument("--actor", metavar="NAME", help=_WHO)


def add_by(command: argparse.ArgumentParser) -> None:
    """Add the option ``--by``, which says who acts, to a command whose ``--actor`` means somebody else."""
    command.add_argument("--by", metavar="NAME", help=_WHO)


def actor(options: argparse.Namespace) -> str | None:
    """Return who acts: whom ``--by`` names, or ``--actor`` in commands without ``--by``; by default the login name."""
    name: str | None = options.by if hasattr(options, "by") else options.actor
    return login_name() if name is None else name
