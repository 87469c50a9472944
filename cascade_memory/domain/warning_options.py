"""How a memory warns of steps that earlier runs failed at."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import cast

from cascade_memory.domain.failure_warning import FailureWarning
from cascade_memory.domain.quoting import quoted
from cascade_memory.domain.validation import check_callable, check_k
from cascade_memory.errors import InvalidInput


@dataclass(frozen=True, slots=True, kw_only=True)
class WarningOptions:
    """How often a memory warns, and of what.

    Args:
        per_episode: The greatest number of warnings in one episode.
        lock: An action that the agent was warned of must not be done, even if the agent insists; ``Advice.locked`` says so.
        keep: The greatest number of failures that are stored in a namespace; the oldest ones go first.
        distil: Writes advice for a warning, with a language model for example: a function of a ``FailureWarning`` that returns
            a text, or None if there is nothing to advise. It is called once for each new warning, where learning happens.
        matters: For a tool, by its name: the names of the arguments in which its mistakes lie. Its other arguments then say
            only where a call acts.

    >>> WarningOptions(matters={"deploy": ["mode"]})
    WarningOptions(per_episode=2, lock=False, keep=10000, distil=None, matters={'deploy': ['mode']})
    """

    per_episode: int = 2
    lock: bool = False
    keep: int = 10_000
    distil: Callable[[FailureWarning], str | None] | None = None
    matters: Mapping[str, Collection[str]] = field(default_factory=dict[str, Collection[str]], hash=False)

    def __post_init__(self) -> None:
        check_k(self.per_episode, "per_episode")
        check_k(self.keep, "keep")
        check_callable(self.distil, "distil")
        if not _names_arguments(self.matters):
            example = '{"deploy": ["mode"]}'
            raise InvalidInput(
                f"matters must say which arguments of a tool matter, such as {example}, not {quoted(self.matters)}"
            )


def _names_arguments(matters: object) -> bool:
    """Say whether a value is a mapping of names to collections of names."""
    if not isinstance(matters, Mapping):
        return False
    for tool, names in cast("Mapping[object, object]", matters).items():
        if not isinstance(tool, str) or isinstance(names, str) or not isinstance(names, Collection):
            return False
        if not all(isinstance(name, str) for name in cast("Collection[object]", names)):
            return False
    return True


def check_warnings(warnings: object) -> WarningOptions | None:
    """Return the options; None if the memory does not warn.

    >>> check_warnings(False), check_warnings(True).per_episode
    (None, 2)
    """
    if isinstance(warnings, bool):
        return WarningOptions() if warnings else None
    if not isinstance(warnings, WarningOptions):
        raise InvalidInput(f"warnings must be True, False or a cascade_memory.WarningOptions, not {type(warnings).__name__}")
    return warnings
