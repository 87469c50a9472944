"""What every ``Embedder`` and every ``SolutionMatcher`` must do."""

from __future__ import annotations

import math

import numpy as np

from cascade_memory import Step, Trajectory
from cascade_memory.ports import Embedder, SolutionMatcher

_TEXTS = ("heat the cup", "price of gold", "Zoë mesure 3 µm — 長い文章")


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
