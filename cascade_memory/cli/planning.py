"""``cascade-memory bench plan``: how many tasks it takes to tell whether a memory helps."""

from __future__ import annotations

import argparse

from cascade_memory.cli.arguments import share
from cascade_memory.cli.groups import Commands
from cascade_memory.cli.tables import print_json, print_table
from cascade_memory.insight.planning import planned

_HOLDOUTS = (0.05, 0.1, 0.2, 0.5)


def add(bench: Commands) -> None:
    """Add the command."""
    command = bench.command("plan", plan, "say how many tasks it takes to tell whether a memory helps")
    about = "the share of tasks that succeed without memory"
    command.add_argument("--succeeds", type=share, required=True, metavar="P", help=about)
    command.add_argument("--lift", type=share, default=0.05, metavar="P", help="what the memory adds to it (default 0.05)")
    about = "the share of episodes that run without memory (default: several are compared)"
    command.add_argument("--holdout", type=share, metavar="P", help=about)
    command.add_argument("--a-day", type=float, metavar="N", help="how many tasks come a day")


def plan(options: argparse.Namespace) -> int:
    """Print a row for each share of held-out episodes: how many tasks it then takes to tell whether a memory helps."""
    holdouts = _HOLDOUTS if options.holdout is None else (options.holdout,)
    found = [planned(succeeds=options.succeeds, lift=options.lift, holdout=one, a_day=options.a_day) for one in holdouts]
    if options.json:
        print_json([one.as_dict() for one in found])
        return 0
    title = f"tasks until a lift of {100 * options.lift:g} points is told, where {options.succeeds:.0%} succeed without memory"
    days = [] if options.a_day is None else ["days"]
    rows = [
        [f"{one.holdout:.0%}", f"{one.tasks:,}", f"{one.without:,}", *([] if one.days is None else [f"{one.days:,g}"])]
        for one in found
    ]
    print_table(title, ["without memory", "tasks", "of them without", *days], rows)
    print("Told: the 95 % interval of report() lies above 0, in four of five such experiments. A larger lift is told sooner.")
    return 0
