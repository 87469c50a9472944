"""Commands with no network at all, where it can be taken away."""

from __future__ import annotations

import shutil
import subprocess
from functools import cache


@cache
def offline() -> tuple[str, ...]:
    """Return what takes the network from a command that follows, or nothing where that is not to be had."""
    without = ("unshare", "-rn")
    if shutil.which("unshare") and subprocess.run([*without, "true"], capture_output=True, check=False).returncode == 0:
        return without
    return ()
