"""What is asked about warnings, and what the ledger keeps about them: failures, checks, and what was decided."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from cascade_memory.domain.failure_warning import Blamed
from cascade_memory.domain.trajectory import Step

# Returns the steps of a run so far; None if they are not known.
StepsSoFar: TypeAlias = Callable[[], Sequence[Step] | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckRequest:
    """The question whether an action that is about to be done is a known mistake."""

    episode_id: str
    namespace: str
    step: Step  # without an observation
    done: StepsSoFar | None = None
    call_id: str | None = None
    asker: str | None = None  # who uses the memory
    min_trust: int = 0  # the level that a failure must have
    deadline: float | None = None  # in seconds
    held: bool = True  # the action waits for the answer; over MCP it does not: the agent asks, and then acts elsewhere


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
class WarningDecision:
    """What a person, or a model that writes advice, has decided about a warning."""

    retired: bool | None = None  # True: never shown; False: shown whatever its record says; None: its record decides
    advice: str | None = None  # shown instead of ``instead``
    by_model: bool = False  # the advice was written by ``distil``, and goes with any failure that it was made from
