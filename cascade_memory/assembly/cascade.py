"""``CascadeMemory``: the class that users create; it chooses the parts of the memory.

The inspector, which it can open, is in a higher layer: ``Inspecting`` describes it without importing it.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Literal, Protocol

from cascade_memory.assembly import opened
from cascade_memory.assembly.settings import Settings
from cascade_memory.cycle.reuse import Template
from cascade_memory.domain.actions import check_actor
from cascade_memory.domain.failure_warning import WarningOptions, check_warnings
from cascade_memory.lazy import load
from cascade_memory.learning.ranker import Ranker
from cascade_memory.memory.explaining import saying
from cascade_memory.memory.memory import Memory
from cascade_memory.memory.options import Ranking, Retention, Trust, check_group, suggesting
from cascade_memory.memory.verdict import RewardFn
from cascade_memory.ports.encoders import Embedder

if TYPE_CHECKING:
    from typing_extensions import Self

_INSPECTOR = "cascade_memory.inspector"
_NEEDED = ("starlette", "jinja2", "uvicorn")
_REMEDY = 'which the extra "inspector" installs: pip install "cascade-memory[inspector]"'


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
        template: Template | None = None,
        chroma: str | None = None,
        deadline: float | timedelta | None = 2.0,
        redact: bool | Callable[[str], str] = True,
        warnings: bool | WarningOptions = True,
        ranking: Ranking = Ranking(),
        retention: Retention = Retention(),
        trust: Trust = Trust(),
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
            template: Turns recalled cases into text; see ``Recall.render``.
            chroma: The address of a Chroma server ("http://host:8000") to use instead of a Chroma database in the folder. Any
                number of processes can then search it, and this process does not wait for its writes. A memory in PostgreSQL
                works without Chroma, and needs it only to search more than 20,000 cases of a namespace quickly.
            deadline: The longest time that a recall may take (seconds, or a timedelta). After this time the recall fails open,
                without cases, no matter whether a model, a lock or a server hangs; only a stalled disk can delay it further.
                With a deadline, queries are embedded on a separate thread. The time for loading a model or a namespace does not
                count. None: no limit, and queries are embedded on the caller's thread.
            redact: What becomes of secrets in whatever is stored. True: each becomes a placeholder, such as
                ``[secret:github-token#1]``, before anything is embedded, hashed, stored or logged. A function that
                takes and returns a text: once the placeholders are made, it is called with every text, to take out more, such
                as personal data. False: everything is stored as it is.
            warnings: Whether failed runs are kept as warnings, which ``check`` gives to an agent that is about to repeat a
                mistake; a ``WarningOptions`` says how many, and more.
            ranking: How cases are chosen, and how this is learned and measured: ``Ranking(abstain=, holdout=, explore=,
                shadow=, candidates=, matcher=, credit=, policy_scope=, ranker_options=)``.
            retention: Which solutions become cases, and how long they stay: ``Retention(retain_at=, retain_from=, case_text=,
                max_cases=, ttl=)``.
            trust: Whose cases are shown, and whose rewards teach: ``Trust(min_trust=, tickets=, reward_caps=, vigilance=)``.
        """
        ranking, retention = check_group(ranking, Ranking, "ranking"), check_group(retention, Retention, "retention")
        trust = check_group(trust, Trust, "trust")
        settings = Settings(
            embedder=embedder,
            ranker=ranker,
            shadow=ranking.shadow,
            matcher=ranking.matcher,
            learn=learn,
            candidates=ranking.candidates,
            chroma=chroma,
            policy_scope=ranking.policy_scope,
            limits=retention.limits(),
            credit=ranking.credit,
            ranker_options=copy.copy(ranking.ranker_options),
            redact=redact,
            vigilance=trust.vigilance,
            warnings=check_warnings(warnings),
        )
        engine = opened.acquire(path, settings, self)
        try:
            super().__init__(
                engine,
                k=k,
                namespace=namespace,
                reward_fn=reward_fn,
                exposure=ranking.exposure(),
                template=template,
                retention=retention,
                trust=trust,
                deadline=deadline,
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
        actor = self._actor if actor is None else check_actor(actor)
        made: Inspecting = load(_INSPECTOR, "inspect", {"inspect": "running"}, optional=_NEEDED, remedy=_REMEDY)(
            self, edit=edit, actor=actor, port=port, rate=rate
        )
        return made

    def _release(self) -> None:
        opened.release(self._engine, self)


class Inspecting(Protocol):
    """A running inspector; a notebook shows a link to it."""

    @property
    def address(self) -> str:
        """The address at which the inspector listens."""
        ...

    @property
    def link(self) -> str:
        """A new link that lets one browser in, once."""
        ...

    def close(self) -> None:
        """Stop the inspector; the memory stays open."""
        ...

    def __enter__(self) -> Self:
        """Use the inspector in a ``with`` block that stops it at the end."""
        ...

    def __exit__(self, *_: object) -> None:
        """Stop the inspector."""
        ...
