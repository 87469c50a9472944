"""``cascade-memory bench``: measures whether a memory helps, and compares kinds of memory.

``check-model`` finds out what a model and its server can do, before a benchmark asks them thousands of times.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path

from cascade_memory.cli import bench_data, bench_outcomes, bench_report, bench_run, bench_tune, demo
from cascade_memory.cli.arguments import share
from cascade_memory.cli.bench_own import chat_of, json_object
from cascade_memory.cli.groups import Commands
from cascade_memory.cli.tables import print_json, print_table
from cascade_memory.insight.planning import planned

_HOLDOUTS = (0.05, 0.1, 0.2, 0.5)


def add(groups: Commands) -> None:
    """Add the group."""
    bench = groups.group("bench", "measure on streams of tasks whether a memory helps")
    demo.add(bench)
    _add_plan(bench)
    _add_check(bench)
    bench_outcomes.add(bench)
    bench_data.add(bench)
    _add_games(bench)
    bench_run.add(bench)
    _add_replay(bench)
    bench_report.add(bench)
    bench_tune.add(bench)


def _add_plan(bench: Commands) -> None:
    command = bench.command("plan", plan, "say how many tasks it takes to tell whether a memory helps")
    about = "the share of tasks that succeed without memory"
    command.add_argument("--succeeds", type=share, required=True, metavar="P", help=about)
    command.add_argument("--lift", type=share, default=0.05, metavar="P", help="what the memory adds to it (default 0.05)")
    about = "the share of episodes that run without memory (default: several are compared)"
    command.add_argument("--holdout", type=share, metavar="P", help=about)
    command.add_argument("--a-day", type=float, metavar="N", help="how many tasks come a day")


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


def _add_check(bench: Commands) -> None:
    """Add ``check-model``."""
    check = bench.command("check-model", _check, "ask a model small questions, to see which tasks of a benchmark it can play")
    check.add_argument("--model", required=True, metavar="NAME", help="the model's name on its server")
    check.add_argument("--base-url", required=True, metavar="URL", help="address of an OpenAI-compatible server")
    check.add_argument("--sampling", type=json_object, default={}, metavar="JSON", help="settings, as in bench run")
    check.add_argument("--timeout", type=float, metavar="SECONDS", help="how long to wait for a reply (default: 120)")
    about = "tokens of the longest prompt that is tried (default: 8192)"
    check.add_argument("--longest", type=int, default=8_192, metavar="TOKENS", help=about)


def _check(options: argparse.Namespace) -> int:
    """Ask the model, and print a table; return 1 if something fails."""
    from cascade_memory.evaluation.model.checking import check_model, summary

    shown = sys.stderr.isatty() and not options.json

    def tell(about: str) -> None:
        if shown:
            sys.stderr.write(f"\r\033[K{about} ...")
            sys.stderr.flush()

    chat = chat_of(options, options.sampling, retries=1)
    try:
        findings = list(check_model(chat, longest=options.longest, tell=tell))
    finally:
        chat.close()
        if shown:
            sys.stderr.write("\r\033[K")
    if options.json:
        print(json.dumps([asdict(one) for one in findings], ensure_ascii=False))
    else:
        rows = [(one.about, one.verdict, one.said) for one in findings]
        print_table(f"{options.model} at {options.base_url}", ("ability", "", "what was found"), rows)
        print(summary(findings))
    return 1 if any(one.verdict == "fails" for one in findings) else 0
