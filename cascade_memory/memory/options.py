"""Options of a memory that belong together: how cases are chosen, which are kept, and whose word counts.

A misspelt option is refused with the right name, which Python's own error does not tell.
"""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, fields
from datetime import timedelta
from typing import Any, Concatenate, Literal, ParamSpec, TypeVar

from cascade_memory.bandit.credit import Credit, CreditName
from cascade_memory.cycle.select import Exposure
from cascade_memory.domain.case import CaseText
from cascade_memory.domain.display import quoted
from cascade_memory.domain.episode import TRUSTED_SOURCES, check_sources
from cascade_memory.domain.limits import Limits
from cascade_memory.domain.tickets import Tickets, check_tickets
from cascade_memory.domain.trust import Vigilance, check_caps, check_min_trust
from cascade_memory.domain.validation import check_callable, check_k, check_reward, check_word
from cascade_memory.errors import InvalidInput
from cascade_memory.learning.ranker import Ranker

_Group = TypeVar("_Group")
_Given = ParamSpec("_Given")
_Memory = TypeVar("_Memory")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """How cases are chosen, and how this is learned and measured.

    Args:
        abstain: Return no case if none is expected to help, and fewer than ``k`` if more do not help; False always shows
            ``k`` cases, as the paper does.
        holdout: The share of episodes that run without memory, such as 0.05, so that ``report()`` can measure how much the
            memory helps. The id of an episode decides whether it is held out.
        explore: The share of recalls, such as 0.1, that show one of the best four cases, or none, at random. The
            probabilities are stored, so that other policies can be evaluated on these recalls.
        shadow: A second ranker, named as in ``ranker``. It sees the same candidates and learns from the same outcomes, but
            its choice is never shown. ``report()`` compares the two.
        candidates: The number of nearest cases among which the ranker chooses (K in the paper).
        matcher: Decides whether two solutions agree: "exact" (after normalisation), a function ``(verified, stored)``, a
            ``SolutionMatcher``, or None if solutions cannot be compared.
        credit: Which of several shown cases a reward is attributed to: "matched", those that agree with the verified
            solution (or the first one, if none is known to agree); "all", all of them, as in the paper; "first", the best
            one; or a function of the outcome that returns positions.
        policy_scope: With "shared", the namespaces of a folder learn their ranking weights together (but share no cases,
            words or clusters), so that a new namespace does not begin with an untrained ranker.
        ranker_options: Options of a ranker that is named by a string, such as ``{"alpha": 0}``. An unknown option raises an
            error that lists the possible ones.

    >>> from cascade_memory import CascadeMemory
    >>> memory = CascadeMemory(embedder="hashing", ranking=Ranking(abstain=False))
    >>> case_id = memory.add("heat some cup", "take cup, microwave it")
    >>> [case.solution for case in memory.recall("a task of another kind").cases]
    ['take cup, microwave it']
    """

    abstain: bool = True
    holdout: float = 0.0
    explore: float = 0.0
    shadow: str | Ranker | None = None
    candidates: int = 32
    matcher: Any = "exact"
    credit: CreditName | Credit = "matched"
    policy_scope: Literal["namespace", "shared"] = "namespace"
    ranker_options: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        """Refuse values that are wrong whatever the ranker is."""
        self.exposure()
        check_k(self.candidates, "candidates")
        check_word(self.policy_scope, ("namespace", "shared"), "policy_scope")

    def exposure(self) -> Exposure:
        """Return the part that decides when a recall shows nothing or a random case."""
        return Exposure(abstain=self.abstain, holdout=self.holdout, explore=self.explore)


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """Which solutions become cases, by which text a case is found, and how many cases stay for how long.

    Args:
        retain_at: The smallest reward with which a solution is stored as a case.
        retain_from: The sources of rewards whose solutions are stored as cases.
        case_text: Turns a task and its solution into the text that is embedded to find the case; by default the task
            alone. ``cascade_memory.with_tool_calls`` adds the tools that were called.
        max_cases: The largest number of cases in a namespace. If there are more, the least useful ones are
            evicted: those that added little that was new, and were seldom right.
        ttl: Cases that were not verified within this time (seconds, or a timedelta) expire: they are no longer recalled,
            and are deleted later; see ``cases.expired`` and ``bring_back``.

    >>> from datetime import timedelta
    >>> Retention(retain_at=0.5, ttl=timedelta(days=90)).limits()
    Limits(max_cases=None, ttl=7776000.0)
    """

    retain_at: float = 1.0
    retain_from: Collection[str] = TRUSTED_SOURCES
    case_text: CaseText | None = None
    max_cases: int | None = None
    ttl: float | timedelta | None = None

    def __post_init__(self) -> None:
        """Refuse wrong values."""
        check_reward(self.retain_at, "retain_at")
        check_sources(self.retain_from)
        check_callable(self.case_text, "case_text")
        self.limits()

    def limits(self) -> Limits | None:
        """Return how much a namespace may hold; None: there is no limit."""
        return Limits.of(self.max_cases, self.ttl)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trust:
    """Whose cases are shown, and whose rewards teach.

    Args:
        min_trust: The least trusted source whose cases are recalled ("judge": those of a judge or better), unless a call
            gives its own ``min_trust``; see ``cascade_memory.domain.trust``. None: all cases are recalled.
        tickets: With True, each recall has a signed ``ticket``, and rewards from users and agents, and all that come over
            MCP, are refused without it; a ``Tickets`` says how long tickets last, and which sources need one.
        reward_caps: How many rewards of one ``actor`` teach within an hour, by their source, such as {"user": 20}. A
            source that is not named keeps its cap: 100 for "user", and 1,000 each for "judge" and "agent" (and for all
            that comes over MCP). {"judge": None} lifts one. Rewards beyond a cap are stored but teach nothing.
            Rewards without an actor have no cap.
        vigilance: Protection against actors who lie; all measures are on by default. They need ``acting(actor=...)`` for
            what you store and report, and cost nothing without it.

    >>> from cascade_memory import CascadeMemory
    >>> memory = CascadeMemory(embedder="hashing", trust=Trust(tickets=True))
    >>> memory.recall("heat some cup").ticket is not None
    True
    """

    min_trust: str | None = None
    tickets: bool | Tickets = False
    reward_caps: Mapping[str, int | None] | None = None
    vigilance: Vigilance | None = None

    def __post_init__(self) -> None:
        """Refuse wrong values."""
        check_min_trust(self.min_trust)
        check_tickets(self.tickets)
        check_caps(self.reward_caps)
        if not isinstance(self.vigilance, (Vigilance, type(None))):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidInput(f"vigilance must be None or a Vigilance, not {quoted(self.vigilance)}")


