"""``cascade-memory demo``: a stream of invented tasks, played without a memory, with similarity and with CASCADE."""

from __future__ import annotations

import argparse
from pathlib import Path

from cascade_memory.cli.groups import Commands
from cascade_memory.cli.tables import LiveDemo, print_json, print_table
from cascade_memory.cli.targets import check_picture
from cascade_memory.domain.display import counted
from cascade_memory.errors import InvalidInput, MissingExtra


def add(groups: Commands) -> None:
    """Add the command, which is in no group."""
    command = groups.command("demo", demo, "compare no memory, similarity and CASCADE on a synthetic stream")
    command.add_argument("--tasks", type=int, default=400, help="length of the stream (default 400)")
    command.add_argument("--seed", type=int, default=0)
    command.add_argument("--plot", default="cascade-demo.png", metavar="FILE", help="the file for the picture")


def demo(options: argparse.Namespace) -> int:
    """Play the demo."""
    from cascade_memory.evaluation.demo import MISLED, ZERO_SHOT, plot_demo, run_demo

    if options.tasks < 10:
        raise InvalidInput("--tasks must be at least 10")
    check_picture(options.plot, "--plot")
    with LiveDemo(options.tasks, quiet=options.json) as live:
        result = run_demo(options.tasks, options.seed, live.update)
    rates = result.rates()
    plot: str | None = options.plot
    try:
        plot_demo(result, Path(options.plot))
    except MissingExtra as missing:
        plot = None
        if not options.json:
            print(missing)
    if options.json:
        successes = {name: {"all": both[0], "last_fifth": both[1]} for name, both in rates.items()}
        print_json({"simulated": True, "embedder": result.embedder, "success": successes, "plot": plot})
        return 0
    rows = [[name, f"{100 * both:.1f} %", f"{100 * last:.1f} %"] for name, (both, last) in rates.items()]
    print_table(f"success on {counted(options.tasks, 'task')}", ["", "all tasks", "last fifth"], rows)
    print(
        f"SIMULATED solver: it solves {ZERO_SHOT:.0%} of the tasks alone and 97% with a fitting case; "
        f"a misleading case spoils {MISLED:.0%} of its successes. Embedder: {result.embedder}."
    )
    if plot is not None:
        print(f"picture: {plot}")
    return 0
