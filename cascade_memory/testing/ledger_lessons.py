"""What the ``lessons`` and the ``insight`` of every ledger must do."""

from __future__ import annotations

from typing import Any

import numpy as np

from cascade_memory.domain import Column, Opinion, Solution
from cascade_memory.ports import Feedback
from cascade_memory.testing.ledger_material import LedgerMaterial


class LedgerLessonsContract(LedgerMaterial):
    """The outcomes from which policies learn."""

    def test_recalls_of_an_episode_share_its_credit(self) -> None:
        """The recalls of an episode share the weight of its outcome: of two recalls, each gets one half."""
        ledger = self._ledger()
        first = ledger.record(self._recall("e1"))
        second = ledger.record(self._recall("e1", query="again"))
        ledger.settle(self._settlement("e1", 1.0))
        assert [one.weight for one in ledger.lessons.history(1, 10)] == [0.5, 0.5]
        assert ledger.lessons.recalls_of(ledger.unsettled("e1", 1).key) == [first, second]
        assert ledger.lessons.recalls_of(10_000) == []

    def test_an_outcome_teaches_until_it_is_taken_back(self) -> None:
        """Once an outcome is replaced, policies learn from the new outcome only."""
        ledger = self._ledger()
        recall = ledger.record(self._recall("e1"))
        ledger.settle(self._settlement("e1", 1.0))
        (outcome,) = self._outcomes(ledger)
        assert [(one.key, one.reward) for one in ledger.lessons.feedback(outcome)] == [(recall, 1.0)]
        assert [one.encoder for one in ledger.lessons.history(1, 10)] == [self._recall("e1").encoder]
        ledger.settle(self._settlement("e1", 0.25, overwrite=True))
        _, second = self._outcomes(ledger)
        assert ledger.lessons.feedback(outcome) == []
        assert [one.reward for one in ledger.lessons.feedback(second)] == [0.25]

    def test_what_is_not_to_be_learned_from_teaches_nothing(self) -> None:
        """An outcome with ``learns=False`` is recorded, but policies do not learn from it."""
        ledger = self._ledger()
        ledger.record(self._recall("e1"))
        ledger.settle(self._settlement("e1", 1.0, learns=False))
        (outcome,) = self._outcomes(ledger)
        assert ledger.lessons.feedback(outcome) == ledger.lessons.history(1, 10) == []
        assert ledger.insight.rewards(1) == [(1.0, False)]

    def test_the_word_of_a_source_weighs_as_much_as_it_is_believed(self) -> None:
        """The reward of a person counts in full, that of a user half; the recalls of an episode share its weight."""
        ledger = self._ledger()
        for number, source in enumerate(("human", "user")):
            ledger.record(self._recall(f"e{number}"))
            ledger.record(self._recall(f"e{number}"))
            ledger.settle(self._settlement(f"e{number}", 1.0, source=source))
        weights = [(one.weight, one.trust) for one in ledger.lessons.history(1, 10)]
        assert weights == [(0.5, 1.0), (0.5, 1.0), (0.25, 0.5), (0.25, 0.5)]

    def test_history_is_told_oldest_first_and_ends_where_it_is_asked_to(self) -> None:
        """``history`` returns the newest outcomes of one namespace or of all, oldest first, up to the outcome ``until``."""
        ledger = self._ledger()
        other = ledger.namespace("other", create=True)
        assert other is not None
        for number, namespace in enumerate((1, 1, other, 1)):
            ledger.record(self._recall(f"e{number}", namespace))
            ledger.settle(self._settlement(f"e{number}", number / 4, namespace=namespace))
        outcomes = self._outcomes(ledger)

        def rewards_of(namespace: int | None, limit: int, **options: Any) -> list[float]:
            return [4 * one.reward for one in ledger.lessons.history(namespace, limit, **options)]

        assert rewards_of(None, 10) == [0.0, 1.0, 2.0, 3.0]
        assert rewards_of(1, 10) == [0.0, 1.0, 3.0]
        assert rewards_of(1, 2) == [1.0, 3.0]
        assert rewards_of(None, 2, until=outcomes[2]) == [1.0, 2.0]

    def test_the_last_outcome_is_known_when_it_was_forgotten(self) -> None:
        """``last_outcome`` returns the key of the last outcome even if it was forgotten; no key is used again."""
        ledger = self._ledger()
        assert ledger.lessons.last_outcome() == 0
        for episode in ("e1", "e2"):
            ledger.record(self._recall(episode))
            ledger.settle(self._settlement(episode, 1.0))
        last = self._outcomes(ledger)[-1]
        ledger.forgetting.forget_episode("e2")
        assert ledger.lessons.last_outcome() == last
        ledger.record(self._recall("e3"))
        ledger.settle(self._settlement("e3", 1.0))
        assert ledger.lessons.last_outcome() > last

    def test_a_recall_says_what_was_asked_and_what_was_offered(self) -> None:
        """``asked`` returns the query and the candidates of a recall; the training of an encoder takes its pairs from them.

        A recall without its own query has that of the episode.
        """
        ledger = self._ledger()
        ledger.cases.add([self._case(query="a"), self._case(query="b", solution="t")])
        keys = tuple(self._keys(ledger))
        first = ledger.record(self._recall("e1", candidates=keys))
        second = ledger.record(self._recall("e1", candidates=keys[:1], query="and then?"))
        asked, again = ledger.lessons.asked(first), ledger.lessons.asked(second)
        assert asked is not None
        assert again is not None
        assert (asked[0], asked[1].tolist()) == ("q", list(keys))
        assert (again[0], again[1].tolist()) == ("and then?", [keys[0]])
        assert ledger.lessons.asked(10_000) is None

    def test_whoever_learned_knows_whether_anything_was_taken_back_since(self) -> None:
        """``took_back`` says whether outcomes of a namespace were replaced, forgotten or purged since a line of the log."""
        ledger = self._ledger()
        ledger.record(self._recall("e1"))
        ledger.settle(self._settlement("e1", 1.0))
        since = ledger.head()
        ledger.cases.add([self._case()])
        assert not ledger.lessons.took_back(1, since)
        ledger.settle(self._settlement("e1", 0.0, overwrite=True))
        assert ledger.lessons.took_back(1, since)
        assert not ledger.lessons.took_back(2, since)
        since = ledger.head()
        assert not ledger.lessons.took_back(1, since)
        ledger.forgetting.forget_episode("e1")
        assert ledger.lessons.took_back(1, since)
        since = ledger.head()
        ledger.forgetting.scrub(1)
        assert ledger.lessons.took_back(1, since)

    def test_votes_are_the_recalls_in_which_something_was_verified(self) -> None:
        """``votes`` returns the recalls with a verified solution: candidates, similarity, and how far each agreed."""
        ledger = self._ledger()
        numbers = np.zeros((2, 6), np.float32)
        numbers[:, Column.SIMILARITY] = [0.75, 0.5]
        recall = ledger.record(self._recall("e1", candidates=(5, 6), numbers=numbers))
        ledger.settle(self._settlement("e1", 1.0, agreement={recall: np.array([1.0, 0.0], np.float32)}))
        ledger.record(self._recall("e2", candidates=(5, 6)))
        ledger.settle(self._settlement("e2", 0.0))
        ((keys, similarity, agreed),) = ledger.lessons.votes(1, 10)
        assert (keys.tolist(), similarity.tolist(), agreed.tolist()) == ([5, 6], [0.75, 0.5], [1.0, 0.0])
        assert ledger.lessons.votes(1, 1) == ledger.lessons.votes(2, 10) == []

    def test_a_success_says_from_which_shown_solution_it_was_made(self) -> None:
        """``descent`` says from which shown solution a new solution was made: from the one that is most like it.

        It is None if the new solution is unlike all shown ones, or if it was stored before.
        """
        ledger = self._ledger()
        ledger.cases.add([self._case(query="a", solution="open the door, go in, take the red cup")])
        ledger.cases.add([self._case(query="b", solution="select name from singer")])
        (shown, unlike), outcomes = self._keys(ledger), iter(range(100))

        def lesson(made: Solution, **options: Any) -> Feedback:
            episode = f"e{next(outcomes)}"
            fields: dict[str, Any] = {"candidates": (unlike, shown), "chosen": np.array([1]), **options}
            ledger.record(self._recall(episode, query=episode, **fields))
            case = self._case(query=episode, solution=made, episode_id=episode)
            ledger.settle(self._settlement(episode, 1.0, case))
            return ledger.lessons.feedback(self._outcomes(ledger)[-1])[0]

        made = lesson("open the door, go in, take the blue cup")
        again = lesson("open the door, go in, take the black cup")
        assert made.descent is not None
        assert again.descent is not None
        assert made.descent[1] == again.descent[1]  # both were made from the same one
        assert len({*made.descent, *again.descent}) == 3
        assert lesson("open the door, go in, take the white cup", chosen=np.array([0])).descent is None
        assert lesson("open the door, go in, take the green cup", shown=False).descent is None
        assert lesson("take this and that").descent is None
        assert lesson("open the door, go in, take the red cup").descent is None  # the shown solution itself

    def test_names_that_the_tasks_give_do_not_count_when_a_solution_was_made_from_another(self) -> None:
        """A solution counts as made from another one if the two differ only in names that their tasks give.

        A short solution is mostly such names: whoever adapts it replaces them by those of the new task.
        """
        ledger = self._ledger()
        ledger.cases.add([self._case(query="printer-7 jams", solution="restart printer-7, then clean printer-7")])
        (shown,) = self._keys(ledger)
        for query, solution, made in (
            ("router-12 hums", "restart router-12, then clean router-12", True),
            ("router-13 hums", "replace router-14, then clean router-14", False),
        ):
            ledger.record(self._recall(query, query=query, candidates=(shown,), chosen=np.array([0])))
            ledger.settle(self._settlement(query, 1.0, self._case(query=query, solution=solution, episode_id=query)))
            (lesson,) = ledger.lessons.feedback(self._outcomes(ledger)[-1])
            assert (lesson.descent is not None) == made

    def test_what_nobody_learns_from_any_more_keeps_what_was_shown(self) -> None:
        """``compact`` reduces the candidates of older recalls to the shown case, a few episodes at a time.

        The newest recalls keep all their candidates.
        """
        ledger = self._ledger()
        recalls: list[int] = []
        for number in range(4):
            recalls.append(ledger.record(self._recall(f"e{number}", candidates=(5, 6))))
            ledger.settle(self._settlement(f"e{number}", 1.0))
        assert [ledger.lessons.compact(1, 1, 2) for _ in range(3)] == [2, 1, 0]
        offered = [ledger.lessons.asked(recall) for recall in recalls]
        assert [one[1].tolist() for one in offered if one is not None] == [[5], [5], [5], [5, 6]]
        assert [one.whole for one in ledger.insight.judged(1)] == [False, False, False, True]
        assert [one.slate.features.shape for one in ledger.lessons.history(1, 1)] == [(2, 3)]
        assert ledger.insight.counts(1)["shown"] == 4


