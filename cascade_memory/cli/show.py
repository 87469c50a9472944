"""``cascade-memory show``: what a memory holds, and how much it helps."""

from __future__ import annotations

import argparse
import json
import os
from typing import Any, get_args

from cascade_memory.cli.groups import (
    READABLE,
    Commands,
    add_length,
    add_source,
    add_time,
    add_trust,
    filters,
    first,
    parsed_where,
)
from cascade_memory.cli.opening import NAMESPACE, existing, place
from cascade_memory.cli.tables import print_json, print_record, print_table, print_text
from cascade_memory.domain.case import Case
from cascade_memory.domain.display import by_whom, counted, moment, number, shorten
from cascade_memory.domain.episode import SOURCES, Episode, Status
from cascade_memory.domain.trajectory import solution_text
from cascade_memory.domain.trust import CHANNELS, named
from cascade_memory.visible import on_one_line


def add(groups: Commands) -> None:
    """Add the group."""
    show = groups.group("show", "show what a memory holds, and how much it helps")
    _add_stats(show)
    _add_cases(show)
    one = show.on_memory("case", case, "show one case whole")
    one.add_argument("case", metavar="CASE", help="its id, as show cases prints it")
    _add_episodes(show)
    show.on_memory("namespaces", namespaces, "list namespaces, and how many cases each holds", namespace=False)
    _add_changes(show)
    helps = show.on_memory("report", report, "show how much the memory helps: lift, calibration, coverage, shadow")
    helps.add_argument("--everywhere", action="store_true", help="all namespaces together")


def _add_stats(show: Commands) -> None:
    command = show.on_memory("stats", stats, "count cases, episodes and rewards", namespace=False)
    about = f"only this namespace (default: the environment variable {NAMESPACE}, else all)"
    command.add_argument("--namespace", default=os.environ.get(NAMESPACE) or None, help=about)


def _add_cases(show: Commands) -> None:
    command = show.on_memory("cases", cases, "list cases, newest first")
    command.add_argument("--where", metavar="JSON", help='a metadata filter, such as {"user": "u1"}')
    add_length(command)
    add_source(command, "cases that this actor made first")
    add_time(command)
    add_trust(command)


def _add_episodes(show: Commands) -> None:
    command = show.on_memory("episodes", episodes, "list episodes, newest first")
    command.add_argument("--status", choices=get_args(Status), help="only those with this status; settled: with a reward")
    command.add_argument("--source", choices=SOURCES, help="only those that were rewarded by this source")
    add_length(command)
    add_source(command, "episodes in which this actor asked")
    add_time(command)


def _add_changes(show: Commands) -> None:
    command = show.on_memory("changes", changes, "list the cases that came and went since a moment, with who made them")
    about = "a date, such as 2026-11-24, or how long ago, such as 7d"
    command.add_argument("--since", required=True, metavar="WHEN", help=about)
    command.add_argument("--actor", metavar="NAME", help='only cases that this actor made first; "" for nobody named')
    command.add_argument("--channel", choices=CHANNELS, help="only cases that came through this door")


def stats(options: argparse.Namespace) -> int:
    """Print the counts that ``memory.stats()`` returns."""
    with existing(options, options.namespace) as memory:
        found = memory.stats(everywhere=options.namespace is None)
    if options.json:
        print_json(found.as_dict())
    else:
        print_table(f"memory in {place(options)}", ["", ""], [list(row) for row in found.rows()])
    return 0


def cases(options: argparse.Namespace) -> int:
    """List cases."""
    where = parsed_where(options.where)
    with existing(options, options.namespace) as memory:
        every = memory.cases.all(where=where, newest_first=not options.oldest_first, **filters(options))
        found = first(every, options)
        others = [] if found else [name for name in memory.data.namespaces() if name != options.namespace]
    if options.json:
        print_json([_case(one) for one in found])
        return 0
    for one in found:
        made = {} if one.actor is None else {"made by": by_whom(one.actor, one.channel)}
        print_record(one.id, {**made, "task": shorten(one.query, READABLE), "solution": shorten(_text(one), READABLE)})
    _count(options, len(found), "cases")
    if others:
        print(f"other namespaces of this memory (--namespace NAME): {shorten(', '.join(others), READABLE)}")
    return 0


