"""The contract of ledgers finds what a second ledger is likely to do otherwise than SQLite's."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from cascade_memory.domain.records import Settled, Settlement
from cascade_memory.errors import InvalidInput
from cascade_memory.ledger.core import Ledger
from cascade_memory.ledger.lessons import SQLLessons
from cascade_memory.ledger.sqlite import SQLiteLedger
from cascade_memory.ports.policy import Feedback
from cascade_memory.testing import LedgerContract


class FirstWordStands(SQLiteLedger):
    """The same value again changes nothing, even if it brings the solution."""

    def settle(self, new: Settlement) -> Settled:
        episode = self.episodes.one(new.episode_id)
        if episode is not None and episode.reward == new.value and not new.overwrite:
            return Settled(episode_id=new.episode_id, changed=False)
        return super().settle(new)


class SameValueIsTheSame(SQLiteLedger):
    """Overwriting compares the value alone."""

    def settle(self, new: Settlement) -> Settled:
        episode = self.episodes.one(new.episode_id)
        if episode is not None and episode.reward == new.value and episode.solution is not None:
            return Settled(episode_id=new.episode_id, changed=False)
        return super().settle(new)


class LastWordStands(SQLiteLedger):
    """Another solution replaces the first one, though nobody said so."""

    def settle(self, new: Settlement) -> Settled:
        return super().settle(dataclasses.replace(new, overwrite=new.solution is not None or new.overwrite))


class WantsAllLabels(SQLiteLedger):
    """Refuses a reward whose labels do not fit, instead of dropping them."""

    def settle(self, new: Settlement) -> Settled:
        for recall, labels in new.agreement.items():
            asked = self.lessons.asked(recall)
            if not isinstance(labels, np.ndarray) or asked is None or len(asked[1]) != len(labels):
                raise InvalidInput("labels of other candidates")
        return super().settle(new)


class InTwoSteps(SQLiteLedger):
    """Stores the case first, and the outcome in a transaction of its own."""

    def settle(self, new: Settlement) -> Settled:
        if new.case is None or new.confirms is not None:
            return super().settle(new)
        without = dataclasses.replace(new, case=None)
        settled = super().settle(dataclasses.replace(without, agreement={}))
        return super().settle(dataclasses.replace(new, overwrite=True)) if settled.changed else settled


class ForgetsMetadata(SQLiteLedger):
    """A later outcome has only what it was given itself."""

    def settle(self, new: Settlement) -> Settled:
        return super().settle(dataclasses.replace(new, metadata=new.metadata or {"none": True}))


class CutsLabels(SQLiteLedger):
    """Keeps the last labels where there are too many."""

    def settle(self, new: Settlement) -> Settled:
        cut = {
            recall: labels[-len(asked[1]) :] if len(asked[1]) else labels[:0]
            for recall, labels in new.agreement.items()
            if (asked := self.lessons.asked(recall)) is not None
        }
        return super().settle(dataclasses.replace(new, agreement=cut))


class SaysNothingOfTheEncoder(SQLLessons):
    """Leaves out who wrote the features."""

    def history(self, *args: Any, **options: Any) -> list[Feedback]:
        return [dataclasses.replace(one, encoder="") for one in super().history(*args, **options)]


class Silent(SQLiteLedger):
    def __init__(self, path: None) -> None:
        super().__init__(path)
        self.lessons = SaysNothingOfTheEncoder(self.connections)


def reads(change: Callable[[str, Any], tuple[str, Any]]) -> type[SQLiteLedger]:
    """Make a ledger that reads filters otherwise: ``change`` gets each key of a filter with what belongs to it."""

    def changed(where: Any) -> Any:
        if isinstance(where, dict):
            return dict(change(key, changed(value)) for key, value in where.items())
        return [changed(one) for one in where] if isinstance(where, list) else where

    class Otherwise(SQLiteLedger):
        def filtered(self, namespace: int, where: object) -> Any:
            return super().filtered(namespace, changed(where))

    return Otherwise


def takes_for(operator: str, other: str) -> type[SQLiteLedger]:
    return reads(lambda key, value: (other if key == operator else key, value))


class ComparesNumbersWithTexts(SQLiteLedger):
    """Any text is greater than any number, as SQLite sorts them."""

    def filtered(self, namespace: int, where: object) -> Any:
        if isinstance(where, dict) and where.get("v") == {"$gte": 0}:
            where = {"$or": [where, {"v": {"$gte": ""}}]}
        return super().filtered(namespace, where)


class FindsAllByNothing(SQLiteLedger):
    """An empty filter matches everything."""

    def filtered(self, namespace: int, where: object) -> Any:
        return super().filtered(namespace, where) if where else self.newest(namespace, 1_000)


BROKEN: dict[str, tuple[type[SQLiteLedger], str]] = {
    "the first word stands": (FirstWordStands, "test_the_same_value_again_may_bring_the_solution_that_was_missing"),
    "the first word stands, learned from or not": (
        FirstWordStands,
        "test_what_was_not_to_be_learned_from_may_be_given_again_to_be_learned_from",
    ),
    "the same value is the same": (SameValueIsTheSame, "test_overwriting_with_the_same_value_replaces_the_solution"),
    "the last word stands": (LastWordStands, "test_the_same_value_again_with_another_solution_changes_nothing"),
    "metadata are forgotten": (ForgetsMetadata, "test_metadata_that_were_given_once_go_on_to_the_case"),
    "all labels are wanted": (WantsAllLabels, "test_labels_that_no_longer_fit_are_dropped_and_the_reward_counts"),
    "labels of what is gone": (WantsAllLabels, "test_labels_of_a_recall_that_is_gone_are_dropped_too"),
    "labels are cut": (CutsLabels, "test_labels_that_no_longer_fit_are_dropped_and_the_reward_counts"),
    "nothing of the encoder": (Silent, "test_an_outcome_teaches_until_it_is_taken_back"),
    "in two steps": (InTwoSteps, "test_settling_that_fails_halfway_leaves_nothing_behind"),
    "overwriting in two steps": (InTwoSteps, "test_overwriting_that_fails_halfway_leaves_the_first_outcome"),
    "$lte": (takes_for("$lte", "$lt"), "test_filters"),
    "$gte": (takes_for("$gte", "$gt"), "test_filters"),
    "$gt": (takes_for("$gt", "$gte"), "test_filters"),
    "$lt": (takes_for("$lt", "$lte"), "test_filters"),
    "$nin": (takes_for("$nin", "$in"), "test_filters"),
    "$ne": (takes_for("$ne", "$eq"), "test_filters"),
    "$or": (takes_for("$or", "$and"), "test_conditions_can_be_nested"),
    "$and": (takes_for("$and", "$or"), "test_conditions_can_be_nested"),
    "True is 1": (reads(lambda key, value: (key, 1 if value is True else value)), "test_filters"),
    "the first value of $in": (reads(lambda key, value: (key, value[:1] if key == "$in" else value)), "test_filters"),
    "numbers are compared with texts": (
        ComparesNumbersWithTexts,
        "test_texts_are_compared_with_texts_and_numbers_with_numbers",
    ),
    "an empty filter is everything": (FindsAllByNothing, "test_what_is_no_filter_is_refused"),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_ledger_that_does_otherwise_is_caught(kind: str):
    broken, test = BROKEN[kind]

    class Contract(LedgerContract):
        def make(self) -> Ledger:
            return broken(None)

    with pytest.raises((AssertionError, InvalidInput)):
        getattr(Contract(), test)()
