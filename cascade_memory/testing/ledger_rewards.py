"""What every ``Ledger`` must do with rewards: a part of the contract of its core."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cascade_memory.domain import NewCase, Settled
from cascade_memory.errors import AlreadyRewarded, ContentChanged, EpisodeClosed, UnknownEpisode
from cascade_memory.ledger import Ledger
from cascade_memory.testing.ledger_material import VECTOR, LedgerMaterial


class _Unreadable:
    """Stands for labels (how far the candidates agree with the verified solution), and raises when they are read."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError("the labels cannot be read")

    def __len__(self) -> int:
        raise RuntimeError("the labels cannot be read")

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise RuntimeError("the labels cannot be read")


class LedgerRewards(LedgerMaterial):
    """Settling episodes: once, with all consequences, or not at all."""

    def test_what_must_be_known_to_settle_an_episode(self) -> None:
        """``unsettled`` returns the query, its vector, and for each recall the groups and similarity of its candidates."""
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
        """With ``overwrite``, the case and the labels of the first outcome are removed, as if it had never existed."""
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
        """``settle`` refuses a confirmation if the content of the episode is not what was seen (``confirms``)."""
        ledger = self._ledger()
        ledger.record(self._recall("e1"))
        seen = ledger.episodes.one("e1")
        assert seen is not None
        self._refused(ContentChanged, lambda: ledger.settle(self._settlement("e1", 1.0, confirms="something else")))
        assert ledger.insight.counts(1)["rewards"] == 0
        assert ledger.settle(self._settlement("e1", 1.0, confirms=seen.fingerprint)).changed

    def test_an_unknown_a_foreign_and_a_closed_episode_are_refused(self) -> None:
        """An unknown episode and one of another namespace raise ``UnknownEpisode``, a closed one raises ``EpisodeClosed``."""
        ledger = self._ledger()
        ledger.record(self._recall("e1"))
        self._refused(UnknownEpisode, lambda: ledger.unsettled("nobody", 1))
        self._refused(UnknownEpisode, lambda: ledger.unsettled("e1", 2))
        self._refused(UnknownEpisode, lambda: ledger.settle(self._settlement("nobody", 1.0)))
        assert ledger.episodes.close(["e1"], "censored") == ["e1"]
        self._refused(EpisodeClosed, lambda: ledger.settle(self._settlement("e1", 1.0)))
        assert ledger.lessons.history(1, 10) == []

    def test_what_an_actor_reports_beyond_a_cap_teaches_nothing(self) -> None:
        """An outcome beyond ``cap`` (the largest number that is learned from) is stored, but makes no case and teaches nothing.

        The cap holds for one actor, one source and one hour. The outcome is not counted for the shown cases.
        """
        ledger = self._ledger()
        ledger.cases.add([self._case(query="old")])
        (key,) = self._keys(ledger)

        def settled(number: int, **options: Any) -> Settled:
            ledger.record(self._recall(f"e{number}", candidates=(key,)))
            case = self._case(query=f"new {number}", episode_id=f"e{number}")
            return ledger.settle(self._settlement(f"e{number}", 1.0, case, **{"cap": 1, "actor": "eve", **options}))

        assert not settled(0, at=10.0).capped
        assert [settled(1, at=20.0).capped, settled(2, at=30.0).case_id] == [True, None]
        assert ledger.settle(self._settlement("e1", 1.0, cap=1, actor="eve", at=40.0)).changed is False
        assert not settled(3, at=30.0, actor="ann").capped
        assert not settled(4, at=30.0, source="user").capped
        assert not settled(5, at=30.0, cap=None).capped
        assert not settled(6, at=4_000.0).capped
        assert settled(7, at=4_001.0, cap=9).within_a_minute == 2
        counts = ledger.insight.counts(1)
        assert (counts["rewards"], counts["unkept_capped"], counts["cases"]) == (8, 2, 7)
        assert len(ledger.lessons.history(1, 20)) == 6
        assert ledger.cases.by_key([key])[key].shown == 6

    # -- given twice -------------------------------------------------------------------------------------------------

    def test_the_same_value_again_may_bring_the_solution_that_was_missing(self) -> None:
        """A second call with the solution stores the case, the labels are learned from, and the reward still counts once."""
        ledger = self._ledger()
        ledger.cases.add([self._case(query="old")])
        (key,) = self._keys(ledger)
        recall = ledger.record(self._recall("e1", candidates=(key,)))
        assert ledger.settle(self._settlement("e1", 1.0, unkept="solution")).case_id is None
        labels = {recall: np.array([1.0], np.float32)}
        second = ledger.settle(self._settlement("e1", 1.0, self._case(query="new", episode_id="e1"), agreement=labels))
        assert second.changed
        assert second.case_id is not None
        assert [case.query for case in ledger.cases.by_id([second.case_id], 1)] == ["new"]
        counts = ledger.insight.counts(1)
        assert (counts["rewards"], counts["cases"], counts["unkept_solution"]) == (1, 2, 0)
        (feedback,) = ledger.lessons.history(1, 10)
        assert feedback.agreement is not None
        assert (feedback.reward, feedback.agreement.tolist()) == (1.0, [1.0])
        used = ledger.cases.by_key([key])[key]
        assert (used.shown, used.succeeded) == (1, 1.0)
        self._refused(AlreadyRewarded, lambda: ledger.settle(self._settlement("e1", 0.5, self._case(query="other"))))

    def test_the_same_value_again_with_another_solution_changes_nothing(self) -> None:
        """If the same value comes again with another solution, the first solution stays, and ``settle`` returns its case."""
        ledger = self._ledger()
        ledger.record(self._recall("e1"))
        first = ledger.settle(self._settlement("e1", 1.0, self._case(episode_id="e1")))
        before = ledger.head()
        again = ledger.settle(self._settlement("e1", 1.0, self._case(solution="t", episode_id="e1")))
        assert (again.changed, again.case_id) == (False, first.case_id)
        assert ledger.head() == before
        episode = ledger.episodes.one("e1")
        assert episode is not None
        assert (episode.solution, ledger.cases.count(1)) == ("s", 1)

    def test_overwriting_with_the_same_value_replaces_the_solution(self) -> None:
        """The case of the first solution is removed, that of the second one is stored, and the shown case is counted once."""
        ledger = self._ledger()
        ledger.cases.add([self._case(query="shown")])
        (key,) = self._keys(ledger)
        ledger.record(self._recall("e1", candidates=(key,)))
        first = ledger.settle(self._settlement("e1", 1.0, self._case(episode_id="e1")))
        since = ledger.head()
        second = ledger.settle(self._settlement("e1", 1.0, self._case(solution="t", episode_id="e1"), overwrite=True))
        assert second.changed
        assert first.case_id is not None
        assert second.case_id not in (None, first.case_id)
        assert ledger.cases.by_id([first.case_id], 1) == []
        episode = ledger.episodes.one("e1")
        assert episode is not None
        assert (episode.solution, ledger.insight.rewards(1)) == ("t", [(1.0, True)])
        used = ledger.cases.by_key([key])[key]
        assert (used.shown, used.succeeded) == (1, 1.0)
        assert ledger.lessons.took_back(1, since)

    def test_what_was_not_to_be_learned_from_may_be_given_again_to_be_learned_from(self) -> None:
        """An outcome with ``learns=False`` is learned from after a second call with ``learns=True``, without ``overwrite``.

        A later call with ``learns=False`` changes nothing.
        """
        ledger = self._ledger()
        ledger.record(self._recall("e1"))
        ledger.settle(self._settlement("e1", 1.0, learns=False))
        assert ledger.lessons.history(1, 10) == []
        assert ledger.settle(self._settlement("e1", 1.0)).changed
        assert not ledger.settle(self._settlement("e1", 1.0, learns=False)).changed
        assert [one.reward for one in ledger.lessons.history(1, 10)] == [1.0]

    def test_metadata_that_were_given_once_go_on_to_the_case(self) -> None:
        """A later outcome without metadata keeps those of the first.

        Otherwise its case could not be found by these metadata in order to forget it.
        """
        ledger = self._ledger()
        ledger.record(self._recall("e1", metadata={"team": "blue"}))
        ledger.settle(self._settlement("e1", 1.0, metadata={"user": "ann"}))
        settled = ledger.settle(self._settlement("e1", 1.0, self._case(episode_id="e1")))
        assert settled.case_id is not None
        (case,) = ledger.cases.by_id([settled.case_id], 1)
        assert dict(case.metadata) == {"team": "blue", "user": "ann"}
        assert ledger.filtered(1, {"user": "ann"}).tolist() == self._keys(ledger)

    # -- what was forgotten meanwhile --------------------------------------------------------------------------------

    def test_labels_that_no_longer_fit_are_dropped_and_the_reward_counts(self) -> None:
        """Labels that were made before a candidate was forgotten are dropped, and the reward still counts.

        The labels would be read as those of other candidates.
        """
        ledger = self._ledger()
        ledger.cases.add([self._case(query="a"), self._case(query="b", solution="t")])
        gone, stays = self._keys(ledger)
        recall = ledger.record(self._recall("e1", candidates=(gone, stays)))
        whole = ledger.record(self._recall("e1", candidates=(stays,)))
        labels = {recall: np.array([1.0, 0.0], np.float32), whole: np.array([0.5], np.float32)}
        ledger.forgetting.forget(1, [gone])
        assert ledger.settle(self._settlement("e1", 1.0, agreement=labels)).changed
        first, second = ledger.lessons.history(1, 10)
        assert (first.key, len(first.slate), first.agreement) == (recall, 1, None)
        assert second.agreement is not None
        assert (second.key, second.agreement.tolist()) == (whole, [0.5])

    def test_labels_of_a_recall_that_is_gone_are_dropped_too(self) -> None:
        """Labels of a recall that no longer exists are dropped, and the reward still counts."""
        ledger = self._ledger()
        recall = ledger.record(self._recall("e1"))
        labels = {recall + 1_000: np.array([1.0], np.float32)}
        assert ledger.settle(self._settlement("e1", 1.0, agreement=labels)).changed
        assert [(one.reward, one.agreement) for one in ledger.lessons.history(1, 10)] == [(1.0, None)]

    def test_an_episode_that_was_forgotten_meanwhile_is_refused(self) -> None:
        """A reward for a forgotten episode is refused, and brings back neither the episode nor its case."""
        ledger = self._ledger()
        ledger.record(self._recall("e1"))
        ledger.forgetting.forget_episode("e1")
        self._refused(UnknownEpisode, lambda: ledger.settle(self._settlement("e1", 1.0, self._case(episode_id="e1"))))
        assert ledger.episodes.one("e1") is None
        assert ledger.cases.count(None) == 0

    # -- all or nothing ----------------------------------------------------------------------------------------------

    def _failing(self, ledger: Ledger) -> dict[str, Callable[[float, bool], object]]:
        """Return functions, by name, that begin to settle the episode e1 and fail halfway."""
        (taken,) = ledger.cases.by_key(self._keys(ledger)[:1]).values()
        (recall,) = ledger.lessons.recalls_of(ledger.unsettled("e1", 1).key)
        unreadable: Any = _Unreadable()

        def settle(value: float, case: NewCase, *, overwrite: bool, **options: Any) -> object:
            return ledger.settle(self._settlement("e1", value, case, overwrite=overwrite, **options))

        def with_a_taken_id(value: float, overwrite: bool) -> object:
            return settle(value, self._case(query="late", id=taken.id), overwrite=overwrite)

        def with_unreadable_labels(value: float, overwrite: bool) -> object:
            return settle(value, self._case(query="late"), overwrite=overwrite, agreement={recall: unreadable})

        return {"an id that is taken": with_a_taken_id, "labels that cannot be read": with_unreadable_labels}

    def _stands(self, ledger: Ledger) -> object:
        """Return everything in the ledger that settling can change, to compare it before and after."""
        episode, keys = ledger.episodes.one("e1"), self._keys(ledger)
        cases = [(case.id, case.query, case.copies, case.shown, case.succeeded) for case in ledger.cases.by_key(keys).values()]
        lessons = [
            (one.reward, None if one.agreement is None else one.agreement.tolist()) for one in ledger.lessons.history(1, 10)
        ]
        assert episode is not None
        state = (episode.status, episode.reward, episode.solution, episode.ended)
        return state, keys, cases, lessons, ledger.insight.counts(None), ledger.head(), ledger.lessons.last_outcome()

    def test_settling_that_fails_halfway_leaves_nothing_behind(self) -> None:
        """If settling fails halfway, no outcome, case or label is stored; the episode stays open, and can be settled later."""
        ledger = self._ledger()
        ledger.cases.add([self._case(query="old")])
        ledger.record(self._recall("e1", candidates=(self._keys(ledger)[0],)))
        ledger.episodes.finish("e1", 1, "ok", "tried")
        before = self._stands(ledger)
        for why, settle in self._failing(ledger).items():
            self._refused(Exception, lambda settle=settle: settle(1.0, False))
            assert self._stands(ledger) == before, why
        assert ledger.settle(self._settlement("e1", 1.0, self._case(query="late"))).changed

    def test_overwriting_that_fails_halfway_leaves_the_first_outcome(self) -> None:
        """If overwriting fails halfway, the first outcome keeps its case and labels, and the shown case keeps its count."""
        ledger = self._ledger()
        ledger.cases.add([self._case(query="old")])
        recall = ledger.record(self._recall("e1", candidates=(self._keys(ledger)[0],)))
        labels = {recall: np.array([0.25], np.float32)}
        ledger.settle(self._settlement("e1", 1.0, self._case(query="first", episode_id="e1"), agreement=labels))
        before = self._stands(ledger)
        for why, settle in self._failing(ledger).items():
            self._refused(Exception, lambda settle=settle: settle(0.5, True))
            assert self._stands(ledger) == before, why