def case(options: argparse.Namespace) -> int:
    """Show one case with everything that is known about it."""
    with existing(options, options.namespace) as memory:
        found = memory.cases.get(options.case)
    if options.json:
        print_json(_case(found))
        return 0
    fields = {
        "namespace": found.namespace,
        "stored": moment(found.created_at),
        "source": found.source,
        "made by": by_whom(found.actor, found.channel),
        "trust": named(found.trust),
        "episode": found.episode_id or "none: it was added",
        "verified": counted(found.copies, "time"),
        "shown": f"{counted(found.shown, 'time')}, total reward {number(found.succeeded)}",
        **({"metadata": json.dumps(dict(found.metadata), ensure_ascii=False)} if found.metadata else {}),
    }
    print_record(found.id, fields)
    print_text("Task", found.query)
    print_text("Solution", _text(found))
    return 0


def episodes(options: argparse.Namespace) -> int:
    """List episodes."""
    with existing(options, options.namespace) as memory:
        every = memory.episodes.all(
            status=options.status, source=options.source, newest_first=not options.oldest_first, **filters(options)
        )
        found = first(every, options)
    if options.json:
        print_json([_episode(one) for one in found])
        return 0
    for one in found:
        judged = "" if one.reward is None else f", reward {one.reward:g} from {one.source}"
        held_out = ", held out" if one.arm == "holdout" else ""
        state = f"{one.status}{judged}{held_out}, opened {moment(one.opened_at)}, {counted(len(one.cases), 'case')} shown"
        asked = {} if one.actor is None else {"asked by": by_whom(one.actor, one.channel)}
        print_record(one.id, {"status": state, **asked, "task": shorten(one.query, READABLE)})
    _count(options, len(found), "episodes")
    return 0


def namespaces(options: argparse.Namespace) -> int:
    """List namespaces."""
    from cascade_memory.assembly.cascade import CascadeMemory

    counts: dict[str, int] = {}
    with existing(options) as memory:
        for name in memory.data.namespaces():
            with CascadeMemory(options.path, embedder="stored", chroma=options.chroma, namespace=name) as one:
                counts[name] = len(one)
    if options.json:
        print_json([{"namespace": name, "cases": count} for name, count in counts.items()])
        return 0
    print_table(f"namespaces of {place(options)}", ["namespace", "cases"], [[name, f"{n:,}"] for name, n in counts.items()])
    return 0


def changes(options: argparse.Namespace) -> int:
    """Say which cases came and went since a moment, and from whom."""
    with existing(options, options.namespace) as memory:
        found = memory.sources.diff(options.since, by_actor=options.actor, by_channel=options.channel)
    if options.json:
        print_json(found.as_dict())
        return 0
    for line in found.notes():
        print(on_one_line(line))
    if len(found):
        print_table("", found.head, found.table())
    return 0


def report(options: argparse.Namespace) -> int:
    """Show how much the memory helps."""
    namespace = None if options.everywhere else options.namespace
    with existing(options, namespace) as memory:
        found = memory.report(everywhere=options.everywhere)
    if options.json:
        print_json(found.as_dict())
        return 0
    print_table(f"how much the memory in {place(options)} helps", ["", ""], [list(row) for row in found.rows()])
    for note in found.notes:
        print(on_one_line(note))
    return 0


def _count(options: argparse.Namespace, found: int, what: str) -> None:
    if not options.all and found == options.limit:
        print(f"the {'first' if options.oldest_first else 'last'} {found:,} {what}; --limit N and --all show more")
    else:
        print(f"{found:,} {what}")


def _text(case: Case) -> str:
    return solution_text(case.solution)


def _case(one: Case) -> dict[str, Any]:
    return {
        "id": one.id,
        "namespace": one.namespace,
        "task": one.query,
        "solution": _text(one),
        "metadata": dict(one.metadata),
        "source": one.source,
        "actor": one.actor,
        "channel": one.channel,
        "trust": named(one.trust),
        "episode_id": one.episode_id,
        "created_at": one.created_at,
        "copies": one.copies,
        "shown": one.shown,
        "succeeded": one.succeeded,
    }


def _episode(one: Episode) -> dict[str, Any]:
    return {
        "id": one.id,
        "namespace": one.namespace,
        "task": one.query,
        "status": one.status,
        "arm": one.arm,
        "opened_at": one.opened_at,
        "closed_at": one.closed_at,
        "reward": one.reward,
        "source": one.source,
        "solution": None if one.solution is None else solution_text(one.solution),
        "cases": list(one.cases),
        "thread_id": one.thread_id,
        "actor": one.actor,
        "channel": one.channel,
        "metadata": dict(one.metadata),
        "fingerprint": one.fingerprint,
    }
