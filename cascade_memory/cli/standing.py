"""The commands about actors: who is known how, whose cases are in quarantine, and who is released."""

from __future__ import annotations

import argparse
import dataclasses
import json

from cascade_memory.cli.deciding import named_or_login
from cascade_memory.cli.opening import existing
from cascade_memory.cli.tables import print_record
from cascade_memory.domain.display import counted, number
from cascade_memory.domain.standing import ActorStanding


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
        "cases": f"log odds {number(one.cases)} that they are bad",
        "reports": f"log odds {number(one.reports)} that they are bad",
    }
