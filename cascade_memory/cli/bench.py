"""``cascade-memory bench``: measures whether a memory helps, and compares kinds of memory."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from cascade_memory.cli import bench_check, bench_data, bench_outcomes, bench_report, bench_run, planning
from cascade_memory.cli.groups import Commands
from cascade_memory.cli.tables import print_json, print_table


def add(groups: Commands) -> None:
    """Add the group."""
    bench = groups.group("bench", "measure on streams of tasks whether a memory helps")
    planning.add(bench)
    bench_check.add(bench)
    bench_outcomes.add(bench)
    bench_data.add(bench)
    _add_games(bench)
    bench_run.add(bench)
    _add_replay(bench)
    bench_report.add(bench)


def _add_games(bench: Commands) -> None:
    command = bench.command("games", games, "generate the missing household games for ALFWorld's engine")
    command.add_argument("--count", type=int, default=264, help="how many games the folder shall hold (default 264)")
    command.add_argument("--seed", type=int, default=777, help="the same seed gives the same games")
    about = "their folder; for bench run: ROWS.work/games"
    command.add_argument("--out", type=Path, required=True, metavar="DIR", help=about)


def _add_replay(bench: Commands) -> None:
    about = "estimate the mean reward of another policy from the log of a memory"
    command = bench.on_memory("replay", replay, about)
    about = "a ranker such as similarity or zero-shot, or shadow"
    command.add_argument("--policy", required=True, metavar="NAME", help=about)


def games(options: argparse.Namespace) -> int:
    """Generate the household games that the folder lacks."""
    from cascade_memory.evaluation.environments.household.games import make_games

    made = make_games(options.out, count=options.count, seed=options.seed, progress=False if options.json else None)
    print(json.dumps({"made": made, "folder": str(options.out)}) if options.json else f"{made} games made in {options.out}")
    return 0


def replay(options: argparse.Namespace) -> int:
    """Print the estimated mean reward of another policy, or why it cannot be estimated."""
    from cascade_memory.evaluation.replay import ONE_STEP
    from cascade_memory.evaluation.replay import replay as replayed

    found = replayed(options.path, options.policy, namespace=options.namespace)
    if options.json:
        print_json(found.as_dict())
        return 0
    print_table(f"{options.policy} on the episodes of {options.path}", ["", ""], [list(row) for row in found.rows()])
    print(f"{found.verdict}.\n{ONE_STEP}")
    return 0
