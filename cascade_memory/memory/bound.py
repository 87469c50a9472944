"""What a memory and its nouns have in common: the engine, the user's defaults, and who acts where."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from cascade_memory.cycle.reuse import Template, render
from cascade_memory.domain.actions import check_actor
from cascade_memory.domain.case import Case
from cascade_memory.domain.case_text import CaseText, task_alone
from cascade_memory.domain.episode import Episode, check_sources
from cascade_memory.domain.exposure import Exposure
from cascade_memory.domain.reward_channel import check_caps
from cascade_memory.domain.tickets import Tickets, check_tickets
from cascade_memory.domain.trust import CHANNELS, ByWhom, check_min_trust
from cascade_memory.domain.validation import check_callable, check_duration, check_id, check_k, check_namespace, check_reward
from cascade_memory.engine.door import Incoming
from cascade_memory.engine.engine import Engine
from cascade_memory.errors import MemoryClosed, UnknownCase, UnknownEpisode
from cascade_memory.memory.verdict import RewardFn, check_reward_fn, step_of
from cascade_memory.redaction.marking import redact_secrets

if TYPE_CHECKING:
    from typing_extensions import Self

# What only adapters call.
_OURS = {"abandon", "as_stored", "begin", "conclude", "note_failure", "redeem_code", "shares_engine_with", "sign_code"}


class Bound:
    """Holds an engine, which others may share, the defaults of one user, and in whose name and where it acts."""

    def __init__(
        self,
        engine: Engine,
        *,
        k: int,
        namespace: str,
        reward_fn: RewardFn | None,
        exposure: Exposure,
        template: Template | None,
        retain_at: float,
        retain_from: Collection[str],
        case_text: CaseText | None,
        deadline: float | timedelta | None,
        actor: str | None = None,
        min_trust: str | None = None,
        tickets: bool | Tickets = False,
        reward_caps: Mapping[str, int | None] | None = None,
    ) -> None:
        check_reward_fn(reward_fn)
        check_callable(template, "template")
        self._engine = engine
        self._k = check_k(k)
        self._namespace = self._own_namespace = self._engine.parts.door.record().namespace(
            check_namespace(namespace), self._engine.namespace_id
        )
        self._reward_fn = reward_fn
        self._exposure = exposure
        self._template = template or render
        self._retain_at = check_reward(retain_at, "retain_at")
        self._retain_from = check_sources(retain_from)
        check_callable(case_text, "case_text")
        self._case_text = case_text or task_alone
        self._deadline = None if deadline is None else check_duration(deadline, "deadline")
        self._actor = self._own_actor = check_actor(actor)
        self._channel = CHANNELS[0]
        self._min_trust = check_min_trust(min_trust) or 0
        self._tickets = check_tickets(tickets)
        self._caps = check_caps(reward_caps)
        self._warned: set[str] = set()  # the reasons of the warnings that were already given
        self._opened_as: Bound | None = None  # the memory of which this is another way to act; None: of none
        self._closed = False

    @classmethod
    def _of(cls, other: Bound) -> Self:
        """Return one of this class that acts like another one, in the same open memory."""
        bound = object.__new__(cls)
        vars(bound).update(vars(other))
        bound._opened_as = other._opened_as or other
        return bound

    def _open(self) -> Engine:
        if self._is_closed:
            raise MemoryClosed("this memory is closed; open it again with CascadeMemory(path)")
        self._engine.check()
        return self._engine

    @property
    def _is_closed(self) -> bool:
        return (self._opened_as or self)._closed

    def _caught_up(self, episode_id: str | None = None, *, thread: str | None = None) -> Engine:
        """Return the engine when pending recalls are on disk: those of an episode, of a conversation, or all of them."""
        engine = self._open()
        engine.recording.wait_for(episode_id, thread=thread)
        return engine

    def _namespace_id(self) -> int:
        return self._engine.namespace_id(self._namespace)

    def _who(self, record: Incoming | None = None) -> str | None:
        """Return who does something. A name that was given later than the memory's own must not hold a secret."""
        if record is None or self._actor is self._own_actor:
            return self._actor
        return record.name(self._actor, "actor")

    def _by(self, record: Incoming | None = None) -> ByWhom:
        return ByWhom(self._who(record), self._channel)

    def _new_in(self, record: Incoming | None = None) -> str:
        """Return the namespace of something that is about to be stored; the name of a new one must not hold a secret."""
        if self._namespace is self._own_namespace:
            return self._namespace
        record = record or self._engine.parts.door.record()
        return record.namespace(self._namespace, self._engine.namespace_id)

    def _episode(self, episode_id: str) -> Episode | None:
        """Return an episode of this namespace; None if it has none with this id."""
        episode_id = check_id(episode_id, "episode_id")
        found = self._caught_up(episode_id).parts.ledger.episodes.one(episode_id)
        return found if found is not None and found.namespace == self._namespace else None

    def _known(self, episode_id: str) -> Episode:
        """Return an episode of this namespace, or raise."""
        episode_id = check_id(episode_id, "episode_id")
        found = self._episode(episode_id)
        if found is None:
            raise UnknownEpisode(f"there is no episode {episode_id!r} in namespace {self._namespace!r}")
        return found

    def _case(self, case_id: object) -> Case:
        """Return a case of this namespace, or raise."""
        found = self._open().parts.ledger.cases.by_id([case_id := check_id(case_id, "case_id")], self._namespace_id())
        if not found:
            raise UnknownCase(f"there is no case {case_id!r} in namespace {self._namespace!r}")
        return found[0]

    def _release(self) -> None:
        self._engine.close()

    def _note_failure(self, step: str, error: Exception) -> None:
        """Count a failure that was hidden from the agent; see ``health()``."""
        self._engine.note_failure(redact_secrets(step_of(error, step)), error)  # health() shows it

    def __dir__(self) -> list[str]:
        """List what is for users: not the private parts, and not what only adapters call."""
        return [name for name in super().__dir__() if name not in _OURS and (name[0] != "_" or name[:2] == "__")]


def stored_at(engine: Engine) -> str:
    """Return where a memory is stored, as text for people."""
    path = engine.parts.ledger.path
    if path is None:
        return engine.parts.place
    try:
        return str(path.parent.relative_to(Path.cwd()))
    except (ValueError, OSError):  # the folder is not below the working directory, or that was deleted
        return str(path.parent)
