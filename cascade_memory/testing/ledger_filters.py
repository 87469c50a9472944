"""What every ``Ledger`` must find by metadata: a part of the contract of its core."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from cascade_memory.errors import InvalidInput
from cascade_memory.testing.ledger_material import LedgerMaterial


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
