"""What a capability does in an engine, beside its rows, its verbs and its pages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cascade_memory.cycle.recall import Recalled
from cascade_memory.domain.records import Beside, Change, Unsettled
from cascade_memory.domain.trajectory import Solution
from cascade_memory.engine.namespace_state import NamespaceState
from cascade_memory.engine.request import Judgement
from cascade_memory.errors import InvalidInput
from cascade_memory.learning.screen import Screen


@dataclass(frozen=True, slots=True, eq=False)
class Masked:
    """Which candidates a capability holds back: ``held`` has an entry for each candidate, ``why`` gives the reason for one."""

    held: NDArray[np.bool_]
    why: Callable[[int], str]


@dataclass(frozen=True, slots=True)
class Host:
    """A function of another package that says what surrounds the running code, such as a span.

    It is called in each recall if somebody else has imported its module, which this library never does. If it returns the
    module's object ``nothing`` (without a name: None), nothing surrounds the recall, and no part is asked.
    """

    name: str
    module: str
    current: str  # the name of the function
    nothing: str = ""


class EnginePart:
    """The base of a capability's class ``PART``, made once for each engine; each method may be left as it is.

    The engine calls the parts in the order of ``CAPABILITIES``. A part must not raise: what fails in it is counted with
    ``engine.note_failure``.
    """

    follows: bool = False  # whether it gets each line of the ledger's log, by ``apply``
    seq: int = 0  # the last line that it got
    hosts: Sequence[Host] = ()  # which it asks what surrounds a recall

    def __init__(self, engine: Any) -> None:
        del engine  # for parts that need it

    def apply(self, changes: Sequence[Change]) -> None:
        """Follow the log: take new lines, oldest first."""

    def rebuild(self) -> None:
        """Read everything again, after the ledger was repaired."""

    def screen(self, namespace_id: int, *, learns: bool) -> Screen | None:
        """Return what it knows of the actors of a namespace that is being loaded. One capability at most has this method.

        ``learns`` is False if this process learns from no outcome.
        """
        del namespace_id, learns
        return None

    def mask(self, state: NamespaceState, found: Recalled, asker: str | None, episode_id: str | None) -> Masked | None:
        """Hold candidates back that must not be shown to an actor in an episode; return None if all may be shown.

        The next nearest cases take their places. Called by many threads at once, and twice for a recall in which candidates
        are held back. ``episode_id`` is None for a search.
        """
        del state, found, asker, episode_id
        return None

    def beside(self, host: Host, around: Any) -> Iterable[Beside]:
        """Return rows of the capability's tables that are stored with a recall, and belong to its episode.

        ``around`` is what surrounds the recall, as the host has said on the caller's thread. If this method raises, the recall
        goes on without the rows.
        """
        del host, around
        return ()

    def episode_of(self, namespace: int, trace_id: object, span_id: object) -> str:
        """Return the id of the one episode of a trace in a namespace, or say why there is none; ``span_id`` may be None."""
        raise NotImplementedError

    def heard(self, verb: str, began: int, asked: Any, found: Any) -> None:
        """Hear what the memory has done: "recall", "reward", "add" or "forget".

        It is called on the caller's thread if the part is one of the engine's ``listeners``. ``began`` is the time in
        nanoseconds since 1970, ``asked`` the request, and ``found`` what came of it.
        """

    def ends(self, episode_id: str) -> Mapping[str, Any]:
        """Return metadata for an episode that ends or is rewarded, if the part is one of the engine's ``ending``."""
        del episode_id
        return {}

    def expects(self, namespace: str) -> Mapping[str, Any]:
        """Return what ``ends`` will probably say of a new episode. Only the order of the cases depends on it."""
        del namespace
        return {}

    def judged(
        self, judgement: Judgement, episode: Unsettled, solution: Solution | None, *, unseen: bool, teaches_failure: bool
    ) -> Mapping[str, Any]:
        """Return what its ``Observer`` needs to know of a judgement, by names of its own (``Settlement.found``).

        It is called for a failure, and for an episode that an observer watches.

        ``unseen``: only the agent itself has reported what it did. ``teaches_failure``: it is a failure that is learned from.
        """
        del judgement, episode, solution, unseen, teaches_failure
        return {}

    def screened(self, state: NamespaceState) -> None:
        """Act on what is now known of the actors of a namespace: after it has learned, if the part's screen is active."""

    def alarms(self, namespace: str | None = None) -> tuple[str, ...]:
        """Return sentences about what a person should look at, in a namespace or in all, for ``health()`` and ``report()``."""
        del namespace
        return ()

    def counted(self, namespace: int | None) -> Mapping[str, int]:
        """Return what it keeps, for ``stats()``: counts by the name of its noun, for a namespace or for all."""
        del namespace
        return {}

    def reported(self, namespace: int | None) -> Sequence[tuple[str, str]]:
        """Return further rows of ``report()``, each with a name and a value, for a namespace or for all."""
        del namespace
        return ()

    def learn(self) -> None:
        """Do what takes time, where the rankers learn: after each reward, or on the learner's thread."""

    def left_out(self) -> Mapping[str, int]:
        """Return what it left out since the memory was opened, by reason, for ``health()``."""
        return {}


def episode_of(parts: Iterable[EnginePart], namespace: int, episode_id: object, trace_id: object, span_id: object) -> str:
    """Return the id of the episode that a reward names by a trace; ``episode_id`` must be None then.

    >>> episode_of([EnginePart(None)], 1, None, "4bf92f3577b34da6a3ce929d0e0e4736", None)
    Traceback (most recent call last):
    cascade_memory.errors.InvalidInput: no episode can be found by trace_id= and span_id= here; pass its episode_id
    """
    if episode_id is not None or trace_id is None:
        raise InvalidInput("name the episode by episode_id=, or by trace_id= (and with it span_id=): one or the other")
    for part in overriding(parts, "episode_of"):
        return part.episode_of(namespace, trace_id, span_id)
    raise InvalidInput("no episode can be found by trace_id= and span_id= here; pass its episode_id")


def overriding(parts: Iterable[EnginePart], method: str) -> tuple[EnginePart, ...]:
    """Return the parts that override a method: the others need not be called at each reward.

    >>> class Learns(EnginePart):
    ...     def learn(self) -> None: ...
    >>> [type(part).__name__ for part in overriding([EnginePart(None), Learns(None)], "learn")]
    ['Learns']
    """
    return tuple(part for part in parts if getattr(type(part), method) is not getattr(EnginePart, method))
