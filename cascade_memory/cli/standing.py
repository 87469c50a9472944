"""The commands about actors: who is known how, whose cases are in quarantine, and who is released."""

from __future__ import annotations

import argparse
import dataclasses
import json
import math

from cascade_memory.cli.deciding import named_or_login
from cascade_memory.cli.opening import existing
from cascade_memory.cli.tables import print_record
from cascade_memory.domain.display import counted
from cascade_memory.domain.standing import ActorStanding

_NOTABLE = 0.1  # smaller log odds say nothing


def add_options(command: argparse.ArgumentParser) -> None:
    """Add the options of a decision about an actor."""
    command.add_argument("--actor", required=True, metavar="NAME", help="whose cases, as sources and standings print it")
    command.add_argument("--note", metavar="TEXT", help="why, for the audit log")
    command.add_argument("--by", metavar="NAME", help="who decides, for the audit log (default: the login name)")


def decide(options: argparse.Namespace) -> int:
    """Put an actor into quarantine, or release it."""
    about = {"by": named_or_login(options.by), "note": options.note, "namespace": options.namespace}
    with existing(options, options.namespace) as memory:
        if options.command == "quarantine":
            moved, done = memory.quarantine(options.actor, **about), "no longer shown"
        else:
            moved, done = memory.release(options.actor, **about), "shown again"
    if options.json:
        print(json.dumps({options.command: options.actor, "cases": moved}, indent=2))
    else:
        print(f"{counted(moved, 'case')} {'is' if moved == 1 else 'are'} {done}")
    return 0


def standings(options: argparse.Namespace) -> int:
    """List what is known of actors, the worst first."""
    with existing(options, options.namespace) as memory:
        found = memory.standings(namespace=options.namespace)
    if options.json:
        print(json.dumps([{**dataclasses.asdict(one), "why": one.why} for one in found], indent=2))
        return 0
    for one in found:
        print_record(one.actor, _fields(one))
    print(counted(len(found), "actor"))
    return 0


def _fields(one: ActorStanding) -> dict[str, str]:
    return {
        "standing": f"{one.standing}: {one.why}",
        "shown": f"in at most {100 * one.share:.0f} % of recalls",
        "cases": _in_words(one.cases),
        "reports": _in_words(one.reports),
    }


def _in_words(odds: float) -> str:
    """Say log odds that something is bad.

    >>> _in_words(0.01), _in_words(-0.7), _in_words(2.3)
    ('nothing speaks for or against them yet', '2.0 times more likely good than bad', '10.0 times more likely bad than good')
    """
    if abs(odds) < _NOTABLE:
        return "nothing speaks for or against them yet"
    likely, other = ("good", "bad") if odds < 0 else ("bad", "good")
    return f"{math.exp(abs(odds)):.1f} times more likely {likely} than {other}"
