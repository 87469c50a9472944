"""What the benchmark asks of another memory: two methods. ``Played`` gives it the rest that a run needs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from cascade_memory import RecalledCase
from cascade_memory.domain import Solution
from cascade_memory.errors import InvalidInput
from cascade_memory.ports import Embedder

Shown: TypeAlias = Sequence[tuple[str, str]]  # (task, solution) of each case, the best first


class Rival(Protocol):
    """A memory of tasks: it shows solved tasks for a new one, and hears how that one ended.

    A method ``correct`` with the arguments of ``reward`` is optional: it is called if an earlier reward was wrong. Without it,
    the right reward is told as one more.
    """

    def recall(self, task: str) -> Shown:
        """Return the cases to show for a task, the best first."""
        ...

    def reward(self, task: str, shown: Shown, solution: str, reward: float) -> None:
        """Learn that a task got this reward (0 to 1) with this solution, after these cases were shown."""
        ...


MakeRival: TypeAlias = Callable[[Embedder], Rival]


@dataclass(frozen=True, slots=True)
class _Recalled:
    cases: Sequence[RecalledCase]
    episode_id: str


@dataclass(frozen=True, slots=True)
class _Counts:
    cases: int


@dataclass(frozen=True, slots=True)
class _Sound:
    """The state of a memory that does not fail open: its errors end the run."""

    failures: Any = ()
    last_error: None = None


class Played:
    """Plays a ``Rival`` where the benchmark plays a memory of this library.

    >>> class Newest:
    ...     def __init__(self) -> None:
    ...         self.cases: list[tuple[str, str]] = []
    ...
    ...     def recall(self, task: str) -> Shown:
    ...         return self.cases[-1:]
    ...
    ...     def reward(self, task: str, shown: Shown, solution: str, reward: float) -> None:
    ...         if reward == 1.0:
    ...             self.cases.append((task, solution))
    >>> played = Played(Newest())
    >>> played.reward(played.recall("a cup").episode_id, 1.0, solution="a shelf")
    >>> played.recall("a mug").cases[0].solution
    'a shelf'
    """

    def __init__(self, rival: Rival) -> None:
        self._rival = rival
        self._open: dict[str, tuple[str, Shown]] = {}
        self._rewarded: dict[str, bool] = {}  # whether the last reward of an episode said that it was a success
        self._recalls = self._kept = 0

    def recall(self, query: str) -> _Recalled:
        """Ask the rival which cases to show."""
        shown = tuple(self._rival.recall(query))
        self._recalls += 1
        episode = str(self._recalls)
        self._open[episode] = (query, shown)
        return _Recalled([_case(f"{episode}-{place}", *pair) for place, pair in enumerate(shown)], episode)

    def reward(
        self,
        episode_id: str,
        reward: float,
        *,
        solution: Solution | None = None,
        metadata: object = None,
        overwrite: bool = False,
    ) -> None:
        """Tell the rival how the task ended; a later reward for the same task is a correction of the first."""
        del metadata, overwrite
        query, shown = self._open[episode_id]
        before, success = self._rewarded.get(episode_id), float(reward) == 1.0
        if before is success:
            return
        self._rewarded[episode_id] = success
        self._kept += success - bool(before)
        tell = self._rival.reward if before is None else getattr(self._rival, "correct", self._rival.reward)
        tell(query, shown, "" if solution is None else str(solution), float(reward))

    def add(self, pairs: Iterable[tuple[str, str]], *, progress: bool = False) -> None:
        """Give the rival solved tasks, as if each had just succeeded without a case."""
        del progress
        for task, solution in pairs:
            self._kept += 1
            self._rival.reward(task, (), solution, 1.0)

    def stats(self) -> _Counts:
        """Return how many successes it was told."""
        return _Counts(self._kept)

    def health(self) -> _Sound:
        """Return that nothing failed, since an error of a rival ends the run."""
        return _Sound()

    def close(self) -> None:
        """Close the rival if it can be closed."""
        close = getattr(self._rival, "close", None)
        if close is not None:
            close()


def _case(id: str, task: str, solution: str) -> RecalledCase:
    return RecalledCase(
        id=id, query=task, solution=solution, metadata={}, similarity=0.0, utility=0.0, uncertainty=0.0, score=0.0
    )


def played(make: MakeRival, embedder: Embedder) -> Played:
    """Make a rival and wrap it; refuse what lacks one of the two methods."""
    rival = make(embedder)
    if lacking := [name for name in ("recall", "reward") if not callable(getattr(rival, name, None))]:
        raise InvalidInput(f"{type(rival).__name__} is no memory: it has no {' and no '.join(lacking)}")
    return Played(rival)