class LedgerInsightContract(LedgerMaterial):
    """Counts of what a ledger holds, and the results of its episodes."""

    def test_everything_is_counted(self) -> None:
        """``counts`` counts what one namespace holds, or what all namespaces hold together."""
        ledger = self._filled()
        counts = ledger.insight.counts(1)
        assert counts == {
            **{"cases": 3, "copies": 3, "solutions": 2, "recalls": 3, "shown": 2, "episodes": 3},
            **{"open": 1, "settled": 2, "censored": 0, "expired": 0, "reported": 0},
            **{
                "rewards": 2,
                "mean_reward": 0.5,
                "unkept_below": 1,
                "unkept_solution": 0,
                "unkept_source": 0,
                "unkept_capped": 0,
            },
        }
        assert ledger.insight.recalls(1) == 3
        assert ledger.insight.recalls(2) == ledger.insight.counts(2)["episodes"] == 0
        other = ledger.namespace("other", create=True)
        assert other is not None
        ledger.cases.add([self._case(other)])
        ledger.record(self._recall("reported", other))
        ledger.settle(self._settlement("reported", 1.0, namespace=other, source="agent", learns=False))
        assert [ledger.insight.counts(number)["reported"] for number in (1, other, None)] == [0, 1, 1]
        assert [ledger.insight.counts(number)["mean_reward"] for number in (1, None)] == [0.5, 0.5]
        assert (ledger.insight.counts(1), ledger.insight.counts(None)["cases"]) == (counts, 4)

    def test_rewards_say_whether_a_case_was_shown(self) -> None:
        """``rewards`` returns the rewards that were not withdrawn, oldest first, each with whether a case was shown."""
        ledger = self._ledger()
        ledger.record(self._recall("e1", candidates=(5,)))
        ledger.record(self._recall("e2"))
        ledger.settle(self._settlement("e2", 0.5))
        ledger.settle(self._settlement("e1", 0.0))
        ledger.settle(self._settlement("e2", 1.0, overwrite=True))
        assert ledger.insight.rewards(1) == ledger.insight.rewards(None) == [(0.0, True), (1.0, False)]
        assert ledger.insight.rewards(2) == []

    def test_a_judged_episode_says_how_its_choice_was_made(self) -> None:
        """``judged`` returns the arm of an episode, its probability, and what a shadow ranker would have shown.

        With ``shadow``, ``history`` returns the outcome with the features that the shadow uses.
        """
        ledger = self._ledger()
        ledger.cases.add([self._case(query=f"q{i}") for i in range(2)])
        keys = tuple(self._keys(ledger))
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
        assert ledger.insight.arms(1) == ledger.insight.arms(None) == {"holdout": 1}
        assert (first.arm, first.holdout, first.lesson.reward, first.showed) == ("holdout", 0.25, 1.0, False)
        assert (second.arm, second.holdout, second.lesson.reward, second.showed) == ("live", 0.0, 0.5, True)
        assert (first.shadow, first.shadow_places.tolist(), second.shadow) == ("s", [0.0, 1.0], None)
        (lesson,) = ledger.lessons.history(1, 10, shadow="s")
        assert lesson.slate.features.shape == (2, 4)
        assert lesson.context.tolist() == [1.0]
        assert ledger.lessons.history(1, 10, shadow="t") == []
        outcomes = self._outcomes(ledger)
        assert [len(ledger.lessons.feedback(outcome, shadow="s")) for outcome in outcomes] == [1, 0, 0]
