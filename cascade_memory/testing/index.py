"""What every ``CaseIndex`` and every ``CaseMirror`` must do, and a mirror in RAM."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cascade_memory import Case
from cascade_memory.ports import CaseIndex, CaseMirror

_DIMENSION = 8


def _vectors(n: int, seed: int = 0) -> NDArray[np.float32]:
    raw = np.random.default_rng(seed).normal(size=(n, _DIMENSION)).astype(np.float32)
    return raw / np.linalg.norm(raw, axis=1, keepdims=True)


class CaseIndexContract:
    """The tests of a ``CaseIndex``: subclass this class, return an index from ``make``, and let pytest collect the subclass.

    ``make`` returns a fresh empty index for vectors of ``dimension`` numbers.
    """

    def make(self, dimension: int) -> CaseIndex:
        """Return the index under test."""
        raise NotImplementedError

    def test_an_empty_index_finds_nothing(self) -> None:
        """Without cases there are no neighbours."""
        keys, cosines = self.make(_DIMENSION).nearest(_vectors(1)[0], 5)
        assert len(keys) == len(cosines) == 0

    def test_finds_the_nearest_best_first(self) -> None:
        """Neighbours are ordered by cosine."""
        index, vectors = self.make(_DIMENSION), _vectors(50)
        index.upsert(np.arange(1, 51), vectors)
        query = _vectors(1, seed=1)[0]
        keys, cosines = index.nearest(query, 10)
        np.testing.assert_array_equal(keys, np.argsort(-(vectors @ query), kind="stable")[:10] + 1)
        np.testing.assert_allclose(cosines, np.sort(vectors @ query)[::-1][:10], atol=1e-5)

    def test_a_cleared_index_is_empty_and_can_be_used_again(self) -> None:
        """After ``clear``, no earlier case is found."""
        index, vectors = self.make(_DIMENSION), _vectors(5)
        index.upsert(np.arange(1, 6), vectors)
        index.clear()
        assert index.count == 0
        index.upsert(np.array([9]), vectors[:1])
        np.testing.assert_array_equal(index.nearest(vectors[3], 5)[0], [9])

    def test_more_wanted_than_there_are(self) -> None:
        """If more neighbours are asked for than there are cases, all cases are returned."""
        index = self.make(_DIMENSION)
        index.upsert(np.array([3]), _vectors(1))
        assert index.nearest(_vectors(1)[0], 5)[0].tolist() == [3]

    def test_a_new_case_is_found_at_once_also_after_growth(self) -> None:
        """A case that was just added is found, also after the index had to grow."""
        index = self.make(_DIMENSION)
        for key, vector in enumerate(_vectors(300), start=1):
            index.upsert(np.array([key]), vector[None])
            assert index.nearest(vector, 1)[0].tolist() == [key]
        assert index.count == 300

    def test_upserting_a_known_key_replaces_its_vector(self) -> None:
        """If a known key is added again, its vector is replaced."""
        index, vectors = self.make(_DIMENSION), _vectors(3)
        index.upsert(np.array([1, 2]), vectors[:2])
        index.upsert(np.array([1]), vectors[2:])
        assert index.count == 2
        assert index.nearest(vectors[2], 1)[0].tolist() == [1]
        np.testing.assert_allclose(index.vectors(np.array([1]))[0], vectors[2], atol=1e-6)

    def test_what_was_removed_is_not_found(self) -> None:
        """A removed case is not found; removing an unknown key is no error."""
        index, vectors = self.make(_DIMENSION), _vectors(10)
        index.upsert(np.arange(1, 11), vectors)
        index.remove([4, 99])
        assert index.count == 9
        assert 4 not in index.nearest(vectors[3], 10)[0].tolist()

    def test_among_restricts_and_unknown_keys_among_are_ignored(self) -> None:
        """With ``among``, only the cases with these keys are searched; unknown keys are ignored."""
        index, vectors = self.make(_DIMENSION), _vectors(10)
        index.upsert(np.arange(1, 11), vectors)
        keys, _ = index.nearest(vectors[0], 10, among=np.array([2, 5, 77]))
        assert sorted(keys.tolist()) == [2, 5]
        assert len(index.nearest(vectors[0], 10, among=np.zeros(0, np.int64))[0]) == 0


class MirrorInRam:
    """A mirror that holds cases in dictionaries, to test code that feeds a mirror."""

    shared = False
    answers = True
    place = ""
    trouble = ""
    residue = ""

    def __init__(self) -> None:
        self.cases: dict[str, dict[str, tuple[Case, NDArray[np.float32]]]] = {}
        self.is_open = False

    def exists(self) -> bool:
        """Say whether the mirror holds anything."""
        return bool(self.cases)

    def seal(self) -> str:
        """Return the seal, a text by which a later change is detected: the ids of the cases."""
        return repr({name: sorted(kept) for name, kept in self.cases.items()})

    def is_sealed(self, before: str) -> bool:
        """Say whether the ids are the same as when ``seal`` returned ``before``."""
        return self.seal() == before

    def open(self) -> None:
        """Open the mirror."""
        self.is_open = True

    def upsert(self, namespace: str, cases: Sequence[Case], vectors: NDArray[np.float32]) -> None:
        """Store cases."""
        kept = self.cases.setdefault(namespace, {})
        kept.update({case.id: (case, vector) for case, vector in zip(cases, vectors, strict=True)})

    def delete(self, namespace: str, ids: Sequence[str]) -> None:
        """Remove cases."""
        for case_id in ids:
            self.cases.get(namespace, {}).pop(case_id, None)

    def drop(self, namespace: str) -> None:
        """Remove a namespace."""
        self.cases.pop(namespace, None)

    def count(self, namespace: str) -> int:
        """Return the number of cases in a namespace."""
        return len(self.cases.get(namespace, {}))

    def prepare(self, namespace: str, vector: NDArray[np.float32]) -> None:
        """Do nothing: a mirror in RAM needs no preparation."""

    def nearest_ids(self, namespace: str, vector: NDArray[np.float32], k: int) -> list[str]:
        """Return the nearest ids by an exact scan."""
        kept = self.cases.get(namespace, {})
        return sorted(kept, key=lambda case_id: -float(kept[case_id][1] @ vector))[:k]

    def close(self) -> None:
        """Close the mirror; its cases stay."""
        self.is_open = False

    def recover(self) -> bool:
        """Start again with an empty mirror; return False, since nothing of its content is left."""
        self.discard()
        return False

    def discard(self) -> None:
        """Delete everything."""
        self.cases = {}


class CaseMirrorContract:
    """The tests of a ``CaseMirror``: subclass this, return an empty one from ``make``, and let pytest collect the subclass."""

    def make(self) -> CaseMirror:
        """Return the mirror under test."""
        raise NotImplementedError

    def _fed(self) -> tuple[CaseMirror, NDArray[np.float32]]:
        mirror, vectors = self.make(), np.eye(4, dtype=np.float32)
        mirror.open()
        for namespace in ("default", "tenant/42: Zoë"):
            cases = [
                Case(id=f"{namespace}-{i}", namespace=namespace, query=f"q{i}", solution=f"s{i}", metadata={"i": i})
                for i in range(4)
            ]
            mirror.upsert(namespace, cases, vectors)
        return mirror, vectors

    def test_what_was_fed_is_found_in_its_namespace_only(self) -> None:
        """Cases are found in their own namespace, whatever its name is."""
        mirror, vectors = self._fed()
        assert mirror.count("default") == mirror.count("tenant/42: Zoë") == 4
        assert mirror.nearest_ids("default", vectors[2], 1) == ["default-2"]
        mirror.close()

    def test_feeding_again_changes_nothing(self) -> None:
        """Feeding the same batch twice is the same as feeding it once."""
        mirror, vectors = self._fed()
        mirror.upsert("default", [Case(id="default-1", namespace="default", query="q", solution="s")], vectors[1:2])
        assert mirror.count("default") == 4
        mirror.close()

    def test_deleted_cases_and_dropped_namespaces_are_gone(self) -> None:
        """Deleted cases and dropped namespaces are not counted any more; unknown ids are ignored."""
        mirror, _ = self._fed()
        mirror.delete("default", ["default-0", "nobody"])
        assert mirror.count("default") == 3
        mirror.drop("default")
        assert mirror.count("default") == 0
        assert mirror.count("tenant/42: Zoë") == 4
        mirror.close()

    def test_a_closed_mirror_is_recognised_until_it_was_changed(self) -> None:
        """A closed mirror matches its seal until it is changed; a shared mirror has no seal."""
        mirror, _ = self._fed()
        mirror.close()
        before = mirror.seal()
        assert bool(before) is not mirror.shared
        assert mirror.is_sealed(before) is not mirror.shared
        mirror.delete("default", ["default-0"])
        mirror.close()
        assert not mirror.is_sealed(before)

    def test_a_discarded_mirror_is_empty(self) -> None:
        """A discarded mirror does not exist any more."""
        mirror, _ = self._fed()
        mirror.discard()
        assert not mirror.exists()
