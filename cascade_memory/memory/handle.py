"""A handle on an engine: it has the user's defaults, the statistics and the health, and it can be closed."""

from __future__ import annotations

import shutil
import weakref
from collections.abc import Collection, Mapping
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast, get_args

from cascade_memory.cycle.reuse import Template, render
from cascade_memory.domain.actions import check_actor
from cascade_memory.domain.case_text import CaseText, task_alone
from cascade_memory.domain.cost import Costs
from cascade_memory.domain.display import counted, shorten
from cascade_memory.domain.episode import check_sources
from cascade_memory.domain.exposure import Exposure
from cascade_memory.domain.metadata import MetadataValue
from cascade_memory.domain.patience import patience
from cascade_memory.domain.records import Unkept
from cascade_memory.domain.reward_channel import check_caps
from cascade_memory.domain.tickets import Tickets, check_tickets
from cascade_memory.domain.trust import CHANNELS, ByWhom, check_channel, check_min_trust
from cascade_memory.domain.validation import check_callable, check_duration, check_id, check_k, check_namespace, check_reward
from cascade_memory.engine.door import Incoming
from cascade_memory.engine.engine import Engine
from cascade_memory.engine.request import RecallRequest
from cascade_memory.errors import CascadeError, MemoryClosed, RedactionFailed
from cascade_memory.insight.learned import learned_by
from cascade_memory.insight.measuring import report_of
from cascade_memory.insight.plot import Plot, plot_rewards
from cascade_memory.insight.report import Report
from cascade_memory.insight.stats import Health, Stats
from cascade_memory.ledger.filter_limits import plain_filter
from cascade_memory.looks.card import Card, Facts, Notes
from cascade_memory.memory.doctor import Check, examine, mend
from cascade_memory.memory.verdict import RewardFn, check_reward_fn, step_of
from cascade_memory.memory.warming import warmed
from cascade_memory.ports.policy import Policy
from cascade_memory.redaction.marking import redact_secrets
from cascade_memory.visible import visible

if TYPE_CHECKING:
    from typing_extensions import Self

_OURS = {"abandon", "as_stored", "end_episode", "note_failure", "redeem_code", "shares_engine_with", "sign_code", "will_recall"}
WITHHELD = "(a task that redact= could not take)"
_FEW = 8  # values of metadata
_REACHABLE = 2.0  # seconds to try to reach a database


