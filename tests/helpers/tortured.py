"""Runs a script of tests/torture in a process of its own: it forks, and a process that runs tests has threads."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

_SCRIPTS = Path(__file__).parents[1] / "torture"


def tortured(script: str, *options: object) -> tuple[dict[str, Any], int]:
    """Return the summary that a script prints in its last line, and its exit status."""
    command = [sys.executable, "-W", "ignore", str(_SCRIPTS / script), *map(str, options)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout, done.stderr[-3000:]
    sys.stdout.write(done.stdout)  # seen with pytest -s, as in .ci/matrix torture
    return json.loads(done.stdout.splitlines()[-1]), done.returncode
