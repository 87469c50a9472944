"""Decides whether an action that is about to be done is a known mistake, and whether to warn the agent."""

from __future__ import annotations

import functools
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cascade_memory.capabilities.warnings.action_words import words_in
from cascade_memory.capabilities.warnings.describing import advice_text, described, held_from, names_somebody, repeats_in_words
from cascade_memory.capabilities.warnings.evidence import Serves, those_that_count
from cascade_memory.capabilities.warnings.records import Blame, Check, CheckRequest, Failure, WarningDecision
from cascade_memory.capabilities.warnings.rows import WarningRows
from cascade_memory.capabilities.warnings.shelf import Group, WarningShelf
from cascade_memory.capabilities.warnings.value import FLOOR
from cascade_memory.domain.actions import NewAction
from cascade_memory.domain.digests import digest
from cascade_memory.domain.failure_warning import Advice, FailureWarning
from cascade_memory.domain.records import Change, Unsettled
from cascade_memory.domain.trajectory import Solution, Step, Trajectory
from cascade_memory.domain.waiting import patience
from cascade_memory.engine.part import EnginePart
from cascade_memory.engine.request import Judgement
from cascade_memory.errors import EpisodeClosed

_WAITS = 0.5  # seconds that a check may wait for a lock, all its waits together
_SHELVES, _FAILURES = 1_024, 50_000  # held at most; those are let go that were not asked for the longest time
_DISTILLED = 4  # warnings for which advice is written at a time, so that learning goes on in between
_WORLD, _WORLD_KEPT = 3, 1_000  # episodes that make an error of the world a mistake, and such errors that are counted
_TIDIED = 64  # failures after which old ones are looked for


