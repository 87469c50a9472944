"""What every ``Ledger`` must do: its core, and what it must find by metadata."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from cascade_memory.domain import CASE_ADDED, CASE_REMOVED, CLOSED, SETTLED
from cascade_memory.errors import EncoderMismatch, EpisodeClosed, InvalidInput, StoreError, StoreUnwritable, UnknownEpisode
from cascade_memory.testing.ledger_material import VECTOR, LedgerMaterial
from cascade_memory.testing.ledger_rewards import LedgerRewards


def _nested(depth: int) -> dict[str, Any]:
    where: dict[str, Any] = {"a": 1}
    for _ in range(depth):
        where = {"$and": [where]}
    return where


class LedgerFilters(LedgerMaterial):
    """Tests of Chroma's operators on metadata; as in Chroma, ``$ne`` and ``$nin`` also match cases without the key."""

    def _finder(self, *fields: Mapping[str, Any]) -> Callable[[object], list[int]]:
        """Store one case for each of these metadata; return a function that lists the places of those that match."""
        ledger = self._ledger()
        ledger.cases.add([self._case(query=f"q{i}", metadata=field) for i, field in enumerate(fields)])
        keys = self._keys(ledger)
        return lambda where: [keys.index(key) for key in ledger.filtered(1, where).tolist()]

    def test_filters(self) -> None:
        """Every operator works, alone and with others; True is not 1; a missing key matches $ne."""
        found = self._finder({"n": 1, "t": "a"}, {"n": 2, "t": "b"}, {"n": 3.5, "on": True}, {"tags": ["x", "y"]})
        assert found({"n": 1}) == found({"n": {"$eq": 1}}) == found({"n": 1.0}) == [0]
        assert found({"n": {"$gt": 2}}) == [2]
        assert found({"n": {"$gte": 2}}) == [1, 2]
        assert found({"n": {"$lt": 2}}) == [0]
        assert found({"n": {"$lte": 2}}) == [0, 1]
        assert found({"n": {"$gt": 1, "$lt": 3}}) == [1]
        assert found({"t": {"$ne": "a"}}) == [1, 2, 3]
        assert found({"t": {"$in": ["a", "b"]}}) == [0, 1]
        assert found({"n": {"$in": [2, 3.5, 7]}}) == [1, 2]
        assert found({"t": {"$nin": ["a"]}}) == [1, 2, 3]
        assert found({"t": {"$nin": ["a", "b"]}}) == [2, 3]
        assert found({"$or": [{"n": 1}, {"on": True}]}) == [0, 2]
        assert found({"$and": [{"n": 2}, {"t": "b"}]}) == [1]
        assert found({"n": 2, "t": "b"}) == [1]
        assert found({"n": 2, "t": "a"}) == []
        assert found({"on": 1}) == found({"n": True}) == []
        assert found({"on": {"$in": [1, True]}}) == [2]
        assert found({"on": {"$ne": 1}}) == [0, 1, 2, 3]
        assert found({"tags": "y"}) == [3]

    def test_conditions_can_be_nested(self) -> None:
        """$and may stand within $or, and $or within $and, beside conditions on fields."""
        found = self._finder({"n": 1, "t": "a"}, {"n": 2, "t": "a"}, {"n": 3, "t": "b"}, {"n": 3, "t": "c"})
        assert found({"$or": [{"$and": [{"n": 1}, {"t": "a"}]}, {"$and": [{"n": 3}, {"t": "c"}]}]}) == [0, 3]
        assert found({"$and": [{"$or": [{"n": 1}, {"n": 3}]}, {"t": {"$ne": "b"}}]}) == [0, 3]
        assert found({"t": "a", "$or": [{"n": 2}, {"n": 3}]}) == [1]
        assert found({"$and": [{"t": {"$ne": "a"}}, {"n": {"$lt": 3}}]}) == []

    def test_many_conditions_at_once(self) -> None:
        """With nearly as many conditions as a filter may have, each of them counts, also the last, and it takes no minutes."""
        many = {f"f{i}": i for i in range(190)}
        found = self._finder({**many, "n": 1, "t": "a"}, {**many, "n": 2}, {**many, "f189": 0, "n": 1}, {"n": 1})
        last: list[tuple[dict[str, Any], list[int]]] = [
            ({"n": 1}, [0]),
            ({"n": {"$gt": 1}}, [1]),
            ({"n": {"$in": [1, 2]}}, [0, 1]),
            ({"n": {"$ne": 1}}, [1]),
            ({"n": {"$nin": [2]}}, [0]),
            ({"t": {"$ne": "a"}}, [1]),
            ({"$or": [{"n": 2}, {"t": "a"}]}, [0, 1]),
        ]
        for one, expected in last:
            assert found({**many, **one}) == found({"$and": [one, *({name: n} for name, n in many.items())]}) == expected
        assert found({**{name: n for name, n in many.items() if n < 189}, "n": 1}) == [0, 2]

    def test_texts_are_compared_with_texts_and_numbers_with_numbers(self) -> None:
        """A number is neither greater nor less than a text or a boolean."""
        found = self._finder({"v": 5}, {"v": "5"}, {"v": "b"}, {"v": True}, {"v": 0.5}, {"v": ""})
        assert found({"v": {"$gte": 0}}) == [0, 4]
        assert found({"v": {"$lt": 100}}) == [0, 4]
        assert found({"v": {"$gte": ""}}) == [1, 2, 5]
        assert found({"v": {"$gt": "5"}}) == [2]
        assert found({"v": {"$lte": "5"}}) == [1, 5]
        assert found({"v": "5"}) == [1]
        assert found({"v": ""}) == [5]

    def test_a_list_matches_by_any_of_its_values(self) -> None:
        """A list matches if one of its values matches; ``$ne`` and ``$nin`` match only lists that have none of the values."""
        found = self._finder({"tags": ["x", "y"]}, {"tags": ["y"]}, {"tags": "x"}, {})
        assert found({"tags": "y"}) == [0, 1]
        assert found({"tags": {"$in": ["x", "z"]}}) == [0, 2]
        assert found({"tags": {"$ne": "x"}}) == [1, 3]
        assert found({"tags": {"$nin": ["x", "y"]}}) == [3]
        assert found({"$and": [{"tags": "x"}, {"tags": "y"}]}) == [0]

    def test_what_is_gone_or_elsewhere_is_not_found(self) -> None:
        """Only cases of the namespace that are still there are found, each once."""
        ledger = self._ledger()
        other = ledger.namespace("other", create=True)
        assert other is not None
        both = {"user": "ann", "tags": ["x", "y"]}
        ledger.cases.add([self._case(query="a", metadata=both), self._case(query="b", metadata=both)])
        ledger.cases.add([self._case(other, query="a", metadata=both)])
        gone, stays = self._keys(ledger)
        assert ledger.filtered(1, {"tags": {"$in": ["x", "y"]}}).tolist() == [gone, stays]
        ledger.forgetting.forget(1, [gone])
        assert ledger.filtered(1, {"user": "ann"}).tolist() == ledger.filtered(1, {"user": {"$ne": "bob"}}).tolist() == [stays]
        ledger.cases.evict([stays])
        assert ledger.filtered(1, {"user": "ann"}).tolist() == ledger.filtered(1, {"user": {"$ne": "bob"}}).tolist() == []
        assert ledger.filtered(other, {"user": "ann"}).tolist() == self._keys(ledger, other)
        assert ledger.filtered(7, {"user": "ann"}).tolist() == []

    def test_what_is_no_filter_is_refused(self) -> None:
        """A wrong filter must raise an error, instead of matching everything or nothing."""
        ledger = self._ledger()
        wrong: list[object] = [
            *(None, "a", [], {}, {"a": {}}, {"a": None}, {"a": [1]}, {"a": float("nan")}, {1: "a"}),
            *({"$and": []}, {"$or": {"a": 1}}, {"$and": ["a"]}, {"$not": [{"a": 1}]}, {"$or": [{}]}),
            *({"a": {"$like": 1}}, {"a": {"$in": []}}, {"a": {"$nin": "xy"}}, {"a": {"$gt": True}}, {"a": {"$lte": [1]}}),
            _nested(2_000),
        ]
        for where in wrong:
            self._refused(InvalidInput, lambda where=where: ledger.filtered(1, where))


