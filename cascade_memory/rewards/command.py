"""A reward from the exit status of a command, for example of the tests of the code that the agent wrote."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Sequence

from cascade_memory.domain.episode import Episode
from cascade_memory.errors import InvalidInput


class command_succeeds:  # noqa: N801 - it is used like a function, as the other rewards are
    """Reward a run if a command exits with status 0 afterwards. The command receives the answer on standard input.

    The command is a list of words (it is run without a shell), or a function of the episode that returns one. A command that
    cannot be started, or takes longer than ``timeout`` seconds, is no evidence about the agent. Then an exception is raised,
    the episode stays pending, and the failure is counted in ``memory.health()``.

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
        """Run the command and judge its exit status."""
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
