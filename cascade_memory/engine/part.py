"""What a capability does in an engine, beside its rows, its verbs and its pages."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from cascade_memory.domain.records import Change, Unsettled
from cascade_memory.domain.trajectory import Solution
from cascade_memory.engine.namespace_state import NamespaceState
from cascade_memory.engine.request import Judgement


class EnginePart:
    """The base of a capability's class ``PART``, made once for each engine; each method may be left as it is.

    The engine calls the parts in the order of ``CAPABILITIES``. A part must not raise: what fails in it is counted with
    ``engine.note_failure``.
    """

    follows: bool = False  # whether it gets each line of the ledger's log, by ``apply``
    seq: int = 0  # the last line that it got

    def __init__(self, engine: Any) -> None:
        del engine  # for parts that need it

    def apply(self, changes: Sequence[Change]) -> None:
        """Follow the log: take new lines, oldest first."""

    def rebuild(self) -> None:
        """Read everything again, after the ledger was repaired."""

    def judged(
        self, judgement: Judgement, episode: Unsettled, solution: Solution | None, *, unseen: bool, teaches_failure: bool
    ) -> Mapping[str, Any]:
        """Return further fields of the ``Settlement`` that a judgement becomes, if it is a failure or an action was checked.

        ``unseen``: only the agent itself has reported what it did. ``teaches_failure``: it is a failure that is learned from.
        """
        del judgement, episode, solution, unseen, teaches_failure
        return {}

    def convicted(self, state: NamespaceState, actors: Collection[str]) -> None:
        """Act on actors of a namespace whose record has just become bad beyond doubt."""

    def alarms(self, namespace: str | None = None) -> tuple[str, ...]:
        """Return sentences about what a person should look at, in a namespace or in all, for ``health()`` and ``report()``."""
        del namespace
        return ()

    def learn(self) -> None:
        """Do what takes time, where the rankers learn: after each reward, or on the learner's thread."""

    def left_out(self) -> Mapping[str, int]:
        """Return what it left out since the memory was opened, by reason, for ``health()``."""
        return {}


def overriding(parts: Iterable[EnginePart], method: str) -> tuple[EnginePart, ...]:
    """Return the parts that override a method: the others need not be called at each reward.

    >>> class Learns(EnginePart):
    ...     def learn(self) -> None: ...
    >>> [type(part).__name__ for part in overriding([EnginePart(None), Learns(None)], "learn")]
    ['Learns']
    """
    return tuple(part for part in parts if getattr(type(part), method) is not getattr(EnginePart, method))
