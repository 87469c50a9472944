"""What every ``PairEncoder`` must do."""

from __future__ import annotations

import numpy as np

from cascade_memory.ports import Candidates, PairEncoder, Query

DIMENSION = 16


def some_cases(n: int, seed: int = 0) -> Candidates:
    """Make n cases with words, solutions and unit vectors."""
    rng = np.random.default_rng(seed)
    words = ("cup", "lamp", "desk", "fridge", "microwave", "heat", "clean")
    vectors = rng.normal(size=(n, DIMENSION)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return Candidates(
        keys=np.arange(1, n + 1),
        texts=[" ".join(rng.choice(words, 4)) for _ in range(n)],
        heads=[f"take {word}" for word in rng.choice(words, n)],
        vectors=vectors,
        groups=rng.integers(0, 5, n),
    )


class PairEncoderContract:
    """The tests of a ``PairEncoder``: subclass this class, return one from ``make``, and let pytest collect the subclass.

    ``make`` returns a fresh encoder for vectors of ``DIMENSION`` numbers. It receives the cases whose vectors the encoder may
    look up.
    """

    def make(self, cases: Candidates) -> PairEncoder:
        """Return the encoder under test."""
        raise NotImplementedError

    def _query(self) -> Query:
        return Query(text="heat the cup", vector=some_cases(1, seed=9).vectors[0])

    def test_one_finite_row_per_candidate_for_any_number_of_them(self) -> None:
        """The features are complete and finite even before any case was retained."""
        cases = some_cases(12)
        for retained in (False, True):
            encoder = self.make(cases)
            if retained:
                encoder.retain(cases)
            for n in (1, 2, 12):
                some = Candidates(
                    keys=cases.keys[:n],
                    texts=cases.texts[:n],
                    heads=cases.heads[:n],
                    vectors=cases.vectors[:n],
                    groups=cases.groups[:n],
                )
                features = encoder.encode(self._query(), some, some.vectors @ self._query().vector)
                assert features.shape[0] == n
                assert np.isfinite(features).all()

    def test_an_emptied_encoder_knows_nothing_of_what_was_retained(self) -> None:
        """``emptied`` returns an encoder that behaves like a new one, and leaves the original unchanged."""
        cases, query = some_cases(80), self._query()
        used, fresh = self.make(cases), self.make(cases)
        used.retain(cases)
        similarity = cases.vectors @ query.vector
        before = used.encode(query, cases, similarity)
        emptied = used.emptied()
        np.testing.assert_array_equal(used.encode(query, cases, similarity), before)
        np.testing.assert_allclose(emptied.encode(query, cases, similarity), fresh.encode(query, cases, similarity), atol=1e-6)
