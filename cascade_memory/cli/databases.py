"""The commands for memories in PostgreSQL."""

from __future__ import annotations

import argparse
import json

from cascade_memory.assembly.move import move as move_memory

_NAMED = {"cases": "cases", "episodes": "episode", "outcomes": "outcome", "expired cases": "expired"}


def move(options: argparse.Namespace) -> int:
    """Copy a memory into a database, or back."""
    progress = False if options.json else None
    rows = move_memory(options.source, options.target, while_open=options.while_open, progress=progress)
    if options.json:
        print(json.dumps(rows, indent=2))
        return 0
    print("moved and compared: " + ", ".join(f"{rows[table]:,} {name}" for name, table in _NAMED.items()))
    print("The source is unchanged, and still holds everything: from now on, open the memory in its new place only.")
    return 0
