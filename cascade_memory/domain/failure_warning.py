"""A warning: a step that a failed run is blamed for, shown to an agent that is about to repeat it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cascade_memory.domain.display import counted, moment, number
from cascade_memory.visible import shown_visibly

# Why a step is blamed: its tool call failed, or a person refused the call.
Blamed: TypeAlias = Literal["failed", "refused"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Blame:
    """The step of a failed run that is blamed, in the words of the run."""

    why: Blamed
    tool: str | None  # None for an action that is free text
    action: str
    happened: str  # what was observed after it
    group: str  # equal for steps that are the same mistake: the id of their warning
    words: tuple[str, ...]  # the words that an action must have to count as the same mistake
    instead: str = ""  # what worked instead on the nearest solved task
    instead_case: str | None = None  # the id of the case that says so; None if a person has said so


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Failure:
    """A stored blame: one failed episode. All failures with the same group are one warning."""

    key: int
    episode_id: str
    blame: Blame
    query: str
    vector: NDArray[np.float32]  # of the query
    at: float
    source: str  # who judged the episode
    trust: int
    actor: str | None = None  # whose run it was, as with the cases of an episode
    channel: str | None = None
    reporter: str | None = None  # who judged it, if that was somebody else than a person


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One decision whether to warn: what chance drew, and what came of it."""

    episode_id: str
    warning: str
    warned: bool
    propensity: float  # the probability with which it warned
    at: float
    call: str | None = None  # the id of the tool call; the same call gets the same answer again
    repeated: bool | None = None  # whether the mistake came again in this episode; None until that is known
    reward: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """What came of the decisions about one warning: counts over the episodes that have ended."""

    warned: int = 0
    warned_repeated: int = 0
    warned_reward: float = 0.0  # the sum of the rewards
    silent: int = 0
    silent_repeated: int = 0
    silent_reward: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class WarningDecision:
    """What a person, or a model that writes advice, has decided about a warning."""

    retired: bool | None = None  # True: never shown; False: shown whatever its record says; None: its record decides
    advice: str | None = None  # shown instead of ``instead``
    by_model: bool = False  # the advice was written by ``distil``, and goes with any failure that it was made from


@shown_visibly
@dataclass(frozen=True, slots=True, kw_only=True)
class FailureWarning:
    """A warning as ``memory.warnings.all()`` returns it.

    ``times`` says how often runs failed at this step. ``source`` is who judged that they failed (the most trusted source).
    ``state`` is "active", "retired" (the warning's record says that it does not help, or a person has retired it), or "held"
    (it comes from actors who are not trusted yet, or are in quarantine). ``by_hand`` says that a person has retired or restored
    the warning, so that its record does not count.
    """

    id: str
    namespace: str
    query: str
    action: str
    happened: str
    tool: str | None = None
    instead: str = ""
    advice: str | None = None
    why: Blamed = "failed"
    times: int = 1
    source: str = "host"
    actors: tuple[str, ...] = ()
    first_at: float = 0.0
    last_at: float = 0.0
    state: str = "active"
    by_hand: bool = False
    tally: Tally = Tally()

    def rows(self) -> list[tuple[str, str]]:
        """List the rows of the table that shows the warning, each with a name and a value."""
        tally, who = self.tally, ", ".join(self.actors)
        return [
            ("state", self.state + self._why_so()),
            ("task", self.query),
            ("done", self.action),
            ("happened", self.happened),
            *([("instead", self.instead)] if self.instead else []),
            *([("advice", self.advice)] if self.advice else []),
            ("failed", f"{counted(self.times, 'time')}, last on {moment(self.last_at)}, on the word of: {self.source}"),
            *([("runs of", who)] if who else []),
            ("warned", _came(tally.warned, tally.warned_repeated, tally.warned_reward)),
            ("silent", _came(tally.silent, tally.silent_repeated, tally.silent_reward)),
        ]

    def _why_so(self) -> str:
        """Say who decided on the state, as far as that is not clear from the state itself."""
        if self.by_hand and self.state != "held":
            return ", as a person decided"
        return ", by its record" if self.state == "retired" else ""

    def _repr_html_(self) -> str:
        from cascade_memory.looks.card import Card, Facts

        return Card("Warning", parts=[Facts([("id", self.id), *self.rows()])]).html()


@shown_visibly
@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """What ``memory.warnings.check`` answers if an action is a known mistake: a warning, and the text for the model."""

    warning: FailureWarning
    episode_id: str
    text: str  # fenced: what stands in it is data
    locked: bool = False  # the action must not be done, even if the agent insists

    def __str__(self) -> str:
        """Return the text for the model."""
        return self.text

    def _repr_html_(self) -> str:
        from cascade_memory.looks.card import Card, Facts

        said = "the action must not be done" if self.locked else "the agent may do it anyway"
        facts = [("episode", self.episode_id), ("warning", self.warning.id), *self.warning.rows(), ("text", self.text)]
        return Card("Advice", said, [Facts(facts)]).html()


def _came(count: int, repeated: int, reward: float) -> str:
    """Describe how episodes ended: those in which an agent was warned, or those in which it was not."""
    if not count:
        return "in no episode that has ended"
    return f"in {counted(count, 'episode')}, {repeated:,} repeated it, mean reward {number(reward / count)}"
