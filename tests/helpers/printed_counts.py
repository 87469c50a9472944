"""What the scripts beside the tests of the architecture print: counts, one line for each thing that is counted."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def printed_counts(script: Path) -> dict[str, tuple[int, ...]]:
    """Run a script, and return the numbers of each line by its name: "a recall: 9 statements, 190 calls"."""
    said = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True).stdout.splitlines()
    lines = (line.split(": ") for line in said)
    return {name: tuple(int(part.split()[0]) for part in counts.split(", ")) for name, counts in lines}
