"""What every ``Ledger`` must do."""

from __future__ import annotations

import itertools
import math
import uuid
from typing import Any

import numpy as np

from cascade_memory.domain.records import CASE_ADDED, CASE_REMOVED, CLOSED, SETTLED, NewCase, Opinion, RecallRecord, Settlement
from cascade_memory.errors import AlreadyRewarded, EpisodeClosed, UnknownEpisode
from cascade_memory.ledger.sqlite import SQLiteLedger
from cascade_memory.ports.ledger import Ledger

_VECTOR = np.array([0.6, 0.8], np.float32)


def ledger_in_ram() -> SQLiteLedger:
    """Return an empty ledger that vanishes with the process."""
    return SQLiteLedger(None)


class LedgerContract:
    """Subclass it, return a fresh empty ledger from ``make``, and let pytest collect it."""

    _ids = itertools.count()

    def make(self) -> Ledger:
        """Return the ledger under test."""
        raise NotImplementedError

    # -- material ----------------------------------------------------------------------------------------------------

    def _case(self, namespace: int = 1, query: str = "q", solution: str = "s", **options: Any) -> NewCase:
        return NewCase(
            id=str(uuid.uuid4()),
            namespace=namespace,
            query=query,
            solution=solution,
            solution_key=solution,
            pair_key=f"{query}/{solution}",
            vector=_VECTOR,
            **options,
        )

    def _recall(self, episode: str, namespace: int = 1, candidates: tuple[int, ...] = (), **options: Any) -> RecallRecord:
        n = len(candidates)
        fields: dict[str, Any] = {
            "id": str(uuid.uuid4()),
            "episode_id": episode,
            "namespace": namespace,
            "query": "q",
            "vector": _VECTOR,
            "kind": "recall",
            "k": 1,
            "at": 1.0,
            "policy": "p",
            "policy_version": 0,
            "encoder": "e",
            "candidates": np.array(candidates, np.int64),
            "groups": np.arange(n),
            "features": np.ones((n, 3), np.float32),
            "numbers": np.ones((n, 6), np.float32),
            "chosen": np.arange(min(n, 1)),
            "shown": n > 0,
            "baseline": math.nan,
            "context": np.ones(2, np.float32),
        }
        return RecallRecord(**{**fields, **options})

    def _settlement(self, episode: str, value: float, case: NewCase | None = None, **options: Any) -> Settlement:
        fields: dict[str, Any] = {
            "episode_id": episode,
            "namespace": 1,
            "value": value,
            "source": "host",
            "at": 2.0,
            "solution": None if case is None else case.solution,
            "learns": True,
            "case": case,
            "agreement": {},
            "overwrite": False,
        }
        return Settlement(**{**fields, **options})

    def _ledger(self) -> Ledger:
        ledger = self.make()
        assert ledger.namespace("default", create=True) == 1
        return ledger

    # -- tests -------------------------------------------------------------------------------------------------------

    def test_a_namespace_keeps_its_number(self) -> None:
        """And an unknown one has none until it is made."""
        ledger = self._ledger()
        assert ledger.namespace("default", create=True) == 1
        assert ledger.namespace("other", create=False) is None
        assert ledger.namespaces() == {"default": 1}

    def test_cases_come_back_whole(self) -> None:
        """By key and by id, with text, metadata and vector."""
        ledger = self._ledger()
        (case_id,) = ledger.cases.add([self._case(metadata={"tool": "search", "steps": 3})])
        rows = ledger.scan(1, 0, 10)
        np.testing.assert_allclose(rows.vectors[0], _VECTOR)
        case = ledger.cases.by_key([int(rows.keys[0])])[int(rows.keys[0])]
        assert (case.id, case.query, case.solution) == (case_id, "q", "s")
        assert dict(case.metadata) == {"tool": "search", "steps": 3}
        assert ledger.cases.by_id([case_id], 1) == [case]
        assert ledger.cases.by_id([case_id], 2) == []

    def test_the_same_pair_is_counted_not_stored_twice(self) -> None:
        """Copies do not fill the candidates."""
        ledger = self._ledger()
        first, second = ledger.cases.add([self._case(), self._case()])
        assert first == second
        assert ledger.insight.counts(1)["cases"] == 1
        assert ledger.cases.by_id([first], 1)[0].copies == 2

    def test_an_outcome_its_case_and_its_labels_become_true_together(self) -> None:
        """And are what learning reads."""
        ledger = self._ledger()
        ledger.cases.add([self._case(query="old")])
        key = int(ledger.scan(1, 0, 10).keys[0])
        recall = ledger.record(self._recall("e1", candidates=(key,)))
        labels = {recall: np.array([1.0], np.float32)}
        settled = ledger.settle(self._settlement("e1", 1.0, self._case(query="new", episode_id="e1"), agreement=labels))
        assert settled.changed
        assert settled.case_id is not None
        (feedback,) = ledger.lessons.history(1, 10)
        assert (feedback.key, feedback.reward, feedback.weight, feedback.shown) == (recall, 1.0, 1.0, True)
        assert feedback.agreement is not None
        assert feedback.agreement.tolist() == [1.0]
        assert feedback.slate.features.shape == (1, 3)
        used = ledger.cases.by_key([key])[key]
        assert (used.shown, used.succeeded) == (1, 1.0)
        episode = ledger.episodes.one("e1")
        assert episode is not None
        assert (episode.status, episode.reward, episode.cases) == ("settled", 1.0, (used.id,))

    def test_settling_twice_changes_nothing_or_is_refused(self) -> None:
        """The same value is a repeat, another one a contradiction."""
        ledger = self._ledger()
        ledger.record(self._recall("e1"))
        assert ledger.settle(self._settlement("e1", 0.0)).changed
        assert not ledger.settle(self._settlement("e1", 0.0)).changed
        try:
            ledger.settle(self._settlement("e1", 1.0))
        except AlreadyRewarded:
            pass
        else:
            raise AssertionError("a contradicting reward was taken")
        assert ledger.insight.counts(1)["rewards"] == 1

    def test_overwriting_takes_back_the_case_and_the_labels(self) -> None:
        """As if the first outcome had never been."""
        ledger = self._ledger()
        recall = ledger.record(self._recall("e1"))
        labels = {recall: np.zeros(0, np.float32)}
        ledger.settle(self._settlement("e1", 1.0, self._case(episode_id="e1"), agreement=labels))
        ledger.settle(self._settlement("e1", 0.0, overwrite=True))
        assert ledger.insight.counts(1)["cases"] == 0
        (feedback,) = ledger.lessons.history(1, 10)
        assert feedback.reward == 0.0
        assert feedback.agreement is None

    def test_recalls_of_an_episode_share_its_credit(self) -> None:
        """One half each, for two."""
        ledger = self._ledger()
        ledger.record(self._recall("e1"))
        ledger.record(self._recall("e1", query="again"))
        ledger.settle(self._settlement("e1", 1.0))
        assert [one.weight for one in ledger.lessons.history(1, 10)] == [0.5, 0.5]

    def test_a_judged_episode_says_how_its_choice_was_made(self) -> None:
        """Its arm and the probability of that; what a shadow would have shown, and the lesson as the shadow saw it."""
        ledger = self._ledger()
        ledger.cases.add([self._case(query=f"q{i}") for i in range(2)])
        keys = tuple(ledger.scan(1, 0, 10).keys.tolist())
        places, features = np.array([0.0, 1.0], np.float32), np.full((2, 4), 0.5, np.float32)
        context = np.ones(1, np.float32)
        opinion = Opinion(policy="s", places=places, propensity=places, features=features, context=context)
        options: dict[str, Any] = {"arm": "holdout", "holdout": 0.25, "shadow": opinion, "shown": False}
        ledger.record(self._recall("e1", candidates=keys, **options))
        ledger.record(self._recall("e2", candidates=keys))
        ledger.record(self._recall("e3", candidates=keys))
        ledger.settle(self._settlement("e1", 1.0))
        ledger.settle(self._settlement("e2", 0.5))
        ledger.settle(self._settlement("e3", 1.0, source="agent"))
        first, second = ledger.insight.judged(1)
        assert ledger.insight.arms(1) == {"holdout": 1}
        assert (first.arm, first.holdout, first.lesson.reward, first.showed) == ("holdout", 0.25, 1.0, False)
        assert (second.arm, second.holdout, second.lesson.reward, second.showed) == ("live", 0.0, 0.5, True)
        assert (first.shadow, first.shadow_places.tolist(), second.shadow) == ("s", [0.0, 1.0], None)
        (lesson,) = ledger.lessons.history(1, 10, shadow="s")
        assert lesson.slate.features.shape == (2, 4)
        assert lesson.context.tolist() == [1.0]
        assert ledger.lessons.history(1, 10, shadow="t") == []

    def test_a_recall_says_what_was_asked_and_what_was_offered(self) -> None:
        """So that pairs can be read again; the episode's query where the recall has none of its own."""
        ledger = self._ledger()
        ledger.cases.add([self._case(query="a"), self._case(query="b", solution="t")])
        keys = tuple(int(key) for key in ledger.newest(1, 10))
        first = ledger.record(self._recall("e1", candidates=keys))
        second = ledger.record(self._recall("e1", candidates=keys[:1], query="and then?"))
        asked, again = ledger.lessons.asked(first), ledger.lessons.asked(second)
        assert asked is not None
        assert again is not None
        assert (asked[0], asked[1].tolist()) == ("q", list(keys))
        assert (again[0], again[1].tolist()) == ("and then?", [keys[0]])
        assert ledger.lessons.asked(10_000) is None

    def test_the_newest_cases_come_in_order_of_age(self) -> None:
        """Of one namespace."""
        ledger = self._ledger()
        ledger.cases.add([self._case(query=name, solution=name) for name in "abc"])
        assert ledger.newest(1, 2).tolist() == ledger.scan(1, 0, 10).keys[1:].tolist()
        assert ledger.newest(7, 2).tolist() == []

    def test_an_unknown_a_foreign_and_a_closed_episode_are_refused(self) -> None:
        """Each with its own error."""
        ledger = self._ledger()
        ledger.record(self._recall("e1"))
        for episode, namespace in (("nobody", 1), ("e1", 2)):
            try:
                ledger.unsettled(episode, namespace)
            except UnknownEpisode:
                continue
            raise AssertionError(f"{episode} of {namespace} was found")
        assert ledger.episodes.close(["e1"], "censored") == ["e1"]
        assert ledger.episodes.close(["e1"], "expired") == []
        try:
            ledger.settle(self._settlement("e1", 1.0))
        except EpisodeClosed:
            pass
        else:
            raise AssertionError("a censored episode took a reward")
        assert ledger.lessons.history(1, 10) == []

    def test_the_log_tells_what_happened_in_order(self) -> None:
        """Whoever follows it misses nothing."""
        ledger = self._ledger()
        start = ledger.head()
        ledger.cases.add([self._case()])
        ledger.record(self._recall("e1"))
        ledger.settle(self._settlement("e1", 0.0))
        ledger.record(self._recall("e2"))
        ledger.episodes.close(["e2"], "expired")
        ledger.forgetting.forget(1, [int(ledger.scan(1, 0, 1).keys[0])])
        changes = ledger.tail(start)
        assert [change.kind for change in changes] == [CASE_ADDED, SETTLED, CLOSED, CASE_REMOVED]
        assert [change.seq for change in changes] == sorted(change.seq for change in changes)
        assert ledger.tail(changes[-1].seq) == []
        assert ledger.head() == changes[-1].seq

    def test_forgetting_a_case_forgets_the_episode_that_made_it(self) -> None:
        """Its query says the same."""
        ledger = self._ledger()
        ledger.record(self._recall("e1"))
        ledger.settle(self._settlement("e1", 1.0, self._case(episode_id="e1")))
        gone = ledger.forgetting.forget(1, [int(ledger.scan(1, 0, 1).keys[0])])
        assert gone == {"cases": 1, "episodes": 1, "recalls": 1, "outcomes": 1}
        assert ledger.episodes.one("e1") is None
        assert ledger.lessons.history(1, 10) == []

    def test_filters(self) -> None:
        """Chroma's operators; True is not 1; a missing key matches $ne."""
        ledger = self._ledger()
        fields = ({"n": 1, "t": "a"}, {"n": 2, "t": "b"}, {"n": 3.5, "on": True}, {"tags": ["x", "y"]})
        ledger.cases.add([self._case(query=f"q{i}", metadata=field) for i, field in enumerate(fields)])
        keys = ledger.scan(1, 0, 10).keys.tolist()

        def found(where: object) -> list[int]:
            return [keys.index(key) for key in ledger.filtered(1, where).tolist()]

        assert found({"n": 1}) == [0]
        assert found({"n": {"$gte": 2}}) == [1, 2]
        assert found({"n": {"$gt": 1, "$lt": 3}}) == [1]
        assert found({"t": {"$ne": "a"}}) == [1, 2, 3]
        assert found({"t": {"$in": ["a", "b"]}}) == [0, 1]
        assert found({"t": {"$nin": ["a"]}}) == [1, 2, 3]
        assert found({"$or": [{"n": 1}, {"on": True}]}) == [0, 2]
        assert found({"$and": [{"n": 2}, {"t": "b"}]}) == [1]
        assert found({"on": 1}) == []
        assert found({"tags": "y"}) == [3]
        assert ledger.filtered(2, {"n": 1}).tolist() == []

    def test_everything_travels(self) -> None:
        """What one ledger dumps, another loads; twice is once."""
        ledger, other = self._ledger(), self.make()
        ledger.cases.add([self._case(query="old", metadata={"n": 1})])
        key = int(ledger.scan(1, 0, 10).keys[0])
        recall = ledger.record(self._recall("e1", candidates=(key,)))
        case = self._case(query="new", episode_id="e1")
        ledger.settle(self._settlement("e1", 1.0, case, agreement={recall: np.array([0.0], np.float32)}))
        records = list(ledger.archive.dump())
        assert other.archive.load(records, len(_VECTOR), str) == len(records)
        assert other.archive.load(records, len(_VECTOR), str) == 0
        number = other.namespace("default", create=False)
        assert number is not None
        assert other.insight.counts(number) == ledger.insight.counts(1)
        (mine,), (theirs,) = ledger.lessons.history(1, 10), other.lessons.history(number, 10)
        np.testing.assert_allclose(mine.slate.features, theirs.slate.features)
        assert theirs.agreement is not None
        assert theirs.agreement.tolist() == [0.0]
        assert len(other.filtered(number, {"n": 1})) == 1
