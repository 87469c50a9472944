"""What every ``CaseIndex`` must do."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cascade_memory.ports import CaseIndex

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
