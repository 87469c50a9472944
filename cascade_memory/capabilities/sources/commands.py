"""``cascade-memory sources``: who wrote what, what is known of them, and whose cases are in quarantine."""

from __future__ import annotations

import argparse
import dataclasses
import math

from cascade_memory.capabilities.sources.actor_standing import ActorStanding
from cascade_memory.cli.groups import Commands, Run, actor, add_by
from cascade_memory.cli.opening import existing
from cascade_memory.cli.tables import print_done, print_json, print_record
from cascade_memory.domain.display import by_whom, counted, moment, number

_SHOWN = 50  # sources
_NOTABLE = 0.1  # smaller log odds say nothing


def add(groups: Commands) -> None:
    """Add the group."""
    sources = groups.group("sources", "list who wrote what, and put actors into quarantine")
    sources.on_memory("list", list_, "list who wrote how many cases, and how these did")
    sources.on_memory("standings", standings, "list what is known of actors, the worst first")
    _add_decision(sources, "quarantine", quarantine, "show no case of an actor any more, and unlearn what it reported")
    _add_decision(sources, "release", release, "show the cases of an actor again, whatever its record says")


def _add_decision(sources: Commands, name: str, run: Run, about: str) -> None:
    command = sources.on_memory(name, run, about)
    about = "whose cases, as sources list and sources standings print it"
    command.add_argument("--actor", required=True, metavar="NAME", help=about)
    command.add_argument("--note", metavar="TEXT", help="why, for the audit log")
    add_by(command)


def list_(options: argparse.Namespace) -> int:
    """List for each actor and channel how much it wrote, and how its cases did when they were shown."""
    with existing(options, options.namespace) as memory:
        found = memory.sources.all()
    if options.json:
        print_json(found.as_dicts())
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
    print(f"{counted(len(found), 'source')}{more}")
    return 0


def standings(options: argparse.Namespace) -> int:
    """List what is known of actors, the worst first."""
    with existing(options, options.namespace) as memory:
        found = memory.sources.standings()
    if options.json:
        print_json([{**dataclasses.asdict(one), "why": one.why} for one in found])
        return 0
    for one in found:
        print_record(one.actor, _fields(one))
    print(counted(len(found), "actor"))
    return 0


def quarantine(options: argparse.Namespace) -> int:
    """Put an actor into quarantine."""
    with existing(options, options.namespace, actor(options)) as memory:
        moved = memory.sources.quarantine(options.actor, note=options.note)
    return _print_moved(options, moved, "no longer shown")


def release(options: argparse.Namespace) -> int:
    """Release an actor."""
    with existing(options, options.namespace, actor(options)) as memory:
        moved = memory.sources.release(options.actor, note=options.note)
    return _print_moved(options, moved, "shown again")


def _print_moved(options: argparse.Namespace, moved: int, done: str) -> int:
    said = f"{counted(moved, 'case')} {'is' if moved == 1 else 'are'} {done}"
    print_done(options, {options.command: options.actor, "cases": moved}, said)
    return 0


def _fields(one: ActorStanding) -> dict[str, str]:
    return {
        "standing": f"{one.standing}: {one.why}",
        "shown": f"in at most {100 * one.share:.0f} % of recalls",
        "cases": _in_words(one.cases),
        "reports": _in_words(one.reports),
    }


def _in_words(odds: float) -> str:
    """Put the log odds that an actor is bad into words.

    >>> _in_words(0.01), _in_words(-0.7), _in_words(2.3)
    ('nothing speaks for or against them yet', '2.0 times more likely good than bad', '10.0 times more likely bad than good')
    """
    if abs(odds) < _NOTABLE:
        return "nothing speaks for or against them yet"
    likely, other = ("good", "bad") if odds < 0 else ("bad", "good")
    return f"{math.exp(abs(odds)):.1f} times more likely {likely} than {other}"