class WarningDesk(EnginePart):
    """Checks actions, with the failures of each namespace on a ``WarningShelf``; follows the log for all shelves.

    Without options (``warnings=False``), no action is checked and no failure is kept.
    """

    def __init__(self, engine: Serves) -> None:
        self._engine, self.options = engine, engine.parts.warnings
        self.follows = self.options is not None
        self._ledger = engine.parts.ledger
        self.rows = WarningRows(self._ledger.connections)
        self._shelves: dict[str, WarningShelf] = {}
        self._by_id: dict[int, WarningShelf] = {}
        self._changing = threading.Lock()
        self._blamed: dict[str, int] = {}  # failures since old ones were looked for, by namespace
        self.unblamed: Counter[str] = Counter()  # failed runs from which no warning was made, by reason
        self._of_the_world: dict[tuple[str, str], set[str]] = {}  # the episodes of each error of the world at an action
        self._asked: set[tuple[int, str]] = set()  # for which advice was to be written
        self.seq = self._ledger.head()

    # -- following the log -------------------------------------------------------------------------------------------

    def apply(self, changes: Sequence[Change]) -> None:
        """Pass log lines on to the ``WarningShelf`` of their namespace, if it is loaded."""
        for change in changes:
            shelf = self._by_id.get(change.namespace)
            if shelf is not None:
                shelf.note(change)
            if change.forgets or change.purges:
                self._of_the_world.clear()  # what is forgotten must not count
        if changes:
            self.seq = changes[-1].seq

    def rebuild(self) -> None:
        """Mark all loaded warnings as outdated, after the ledger was repaired: they are read again when they are needed."""
        for shelf in list(self._shelves.values()):
            shelf.outdate()

    def shelf(self, namespace: str) -> WarningShelf | None:
        """Return the ``WarningShelf`` of a namespace; load it if necessary. None if there is no such namespace."""
        found = self._shelves.get(namespace)
        if found is None:
            namespace_id = self._engine.namespace_id(namespace)
            if not namespace_id:
                return None
            with self._changing:
                found = self._shelves.get(namespace)
                if found is None:
                    found = self._by_id[namespace_id] = WarningShelf(namespace, namespace_id, self._ledger, self.rows)
                    self._shelves[namespace] = found
                    self._make_room(found)
        found.used = time.monotonic()
        return found

    def _make_room(self, new: WarningShelf) -> None:
        held = sum(one.count for one in self._shelves.values())
        if len(self._shelves) <= _SHELVES and held <= _FAILURES:
            return
        for one in sorted(self._shelves.values(), key=lambda shelf: shelf.used):
            if one is not new and (len(self._shelves) > _SHELVES or held > _FAILURES):
                del self._shelves[one.name], self._by_id[one.namespace_id]
                held -= one.count

    # -- checking ----------------------------------------------------------------------------------------------------

    def silent(self, namespace: str) -> bool:
        """Whether a namespace is known to have nothing to warn of."""
        shelf = self._shelves.get(namespace)
        return self.options is None or (shelf is not None and shelf.silent)

    def check(self, request: CheckRequest) -> Advice | None:
        """Return the advice for an agent that is about to act; None if there is none, or if the memory fails."""
        if self.silent(request.namespace):
            return None
        most = _WAITS if request.deadline is None else min(_WAITS, request.deadline)
        try:
            with patience(most):
                return self._check(request)
        except EpisodeClosed:
            return None
        except Exception as error:  # noqa: BLE001 - a failing memory must not break the agent
            self._engine.note_failure("check", error)
            return None

    def _check(self, request: CheckRequest) -> Advice | None:
        shelf = self.shelf(request.namespace)
        if shelf is None:
            return None
        shelf.refresh()
        if shelf.silent:
            return None
        step = self._clean(request.step, request.episode_id)
        if not shelf.matching(step):
            return None
        self._engine.hear()  # what was forgotten must not be said
        shelf.refresh()
        found = shelf.matching(step)
        episode = self._ledger.episodes.one(request.episode_id)
        if not found or episode is None or episode.namespace != request.namespace or episode.arm == "holdout":
            return None
        earlier, known = self.rows.checks(request.episode_id), {group.id for group in found}
        few = self.options is not None and sum(one.warned for one in earlier) < self.options.per_episode
        said, more = [one for one in earlier if one.warning in known], episode.status == "open" and few
        if not said and not more:
            return None
        now = self._ledger.unsettled(request.episode_id, shelf.namespace_id)
        evidence = self._evidence(request, shelf, step, found, now.vector, told={one.warning for one in said if one.warned})
        if not said:
            return self._decide(request, shelf, evidence, (now.key, len(earlier)))
        all_of_it = list(evidence)
        here = {one.blame.group for one in all_of_it}
        same = [one for one in said if request.call_id is not None and one.call == request.call_id]
        if same or any(one.warning in here for one in said):  # each mistake gets one decision in an episode
            locks = self.options is not None and self.options.lock
            said_here = [one for one in said if locks and one.warning in here]
            return self._again(request, shelf, all_of_it, [*same, *said_here])
        return self._decide(request, shelf, all_of_it, (now.key, len(earlier))) if more else None

    def _clean(self, step: Step, episode_id: str) -> Step:
        """Return a step as it would be stored: with placeholders for secrets, and changed by the user's function."""
        stored = self._engine.parts.door.record(episode_id).solution([step])
        return stored.steps[0] if isinstance(stored, Trajectory) else step

    def _evidence(
        self,
        request: CheckRequest,
        shelf: WarningShelf,
        step: Step,
        found: Collection[Group],
        vector: NDArray[np.float32],
        *,
        told: Collection[str],
    ) -> Iterator[Failure]:
        """Yield the failures that make this action a mistake where it is done; those on the most similar tasks first."""
        shown = [group for group in found if not shelf.retired_by_hand(group.id)]
        nearest = self._allowed(shelf.nearest(shown, vector), request)
        of = request.episode_id
        return those_that_count(nearest, self._engine, shelf, step, vector, done=request.done, told=told, episode_id=of)

    def _again(
        self, request: CheckRequest, shelf: WarningShelf, evidence: Sequence[Failure], answers: Sequence[Check]
    ) -> Advice | None:
        """Repeat the advice that was given on this call or, with ``lock=True``, on this mistake; None if there was none."""
        for one in answers:
            group = shelf.group(one.warning) if one.warned else None
            if group is not None:
                best = next((failure for failure in evidence if failure.blame.group == group.id), None)
                return self._advice(request, shelf, self._allowed(group.failures, request), best)
        return None

    def _decide(
        self, request: CheckRequest, shelf: WarningShelf, nearest: Iterable[Failure], number: tuple[int, int]
    ) -> Advice | None:
        """Decide at random whether to warn of the mistake that was made on the most similar task.

        ``number`` seeds the draw: the key of the episode, and the number of earlier checks in it.
        """
        best = None
        for one in nearest:
            best = best or one
            if shelf.chance(one.blame.group) > FLOOR:
                best = one
                break
        if best is None:
            return None
        warning = best.blame.group
        chance = shelf.chance(warning)
        new = Check(
            episode_id=request.episode_id,
            warning=warning,
            warned=shelf.draw(*number) < chance,
            propensity=chance,
            at=time.time(),
            call=request.call_id,
        )
        noted = self.rows.note_check(new, most=None if self.options is None else self.options.per_episode)
        same_call = request.call_id is not None and noted.call == request.call_id
        if not noted.warned or not (noted == new or same_call):  # somebody else was quicker
            return None
        group = shelf.group(warning)
        return None if group is None else self._advice(request, shelf, self._allowed(group.failures, request), best)

    def _allowed(self, failures: Sequence[Failure], request: CheckRequest) -> list[Failure]:
        """Leave out failures that are too old, have too little trust, or come from an actor who is held back."""
        since = self._engine.oldest()
        usable = [one for one in failures if one.trust >= request.min_trust and one.at >= since]
        if not names_somebody(usable):
            return usable
        screen = self._engine.namespace_state(request.namespace).screen
        held = held_from(screen, usable, request.asker, request.episode_id)
        return [one for one, is_held in zip(usable, held, strict=True) if not is_held]

    def _advice(
        self, request: CheckRequest, shelf: WarningShelf, failures: Sequence[Failure], best: Failure | None = None
    ) -> Advice | None:
        if not failures:
            return None
        locks = self.options is not None and self.options.lock
        warning = described(shelf, failures, best)
        text = advice_text(warning, locked=locks, held=request.held)
        return Advice(warning=warning, episode_id=request.episode_id, text=text, locked=locks)

    # -- looking -----------------------------------------------------------------------------------------------------

    def all(self, namespace: str, *, near: NDArray[np.float32] | None = None) -> list[FailureWarning]:
        """Return the warnings of a namespace: the latest first or, with ``near``, those of the most similar tasks first."""
        shelf = self.shelf(namespace)
        if shelf is None:
            return []
        self._engine.hear()
        shelf.outdate()
        shelf.refresh()
        shelf.count_up(at_once=True)
        since = self._engine.oldest()
        found: list[tuple[float, FailureWarning]] = []
        for group in shelf.groups():
            failures = [one for one in group.failures if one.at >= since]
            if failures:
                order = float(failures[-1].key) if near is None else max(float(one.vector @ near) for one in failures)
                found.append((order, self._told(shelf, failures)))
        return [warning for _, warning in sorted(found, key=lambda one: -one[0])]

    def one(self, namespace: str, warning: str) -> FailureWarning | None:
        """Return one warning, or None if there is none with this id.

        Only the failures of this warning are read, since the namespace may have many others.
        """
        shelf = self.shelf(namespace)
        if shelf is None:
            return None
        self._engine.hear()
        shelf.refresh()
        shelf.count_up(at_once=True)
        since, failures = self._engine.oldest(), list[Failure]()
        while more := self.rows.failures(shelf.namespace_id, failures[-1].key if failures else 0, warning=warning):
            failures += more
        failures = [one for one in failures if one.at >= since]
        return self._told(shelf, failures) if failures else None

    def _told(self, shelf: WarningShelf, failures: Sequence[Failure]) -> FailureWarning:
        allowed = self._trusted(shelf.name, failures)
        return described(shelf, allowed or failures, held=not allowed)

    def _trusted(self, namespace: str, failures: Sequence[Failure]) -> list[Failure]:
        """Return those failures of one warning that may be shown to somebody; the others are held back from everybody."""
        if not failures or not names_somebody(failures):
            return list(failures)
        screen = self._engine.namespace_state(namespace).screen
        held = held_from(screen, failures, None, failures[-1].blame.group)
        return [one for one, is_held in zip(failures, held, strict=True) if not is_held]

    # -- where learning happens --------------------------------------------------------------------------------------

    def happens_again(self, namespace: str, found: Blame, episode_id: str) -> bool:
        """Note an error of the world, such as a time-out; return True if it is known from enough episodes.

        Three episodes of this process must have had the same error at the same action.
        """
        key = (namespace, digest("\x00".join([found.group, *words_in(found.happened)])))
        with self._changing:
            episodes = self._of_the_world.setdefault(key, set())
            episodes.add(episode_id)
            if len(self._of_the_world) > _WORLD_KEPT:
                del self._of_the_world[next(iter(self._of_the_world))]
            return len(episodes) >= _WORLD

    def judged(
        self, judgement: Judgement, episode: Unsettled, solution: Solution | None, *, unseen: bool, teaches_failure: bool
    ) -> Mapping[str, Any]:
        """Say at which step a run failed, and whether known mistakes were repeated."""
        if self.options is None:
            return {}
        from cascade_memory.capabilities.warnings.blaming import blame_of, repeats_of  # most rewards need nothing of it

        engine, found = self._engine, dict[str, Any]()
        if teaches_failure:
            found["blame"] = blame_of(engine, self, judgement, episode, solution, unseen=unseen)
        if episode.watched:
            found["repeats"] = repeats_of(engine, self, judgement, episode, solution)
        return found

    def counted(self, namespace: int | None) -> Mapping[str, int]:
        """Count the warnings of a namespace, or of all."""
        return {"warnings": self.rows.count(namespace)}

    def reported(self, namespace: int | None) -> Sequence[tuple[str, str]]:
        """Say how many warnings there are and, for one namespace, how often mistakes were repeated."""
        count = self.rows.count(namespace)
        if not count:
            return ()
        tallies = [] if namespace is None else list(self.rows.tallies(namespace).values())
        return (("warnings", "; ".join([f"{count:,}", *repeats_in_words(tallies)])),)

    def left_out(self) -> Mapping[str, int]:
        """Return how many failed runs became no warning, by reason."""
        return self.unblamed

    def note_blamed(self, namespace: str) -> None:
        """Remember that a failure was stored."""
        self._blamed[namespace] = self._blamed.get(namespace, 0) + 1

    def learn(self) -> None:
        """Read new failures and results, ask for advice on new warnings, and drop old failures; errors are counted."""
        if self.options is None:
            return
        for namespace, count in list(self._blamed.items()):
            if count >= min(_TIDIED, self.options.keep) or self.options.distil is not None:
                self._attend(namespace, self._blamed.pop(namespace, 0))
        for shelf in list(self._shelves.values()):
            if not shelf.silent:
                self._try(shelf.refresh)
                self._try(shelf.count_up)

    def _attend(self, namespace: str, count: int) -> None:
        shelf, options = self.shelf(namespace), self.options
        if shelf is None or options is None:
            return
        self._try(lambda: self.rows.keep_newest(shelf.namespace_id, options.keep, since=self._engine.oldest()))
        if options.distil is not None:
            self._try(lambda: self._distil(shelf, count))

    def _distil(self, shelf: WarningShelf, count: int) -> None:
        """Ask ``distil`` for advice on warnings that have none; it is given no failures that are held back."""
        shelf.refresh()
        new = [group for group in shelf.groups() if (shelf.namespace_id, group.id) not in self._asked]
        new = [group for group in new if (one := shelf.decisions.get(group.id)) is None or one.advice is None]
        new = [group for group in new if self._trusted(shelf.name, group.failures)]
        for group in new[-_DISTILLED:]:
            self._asked.add((shelf.namespace_id, group.id))
            self._try(functools.partial(self._advise, shelf, group))
        if len(new) > _DISTILLED:
            self._blamed[shelf.name] = self._blamed.get(shelf.name, 0) + count  # go on at the next occasion

    def _advise(self, shelf: WarningShelf, group: Group) -> None:
        distil, made_from = None if self.options is None else self.options.distil, self._trusted(shelf.name, group.failures)
        told = described(shelf, made_from)
        said: object = None if distil is None else distil(told)
        if said is None:
            return
        shelf.outdate()
        shelf.refresh()  # a model takes its time: what was forgotten meanwhile must not stay in its words
        now = shelf.group(group.id)
        left = [] if now is None else self._trusted(shelf.name, now.failures)
        if not {one.key for one in made_from} <= {one.key for one in left} or described(shelf, left).instead != told.instead:
            return
        advice = self._engine.parts.door.record().take(advice=said).advice
        before = shelf.decisions.get(group.id, WarningDecision())
        decision = WarningDecision(retired=before.retired, advice=advice, by_model=True)
        self.rows.decide(shelf.namespace_id, group.id, decision, NewAction(kind="advise", note="by distil"))
        shelf.outdate()

    def _try(self, work: Callable[[], object]) -> None:
        try:
            work()
        except Exception as error:  # noqa: BLE001 - warnings are no reason to stop learning
            self._engine.note_failure("warnings", error)


PART = WarningDesk
