"""What every ``Embedder``, every ``SolutionMatcher`` and every ``PairEncoder`` must do."""

from __future__ import annotations

import math

import numpy as np

from cascade_memory import Step, Trajectory
from cascade_memory.ports import Candidates, Embedder, PairEncoder, Query, SolutionMatcher

_TEXTS = ("heat the cup", "price of gold", "Zoë mesure 3 µm — 長い文章")
DIMENSION = 16


class EmbedderContract:
    """The tests of an ``Embedder``: subclass this, return a fresh one from ``make``, and let pytest collect the subclass."""

    def make(self) -> Embedder:
        """Return the embedder under test."""
        raise NotImplementedError

    def test_one_finite_row_of_the_declared_length_per_text(self) -> None:
        """The shape is (n, dimension) and every number is finite."""
        embedder = self.make()
        vectors = np.asarray(embedder.embed(list(_TEXTS)))
        assert vectors.shape == (len(_TEXTS), embedder.dimension)
        assert np.isfinite(vectors).all()
        assert (np.linalg.norm(vectors, axis=1) > 0).all()

    def test_no_texts_give_no_rows(self) -> None:
        """An empty batch is allowed."""
        embedder = self.make()
        assert np.asarray(embedder.embed([])).shape == (0, embedder.dimension)

    def test_same_text_same_vector_alone_or_in_company(self) -> None:
        """A vector does not depend on the batch, up to rounding."""
        embedder = self.make()
        together, alone = embedder.embed(list(_TEXTS)), embedder.embed([_TEXTS[1]])
        np.testing.assert_allclose(together[1], alone[0], atol=1e-5)

    def test_identity_is_stable_and_not_empty(self) -> None:
        """Two embedders that are created in the same way have the same identity."""
        assert self.make().identity
        assert self.make().identity == self.make().identity

    def test_near_wordings_are_nearer_than_strangers(self) -> None:
        """Similar texts have similar vectors."""
        near, far, query = self.make().embed(["heat the cup in the microwave", "gold prices fell", "heat a cup in a microwave"])
        cosine = [float(v @ query / np.linalg.norm(v) / np.linalg.norm(query)) for v in (near, far)]
        assert cosine[0] > cosine[1]


class SolutionMatcherContract:
    """The tests of a ``SolutionMatcher``: subclass this, return one from ``make``, and let pytest collect the subclass."""

    def make(self) -> SolutionMatcher:
        """Return the matcher under test."""
        raise NotImplementedError

    def test_one_answer_per_stored_solution_in_the_unit_interval_or_unknown(self) -> None:
        """Each stored solution, text or trajectory, equal or not, gets a number from 0 to 1, or NaN for unknown."""
        walk = Trajectory([Step(action="look")])
        answers = self.make().agreement("Paris", ["Paris", "paris ", "Lyon", walk])
        assert len(answers) == 4
        assert all(math.isnan(one) or 0.0 <= one <= 1.0 for one in answers)
        assert list(self.make().agreement("Paris", [])) == []

    def test_equal_keys_agree(self) -> None:
        """Solutions with equal keys must agree fully, since clusters are built by key."""
        matcher = self.make()
        assert matcher.key("Paris") == matcher.key("Paris")
        assert matcher.agreement("Paris", ["Paris"])[0] == 1.0


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
