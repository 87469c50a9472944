"""The commands that show what a memory holds."""

from __future__ import annotations

import argparse
import itertools
import json
from collections.abc import Iterator
from typing import Any, TypeVar

from cascade_memory.assembly.cascade import CascadeMemory
from cascade_memory.cli.opening import existing, place
from cascade_memory.cli.sources import filters
from cascade_memory.cli.tables import print_record, print_table, print_text
from cascade_memory.domain.case import Case
from cascade_memory.domain.display import by_whom, counted, moment, number, shorten
from cascade_memory.domain.episode import Episode
from cascade_memory.domain.trajectory import solution_text
from cascade_memory.domain.trust import named
from cascade_memory.errors import InvalidInput

T = TypeVar("T")

_READABLE = 200  # the number of characters of each text in a list


def list_(options: argparse.Namespace) -> int:
    """List cases."""
    where = parsed_where(options.where)
    with existing(options, options.namespace) as memory:
        every = memory.cases(
            where=where, namespace=options.namespace, newest_first=not options.oldest_first, **filters(options)
        )
        found = _first(every, options)
        others = [] if found else [name for name in memory.namespaces() if name != options.namespace]
    if options.json:
        print(json.dumps([_case(one) for one in found], indent=2))
        return 0
    for one in found:
        made = {} if one.actor is None else {"made by": by_whom(one.actor, one.channel)}
        print_record(one.id, {**made, "task": shorten(one.query, _READABLE), "solution": shorten(_text(one), _READABLE)})
    _count(options, len(found), "cases")
    if others:
        print(f"other namespaces of this memory (--namespace NAME): {shorten(', '.join(others), _READABLE)}")
    return 0


def show(options: argparse.Namespace) -> int:
    """Show one case with everything that is known about it."""
    with existing(options, options.namespace) as memory:
        case = memory.get(options.case, namespace=options.namespace)
    if options.json:
        print(json.dumps(_case(case), indent=2))
        return 0
    fields = {
        "namespace": case.namespace,
        "stored": moment(case.created_at),
        "source": case.source,
        "made by": by_whom(case.actor, case.channel),
        "trust": named(case.trust),
        "episode": case.episode_id or "none: it was added",
        "verified": counted(case.copies, "time"),
        "shown": f"{counted(case.shown, 'time')}, total reward {number(case.succeeded)}",
        **({"metadata": json.dumps(dict(case.metadata), ensure_ascii=False)} if case.metadata else {}),
    }
    print_record(case.id, fields)
    print_text("Task", case.query)
    print_text("Solution", _text(case))
    return 0


def episodes(options: argparse.Namespace) -> int:
    """List episodes."""
    with existing(options, options.namespace) as memory:
        every = memory.episodes(
            status=options.status,
            source=options.source,
            namespace=options.namespace,
            newest_first=not options.oldest_first,
            **filters(options),
        )
        found = _first(every, options)
    if options.json:
        print(json.dumps([_episode(one) for one in found], indent=2))
        return 0
    for one in found:
        judged = "" if one.reward is None else f", reward {one.reward:g} from {one.source}"
        held_out = ", held out" if one.arm == "holdout" else ""
        state = f"{one.status}{judged}{held_out}, opened {moment(one.opened_at)}, {counted(len(one.cases), 'case')} shown"
        asked = {} if one.actor is None else {"asked by": by_whom(one.actor, one.channel)}
        print_record(one.id, {"status": state, **asked, "task": shorten(one.query, _READABLE)})
    _count(options, len(found), "episodes")
    return 0


def namespaces(options: argparse.Namespace) -> int:
    """List namespaces."""
    counts: dict[str, int] = {}
    with existing(options) as memory:
        for name in memory.namespaces():
            with CascadeMemory(options.path, embedder="stored", chroma=options.chroma, namespace=name) as one:
                counts[name] = len(one)
    if options.json:
        print(json.dumps([{"namespace": name, "cases": count} for name, count in counts.items()], indent=2))
        return 0
    print_table(f"namespaces of {place(options)}", ["namespace", "cases"], [[name, f"{n:,}"] for name, n in counts.items()])
    return 0


def parsed_where(text: str | None) -> Any:
    """Read a metadata filter from a command line."""
    if text is None:
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"--where must be JSON: {error}") from error


def _first(every: Iterator[T], options: argparse.Namespace) -> list[T]:
    return list(every if options.all else itertools.islice(every, options.limit))


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
