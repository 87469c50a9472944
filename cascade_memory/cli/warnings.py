"""The commands about warnings: which there are, what came of them, and what people decide."""

from __future__ import annotations

import argparse
import dataclasses
import json

from cascade_memory.cli.arguments import positive
from cascade_memory.cli.deciding import named_or_login
from cascade_memory.cli.opening import existing
from cascade_memory.cli.tables import print_record
from cascade_memory.domain.display import counted, shorten

DECISIONS = {
    "retire": "never give a warning again",
    "restore-warning": "give a retired warning again, whatever its record says",
    "advise": "say what to do instead: agents see it with the warning",
}
_READABLE = 200  # the number of characters of each text in a list


def add_list_options(command: argparse.ArgumentParser) -> None:
    """Add the options of the list."""
    command.add_argument("--limit", type=positive, default=20, metavar="N", help="how many (default 20)")
    command.add_argument("--all", action="store_true", help="all of them")
    command.add_argument("--state", choices=("active", "retired", "held"), help="only those with this state")


def add_options(command: argparse.ArgumentParser, name: str) -> None:
    """Add the options of a decision about a warning."""
    command.add_argument("--warning", required=True, metavar="ID", help="its id, as warnings prints it")
    if name == "advise":
        command.add_argument("--advice", required=True, metavar="TEXT", help="what to do instead")
    command.add_argument("--note", metavar="TEXT", help="why, for the audit log")
    command.add_argument("--by", metavar="NAME", help="who decides, for the audit log (default: the login name)")


def list_(options: argparse.Namespace) -> int:
    """List warnings, the latest first."""
    with existing(options, options.namespace) as memory:
        every = memory.warnings(namespace=options.namespace)
    matching = [one for one in every if options.state in (None, one.state)]
    found = matching if options.all else matching[: options.limit]
    if options.json:
        print(json.dumps([dataclasses.asdict(one) for one in found], indent=2))
        return 0
    for one in found:
        print_record(one.id, {name: shorten(value, _READABLE) for name, value in one.rows()})
    left = len(matching) - len(found)
    print(counted(len(found), "warning") + (f"; --limit N and --all show the other {left:,}" if left else ""))
    return 0


def decide(options: argparse.Namespace) -> int:
    """Retire a warning, restore it, or say what to do instead."""
    about = {"by": named_or_login(options.by), "note": options.note, "namespace": options.namespace}
    with existing(options, options.namespace) as memory:
        if options.command == "advise":
            done = memory.advise(options.warning, options.advice, **about)
        elif options.command == "retire":
            done = memory.retire(options.warning, **about)
        else:
            done = memory.restore_warning(options.warning, **about)
    if options.json:
        print(json.dumps({options.command: options.warning, "changed": done}, indent=2))
    else:
        print("done" if done else "nothing to do: it was so before")
    return 0
