"""``with memory.episode(query) as episode``: recall at the beginning, reward at the end."""

from __future__ import annotations

import contextlib
from collections.abc import Collection
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from cascade_memory.domain.metadata import MetadataValue
from cascade_memory.domain.recall import Recall, RecalledCase, Rewardable
from cascade_memory.domain.trajectory import Solution, solution_text
from cascade_memory.looks.card import Card, Entry, Facts
from cascade_memory.memory.verdict import LOOKS_SOLVED
from cascade_memory.redaction.saying import warn

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from typing_extensions import Self


class NotesFailures(Protocol):
    """An object that counts failures which are hidden from the agent."""

    def note_failure(self, step: str, error: Exception) -> None:
        """Count one failure."""
        ...


class EndsEpisodes(Rewardable, Protocol):
    """What a session needs from the memory that made its recall."""

    @property
    def data(self) -> NotesFailures:
        """``memory.data``, which counts failures."""
        ...

    def end(self, episode_id: str, *, solution: Solution | None = None, status: str = "ok") -> float | None:
        """Say that the run is over."""
        ...

    async def aend(self, episode_id: str, *, solution: Solution | None = None, status: str = "ok") -> float | None:
        """Do what ``end`` does without blocking the event loop."""
        ...


class MakesRecall(NamedTuple):
    """Makes the recall of a session, at once or without blocking the event loop."""

    now: Callable[[], Recall]
    awaited: Callable[[], Awaitable[Recall]]


class Session:
    """One task. Set ``solution`` when there is one, and call ``reward(...)`` when the outcome is known.

    The recall is made when the block begins. ``async with`` makes it without blocking the event loop.

    If the block ends without a reward, the memory's ``reward_fn`` is asked. Without a verdict the episode stays open with its
    solution, and can be rewarded later by its id. If the block raises, the episode is censored unless ``reward_fn`` gives a
    verdict; the exception is not suppressed.
    """

    solution: Solution | None = None

    def __init__(self, memory: EndsEpisodes, makes: MakesRecall) -> None:
        self._memory, self._makes = memory, makes
        self._recall: Recall | None = None
        self._rewarded = False

    def __setattr__(self, name: str, value: object) -> None:
        """Refuse an attribute that a session does not have: with a misspelt one, the block would end without its solution.

        >>> from cascade_memory import CascadeMemory
        >>> with CascadeMemory(embedder="hashing").episode("cool some mug") as episode:
        ...     episode.answer = "fridge"
        Traceback (most recent call last):
        ...
        AttributeError: an episode has no 'answer' to set: set its solution
        """
        if not (name.startswith("_") or hasattr(type(self), name)):
            raise AttributeError(f"an episode has no {name!r} to set: set its solution")
        super().__setattr__(name, value)

    @property
    def recall(self) -> Recall:
        """What was recalled for the task; outside a ``with`` block, the recall is made when this is first read."""
        if self._recall is None:
            self._recall = self._makes.now()
        return self._recall

    @property
    def id(self) -> str:
        """The id of the episode, for reporting the reward."""
        return self.recall.episode_id

    @property
    def cases(self) -> tuple[RecalledCase, ...]:
        """The recalled cases."""
        return self.recall.cases

    def render(self) -> str:
        """Return the cases as fenced text."""
        return self.recall.render()

    def messages(self, *, tools: Collection[str] = ()) -> list[dict[str, Any]]:
        """Return the cases as earlier turns of a chat; see ``Recall.messages``."""
        return self.recall.messages(tools=tools)

    def __repr__(self) -> str:
        """Summarise in one short line."""
        if self._recall is None:
            return "Session(not begun)"
        return f"Session({self._recall!r}, {'no solution yet' if self.solution is None else 'with a solution'})"

    def _repr_html_(self) -> str:
        if self._recall is None:
            return Card("Session", "not begun: use it in a with block").html()
        answer = "none yet" if self.solution is None else solution_text(self.solution)
        facts = [("episode", self.id), ("solution", answer), ("cases shown", f"{len(self.cases):,}")]
        return Card(
            "Session", parts=[Entry(self._recall.query, ""), Facts(facts), *(case.entry() for case in self.cases)]
        ).html()

    def reward(
        self,
        value: float | bool,
        *,
        solution: Solution | None = None,
        source: str = "host",
        metadata: Mapping[str, MetadataValue] | None = None,
        confirms: str | None = None,
    ) -> None:
        """Report the outcome; see ``CascadeMemory.reward``."""
        self._memory.reward(
            self.id,
            value,
            solution=self.solution if solution is None else solution,
            source=source,
            metadata=metadata,
            confirms=confirms,
            ticket=self.recall.ticket if self._memory.episodes.needs_ticket(source) else None,
        )
        self._rewarded = True

    def __enter__(self) -> Self:
        """Begin the task."""
        _ = self.recall
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        """Settle or censor the episode, or leave it open. If the block raised, a failure of the memory is only counted."""
        if self._rewarded or self.recall.error is not None:
            return
        try:
            value = self._memory.end(self.id, solution=self.solution, status=_status(error))
        except Exception as failure:
            if error is None:
                raise
            self._memory.data.note_failure("reward", failure)
            with contextlib.suppress(Exception):  # such as a solution that cannot be stored
                self._memory.end(self.id, status="cancelled")
        else:
            self._warn_unsolved(value, error)

    async def __aenter__(self) -> Self:
        """Begin the task, without blocking the event loop."""
        if self._recall is None:
            self._recall = await self._makes.awaited()
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Do what the end of a synchronous block does, without blocking the event loop."""
        if self._rewarded or self.recall.error is not None:
            return
        try:
            value = await self._memory.aend(self.id, solution=self.solution, status=_status(error))
        except Exception as failure:
            if error is None:
                raise
            self._memory.data.note_failure("reward", failure)
            with contextlib.suppress(Exception):
                await self._memory.aend(self.id, status="cancelled")
        else:
            self._warn_unsolved(value, error)

    def _warn_unsolved(self, value: float | None, error: BaseException | None) -> None:
        """Warn if ``reward_fn`` failed an episode without a solution: a wrong 0 counts against the cases that were shown."""
        if value is not None and value <= LOOKS_SOLVED and self.solution is None and error is None:
            about = "set episode.solution before the block ends, or let reward_fn return None for an episode without one"
            warn(f"reward_fn gave {value:g} to an episode without a solution: {about}", UserWarning)


def _status(error: BaseException | None) -> str:
    # A run that was interrupted, cancelled or abandoned is no evidence about the case.
    return "ok" if error is None else "error" if isinstance(error, Exception) else "cancelled"
