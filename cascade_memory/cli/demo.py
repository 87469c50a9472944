"""``cascade-memory bench demo``: a stream of invented tasks, played without a memory, with similarity and with CASCADE."""

from __future__ import annotations

import argparse
from pathlib import Path

from cascade_memory.cli.arguments import check_picture
from cascade_memory.cli.groups import Commands
from cascade_memory.cli.tables import LiveDemo, print_json, print_table
from cascade_memory.domain.display import counted
from cascade_memory.errors import InvalidInput, MissingExtra

_PICTURE = "cascade-demo.png"


def add(bench: Commands) -> None:
    """Add the command."""
    command = bench.command("demo", demo, "compare no memory, similarity and CASCADE on a synthetic stream")
    command.add_argument("--tasks", type=int, default=400, help="length of the stream (default 400)")
    command.add_argument("--seed", type=int, default=0)
    command.add_argument("--plot", metavar="FILE", help=f"the file for the picture (default {_PICTURE})")


def demo(options: argparse.Namespace) -> int:
    """Play the demo."""
    from cascade_memory.evaluation.synthetic import MISLED, ZERO_SHOT, plot_demo, run_demo
    from cascade_memory.looks.figure import need_matplotlib

    if options.tasks < 10:
        raise InvalidInput("--tasks must be at least 10")
    wanted = _PICTURE if options.plot is None else options.plot
    check_picture(wanted, "--plot")
    if options.plot is not None:
        need_matplotlib("a picture")  # without the option it is left out, and a line says so
    with LiveDemo(options.tasks, quiet=options.json) as live:
        result = run_demo(options.tasks, options.seed, live.update)
    rates = result.rates()
    plot: str | None = wanted
    try:
        plot_demo(result, Path(wanted))
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
