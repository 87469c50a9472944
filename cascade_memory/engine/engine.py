"""The engine of one open folder: recall, reward, and the background threads. Several handles may share it."""

from __future__ import annotations

import functools
import logging
import os
import time
import traceback
from collections import Counter
from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from cascade_memory import capabilities
from cascade_memory.domain.cost import STEPS, Spent, Totals
from cascade_memory.domain.digests import Signing
from cascade_memory.domain.limits import Limits
from cascade_memory.domain.recall import Recall
from cascade_memory.domain.records import Change, Settled
from cascade_memory.encoders.matchers import CarefulMatcher
from cascade_memory.engine.alarms import Alarms
from cascade_memory.engine.decision import Decider
from cascade_memory.engine.embedding import Floor, check_embedder, embed_with
from cascade_memory.engine.engine_thread import EngineThread
from cascade_memory.engine.follower import Follower, LoadedStates
from cascade_memory.engine.mirror_feeder import MirrorFeeder
from cascade_memory.engine.namespace_state import NamespaceState
from cascade_memory.engine.part import EnginePart, overriding
from cascade_memory.engine.parts import Parts
from cascade_memory.engine.recording import Recording
from cascade_memory.engine.request import Judgement, RecallRequest
from cascade_memory.engine.settling import settlement
from cascade_memory.engine.workers import Attempt, Attempts, unrecorded
from cascade_memory.errors import MemoryClosed, MemoryForked
from cascade_memory.learning.columns import columns_of
from cascade_memory.learning.screen import Screen
from cascade_memory.learning.shared_head import SharedHead
from cascade_memory.ports.encoders import LoadsModel, Query
from cascade_memory.redaction.saying import log_of
from cascade_memory.visible import on_one_line

_log = log_of(__name__)

_FEW = 16  # namespaces: with more, closing saves only what would take long to learn again

Learning = Literal["inline", "background", "off"]


