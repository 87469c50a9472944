"""``CascadeMemory``: a memory with its parts picked."""

from __future__ import annotations

import copy
import os
from collections.abc import Collection, Mapping
from datetime import timedelta
from typing import Any, Literal

from cascade_memory.assembly import folder
from cascade_memory.bandit.credit import Credit, CreditName
from cascade_memory.cycle.reuse import Template
from cascade_memory.domain.case_text import CaseText
from cascade_memory.domain.episode import TRUSTED_SOURCES
from cascade_memory.domain.exposure import Exposure
from cascade_memory.domain.limits import Limits
from cascade_memory.learning.ranker import Ranker
from cascade_memory.memory.memory import Memory
from cascade_memory.memory.verdict import RewardFn
from cascade_memory.ports.embedder import Embedder


class CascadeMemory(Memory):
    """A case memory that learns from outcomes which past cases to reuse.

    >>> memory = CascadeMemory(embedder="hashing")          # in RAM; CascadeMemory("./memory") lives in a folder
    >>> recall = memory.recall("heat some cup and put it in cabinet")
    >>> recall.cases
    ()
    >>> case_id = memory.reward(recall.episode_id, 1.0, solution="take cup, microwave it, open cabinet, put cup")
    >>> memory.recall("heat a cup, put it into the cabinet").cases[0].solution
    'take cup, microwave it, open cabinet, put cup'
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        embedder: str | Embedder = "auto",
        ranker: str | Ranker = "auto",
        k: int = 1,
        namespace: str = "default",
        reward_fn: RewardFn | None = None,
        learn: Literal["inline", "background", "off"] = "background",
        abstain: bool = True,
        holdout: float = 0.0,
        explore: float = 0.0,
        shadow: str | Ranker | None = None,
        matcher: Any = "exact",
        template: Template | None = None,
        retain_at: float = 1.0,
        retain_from: Collection[str] = TRUSTED_SOURCES,
        candidates: int = 32,
        max_cases: int | None = None,
        ttl: float | timedelta | None = None,
        chroma: str | None = None,
        policy_scope: Literal["namespace", "shared"] = "namespace",
        credit: CreditName | Credit = "matched",
        ranker_options: Mapping[str, Any] | None = None,
        case_text: CaseText | None = None,
        deadline: float | timedelta | None = 2.0,
    ) -> None:
        """Open a folder (made if it is not there), or a memory in RAM without one.

        Args:
            path: The folder. Opening the same one twice in a process gives the same engine.
            embedder: "auto" is what wrote the folder, else all-MiniLM-L6-v2 from the extra "local"; or any object with
                ``identity``, ``dimension`` and ``embed(texts)``.
            ranker: "light" (the default), "similarity" (learns nothing), "neural-linlogucb", "random", or a ``Ranker``.
            k: How many cases a recall returns at most.
            namespace: Whose cases these are; namespaces share nothing.
            reward_fn: Asked at the end of a ``with memory.episode(...)`` block that was not rewarded inside.
            learn: On a thread of its own, within ``reward`` (reproducible), or not at all.
            abstain: Return no case when none is expected to help; False restores the paper's rule.
            holdout: The share of episodes that run without memory, drawn by their ids, so that ``report()`` can say what memory
                is worth; 0.05, say.
            explore: The share of recalls in which chance decides between the best four cases and none, with its probabilities
                written down, so that another policy can be judged by what happened; 0.1, say.
            shadow: A second ranker, named as in ``ranker``: it sees the same candidates, learns from the same outcomes, and is
                never followed. ``report()`` compares the two.
            matcher: When do two solutions agree? "exact" (after normalisation), a function ``(verified, stored)``, a
                ``SolutionMatcher``, or None where solutions cannot be compared.
            template: Turns recalled cases into text; see ``Recall.render``.
            retain_at: The reward from which on a solution becomes a case.
            retain_from: Whose rewards may do that.
            candidates: How many nearest cases the ranker chooses among (K in the paper).
            max_cases: How many cases a namespace may hold; what taught least and was right least goes first.
            ttl: Cases that were not verified for so long (seconds, or a timedelta) are not recalled any more, and go; see
                ``expired`` and ``bring_back``.
            chroma: The address of a Chroma server ("http://host:8000") that takes the place of the folder's own Chroma: any
                number of processes can then search it, and its writes do not hold this one up.
            policy_scope: "shared" lets all namespaces of a folder learn together what ranking is about (seven weights, never
                cases, words or clusters), so that a new one does not begin at zero.
            credit: Which of several shown cases a reward speaks of: "matched" are those that agree with the verified solution
                (the first one where nothing tells), "all" is the paper's rule, "first" the best one, or a function of the
                outcome that returns positions.
            ranker_options: For a ranker that is named by a string, such as ``{"alpha": 0}``; a wrong one is refused with a list
                of those it takes.
            case_text: Turns a task and its solution into the text under which the case is kept and found; the task alone if
                not given. ``cascade_memory.with_tool_calls`` adds the tools that were called.
            deadline: How long a recall may take (seconds, or a timedelta), whatever hangs: then it fails open, without cases.
                The embedder is asked on a thread of the memory's own. Loading a model or a namespace for the first time does
                not count. None: as long as it takes, on the caller's thread.
        """
        exposure = Exposure(abstain=abstain, holdout=holdout, explore=explore)
        settings = folder.Settings(
            embedder=embedder,
            ranker=ranker,
            shadow=shadow,
            matcher=matcher,
            learn=learn,
            candidates=candidates,
            chroma=chroma,
            policy_scope=policy_scope,
            limits=Limits.of(max_cases, ttl),
            credit=credit,
            ranker_options=copy.copy(ranker_options),
        )
        engine = folder.acquire(path, settings, self)
        try:
            super().__init__(
                engine,
                k=k,
                namespace=namespace,
                reward_fn=reward_fn,
                exposure=exposure,
                template=template,
                retain_at=retain_at,
                retain_from=retain_from,
                case_text=case_text,
                deadline=deadline,
            )
        except BaseException:
            folder.release(engine, self)
            raise

    def _release(self) -> None:
        folder.release(self._engine, self)
