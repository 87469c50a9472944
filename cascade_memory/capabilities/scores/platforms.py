"""The platforms from which ``cascade-memory collect`` reads: a table, whose modules are imported when they are used.

A module has ``collect``, which yields scores: those in a file, or those that a platform got since a moment (``since=``, in
seconds since 1970). In the second case it also has ``check``, which takes known scores and yields them as they are now.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_HERE = "cascade_memory.capabilities.scores"


@dataclass(frozen=True, slots=True)
class Platform:
    """A platform.

    >>> PLATFORMS["langfuse"].settings[0]
    'LANGFUSE_PUBLIC_KEY'
    """

    module: str
    about: str  # what the command does, in its help
    settings: tuple[str, ...] = ()  # the environment variables that it reads: keys first
    is_file: bool = False  # its scores are in a file, which is read from the beginning each time

    def function(self, name: str) -> Any:
        """Import the module, and return its function ``collect`` or ``check``."""
        return getattr(importlib.import_module(self.module), name)


PLATFORMS: Mapping[str, Platform] = {
    "langsmith": Platform(
        f"{_HERE}.langsmith",
        "read the feedback of LangSmith",
        ("LANGSMITH_API_KEY", "LANGSMITH_ENDPOINT", "LANGSMITH_WORKSPACE_ID"),
    ),
    "langfuse": Platform(
        f"{_HERE}.langfuse",
        "read the scores of Langfuse",
        ("LANGFUSE_PUBLIC_KEY", "LANGFUSE_SECRET_KEY", "LANGFUSE_HOST"),
    ),
    "phoenix": Platform(
        f"{_HERE}.phoenix",
        "read the annotations of Phoenix",
        ("PHOENIX_API_KEY", "PHOENIX_COLLECTOR_ENDPOINT", "PHOENIX_PROJECT"),
    ),
    "otlp": Platform(f"{_HERE}.otlp", "read the evaluations in a file of OpenTelemetry (OTLP JSON)", is_file=True),
}
