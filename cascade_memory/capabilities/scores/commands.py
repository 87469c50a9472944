"""``cascade-memory collect``: reads scores from other platforms, once or again and again."""

from __future__ import annotations

import argparse
import dataclasses
import functools
import itertools
import math
import sys
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from cascade_memory.capabilities.scores.platforms import PLATFORMS, Platform
from cascade_memory.cli.arguments import refusal
from cascade_memory.cli.groups import Commands
from cascade_memory.cli.opening import add_namespace, add_place, existing
from cascade_memory.cli.tables import print_json
from cascade_memory.domain.validation import LONGEST, moment_of
from cascade_memory.redaction.marking import redact_secrets
from cascade_memory.visible import on_one_line

if TYPE_CHECKING:
    from cascade_memory.memory.memory import Memory

_CHECKED, _PAUSE = "30d", 3_600.0  # how old a score is that is asked for again, and seconds until that is done again


def add(groups: Commands) -> None:
    """Add the group."""
    group = groups.group("collect", "learn from scores that were given on other platforms")
    for name, platform in PLATFORMS.items():
        command = group.command(name, functools.partial(collect, platform=platform), platform.about)
        if platform.is_file:
            command.add_argument("file", metavar="FILE")
        else:
            about = f"begin with what was given then (default: with the newest stored score of {name}, or the oldest episode)"
            command.add_argument("--since", metavar="WHEN", help=f'{about}: "2026-11-24", or "7d" ago')
        if platform.settings:
            command.epilog = f"Environment variables: {', '.join(platform.settings)}."
        about = "how much the scores of a name count; may be given several times, and other names are ignored then"
        command.add_argument("--weight", action="append", type=_pair, default=[], metavar="NAME=NUMBER", help=about)
        about = "what a label means, from 0 to 1; may be given several times"
        command.add_argument("--label", action="append", type=_pair, default=[], metavar="LABEL=NUMBER", help=about)
        command.add_argument("--dry-run", action="store_true", help="only say how many scores would find an episode")
        command.add_argument("--every", type=_seconds, metavar="SECONDS", help="go on until Ctrl-C, with pauses of this length")
        add_place(command, option=True)
        add_namespace(command)


def collect(options: argparse.Namespace, *, platform: Platform) -> int:
    """Collect once; with ``--every``, until stopped."""
    since = None if platform.is_file else moment_of(options.since, "--since")
    try:
        with existing(options, options.namespace) as memory:
            if options.every is None:
                _once(options, platform, memory, since, check=True)
            else:
                _again_and_again(options, platform, memory, since)
    except KeyboardInterrupt:
        if options.every is None:
            raise
        sys.stderr.write(f"{options.called}: stopped\n")
    return 0


def _again_and_again(options: argparse.Namespace, platform: Platform, memory: Memory, since: float | None) -> None:
    """Collect until interrupted. A failure is one line, and the next round tries again."""
    checked = -math.inf
    while True:
        due = time.monotonic() >= checked + _PAUSE
        checked = time.monotonic() if due else checked  # even if it fails: it may do so each time, and asks for much
        try:
            _once(options, platform, memory, since, check=due)
            since = None
        except Exception as error:  # noqa: BLE001 - a platform may fail in any way, and is asked again
            said = redact_secrets(f"{str(error) or type(error).__name__}; tried again in {options.every:g} seconds")
            sys.stderr.write(f"{options.called}: {refusal(on_one_line(said))}\n")
        time.sleep(options.every)


def _once(options: argparse.Namespace, platform: Platform, memory: Memory, since: float | None, *, check: bool) -> None:
    found: Iterable[Any]
    if platform.is_file:
        found = platform.function("collect")(options.file)
    else:
        start = _start(memory, options.command) if since is None else since
        found = platform.function("collect")(since=start)
        known = memory.scores.known(options.command, since=_CHECKED) if check else []
        if known:
            found = itertools.chain(found, platform.function("check")(known))
    collected = memory.scores.collect(
        found, weights=dict(options.weight) or None, labels=dict(options.label), dry_run=options.dry_run
    )
    if options.json:
        print_json(dataclasses.asdict(collected))
    else:
        print(collected, flush=True)


def _start(memory: Memory, name: str) -> float:
    """Return where a read of a platform begins: with its newest stored score or, without one, with the oldest episode."""
    now, newest = time.time(), memory.scores.newest(name)
    if newest is not None and newest > now:  # a clock is wrong
        newest = max((one.at for one in memory.scores.known(name) if one.at <= now), default=None)
    if newest is None:
        newest = next((one.opened_at for one in memory.episodes.all()), now)
    return min(newest, now)


def _pair(text: str) -> tuple[str, float]:
    """Read a name and a number.

    >>> _pair("correctness=0.5")
    ('correctness', 0.5)
    """
    name, _, number = text.rpartition("=")
    try:
        return name, float(number)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a name and a number, such as correctness=1, not {text}") from None


def _seconds(text: str) -> float:
    """Read a pause.

    >>> _seconds("60")
    60.0
    """
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 1 <= seconds <= LONGEST:
        raise argparse.ArgumentTypeError(f"must be a number of seconds, 1 or more, not {text}")
    return seconds
