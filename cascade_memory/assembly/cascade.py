"""``CascadeMemory``: the class that users create; it chooses the parts of the memory."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Collection, Mapping
from datetime import timedelta
from typing import Any, Literal

from cascade_memory.assembly import opened
from cascade_memory.assembly.inspecting import NEEDED, PACKAGE, REMEDY, Inspecting
from cascade_memory.assembly.misspelt import suggesting
from cascade_memory.assembly.settings import Settings
from cascade_memory.bandit.credit import Credit, CreditName
from cascade_memory.cycle.reuse import Template
from cascade_memory.domain.actions import check_actor
from cascade_memory.domain.case_text import CaseText
from cascade_memory.domain.episode import TRUSTED_SOURCES
from cascade_memory.domain.exposure import Exposure
from cascade_memory.domain.limits import Limits
from cascade_memory.domain.tickets import Tickets
from cascade_memory.domain.validation import check_k
from cascade_memory.domain.vigilance import Vigilance
from cascade_memory.domain.warning_options import WarningOptions, check_warnings
from cascade_memory.lazy import load
from cascade_memory.learning.ranker import Ranker
from cascade_memory.memory.memory import Memory
from cascade_memory.memory.passed_wrongly import saying
from cascade_memory.memory.verdict import RewardFn
from cascade_memory.ports.embedder import Embedder


class CascadeMemory(Memory, metaclass=saying(type(Memory))):
    """A case memory that learns from outcomes which past cases to reuse.

    >>> memory = CascadeMemory(embedder="hashing")          # in RAM; CascadeMemory("./memory") lives in a folder
    >>> recall = memory.recall("heat some cup and put it in cabinet")
    >>> recall.cases
    ()
    >>> case_id = memory.reward(recall.episode_id, 1.0, solution="take cup, microwave it, open cabinet, put cup")
    >>> memory.recall("heat a cup, put it into the cabinet").cases[0].solution
    'take cup, microwave it, open cabinet, put cup'
    """

    @suggesting
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
        actor: str | None = None,
        min_trust: str | None = None,
        redact: bool | Callable[[str], str] = True,
        tickets: bool | Tickets = False,
        reward_caps: Mapping[str, int | None] | None = None,
        vigilance: Vigilance | None = None,
        warnings: bool | WarningOptions = True,
    ) -> None:
        """Open a memory in a folder or a database, which is created if it does not exist, or in RAM if there is no path.

        Args:
            path: The folder, or the URL of a PostgreSQL database that many machines can share
                ("postgresql://user@host/database"). Handles on the same place in one process share one engine.
            embedder: "auto" is the embedder that the folder was written with, or all-MiniLM-L6-v2 for a new folder: from the
                extra "local", or from Chroma's cache. "chroma" lets Chroma download it. "hashing" compares words. Or any
                object with ``identity``, ``dimension`` and ``embed(texts)``.
            ranker: "light" (the default), "similarity" (learns nothing), "neural-linlogucb", "random", or a ``Ranker``.
            k: The largest number of cases that a recall returns; how many are worth showing is learned.
            namespace: A name that says whose cases these are; namespaces do not share cases.
            reward_fn: Judges the episode at the end of a ``with memory.episode(...)`` block in which it was not rewarded.
            learn: "background" learns on a thread of its own, "inline" within ``reward`` (reproducible), "off" not at all.
            abstain: Return no case if none is expected to help, and fewer than ``k`` if more do not help; False always shows
                ``k`` cases, as the paper does.
            holdout: The share of episodes that run without memory, such as 0.05, so that ``report()`` can measure how much the
                memory helps. The id of an episode decides whether it is held out.
            explore: The share of recalls, such as 0.1, that show one of the best four cases, or none, at random. The
                probabilities are stored, so that other policies can be evaluated on these recalls.
            shadow: A second ranker, named as in ``ranker``. It sees the same candidates and learns from the same outcomes, but
                its choice is never shown. ``report()`` compares the two.
            matcher: Decides whether two solutions agree: "exact" (after normalisation), a function ``(verified, stored)``, a
                ``SolutionMatcher``, or None if solutions cannot be compared.
            template: Turns recalled cases into text; see ``Recall.render``.
            retain_at: The smallest reward with which a solution is stored as a case.
            retain_from: The sources of rewards whose solutions are stored as cases.
            candidates: The number of nearest cases among which the ranker chooses (K in the paper).
            max_cases: The largest number of cases in a namespace. If there are more, the least useful ones are
                evicted: those that added little that was new, and were seldom right.
            ttl: Cases that were not verified within this time (seconds, or a timedelta) expire: they are no longer recalled,
                and are deleted later; see ``cases.expired`` and ``bring_back``.
            chroma: The address of a Chroma server ("http://host:8000") to use instead of a Chroma database in the folder. Any
                number of processes can then search it, and this process does not wait for its writes. A memory in PostgreSQL
                works without Chroma, and needs it only to search more than 20,000 cases of a namespace quickly.
            policy_scope: With "shared", the namespaces of a folder learn their ranking weights together (but share no cases,
                words or clusters), so that a new namespace does not begin with an untrained ranker.
            credit: Which of several shown cases a reward is attributed to: "matched", those that agree with the verified
                solution (or the first one, if none is known to agree); "all", all of them, as in the paper; "first", the best
                one; or a function of the outcome that returns positions.
            ranker_options: Options of a ranker that is named by a string, such as ``{"alpha": 0}``. An unknown option raises an
                error that lists the possible ones.
            case_text: Turns a task and its solution into the text that is embedded to find the case; by default the task
                alone. ``cascade_memory.with_tool_calls`` adds the tools that were called.
            deadline: The longest time that a recall may take (seconds, or a timedelta). After this time the recall fails open,
                without cases, no matter whether a model, a lock or a server hangs; only a stalled disk can delay it further.
                With a deadline, queries are embedded on a separate thread. The time for loading a model or a namespace does not
                count. None: no limit, and queries are embedded on the caller's thread.
            actor: Who uses this memory, unless ``acting`` names somebody else: stored with every recall, outcome and case.
                Only your program sets it; nothing that an agent writes can. Handles on the same place may have different
                actors.
            min_trust: The least trusted source whose cases are recalled ("judge": those of a judge or better), unless a call
                gives its own ``min_trust``; see ``cascade_memory.domain.trust``. None: all cases are recalled.
            redact: What becomes of secrets in whatever is stored. True: each becomes a placeholder, such as
                ``[secret:github-token#1]``, before anything is embedded, hashed, stored or logged. A function that
                takes and returns a text: once the placeholders are made, it is called with every text, to take out more, such
                as personal data. False: everything is stored as it is.
            tickets: With True, each recall has a signed ``ticket``, and rewards from users and agents, and all that come over
                MCP, are refused without it; a ``Tickets`` says how long tickets last, and which sources need one.
            reward_caps: How many rewards of one ``actor`` teach within an hour, by their source, such as {"user": 20}. A
                source that is not named keeps its cap: 100 for "user", and 1,000 each for "judge" and "agent" (and for all
                that comes over MCP). {"judge": None} lifts one. Rewards beyond a cap are stored but teach nothing.
                Rewards without an actor have no cap.
            vigilance: Protection against actors who lie; all measures are on by default. They need ``actor=`` with what you
                store and report, and cost nothing without it.
            warnings: Whether failed runs are kept as warnings, which ``check`` gives to an agent that is about to repeat a
                mistake; a ``WarningOptions`` says how many, and more.
        """
        exposure = Exposure(abstain=abstain, holdout=holdout, explore=explore)
        settings = Settings(
            embedder=embedder,
            ranker=ranker,
            shadow=shadow,
            matcher=matcher,
            learn=learn,
            candidates=check_k(candidates, "candidates"),
            chroma=chroma,
            policy_scope=policy_scope,
            limits=Limits.of(max_cases, ttl),
            credit=credit,
            ranker_options=copy.copy(ranker_options),
            redact=redact,
            vigilance=vigilance,
            warnings=check_warnings(warnings),
        )
        engine = opened.acquire(path, settings, self)
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
                actor=actor,
                min_trust=min_trust,
                tickets=tickets,
                reward_caps=reward_caps,
            )
        except BaseException:
            opened.release(engine, self)
            raise

    def inspect(self, *, edit: bool = False, actor: str | None = None, port: int = 0, rate: float = 1.0) -> Inspecting:
        """Open the inspector on this machine, beside a notebook or a script: pages that show and correct what is stored.

        Needs the extra "inspector". In a notebook, what it returns shows a link, and its ``close()`` stops the inspector.

        Args:
            edit: Allow corrections, verdicts and forgetting; otherwise it only shows.
            actor: The name under which corrections and verdicts are recorded; by default the one that ``acting`` was given,
                or else the user of this process.
            port: The port to listen on; 0: any free one.
            rate: The share of episodes about which people are asked for a verdict (the paper's revision rate).
        """
        self._open()
        actor = self._actor if actor is None and self._actor is not self._own_actor else check_actor(actor)
        made: Inspecting = load(PACKAGE, "inspect", {"inspect": "running"}, optional=NEEDED, remedy=REMEDY)(
            self, edit=edit, actor=actor, port=port, rate=rate
        )
        return made

    def _release(self) -> None:
        opened.release(self._engine, self)
