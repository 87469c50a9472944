"""A warning: a step that a failed run is blamed for, shown to an agent that is about to repeat it; and how a memory warns."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, cast

from cascade_memory.domain.display import counted, moment, number, quoted
from cascade_memory.domain.validation import check_callable, check_k
from cascade_memory.errors import InvalidInput
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
