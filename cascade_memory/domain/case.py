"""Cases: a stored task, its verified solution, what is known about them, and the text that is embedded to find a case."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from cascade_memory.domain.display import by_whom, counted
from cascade_memory.domain.episode import fingerprint
from cascade_memory.domain.metadata import MetadataValue
from cascade_memory.domain.trajectory import Solution, Trajectory, solution_text
from cascade_memory.domain.trust import named
from cascade_memory.domain.validation import MAX_QUERY_CHARS, check_word
from cascade_memory.visible import as_moment, shortened, shown_visibly

WHY = ("expired", "evicted")  # why a case was set aside
_MOST_CALLS = 2_000  # characters of tool calls in the text of a case: embedding models ignore what comes after that


def check_why(why: object) -> str:
    """Check the reason for which cases were set aside.

    >>> check_why("evicted")
    'evicted'
    """
    return check_word(why, WHY, "why")


@shown_visibly
@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One stored case.

    ``copies`` counts how often this very (query, solution) pair was verified; ``shown`` and ``succeeded`` how often it was
    reused and with what total reward.
    """

    id: str
    namespace: str
    query: str
    solution: Solution
    metadata: Mapping[str, MetadataValue] = field(default_factory=dict[str, MetadataValue])
    source: str = "host"
    episode_id: str | None = None
    created_at: float = 0.0
    copies: int = 1
    shown: int = 0
    succeeded: float = 0.0
    key: int = 0  # the ledger's row number: ascending with age, never reused
    pinned: bool = False  # neither evicted nor expired
    hidden: bool = False  # never shown
    actor: str | None = None  # who made it first, as the host said
    channel: str | None = None  # the door through which it came first
    trust: int = 3  # the level of its source, or of the least trusted case that was shown when it was made (``domain.trust``)

    @property
    def fingerprint(self) -> str:
        """A short code for the case's content: it changes with query, solution and metadata, and when the case is hidden.

        ``memory.review.correct(case.id, solution, seen=case.fingerprint)`` corrects exactly the case that was seen.

        >>> import dataclasses
        >>> seen = Case(id="c", namespace="default", query="6 * 7", solution="43")
        >>> seen.fingerprint == dataclasses.replace(seen, hidden=True).fingerprint
        False
        """
        return fingerprint(self.id, self.query, self.solution, None, self.metadata, "hidden" if self.hidden else None)

    def _repr_html_(self) -> str:
        from cascade_memory.looks.card import Card, Entry, Facts

        facts = [
            ("id", self.id),
            ("namespace", self.namespace),
            ("source", self.source if self.episode_id is None else f"{self.source}, episode {self.episode_id}"),
            ("made by", by_whom(self.actor, self.channel)),
            ("stored", as_moment("created_at", self.created_at) or "–"),
            ("trust", named(self.trust)),
            ("verified", counted(self.copies, "time")),
            ("shown", f"{counted(self.shown, 'time')}, with a total reward of {self.succeeded:g}"),
            *((name, str(value)) for name, value in self.metadata.items()),
        ]
        return Card("Case", parts=[Entry(self.query, solution_text(self.solution)), Facts(facts)]).html()


@shown_visibly
@dataclass(frozen=True, slots=True, kw_only=True)
class ExpiredCase:
    """A case that was set aside and can still be brought back.

    Either it was not verified within the memory's ``ttl`` (``why`` is "expired"), or it had to make room (``why`` is
    "evicted").
    """

    id: str
    namespace: str
    query: str
    solution: Solution
    expired_at: float  # by the wall clock
    seconds_left: float  # running time of the memory until the case is deleted for good
    why: str = "expired"

    def _repr_html_(self) -> str:
        from cascade_memory.looks.card import Card, Entry, Facts

        facts = [
            ("id", self.id),
            ("namespace", self.namespace),
            ("set aside", as_moment("expired_at", self.expired_at) or "–"),
            ("deleted for good", f"in {self.seconds_left:,.0f} s"),
        ]
        return Card(
            f"{self.why.capitalize()} case", parts=[Entry(self.query, solution_text(self.solution)), Facts(facts)]
        ).html()


# Makes of a task and its solution the text that is embedded to find the case.
CaseText: TypeAlias = "Callable[[str, Solution], str]"


def task_alone(query: str, solution: Solution) -> str:  # noqa: ARG001 - the signature of a CaseText
    """Return the task alone: the default."""
    return query


def with_tool_calls(query: str, solution: Solution) -> str:
    r"""Return the task and a line with the tool calls that solved it, as the paper does for deep search.

    >>> from cascade_memory import CascadeMemory, Retention, Step
    >>> memory = CascadeMemory(embedder="hashing", retention=Retention(case_text=with_tool_calls))
    >>> recall = memory.recall("Where was the director of Jaws born?")
    >>> steps = [Step(tool="search", arguments={"query": "Jaws"}), Step(tool="search", arguments={"query": "Spielberg"})]
    >>> case = memory.cases.get(memory.reward(recall.episode_id, 1.0, solution=steps))
    >>> print(case.query)
    Where was the director of Jaws born?
    Tool calls: search({"query": "Jaws"}); search({"query": "Spielberg"})
    """
    calls = [step.action for step in solution.steps if step.tool] if isinstance(solution, Trajectory) else []
    return f"{query}\nTool calls: {shortened('; '.join(calls), _MOST_CALLS)}"[:MAX_QUERY_CHARS] if calls else query