class Handle:
    """Holds the defaults of one user, and an engine that it may share with other handles."""

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
        self._namespace = self._new_in(check_namespace(namespace))
        self._reward_fn = reward_fn
        self._exposure = exposure
        self._template = template or render
        self._retain_at = check_reward(retain_at, "retain_at")
        self._retain_from = check_sources(retain_from)
        check_callable(case_text, "case_text")
        self._case_text = case_text or task_alone
        self._deadline = None if deadline is None else check_duration(deadline, "deadline")
        self._actor = check_actor(actor)
        self._min_trust = check_min_trust(min_trust) or 0
        self._tickets = check_tickets(tickets)
        self._caps = check_caps(reward_caps)
        self._warned: set[str] = set()  # the reasons of the warnings that were already given
        self._closed = False

    @property
    def k(self) -> int:
        """The greatest number of cases that a recall returns by default."""
        return self._k

    @property
    def namespace(self) -> str:
        """The namespace that calls use by default."""
        return self._namespace

    def shares_engine_with(self, other: Handle) -> bool:
        """Say whether both are handles on the same open folder."""
        return self._engine is other._engine

    def as_stored(self, query: str, episode_id: str | None = None) -> str:
        """Return a task as a recall of this memory has it, for an episode: with placeholders instead of secrets."""
        return self._open().parts.door.record(episode_id).query(query)

    def warm(self, *, namespace: str | None = None, wait: bool = True) -> None:
        """Load the embedder and the namespace's cases now, instead of at the first recall; without ``wait``, on a thread.

        A server and the middleware do the latter by themselves, if the embedder has a model to load.
        """
        warmed(self._open(), self._new_in(namespace), wait=wait)

    # -- looking -----------------------------------------------------------------------------------------------------

    def stats(self, *, namespace: str | None = None, everywhere: bool = False) -> Stats:
        """Count the cases, episodes and so on of a namespace (by default the memory's own), or of all with ``everywhere``."""
        engine = self._open()
        ledger, name = engine.parts.ledger, self._in(namespace)
        counts = ledger.insight.counts(None if everywhere else engine.namespace_id(name))
        missing = not everywhere and name != self._namespace and not engine.namespace_id(name)
        policy = _policy(engine, name)
        unkept = {why: int(counts.pop(f"unkept_{why}")) for why in get_args(Unkept)}
        mean = counts.pop("mean_reward")
        whole = {key: int(value) for key, value in counts.items()}
        return Stats(
            namespace=None if everywhere else name,
            mean_reward=mean if whole["rewards"] > whole["reported"] else None,
            unkept=unkept,
            exists=not missing,
            namespaces=tuple(ledger.namespaces()) if missing else (),
            policy=policy.name,
            policy_version=policy.version,
            embedder=engine.parts.embedder.identity,
            **whole,
        )

    def namespaces(self) -> list[str]:
        """Return the names of all namespaces of the folder."""
        return list(self._open().parts.ledger.namespaces())

    def health(self) -> Health:
        """Report failures that did not raise an exception, and how far Chroma is behind."""
        engine = self._open()
        feeder, path = engine.feeder, engine.parts.ledger.path
        failures = dict(engine.failures)
        if feeder is not None and feeder.failures:
            failures["chroma"] = feeder.failures
        gone, read_only = _gone(engine), engine.parts.ledger.read_only
        shared = engine.parts.shared if gone is None else None
        if gone is not None:
            failures["ledger"] = 1
        return Health(
            ok=not failures and read_only is None,
            failures=failures,
            last_error=gone or engine.last_error or (feeder.last_error if feeder is not None else None),
            chroma=("none (in RAM)" if engine.parts.shared is None else "none") if feeder is None else feeder.state,
            chroma_lag=0 if feeder is None or gone is not None else feeder.lag,
            learning=engine.learning,
            free_disk_bytes=None if path is None or not path.parent.exists() else shutil.disk_usage(path.parent).free,
            read_only=read_only,
            database=engine.parts.place if path is None and engine.parts.shared is not None else None,
            log_lag=0 if shared is None else engine.behind(),
            leases={} if shared is None else shared(),
            alarms=(*engine.alarms.current(), *engine.suspects()),
            unblamed=dict(engine.warnings.unblamed),
        )

    def examine(self, *, fix: bool = False) -> list[Check]:
        """Compare ledger, index and Chroma; return the findings. With ``fix``, repair what can be repaired."""
        return mend(self._open()) if fix else examine(self._open())

    def rebuild(self) -> None:
        """Build the Chroma folder again from the ledger."""
        feeder = self._open().feeder
        if feeder is not None:
            feeder.rebuild()

    def stand_aside(self) -> None:
        """Leave feeding Chroma to other processes: for one that only looks, while agents come and go."""
        feeder = self._open().feeder
        if feeder is not None:
            feeder.stand_aside()

    def rewards(self, *, namespace: str | None = None) -> list[tuple[float, bool]]:
        """Return (value, whether a case was shown) for every rewarded episode, in order."""
        ledger = self._open().parts.ledger
        return ledger.insight.rewards(self._namespace_id(namespace))

    def report(self, *, namespace: str | None = None, everywhere: bool = False) -> Report:
        """Measure the memory's worth on its own stream, and say what it has learned.

        That is: lift, calibration, coverage, what teaches the ranker, and what the shadow would have achieved. Its ``costs``
        add up what the recalls of this process cost, and its ``alarms`` name actors at whom a person should look.

        >>> from cascade_memory import CascadeMemory
        >>> memory = CascadeMemory(embedder="hashing")
        >>> memory.reward(memory.recall("cool some mug").episode_id, 0.0)
        >>> memory.report()
        Report(1 episode, lift unknown)
        """
        engine = self._open()
        ledger, insight, name = engine.parts.ledger, engine.parts.ledger.insight, self._in(namespace)
        warnings = int(insight.counts(None if everywhere else engine.namespace_id(name))["warnings"])
        if everywhere:
            costs = Costs.of(list(engine.totals.values()))
            judged, arms = list(insight.judged(None)), insight.arms(None)
            return report_of(judged, arms, None, None, costs, engine.suspects(), warnings=warnings)
        namespace_id = engine.namespace_id(name)
        learned = learned_by(_policy(engine, name), engine.parts.ranker.features)
        costs = Costs.of([engine.totals[name]] if name in engine.totals else [])
        judged, arms = list(insight.judged(namespace_id)), insight.arms(namespace_id)
        tallies = list(ledger.warnings.tallies(namespace_id).values()) if warnings else []
        suspects = engine.suspects(name)
        return report_of(judged, arms, name, learned, costs, suspects, warnings=warnings, tallies=tallies)

    def plot(self, *, namespace: str | None = None, window: int = 50) -> Plot:
        """Plot success and regret over the episodes; a notebook shows the picture. Each mean is of ``window`` episodes.

        ``plot().savefig("success.png")`` writes it into a file, and ``plot().figure`` is the matplotlib figure of it: both
        need the extra "plot".
        """
        return plot_rewards(self.rewards(namespace=namespace), window=check_k(window, "window"))

    def note_failure(self, step: str, error: Exception) -> None:
        """Count a failure that was hidden from the agent; see ``health()``."""
        self._engine.note_failure(redact_secrets(step_of(error, step)), error)  # health() shows it

    # -- ending ------------------------------------------------------------------------------------------------------

    def sync(self) -> None:
        """Wait until everything acknowledged has been learned and Chroma holds every case."""
        self._open().sync()

    def refit(self, *, namespace: str | None = None) -> None:
        """Learn everything again from the outcomes in the ledger; a trained encoder starts from its pretrained weights.

        After ``forget``, this is needed to make a cross-encoder forget as well. Training takes time: ``sync`` waits for it.
        """
        self._open().refit(self._new_in(namespace))

    def close(self) -> None:
        """Sync and release the folder. Using the memory afterwards is an error; closing it again is not."""
        if not self._closed:
            self._release()  # if it is interrupted, closing again goes on with it
            self._closed = True

    def _release(self) -> None:
        self._engine.close()

    def __enter__(self) -> Self:
        """Use the memory in a ``with`` block that closes it."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close."""
        self.close()

    def _open(self) -> Engine:
        if self._closed:
            raise MemoryClosed("this memory is closed; open it again with CascadeMemory(path)")
        self._engine.check()
        return self._engine

    def _request(
        self,
        query: object,
        *,
        k: object,
        namespace: object,
        where: object,
        episode_id: object = None,
        thread_id: object = None,
        metadata: object = None,
        search: bool = False,
        actor: object = None,
        channel: object = None,
        min_trust: object = None,
    ) -> RecallRequest:
        """Check what the user asks for in an open memory; the defaults of this handle fill the rest."""
        record, unclean = self._open().parts.door.record(episode_id), None
        try:
            if where is not None:
                record.listen(where := plain_filter(where))  # checked first: it may be any object
            came = record.take(query=query, metadata=metadata)
            query, fields = came.query, came.metadata
        except RedactionFailed as error:
            query, fields, unclean = WITHHELD, dict[str, MetadataValue](), error
        return RecallRequest(
            query=query,
            k=self._k if k is None else check_k(k),
            namespace=self._new_in(namespace, record),
            where=where,
            episode_id=None if episode_id is None else record.name(check_id(episode_id, "episode_id"), "episode_id"),
            thread_id=None if thread_id is None else record.name(check_id(thread_id, "thread_id"), "thread_id"),
            metadata=fields,
            unclean=unclean,
            exposure=self._exposure,
            template=self._template,
            deadline=self._deadline,
            search=search,
            record=record,
            actor=self._who(actor, record),
            channel=self._door(channel),
            min_trust=self._min_trust if min_trust is None else check_min_trust(min_trust) or 0,
            light=where is None and len(fields) <= _FEW and not any(isinstance(value, list) for value in fields.values()),
            memory=cast("Any", weakref.ref(self)),
        )

    def _caught_up(self, episode_id: str | None = None, *, thread: str | None = None) -> Engine:
        """Return the engine when pending recalls are on disk: those of an episode, of a conversation, or all of them."""
        engine = self._open()
        engine.recording.wait_for(episode_id, thread=thread)
        return engine

    def _namespace_id(self, namespace: str | None) -> int:
        return self._engine.namespace_id(self._in(namespace))

    def _who(self, actor: object, record: Incoming | None = None) -> str | None:
        """Return who does something: whom the caller names, or else the memory's own actor."""
        if actor is None:
            return self._actor
        name = check_actor(actor)
        return name if record is None else record.name(name, "actor")

    def _by(self, actor: object, channel: object, record: Incoming | None = None) -> ByWhom:
        return ByWhom(self._who(actor, record), self._door(channel))

    def _door(self, channel: object) -> str:
        if channel is None:
            return CHANNELS[0]
        return channel if type(channel) is str and channel in CHANNELS else check_channel(channel)

    def _new_in(self, namespace: object, record: Incoming | None = None) -> str:
        """Return the namespace of something that is about to be stored; the name of a new one must not hold a secret."""
        if namespace is None:
            return self._namespace
        record = record or self._engine.parts.door.record()
        return record.namespace(check_namespace(namespace), self._engine.namespace_id)

    def _in(self, namespace: object) -> str:
        return self._namespace if namespace is None else check_namespace(namespace)

    @property
    def place(self) -> str:
        """Where the memory is stored, as text for people."""
        path = self._engine.parts.ledger.path
        if path is None:
            return self._engine.parts.place
        try:
            return str(path.parent.relative_to(Path.cwd()))
        except (ValueError, OSError):  # the folder is not below the working directory, or that was deleted
            return str(path.parent)

    def __dir__(self) -> list[str]:
        """List what is for users: not the private parts, and not what only adapters call."""
        return [name for name in super().__dir__() if name not in _OURS and (name[0] != "_" or name[:2] == "__")]

    def __repr__(self) -> str:
        """Describe the memory in one line."""
        if self._closed:
            return "CascadeMemory(closed)"
        try:
            cases = int(self._engine.parts.ledger.insight.counts(self._namespace_id(None))["cases"])
        except (CascadeError, OSError):
            return f"CascadeMemory({self.place}, unreadable)"
        return visible(f"CascadeMemory({self.place}, {counted(cases, 'case')}, namespace={self._namespace!r})")

    def _repr_html_(self) -> str:
        if self._closed:
            return Card("CascadeMemory", "closed").html()
        health = self.health()
        notes = [f"{name}: {shorten(value, 100)}" for name, value in health.rows()[:2]]
        return Card(
            "CascadeMemory", self.place, [Facts(self.stats().rows()), Notes(notes)], state="" if health.ok else "bad"
        ).html()


def _policy(engine: Engine, name: str) -> Policy:
    return engine.namespace_state(name).policy if engine.namespace_id(name) else engine.parts.ranker.policy()


def _gone(engine: Engine) -> str | None:
    """Describe the problem if the ledger was deleted or replaced, or cannot be reached; otherwise return None."""
    try:
        engine.parts.ledger.check()
        if engine.parts.shared is not None:
            with patience(_REACHABLE):
                engine.parts.ledger.head()
    except CascadeError as error:
        return f"ledger: {type(error).__name__}: {error}"
    return None