_GROUPS = {"ranking": Ranking, "retention": Retention, "trust": Trust}


def check_group(given: object, group: type[_Group], name: str) -> _Group:
    """Return a group of options; refuse anything else with the right call.

    >>> check_group({"abstain": False}, Ranking, "ranking")
    Traceback (most recent call last):
    cascade_memory.errors.InvalidInput: ranking must be a Ranking, such as Ranking(abstain=...), not a dict
    """
    if isinstance(given, group):
        return given
    first = next(iter(group.__annotations__))
    raise InvalidInput(f"{name} must be a {group.__name__}, such as {group.__name__}({first}=...), not {quoted(given)}")


def check_names(options: Iterable[str], known: Iterable[str]) -> None:
    """Raise a ``TypeError`` for the first unknown option; it names the most similar known one, or lists all if none is similar.

    An option of a group, such as ``Ranking``, is named with the call that takes it.

    >>> check_names(["embeder"], ["path", "embedder"])
    Traceback (most recent call last):
    TypeError: CascadeMemory takes no option 'embeder'; did you mean 'embedder'?
    >>> check_names(["holdout"], ["path", "embedder"])
    Traceback (most recent call last):
    TypeError: CascadeMemory takes no option 'holdout'; did you mean ranking=Ranking(holdout=...)?
    """
    known = list(known)
    calls = {name: repr(name) for name in known} | {
        field.name: f"{option}={group.__name__}({field.name}=...)"
        for option, group in _GROUPS.items()
        for field in fields(group)
    }
    for name in options:
        if name == "actor":
            raise TypeError("CascadeMemory takes no option 'actor'; write CascadeMemory(...).acting(actor=...)")
        if name not in known:
            close = difflib.get_close_matches(name, calls, n=1)
            hint = f"; did you mean {calls[close[0]]}?" if close else f"; there are {', '.join(known)}"
            raise TypeError(f"CascadeMemory takes no option {name!r}{hint}")


def suggesting(init: Callable[Concatenate[_Memory, _Given], None]) -> Callable[Concatenate[_Memory, _Given], None]:
    """Let a constructor check the names of its options first; a decorator."""
    known = [name for name in inspect.signature(init).parameters if name != "self"]

    @functools.wraps(init)
    def checked(self: _Memory, /, *args: _Given.args, **options: _Given.kwargs) -> None:
        check_names(options, known)
        init(self, *args, **options)

    return checked
