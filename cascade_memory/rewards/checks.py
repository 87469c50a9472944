"""Rewards from what can be checked: the exit status of a command, the form of a JSON answer, the results of tools."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from jsonschema import Draft202012Validator, SchemaError

from cascade_memory.domain.episode import Episode
from cascade_memory.domain.trajectory import Trajectory
from cascade_memory.errors import InvalidInput
from cascade_memory.rewards.answers import has_answer


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


_FENCED = re.compile(r"^```(?:json)?\s*\n(.*)\n```$", re.DOTALL)


def valid_json(schema: Mapping[str, Any]) -> Callable[[Episode], float | None]:
    """Reward an answer that is JSON and follows a JSON schema, for example ``Model.model_json_schema()`` of a pydantic model.

    >>> reward = valid_json({"type": "object", "required": ["city"]})
    >>> [reward(Episode(id="e", namespace="n", query="q", status="open", solution=s)) for s in ('{"city": "Ulm"}', "Ulm")]
    [1.0, 0.0]
    """
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        raise InvalidInput(f"valid_json needs a JSON schema: {error.message}") from error
    validator = Draft202012Validator(schema)

    def reward(episode: Episode) -> float | None:
        if not has_answer(episode):
            return None
        text = episode.answer.strip()
        fenced = _FENCED.match(text)
        try:
            value = json.loads(fenced.group(1) if fenced else text)
        except (ValueError, RecursionError):
            return 0.0
        return float(validator.is_valid(value))

    return reward


def no_tool_failed(episode: Episode) -> float | None:
    """Return 1.0 for a run in which no tool failed, 0.0 if one failed, and None if the run itself failed or called no tool.

    >>> from cascade_memory.domain.trajectory import Step
    >>> walk = Trajectory([Step(tool="search", observation="no such index", failed=True)])
    >>> no_tool_failed(Episode(id="e", namespace="n", query="q", status="open", solution=walk))
    0.0
    """
    if episode.status == "error" or not isinstance(episode.solution, Trajectory):
        return None
    calls = [step for step in episode.solution.steps if step.tool is not None]
    return float(not any(step.failed for step in calls)) if calls else None
