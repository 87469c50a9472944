"""What every ``Ledger`` must do: its core."""

from __future__ import annotations

import numpy as np

from cascade_memory.domain.records import CASE_ADDED, CASE_REMOVED, CLOSED, SETTLED
from cascade_memory.errors import (
    AlreadyRewarded,
    ContentChanged,
    EncoderMismatch,
    EpisodeClosed,
    InvalidInput,
    StoreError,
    StoreUnwritable,
    UnknownEpisode,
)
from cascade_memory.testing.ledger_material import VECTOR, LedgerMaterial


class LedgerCoreContract(LedgerMaterial):
    """The ledger as a whole, its log, recalls and rewards."""

    # -- the ledger as a whole ---------------------------------------------------------------------------------------

    def test_a_namespace_keeps_its_number(self) -> None:
        """An unknown namespace has no number until it is created."""
        ledger = self._ledger()
        assert ledger.namespace("default", create=True) == 1
        assert ledger.namespace("other", create=False) is None
        assert ledger.namespaces() == {"default": 1}
        number = ledger.namespace("other", create=True)
        assert ledger.namespaces() == {"default": 1, "other": number}

    def test_the_first_write_notes_the_embedder_and_others_are_refused(self) -> None:
        """Vectors of two embedders must not be mixed."""
        ledger = self._ledger()
        ledger.bind("one")
        assert ledger.facts.get("embedder") is None
        ledger.cases.add([self._case()])
        assert ledger.facts.get("embedder") == "one"
        ledger.bind("another")
        self._refused(EncoderMismatch, lambda: ledger.cases.add([self._case(query="more")]))
        self._refused(EncoderMismatch, lambda: ledger.record(self._recall("e1")))
        self._refused(EncoderMismatch, ledger.check)
        assert ledger.cases.count(None) == 1
        assert ledger.facts.get("embedder") == "one"

    def test_a_ledger_that_is_gone_takes_nothing_more(self) -> None:
        """A write would be lost if the file was deleted or replaced. A ledger without a file skips this test."""
        ledger = self._ledger()
        ledger.check()
        ledger.check(log=False)
        assert ledger.read_only is None
        if ledger.path is not None:
            ledger.path.rename(ledger.path.with_name("elsewhere"))
            self._refused(StoreError, ledger.check)
            self._refused(StoreError, lambda: ledger.check(log=False))
            self._refused(StoreError, lambda: ledger.cases.add([self._case()]))

    def test_a_ledger_that_cannot_be_written_is_read(self) -> None:
        """``read_only`` gives the reason. Skipped if the subclass cannot make such a ledger."""
        ledger = self.unwritable()
        if ledger is not None:
            assert ledger.read_only
            assert len(ledger.namespaces()) == 1
            self._refused(StoreUnwritable, lambda: ledger.cases.add([self._case()]))
            assert ledger.cases.count(None) == 0

    def test_a_closed_ledger_says_so(self) -> None:
        """Every call after ``close`` raises, except ``close`` itself."""
        ledger = self._ledger()
        ledger.close()
        ledger.close()
        self._refused(StoreError, ledger.namespaces)
        self._refused(StoreError, lambda: ledger.cases.add([self._case()]))
        self._refused(StoreError, lambda: ledger.facts.note_event("trained", None, {}))

    # -- the log -----------------------------------------------------------------------------------------------------

    def test_the_log_tells_what_happened_in_order(self) -> None:
        """A reader of the log misses no change."""
        ledger = self._ledger()
        start = ledger.head()
        ledger.cases.add([self._case()])
        ledger.record(self._recall("e1"))
        ledger.settle(self._settlement("e1", 0.0))
        ledger.record(self._recall("e2"))
        ledger.episodes.close(["e2"], "expired")
        ledger.forgetting.forget(1, self._keys(ledger))
        changes = ledger.tail(start)
        assert [change.kind for change in changes] == [CASE_ADDED, SETTLED, CLOSED, CASE_REMOVED]
        assert [change.seq for change in changes] == sorted(change.seq for change in changes)
        assert ledger.tail(start, 2) == changes[:2]
        assert ledger.tail(changes[-1].seq) == []
        assert ledger.head() == changes[-1].seq

    # -- recall ------------------------------------------------------------------------------------------------------

    def test_the_newest_cases_come_in_order_of_age(self) -> None:
        """Only cases of one namespace are returned."""
        ledger = self._ledger()
        ledger.cases.add([self._case(query=name, solution=name) for name in "abc"])
        assert ledger.newest(1, 2).tolist() == ledger.scan(1, 0, 10).keys[1:].tolist()
        assert ledger.newest(7, 2).tolist() == []

    def test_cases_are_scanned_page_by_page(self) -> None:
        """No case is returned twice or left out, and none beyond the last key that was asked for."""
        ledger = self._ledger()
        ledger.cases.add([self._case(query=name) for name in "abcde"])
        first = ledger.scan(1, 0, 2)
        rest = ledger.scan(1, int(first.keys[-1]), 10)
        assert [*first.texts, *rest.texts] == list("abcde")
        assert rest.vectors.shape == (3, len(VECTOR))
        assert list(ledger.scan(1, 0, 10, until=int(first.keys[-1])).texts) == ["a", "b"]
        assert len(ledger.scan(1, int(rest.keys[-1]), 10)) == len(ledger.scan(2, 0, 10)) == 0

    def test_candidates_say_what_choosing_needs(self) -> None:
        """Removed cases are left out; so are, if that is asked for, cases that were not verified recently."""
        ledger = self._ledger()
        first, _, _ = ledger.cases.add(
            [
                self._case(query="a", created_at=100.0),
                self._case(query="b", solution="t", created_at=200.0),
                self._case(query="c", created_at=200.0),
            ]
        )
        keys = ledger.newest(1, 10)
        found = ledger.candidates(np.append(keys, 10_000))
        assert sorted(found) == keys.tolist()
        a, b, c = (found[int(key)] for key in keys)
        assert (a[0], a[1], a[3], b[1]) == ("a", "s", first, "t")
        assert a[2] == c[2] != b[2]
        assert sorted(ledger.candidates(keys, verified_after=150.0)) == keys[1:].tolist()

    def test_filters(self) -> None:
        """Chroma's operators; True is not 1; a missing key matches $ne."""
        ledger = self._ledger()
        fields = ({"n": 1, "t": "a"}, {"n": 2, "t": "b"}, {"n": 3.5, "on": True}, {"tags": ["x", "y"]})
        ledger.cases.add([self._case(query=f"q{i}", metadata=field) for i, field in enumerate(fields)])
        keys = self._keys(ledger)

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
        self._refused(InvalidInput, lambda: ledger.filtered(1, {"n": {"$like": 1}}))

    def test_a_recall_joins_an_open_episode_of_its_namespace_alone(self) -> None:
        """A recall cannot join an episode of another namespace, nor a closed one."""
        ledger = self._ledger()
        first = ledger.record(self._recall("e1"))
        assert ledger.record(self._recall("e1", query="again")) > first
        self._refused(UnknownEpisode, lambda: ledger.record(self._recall("e1", namespace=2)))
        ledger.episodes.close(["e1"], "censored")
        self._refused(EpisodeClosed, lambda: ledger.record(self._recall("e1")))
        assert ledger.insight.recalls(1) == 2

    def test_a_recall_that_waited_does_not_bring_back_what_was_forgotten(self) -> None:
        """Neither the case nor the episode comes back; a recall that has seen the deletion is recorded."""
        ledger = self._ledger()
        ledger.cases.add([self._case(query="a"), self._case(query="b")])
        gone, stays = self._keys(ledger)
        since = ledger.head()
        ledger.forgetting.forget(1, [gone])
        late = self._recall("late", candidates=(gone, stays), opens_episode=True)
        self._refused(UnknownEpisode, lambda: ledger.record(late, unless_forgotten_since=since))
        assert ledger.episodes.one("late") is None
        ledger.record(self._recall("other", candidates=(stays,), opens_episode=True), unless_forgotten_since=since)
        ledger.record(late, unless_forgotten_since=ledger.head())
        assert ledger.insight.recalls(1) == 2

    # -- reward ------------------------------------------------------------------------------------------------------

    def test_what_must_be_known_to_settle_an_episode(self) -> None:
        """The query and its vector, and for each recall the groups and the similarity of its candidates."""
        ledger = self._ledger()
        first = ledger.record(self._recall("e1", candidates=(5, 6), groups=np.array([3, 4])))
        second = ledger.record(self._recall("e1", query="again"))
        found = ledger.unsettled("e1", 1)
        assert (found.namespace, found.query, found.solution, found.agents_words) == (1, "q", None, False)
        np.testing.assert_allclose(found.vector, VECTOR)
        assert {key: groups.tolist() for key, groups in found.groups.items()} == {first: [3, 4], second: []}
        assert found.similarity[first].tolist() == [1.0, 1.0]
        assert ledger.unsettled("e1", None).key == found.key

    def test_an_outcome_its_case_and_its_labels_become_true_together(self) -> None:
        """After ``settle`` returns, the outcome, the case and the labels can all be read."""
        ledger = self._ledger()
        ledger.cases.add([self._case(query="old")])
        (key,) = self._keys(ledger)
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
        """Settling with the same value again changes nothing; another value is refused."""
        ledger = self._ledger()
        ledger.record(self._recall("e1"))
        assert ledger.settle(self._settlement("e1", 0.0)).changed
        assert not ledger.settle(self._settlement("e1", 0.0)).changed
        self._refused(AlreadyRewarded, lambda: ledger.settle(self._settlement("e1", 1.0)))
        assert ledger.insight.counts(1)["rewards"] == 1

    def test_overwriting_takes_back_the_case_and_the_labels(self) -> None:
        """The result is the same as if the first outcome had never existed."""
        ledger = self._ledger()
        recall = ledger.record(self._recall("e1"))
        labels = {recall: np.zeros(0, np.float32)}
        ledger.settle(self._settlement("e1", 1.0, self._case(episode_id="e1"), agreement=labels))
        ledger.settle(self._settlement("e1", 0.0, overwrite=True))
        assert ledger.insight.counts(1)["cases"] == 0
        (feedback,) = ledger.lessons.history(1, 10)
        assert feedback.reward == 0.0
        assert feedback.agreement is None

    def test_what_somebody_else_says_counts_more_than_what_an_agent_says(self) -> None:
        """Another source's reward replaces an agent's report without ``overwrite``; an agent's report never replaces one."""
        ledger = self._ledger()
        ledger.record(self._recall("e1"))
        ledger.settle(self._settlement("e1", 1.0, source="agent"))
        assert ledger.settle(self._settlement("e1", 0.0)).changed
        self._refused(AlreadyRewarded, lambda: ledger.settle(self._settlement("e1", 1.0, source="agent", overwrite=True)))
        assert ledger.insight.rewards(1) == [(0.0, False)]

    def test_only_what_was_seen_is_confirmed(self) -> None:
        """If the content of the episode has changed meanwhile, nothing is confirmed."""
        ledger = self._ledger()
        ledger.record(self._recall("e1"))
        seen = ledger.episodes.one("e1")
        assert seen is not None
        self._refused(ContentChanged, lambda: ledger.settle(self._settlement("e1", 1.0, confirms="something else")))
        assert ledger.insight.counts(1)["rewards"] == 0
        assert ledger.settle(self._settlement("e1", 1.0, confirms=seen.fingerprint)).changed

    def test_an_unknown_a_foreign_and_a_closed_episode_are_refused(self) -> None:
        """Each of them raises its own error."""
        ledger = self._ledger()
        ledger.record(self._recall("e1"))
        self._refused(UnknownEpisode, lambda: ledger.unsettled("nobody", 1))
        self._refused(UnknownEpisode, lambda: ledger.unsettled("e1", 2))
        self._refused(UnknownEpisode, lambda: ledger.settle(self._settlement("nobody", 1.0)))
        assert ledger.episodes.close(["e1"], "censored") == ["e1"]
        self._refused(EpisodeClosed, lambda: ledger.settle(self._settlement("e1", 1.0)))
        assert ledger.lessons.history(1, 10) == []
