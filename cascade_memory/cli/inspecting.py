"""``cascade-memory serve inspector``: the pages that show and correct what a memory knows."""

from __future__ import annotations

import argparse
import contextlib
import os

from cascade_memory.cli.arguments import share
from cascade_memory.cli.groups import Commands
from cascade_memory.cli.opening import add_namespace, add_place, existing
from cascade_memory.cli.serving import token_of
from cascade_memory.cli.standard_error import never_wait


def add(serve: Commands) -> None:
    """Add the command."""
    about = "show the memory in the browser: what it holds, why it decided as it did; with --edit, to correct it"
    command = serve.command("inspector", inspect, about, json=False)
    add_place(command)
    add_namespace(command)
    command.add_argument("--edit", action="store_true", help="allow corrections, verdicts and forgetting")
    about = "the name under which changes are recorded (default: your name on this machine)"
    command.add_argument("--actor", metavar="NAME", help=about)
    about = "the share of episodes about which people are asked for a verdict (default 1: all that wait)"
    command.add_argument("--rate", type=share, default=1.0, metavar="P", help=about)
    command.add_argument("--no-browser", action="store_true", help="print the link, and open no browser")
    about = "the address to listen on; any that other machines can reach needs a token and --allow-host"
    command.add_argument("--host", default="127.0.0.1", help=about)
    command.add_argument("--port", type=int, default=0, help="the port to listen on (default: any free one)")
    about = "a name under which browsers may ask for it, without port; may be given several times"
    command.add_argument("--allow-host", action="append", default=[], metavar="NAME", help=about)
    about = "file with the token that people enter (default: the environment variable CASCADE_MEMORY_TOKEN)"
    command.add_argument("--token-file", metavar="FILE", help=about)


def inspect(options: argparse.Namespace) -> int:
    """Show a memory in the browser until stopped."""
    from cascade_memory.assembly.cascade import CascadeMemory
    from cascade_memory.inspector import Listening, run

    listening = Listening(
        host=options.host, port=options.port, allow_hosts=tuple(options.allow_host), token=token_of(options.token_file)
    )
    never_wait()
    with (
        existing(options, options.namespace),
        CascadeMemory(options.path, embedder="stored", chroma=options.chroma, namespace=options.namespace) as memory,
    ):
        memory.data.stand_aside()
        with contextlib.suppress(OSError, AttributeError):  # Windows has no nice
            os.nice(10)  # agents come first
        run(memory, listening, edit=options.edit, actor=options.actor, browser=not options.no_browser, rate=options.rate)
    return 0