class Engine:
    """Connects ledger, index, encoder and policy. Thread-safe; refuses to work in a forked child."""

    def __init__(self, parts: Parts, *, learn: Learning, candidates: int, limits: Limits | None = None) -> None:
        self.parts = parts
        self.matcher = CarefulMatcher(parts.matcher, self.note_failure)
        self.learning: Learning = learn
        self._limits = limits
        self.floor = Floor(parts.ledger, parts.embedder, at_once=parts.embeds_at_once or isinstance(parts.embedder, LoadsModel))
        self._pid = os.getpid()
        self.failures: Counter[str] = Counter()
        self.last_error: str | None = None
        self.totals: dict[str, Totals] = {}  # what recalls have cost so far, by namespace
        self.recording = Recording(parts.ledger, self.note_failure)
        self.attempts = Attempts(embeds_at_once=parts.embeds_at_once, rest_at_once=parts.rest_at_once)
        self.signing = Signing(parts.ledger.facts)
        self.alarms = Alarms()
        self._prepared = not isinstance(parts.embedder, LoadsModel)
        self._closed = self._released = False  # no verb works any more; and nothing is held any more
        self._last_used = 0.0
        check_embedder(parts.ledger, parts.embedder, parts.place)
        self._follower = Follower(parts.ledger, parts.rereads, self._drop_outdated)
        self.capable: tuple[EnginePart, ...] = tuple(one.PART(self) for one in capabilities.parts("engine_part"))
        self.hosts = [(part, host) for part in self.capable for host in part.hosts]  # they say what surrounds a recall
        self.listeners: tuple[EnginePart, ...] = ()  # that hear what was done, by ``heard``
        self.ending: tuple[EnginePart, ...] = ()  # that add metadata to an episode when it ends, by ``ends``
        self.judges, self._learners = overriding(self.capable, "judged"), overriding(self.capable, "learn")
        self._screening = overriding(self.capable, "screen")
        assert len(self._screening) <= 1, "two capabilities say whose outcomes teach"
        self._decider = Decider(parts, candidates, self.floor, overriding(self.capable, "mask"), self.note_failure)
        for part in filter(lambda one: one.follows, self.capable):
            self._follower.join_whole(part)
        number_of = functools.partial(parts.ledger.namespace, create=False)
        self._loader = LoadedStates(self._loaded, self._follower, self.note_failure, number_of)
        self._states = self._loader.states
        self._shared_head: SharedHead | None = None
        if parts.ranker.shared is not None:
            self._shared_head = SharedHead(parts.ranker.shared, columns_of(parts.ranker), parts.ledger, outcomes=learn != "off")
            self._follower.join_whole(self._shared_head)
        self.feeder = None if parts.mirror is None else MirrorFeeder(parts, parts.mirror, parts.build, self._idle)
        self._learner = EngineThread(self, "learner", Engine.catch_up) if learn == "background" else None
        # In a database others may wait for this process to make room, and so it must not wait until it has learned.
        tidies = self._learner is not None and limits is not None and parts.shared is not None
        self._tidier = EngineThread(self, "tidier", Engine.make_room) if tidies else None

    def _idle(self) -> float:
        """Return the number of seconds since the last recall or reward."""
        return time.monotonic() - self._last_used

    @property
    def closed(self) -> bool:
        """True once ``close`` was called."""
        return self._closed

    def check(self) -> None:
        """Raise an error if the memory is closed, or if it was opened before this process was forked."""
        if os.getpid() != self._pid:
            raise MemoryForked(
                "this memory was opened before fork() and cannot be used in the child; "
                "open it again there, or start workers with the 'spawn' method"
            )
        if self._closed:
            raise MemoryClosed("this memory is closed; open it again with CascadeMemory(path)")

    # -- vectors -----------------------------------------------------------------------------------------------------

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed texts as unit vectors."""
        return embed_with(self.parts.embedder, texts)

    # -- namespaces --------------------------------------------------------------------------------------------------

    def load(self, namespace: str) -> None:
        """Load the embedder's model, if it has one, and the state of a namespace."""
        self._load_model()
        self.namespace_state(namespace)
        self.floor.now()

    def _load_model(self) -> None:
        if not self._prepared and isinstance(self.parts.embedder, LoadsModel):
            self.parts.embedder.begin()
            self._prepared = True

    def namespace_state(self, namespace: str) -> NamespaceState:
        """Return the state of a namespace; load it if necessary. Call this anew in each call: the state may be unloaded."""
        found = self._loader.get(namespace)
        if found is None:
            namespace_id = self.parts.ledger.namespace(namespace, create=True)  # this may wait, so no lock is held
            assert namespace_id is not None
            found = self._loader.load(namespace, namespace_id)
            if found.waiting or found.rebuild_due:
                self._learn_from_news()
        found.used = time.monotonic()
        return found

    def _loaded(self, namespace: str, namespace_id: int) -> NamespaceState:
        keep = self.learning != "off"
        screens = (part.screen(namespace_id, learns=keep) for part in self._screening)  # of one part at most
        return NamespaceState(
            namespace,
            namespace_id,
            self.parts,
            note_failure=self.note_failure,
            screen=next(screens, None) or Screen(),
            limits=self._limits,
            keep=keep,
        )

    def loaded_state(self, namespace: str) -> NamespaceState | None:
        """Return the state of a namespace if it is loaded now, otherwise None."""
        return self._states.get(namespace)

    def _drop_outdated(self, namespace_id: int, changes: Sequence[Change]) -> None:
        """Delete the snapshots of a namespace that is not loaded, if they contain what was forgotten or withdrawn."""
        if any(change.forgets or change.takes_outcomes_back for change in changes):
            self.parts.snapshots.drop(namespace_id)

    def namespace_id(self, namespace: str) -> int:
        """Return the id of a namespace; 0, which no namespace has, if it does not exist."""
        found = self._loader.get(namespace)
        return found.namespace_id if found is not None else self.parts.ledger.namespace(namespace, create=False) or 0

    def follow(self) -> bool:
        """Apply what any process has written to the ledger since the last call; return whether there was anything."""
        return self._follower.follow()

    def hear(self) -> None:
        """Apply what other processes have written, unless this was done just now; the learner's thread learns from it later."""
        if time.monotonic() >= self._follower.due and self.follow() and self._learner is not None:
            self._learner.wake()

    def oldest(self) -> float:
        """Return the time before which things are too old to be shown, according to the ttl; 0 without a ttl."""
        return 0.0 if self._limits is None or self._limits.ttl is None else time.time() - self._limits.ttl

    def behind(self) -> int:
        """Return how many lines of the log this process has not read yet."""
        return max(0, self.parts.ledger.head() - self._follower.seq)

    def rebuild(self) -> None:
        """Read all cases again, after the ledger was repaired."""
        with self._follower.paused():
            for name, namespace_id in self.parts.ledger.namespaces().items():
                state = self._states.get(name)
                if state is None:
                    self.parts.snapshots.drop(namespace_id)
                else:
                    state.rebuild()
            for part in self.capable:
                part.rebuild()

    # -- learning ----------------------------------------------------------------------------------------------------

    def learn_soon(self) -> None:
        """Apply new lines of the log, then learn from them: at once, or on the learner's thread.

        All that callers were told is stored is in the ledger already. So a failure here is only counted, and the next call
        makes up for it.
        """
        try:
            if self.follow():
                self._learn_from_news()
        except Exception as error:  # noqa: BLE001 - see above
            self.note_failure("follow", error)

    def _learn_from_news(self) -> None:
        if self._learner is None:
            self.learn_now()
            return
        self._learner.wake()
        if self._tidier is not None:
            self._tidier.wake()

    def catch_up(self) -> None:
        """Apply new lines of the log and learn from them; called by the learner's thread."""
        try:
            self.follow()
        except Exception as error:  # noqa: BLE001 - as above
            self.note_failure("follow", error)
        self.learn_now()

    def learn_now(self) -> None:
        """Learn everything that was applied so far, and evict cases where there are too many; a failure is counted."""
        self._learn_together()
        self.make_room()  # before anything is learned, which may take long
        busy = list(self._states.values())
        while busy:  # in turns: a namespace with a long training must not hold up the others
            busy = [state for state in busy if self._learn_some(state) and not self._closed]
        for part in self._learners:
            part.learn()

    def _learn_some(self, state: NamespaceState) -> bool:
        """Evict cases from a namespace if necessary, and learn there; return whether more is left to learn."""
        self._tidy_if_due(state)
        try:
            more = state.learn(outcomes=self.learning != "off")
            if state.screen.active:
                for part in self._screening:
                    part.screened(state)
            return more
        except Exception as error:  # noqa: BLE001 - what was acknowledged is in the ledger; learning can be repeated
            self.note_failure("learn", error)
            return False

    def refit(self, namespace: str) -> None:
        """Learn everything in a namespace again from the ledger; encoders start from their pretrained weights."""
        self.namespace_state(namespace).refit()
        self._learn_from_news()

    def _learn_together(self) -> None:
        """Learn across namespaces, if the memory was opened with that option."""
        if self._shared_head is not None:
            try:
                if self._shared_head.learn():
                    for namespace_id in self.parts.ledger.namespaces().values():
                        self.parts.snapshots.drop(namespace_id)  # it was learned with the help of data that is deleted now
                    for state in self.loaded():
                        state.rebuild_policy()
            except Exception as error:  # noqa: BLE001 - as below
                self.note_failure("learn", error)

    def make_room(self) -> None:
        """Evict and expire cases in every namespace where that is due."""
        for state in list(self._states.values()):
            self._tidy_if_due(state)

    def _tidy_if_due(self, state: NamespaceState) -> None:
        if not state.overdue:
            return
        try:
            state.tidy()
            self.follow()
        except Exception as error:  # noqa: BLE001 - too many cases are no reason to fail; it will be tried again
            self.note_failure("evict", error)

    def loaded(self) -> list[NamespaceState]:
        """Return the states of the namespaces that are loaded."""
        return list(self._states.values())

    def note_failure(self, step: str, error: Exception, *, warned: bool = False) -> None:
        """Count and log a failure that no exception reports; at INFO if the caller is ``warned``. DEBUG has the traceback."""
        self.failures[step] += 1
        said = on_one_line(self.parts.door.said(error))  # it may quote a case
        self.last_error = f"{step}: {said}"
        _log.log(logging.INFO if warned else logging.WARNING, "%s failed (%s); see memory.health()", step, said)
        if _log.isEnabledFor(logging.DEBUG):
            trace = "".join(traceback.format_exception(error)).rstrip("\n")
            _log.debug("%s failed\n%s", step, self.parts.door.message(trace))

    # -- the verbs ---------------------------------------------------------------------------------------------------

    def recall(self, request: RecallRequest) -> Recall:
        """Find cases, choose among them, and record the choice by the deadline; loading, done once, may take longer."""
        if not self._prepared:
            self.attempts.load(request.deadline, self._load_model, "the embedder")
        if request.namespace not in self._states:  # a step of its own: a slow model leaves it as long to wait for a lock
            self.attempts.load(request.deadline, lambda: self.load(request.namespace), f"namespace {request.namespace!r}")
        return self.attempts.make(request.deadline, lambda attempt: self._recall(request, attempt), light=request.light)

    def _recall(self, request: RecallRequest, attempt: Attempt) -> Recall:
        """Find, choose, and record the choice; give up if the deadline has passed before the cases are returned."""
        self._last_used = time.monotonic()
        parts = self.parts
        parts.ledger.check(log=False)  # the ledger may have been replaced, or embedded again with another embedder
        state = self.namespace_state(request.namespace)
        totals = self.totals.get(request.namespace) or self.totals.setdefault(request.namespace, Totals())
        spent = Spent(totals)
        attempt.doing = f"the embedder {parts.embedder.identity!r}"
        began = time.perf_counter()
        vector = self.attempts.embed(attempt, lambda: self.embed([request.query])[0])
        spent.embed = time.perf_counter() - began
        attempt.doing = "the memory"
        if time.monotonic() >= self._follower.due:
            self.learn_soon()  # apply what other processes wrote
            state = self.namespace_state(request.namespace)  # it has another number if it was purged with its name
        if state.overdue:
            self._learn_from_news()
        seq = self._follower.seq
        decision = self._decider.decide(request, Query(text=request.query, vector=vector), state, spent)
        left = attempt.show(decision.recall)
        written, selection, choice = None, decision.selection, decision.selection.choice
        learns = selection.failure is None and not request.search and self.learning != "off"
        if learns and choice is not None and decision.row.shown:
            written = functools.partial(state.learner.expect, slate=selection.slate, choice=choice)
        began = time.perf_counter()
        unwritten = self.recording.write(decision.row, left, seq, written)
        spent.write = time.perf_counter() - began
        with totals.lock:
            totals.recalls += 1
            for step in STEPS:
                setattr(totals, step, getattr(totals, step) + getattr(spent, step))
        if _log.isEnabledFor(logging.INFO):
            _log.info("%s", request.line(decision.recall, len(decision.row.candidates), spent))
        if unwritten is None or (request.search and self.parts.ledger.read_only):
            return decision.recall
        self.note_failure("record", unwritten, warned=not request.search)
        return decision.recall if request.search else unrecorded(decision.recall, unwritten)

    def reward(self, judgement: Judgement) -> Settled:
        """Record an outcome and all its consequences durably."""
        self._last_used = time.monotonic()
        settled = self.parts.ledger.settle(settlement(self, judgement))
        self._follower.due = 0.0  # the next recall reads what was written here
        if judgement.cap is not None:
            self.alarms.note(judgement, settled)
        if _log.isEnabledFor(logging.INFO):
            _log.info("%s", judgement.line(settled))
        if settled.changed:  # the learner's thread or the next recall applies it
            self.floor.measure()
            self.learn_soon() if self._learner is None else self._learner.wake()
        return settled

    def rebuild_due(self) -> list[str]:
        """Return the loaded namespaces in which something still has to be learned again from scratch."""
        return [state.name for state in self.loaded() if state.rebuild_due]

    def sync(self) -> None:
        """Learn everything acknowledged so far and feed all cases to the mirror."""
        self.recording.wait_for()
        self.follow()
        self.learn_now()
        if self.feeder is not None:
            self.feeder.flush()

    def close(self, *, feed: bool = True) -> None:
        """Stop the threads, save what was learned, and release the folder. If an interrupt ends this call, call it again."""
        if self._released or os.getpid() != self._pid:
            return
        self._closed = True
        self.recording.close()
        for thread in (self._learner, self._tidier):
            if thread is not None:
                thread.finish()
        self.learn_soon()  # what another process has forgotten must not return in a snapshot
        self.learn_now()
        states = self.loaded()
        for state in states:
            try:
                state.close(thorough=len(states) <= _FEW)
            except Exception as error:  # noqa: BLE001 - the ledger has everything; a snapshot only saves time
                self.note_failure("snapshot", error)
        if self.feeder is not None:
            self.feeder.close(feed=feed)
        self.parts.ledger.close()
        self._released = True
