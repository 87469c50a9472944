"""The commands that say who wrote what, and the options of lists by source and time."""

from __future__ import annotations

import argparse
import json
from typing import Any

from cascade_memory.cli.opening import existing
from cascade_memory.cli.tables import print_record, print_table
from cascade_memory.domain.display import by_whom, counted, moment, number
from cascade_memory.domain.trust import CHANNELS, LEVELS
from cascade_memory.visible import on_one_line

_SHOWN = 50  # sources


def add_filters(command: argparse.ArgumentParser, *, of_cases: bool) -> None:
    """Add the options that say whose rows are listed, and from when."""
    what = "cases that this actor made first" if of_cases else "episodes in which this actor asked"
    command.add_argument("--actor", metavar="NAME", help=f'only {what}; "" for nobody named')
    command.add_argument("--channel", choices=CHANNELS, help="only what came through this door")
    since = "from this moment on: a date, such as 2026-11-24, or how long ago, such as 7d or 2h"
    command.add_argument("--since", metavar="WHEN", help=since)
    command.add_argument("--until", metavar="WHEN", help="before this moment")
    if of_cases:
        command.add_argument("--trust", choices=list(LEVELS), help="only cases that are trusted exactly like this source")


def filters(options: argparse.Namespace) -> dict[str, Any]:
    """Return the filters that a command line names."""
    return {name: getattr(options, name) for name in ("actor", "channel", "since", "until", "trust") if hasattr(options, name)}


def sources(options: argparse.Namespace) -> int:
    """List who wrote how much, and how it did."""
    with existing(options, options.namespace) as memory:
        found = memory.sources(namespace=options.namespace)
    if options.json:
        print(json.dumps(found.as_dicts(), indent=2))
        return 0
    for one in found[:_SHOWN]:
        worked = f", success {number(one.succeeded / one.shown)}" if one.shown else ""
        judged = f", mean reward {number(one.mean_reward)}" if one.outcomes else ""
        fields = {
            "cases": f"{one.cases:,}, shown {counted(one.shown, 'time')}{worked}",
            "episodes": f"{one.episodes:,} asked, {counted(one.outcomes, 'outcome')}{judged}",
            "seen": f"{moment(one.first_seen)} to {moment(one.last_seen)}",
        }
        print_record(by_whom(one.actor, one.channel), fields)
    more = "; --json lists all" if len(found) > _SHOWN else ""
    print(f"{len(found):,} sources{more}")
    return 0


def diff(options: argparse.Namespace) -> int:
    """Say which cases came and went since a moment, and from whom."""
    with existing(options, options.namespace) as memory:
        found = memory.diff(options.since, actor=options.actor, channel=options.channel, namespace=options.namespace)
    if options.json:
        print(json.dumps(found.as_dict(), indent=2))
        return 0
    for line in found.notes():
        print(on_one_line(line))
    if len(found):
        print_table("", found.head, found.table())
    return 0
