"""A warning: a step that a failed run is blamed for, shown to an agent that is about to repeat it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from cascade_memory.domain.display import counted, moment, number
from cascade_memory.visible import shown_visibly

# Why a step is blamed: its tool call failed, or a person refused the call.
Blamed: TypeAlias = Literal["failed", "refused"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """What came of the decisions about one warning: counts over the episodes that have ended."""

    warned: int = 0
    warned_repeated: int = 0
    warned_reward: float = 0.0  # the sum of the rewards
    silent: int = 0
    silent_repeated: int = 0
    silent_reward: float = 0.0


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
