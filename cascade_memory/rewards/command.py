"""A reward from the exit status of a command: the test suite of what the agent wrote, say."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Sequence

from cascade_memory.domain.episode import Episode
from cascade_memory.errors import InvalidInput


class command_succeeds:  # noqa: N801 - used like a function, as its neighbours are
    """Reward a run after which a command exits with status 0. The answer is given to it on standard input.

    The command is a list (no shell sees it), or a function of the episode that returns one. If it cannot be started, or takes
    longer than ``timeout`` seconds, that says nothing about the agent: it raises, so the episode stays pending, and the
    failure is counted in ``memory.health()``.

    >>> import sys
    >>> reward = command_succeeds([sys.executable, "-c", "import sys; sys.exit(sys.stdin.read() != '42')"])
    >>> reward(Episode(id="e", namespace="n", query="6 * 7", status="open", solution="42"))
    1.0
    """

    source = "env"

    def __init__(
        self,
        command: Sequence[str] | Callable[[Episode], Sequence[str]],
        *,
        cwd: str | os.PathLike[str] | None = None,
        timeout: float = 300.0,
    ) -> None:
        if isinstance(command, str):
            raise InvalidInput(f"command must be a list of words, such as {command.split()!r}: no shell is used")
        self._command, self._cwd, self._timeout = command, cwd, timeout

    def __call__(self, episode: Episode) -> float | None:
        """Run the command."""
        if episode.status == "error":
            return None
        command = self._command(episode) if callable(self._command) else self._command
        done = subprocess.run(
            list(command),
            input=episode.answer.encode(),
            cwd=self._cwd,
            timeout=self._timeout,
            capture_output=True,
            check=False,
        )
        return float(done.returncode == 0)
