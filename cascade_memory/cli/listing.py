"""The options of commands that list rows: how many, from which source, and from which time."""

from __future__ import annotations

import argparse
import itertools
import json
from collections.abc import Iterable
from typing import Any, TypeVar

from cascade_memory.cli.arguments import positive
from cascade_memory.domain.trust import CHANNELS, LEVELS
from cascade_memory.errors import InvalidInput

T = TypeVar("T")

READABLE = 200  # the number of characters of each text in a list


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
