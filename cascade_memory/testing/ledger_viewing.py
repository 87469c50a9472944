"""What the ``viewing`` of every ledger must do."""

from __future__ import annotations

import numpy as np

from cascade_memory.errors import InvalidInput
from cascade_memory.testing.ledger_material import VECTOR, LedgerMaterial


class LedgerViewingContract(LedgerMaterial):
    """Tests of what people view, a page at a time: cases, recalls and outcomes."""

    def test_cases_come_in_the_order_that_was_asked_for_page_by_page(self) -> None:
        """``cases`` returns pages in the wanted order; each begins after the last entry of the page before, without repeats."""
        ledger = self._ledger()
        ledger.cases.add([self._case(query=f"q{number}", solution=f"s{number}") for number in range(5)])
        keys = self._keys(ledger)
        recall = ledger.record(self._recall("e1", candidates=(keys[2],)))
        ledger.settle(self._settlement("e1", 1.0, agreement={recall: np.array([1.0], np.float32)}))
        for sort, wanted in (
            ("newest", keys[::-1]),
            ("oldest", keys),
            ("shown", [keys[2], keys[4], keys[3], keys[1], keys[0]]),
            ("successes", [keys[2], keys[4], keys[3], keys[1], keys[0]]),
            ("use", [keys[2], keys[4], keys[3], keys[1], keys[0]]),
        ):
            seen: list[int] = []
            after = None
            while page := ledger.viewing.cases(1, 2, sort=sort, after=after):
                seen += [key for _, key in page]
                after = page[-1]
            assert seen == wanted, sort
        self._refused(InvalidInput, lambda: ledger.viewing.cases(1, 2, sort="best"))

    def test_every_word_of_a_search_must_occur(self) -> None:
        """A search finds the cases with every given word; ASCII capitals do not matter, and no character is a wildcard."""
        ledger = self._ledger()
        ledger.cases.add(
            [
                self._case(query="Heat the MUG", solution="100% in the oven"),
                self._case(query="heat some_egg!", solution="microwave"),
                self._case(query="ask Zoë", solution="call her"),
            ]
        )
        first, second, third = self._keys(ledger)
        for words, wanted in (
            (["heat"], [second, first]),
            (["heat", "oven"], [first]),
            (["100%"], [first]),
            (["0% in"], [first]),
            (["t_e"], []),
            (["e_e"], [second]),
            (["%"], [first]),
            (["egg!"], [second]),
            (["zoë"], [third]),
            (["'; --"], []),
        ):
            assert [key for _, key in ledger.viewing.cases(1, 10, words=words)] == wanted, words

    def test_cases_are_filtered_by_source_metadata_and_state(self) -> None:
        """The filters can be combined: a case must pass all of them."""
        ledger = self._ledger()
        ledger.cases.add([self._case(query="a", source="human", metadata={"n": 1}), self._case(query="b", metadata={"n": 2})])
        first, second = self._keys(ledger)
        assert [key for _, key in ledger.viewing.cases(1, 10, source="human")] == [first]
        assert [key for _, key in ledger.viewing.cases(1, 10, where={"n": {"$gte": 2}})] == [second]
        assert ledger.viewing.cases(1, 10, source="human", where={"n": 2}) == []
        assert ledger.viewing.cases(1, 10, state="hidden") == ledger.viewing.cases(1, 10, state="pinned") == []
        assert ledger.viewing.cases(2, 10) == []

    def test_the_use_and_the_names_of_cases_are_read_without_their_texts(self) -> None:
        """``use`` has one row for each case: key, novelty, how often it was shown, and how often it succeeded."""
        ledger = self._filled()
        keys = self._keys(ledger)
        use = ledger.viewing.use(1)
        assert sorted(use[:, 0].astype(int).tolist()) == keys
        assert use.shape == (3, 4)
        assert ledger.viewing.use(10_000).shape == (0, 4)
        names = ledger.viewing.named([*keys, 10_000])
        assert [names[key][1] for key in keys] == ["old", "older", "new"]
        vector = ledger.viewing.vector(keys[0])
        assert vector is not None
        assert np.array_equal(vector, VECTOR)
        assert ledger.viewing.vector(10_000) is None

    def test_a_recall_is_read_as_it_was_recorded(self) -> None:
        """A recall is read with its candidates, its numbers and its signals."""
        ledger = self._filled()
        (recall,) = ledger.viewing.recalls("e1")
        assert (recall.query, recall.k, recall.policy, recall.shown, recall.forgot) == ("q", 1, "p", True, False)
        assert recall.candidates.tolist() == self._keys(ledger)[:1]
        assert (recall.numbers.shape, recall.features.shape, recall.chosen.tolist()) == ((1, 6), (1, 3), [0])
        assert ledger.viewing.recalls("nobody") == []

    def test_replaced_outcomes_are_part_of_the_history(self) -> None:
        """``outcomes`` lists an episode's outcomes, replaced ones too; ``verifications`` returns those that verify a case."""
        ledger = self._filled()
        ledger.settle(self._settlement("e1", 0.25, overwrite=True))
        history = ledger.viewing.outcomes("e1")
        assert [(one.value, one.withdrawn_at is None) for one in history] == [(1.0, False), (0.25, True)]
        assert history[0].episode_id == "e1"
        second = self._case(query="again", episode_id="e3")
        ledger.settle(self._settlement("e3", 1.0, second))
        (verified,) = ledger.viewing.verifications(self._keys(ledger)[-1])
        assert (verified.episode_id, verified.case_id, verified.solution) == ("e3", second.id, "s")

    def test_the_episodes_that_were_shown_a_case_are_found_some_recalls_at_a_time(self) -> None:
        """``shown_in`` returns the episodes in which a case was shown, newest first, some recalls at a time."""
        ledger = self._filled()
        key = self._keys(ledger)[0]
        found, going_on = ledger.viewing.shown_in(1, key, 10)
        assert [one.id for one in found] == ["e2", "e1"]
        assert going_on is None
        first, going_on = ledger.viewing.shown_in(1, key, 1)
        assert [one.id for one in first] == ["e2"]
        assert going_on is not None
        assert [one.id for one in ledger.viewing.shown_in(1, key, 10, before=going_on)[0]] == ["e1"]
        assert ledger.viewing.shown_in(1, 10_000, 10) == ([], None)