class LedgerCoreContract(LedgerRewards, LedgerFilters):
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
        """After the first write, a process with another embedder gets an error, since their vectors must not be mixed."""
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
        """If the file was moved, deleted or replaced, a write raises ``StoreError``, since it would be lost.

        A ledger without a file skips this test.
        """
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
        """A ledger that cannot be written can be read, and ``read_only`` says why it cannot be written.

        The test is skipped if the subclass cannot make such a ledger.
        """
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
        """``tail`` returns the entries of the log after a line, in the order in which the changes happened."""
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
        assert ledger.tail(start, 1, namespace=1) == changes[:1]
        assert ledger.tail(start, namespace=2) == []
        assert ledger.head() == changes[-1].seq

    # -- recall ------------------------------------------------------------------------------------------------------

    def test_the_newest_cases_come_in_order_of_age(self) -> None:
        """``newest`` returns the keys of the newest cases of one namespace, oldest first."""
        ledger = self._ledger()
        ledger.cases.add([self._case(query=name, solution=name) for name in "abc"])
        assert ledger.newest(1, 2).tolist() == ledger.scan(1, 0, 10).keys[1:].tolist()
        assert ledger.newest(7, 2).tolist() == []

    def test_cases_are_scanned_page_by_page(self) -> None:
        """``scan`` returns each case once, page by page, and none with a key above ``until``."""
        ledger = self._ledger()
        ledger.cases.add([self._case(query=name) for name in "abcde"])
        first = ledger.scan(1, 0, 2)
        rest = ledger.scan(1, int(first.keys[-1]), 10)
        assert [*first.texts, *rest.texts] == list("abcde")
        assert rest.vectors.shape == (3, len(VECTOR))
        assert list(ledger.scan(1, 0, 10, until=int(first.keys[-1])).texts) == ["a", "b"]
        assert len(ledger.scan(1, int(rest.keys[-1]), 10)) == len(ledger.scan(2, 0, 10)) == 0

    def test_candidates_say_what_choosing_needs(self) -> None:
        """``candidates`` leaves out removed cases and, with ``verified_after``, cases last verified before that time."""
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

    def test_a_recall_joins_an_open_episode_of_its_namespace_alone(self) -> None:
        """A recall cannot join an episode of another namespace, nor a closed one."""
        ledger = self._ledger()
        first = ledger.record(self._recall("e1"))
        assert ledger.record(self._recall("e1", query="again")) > first
        assert ledger.namespace("other", create=True) == 2
        self._refused(UnknownEpisode, lambda: ledger.record(self._recall("e1", namespace=2)))
        ledger.episodes.close(["e1"], "censored")
        self._refused(EpisodeClosed, lambda: ledger.record(self._recall("e1")))
        assert ledger.insight.recalls(1) == 2

    def test_a_recall_that_waited_does_not_bring_back_what_was_forgotten(self) -> None:
        """A recall is refused if one of its candidates was forgotten since it was made; its episode is not opened.

        A recall that was made after the deletion is recorded.
        """
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
