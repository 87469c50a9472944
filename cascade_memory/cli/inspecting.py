"""``cascade-memory inspect``: the pages that show and correct what a memory knows."""

from __future__ import annotations

import argparse
import contextlib
import os

from cascade_memory.assembly.cascade import CascadeMemory
from cascade_memory.cli.opening import existing
from cascade_memory.cli.serving import token_of


def inspect(options: argparse.Namespace) -> int:
    """Show a memory in the browser until stopped."""
    from cascade_memory.inspector import Listening, run

    listening = Listening(
        host=options.host, port=options.port, allow_hosts=tuple(options.allow_host), token=token_of(options.token_file)
    )
    with (
        existing(options, options.namespace),
        CascadeMemory(options.path, embedder="stored", chroma=options.chroma, namespace=options.namespace) as memory,
    ):
        memory.stand_aside()
        with contextlib.suppress(OSError, AttributeError):  # Windows has no nice
            os.nice(10)  # agents come first
        run(memory, listening, edit=options.edit, actor=options.actor, browser=not options.no_browser, rate=options.rate)
    return 0
