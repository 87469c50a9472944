"""The light pair encoder: nine features for each pair, in about a millisecond for a recall, without a second model.

One of them is how far the query is from the queries with the same solution, which form a cluster.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from cascade_memory.bandit.products import inverse_cholesky, product
from cascade_memory.encoders.alignment import TEXT_CHARS, Alignment, Form, NewestForms, ends_of, has_ends
from cascade_memory.encoders.lexical import Rarity, Terms, letter_terms, word_terms
from cascade_memory.ports.encoders import Candidates, FindsFurther, Query

Vectors = NDArray[np.float32]
Lookup = Callable[[NDArray[np.int64]], Vectors]  # vectors of case keys
_REFRESH_EVERY = 64  # retained cases between two updates of the covariance
_ENOUGH = 50  # deviations from cluster means that a first covariance needs
ENDS = ("opening", "closing")
# A new signal goes to the end. Rows of earlier versions lack it; there it counts as 0.
FORM, METADATA = "form", "metadata"
FEATURES = ("similarity", "cluster", "words", "letters", "solution words", *ENDS, FORM, METADATA)
_BATCH = 4_096
_LARGEST, _NUMBERS = 1e9, "fiub"  # of a signal: the limit of its values, and the kinds of numpy types that it may have


class SolutionClusters:
    """A linear discriminant between solutions, to which new cases are added as they come.

    Each solution has the mean of its queries. All solutions share one covariance of the queries around these means. Few queries
    estimate it badly, so it is mixed with a multiple of the identity; how much of each is chosen by oracle approximating
    shrinkage (Chen et al. 2010). The score of a candidate is minus half the squared Mahalanobis distance
    from the query to the mean of its solution, multiplied by n / (n + 1), since the mean of few queries is uncertain.

    For a solution with a single case, only two integers are stored: the case's vector is looked up when it is needed.
    """

    def __init__(self, dimension: int, lookup: Lookup) -> None:
        self._lookup = lookup
        self.single: dict[int, int] = {}  # solution -> the key of its only case
        self.several: dict[int, tuple[Vectors, int]] = {}  # solution -> (sum of vectors, number of cases)
        self._dimension = dimension
        self._scatter: NDArray[np.float64] | None = None  # 1.2 MB at 384 dimensions, which a small namespace does not need
        self.deviations: list[Vectors] = []  # those that are not in the covariance yet
        self._count = 0  # of deviations in the covariance
        self._retained = 0
        self._whitening: Vectors | None = None

    @property
    def scatter(self) -> NDArray[np.float64]:
        """The sum of the outer products of the deviations: the covariance, times the number of deviations."""
        return np.zeros((self._dimension, self._dimension)) if self._scatter is None else self._scatter

    def retain(self, keys: NDArray[np.int64], groups: NDArray[np.int64], vectors: Vectors) -> None:
        """Add cases to the clusters of their solutions; update the covariance once at most, however many cases there are."""
        before = self._retained // _REFRESH_EVERY
        of_keys = groups.tolist()
        # What stands alone so far and gets company now is looked up together: one by one takes twice as long.
        alone = {group: self.single[group] for group in of_keys if group in self.single}
        firsts = dict(zip(alone, self._lookup(np.array(list(alone.values()))), strict=True)) if alone else {}
        for key, group, vector in zip(keys.tolist(), of_keys, vectors, strict=True):
            self._add(key, group, vector, firsts)
        if self._retained // _REFRESH_EVERY > before:
            self._whiten()

    def _add(self, key: int, group: int, vector: Vectors, firsts: dict[int, Vectors]) -> None:
        self._retained += 1
        known = self.several.get(group)
        if known is None and group in self.single:
            alone = self.single.pop(group)
            first = firsts.pop(group) if group in firsts else self._lookup(np.array([alone]))[0]
            known = (first, 1) if first.any() else None  # else that case was evicted meanwhile
        if known is None:
            self.single[group] = key
        else:
            total, n = known
            self.deviations.append(((vector - total / n) * np.sqrt(n / (n + 1.0))).astype(np.float32))
            self.several[group] = (total + vector, n + 1)
        if self._retained % _REFRESH_EVERY == 0 and self.deviations:
            rows = np.stack(self.deviations)
            self._scatter = self.scatter + product(rows.T, rows)
            self._count += len(rows)
            self.deviations = []

    def _whiten(self) -> None:
        if self._count > _ENOUGH:
            self._whitening = whitening(self.scatter / self._count, self._count)

    def scores(self, vector: Vectors, groups: NDArray[np.int64], vectors: Vectors) -> NDArray[np.float32]:
        """Return the score of each candidate (see the class) from the query's vector and the candidates' groups and vectors."""
        distinct, first, index = np.unique(groups, return_index=True, return_inverse=True)
        means = np.empty((len(distinct), len(vector)), np.float32)
        counts = np.ones(len(distinct), np.float32)
        for i, group in enumerate(distinct.tolist()):
            known = self.several.get(group)
            if known is None:
                means[i] = vectors[first[i]]
            else:
                counts[i] = known[1]
                means[i] = known[0] / np.float32(known[1])
        away = vector - means
        if self._whitening is not None:
            away = product(away, self._whitening)
        distances = np.einsum("gd,gd->g", away, away)
        return (-0.5 * distances * counts / (counts + 1.0))[index].astype(np.float32)


def whitening(covariance: NDArray[np.float64], n: int) -> Vectors:
    """Return W such that ``|xW|^2`` is the squared Mahalanobis distance, on the scale of the squared Euclidean one.

    >>> w = whitening(np.diag([4.0, 1.0]), n=1000)
    >>> bool(abs(w[0, 0]) < abs(w[1, 1]))     # the wide direction counts less
    True
    """
    d = len(covariance)
    total, squares = float(np.trace(covariance)), float((covariance * covariance).sum())
    spread = total / d
    excess = squares - total * total / d
    numerator = (1.0 - 2.0 / d) * squares + total * total
    shrinkage = min(0.9, numerator / max((n + 1.0 - 2.0 / d) * excess, 1e-12))
    shrunk = (1.0 - shrinkage) * covariance + max(shrinkage, 1e-3) * spread * np.eye(d)
    return np.ascontiguousarray(inverse_cholesky(shrunk).T * np.sqrt(spread), np.float32)


class LightEncoder:
    """Describes a candidate in comparison with the other candidates of its recall.

    The signals are: the cosine; the distance to the cluster of its solution; shared words; shared letter sequences; words that
    the query shares with the stored *solution*; if the query has several paragraphs, shared letter sequences of the first
    paragraphs and of the last paragraphs; the form, that is how far the *solution* has the form that the query calls for
    (``ExpectedForm``); and the share of the recall's metadata that the case has as well. Each signal is standardised over the
    candidates, so that no scale has to be learned. Those of the paragraphs and the form are multiplied by a weight: how far
    stored cases with similar paragraphs, or of a similar form, have similar solutions. Where a paragraph tells the solution,
    the form counts for less.

    A changed signal is detected by its values on fixed examples (``meaning.py``), unless ``meanings`` declares its
    meaning. Declare it for a signal that depends on more than the query and the candidates, or for a built-in one whose meaning
    you changed.
    """

    identity = "light-6"
    features = FEATURES
    meanings: Mapping[str, str] = {}  # signal -> version of its meaning, which you change by hand

    def __init__(self, dimension: int, lookup: Lookup) -> None:
        self._dimension, self._lookup = dimension, lookup
        self.clusters = SolutionClusters(dimension, lookup)
        self.words, self.letters = Rarity(word_terms), Rarity(letter_terms)
        self.alignment, self.form = Alignment(), Form()
        # Finds cases of a query's form, where the form counts. It must not refer to the encoder, which would then not go away.
        self.further: FindsFurther | None = None

    def emptied(self) -> LightEncoder:
        """Return an encoder that has seen no case."""
        return type(self)(self._dimension, self._lookup)

    def retain(self, cases: Candidates) -> None:
        """Count the words of new cases and add them to the clusters of their solutions."""
        words: list[Terms] = []
        for start in range(0, len(cases.texts), _BATCH):
            texts = [text[:TEXT_CHARS] for text in cases.texts[start : start + _BATCH]]
            owners, buckets = self.words.add(texts)
            words.append((owners + np.int32(start), buckets))
            self.letters.add(texts)
        self.clusters.retain(cases.keys, cases.groups, cases.vectors)
        self.alignment.retain(cases, self.letters)
        self.form.retain(cases, words)
        self.further = functools.partial(_of_form, self.form.newest, self.words, self.alignment) if self.form.weight else None

    def encode(self, query: Query, candidates: Candidates, similarity: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return (n, 9) features, the standardised cosine first."""
        signals = self.signals(query, candidates, similarity)
        features = standardised(_table(signals, self.features, len(candidates.keys)))
        of_form = self.form.weight and self.form.weight_for(signals[FORM]) * self.alignment.leaves_open(query.text)
        for name, weight in zip((*ENDS, FORM), (*self.alignment.weights, of_form), strict=True):
            features[:, self.features.index(name)] *= weight
        return features

    def signals(self, query: Query, candidates: Candidates, similarity: NDArray[np.float32]) -> dict[str, NDArray[np.float32]]:
        """Return each signal of each candidate, on a scale of its own."""
        beginning, texts = query.text[:TEXT_CHARS], [text[:TEXT_CHARS] for text in candidates.texts]
        words, n = self.words.shared(beginning, [*texts, *candidates.heads]), len(texts)
        form = self.form.expected.likeness(beginning, texts, candidates.heads) if self.form.weight else np.zeros(n, np.float32)
        opening, closing = self._of_ends(query.text, candidates.texts)
        return {
            "similarity": similarity,
            "cluster": self.clusters.scores(query.vector, candidates.groups, candidates.vectors),
            "words": words[:n],
            "letters": self.letters.shared(beginning, texts),
            "solution words": words[n:],
            "opening": opening,
            "closing": closing,
            FORM: form,
            METADATA: np.zeros(n, np.float32) if candidates.alike is None else candidates.alike,
        }

    def _of_ends(self, query: str, texts: Sequence[str]) -> list[NDArray[np.float32]]:
        """Return how much the first paragraphs of the query and each text share, and how much the last ones do.

        These paragraphs often name the task, while the rest describes the situation.
        """
        if not self.alignment.weights.any() or not has_ends(query):
            return [np.zeros(len(texts), np.float32)] * len(ENDS)
        others = zip(*(ends_of(text) for text in texts), strict=True)
        return [self.letters.shared(end, other) for end, other in zip(ends_of(query), others, strict=True)]


def _of_form(forms: NewestForms, words: Rarity, alignment: Alignment, query: Query, k: int) -> NDArray[np.int64]:
    """Return the keys of at most k cases of the query's form, in ascending order; fewer if a paragraph tells the solution."""
    most = int(k * alignment.leaves_open(query.text))
    return forms.nearest(query.text[:TEXT_CHARS], words, most) if most else np.zeros(0, np.int64)


def _table(signals: Mapping[str, NDArray[np.float32]], names: Sequence[str], n: int) -> NDArray[np.float32]:
    """Return the signals as columns, in the order of ``names``. Refuse signals that are invalid, missing or unknown."""
    if set(signals) != set(names) or len(set(names)) < len(names):
        raise ValueError(_wrong_names(signals, names))
    columns = [signals[name] for name in names]
    try:
        table = np.stack(columns, axis=1)
        if table.shape == (n, len(names)) and table.dtype.kind in _NUMBERS and np.abs(table).max(initial=0.0) < _LARGEST:
            return table
    except (TypeError, ValueError):
        pass
    wrong = [_wrong_column(name, column, n) for name, column in zip(names, columns, strict=True)]
    raise ValueError("; ".join(filter(None, wrong)))


def _wrong_names(signals: Iterable[str], names: Sequence[str]) -> str:
    found, twice = set(signals), {name for name in names if names.count(name) > 1}
    wrong = (
        ("without a column", set(names) - found),
        ("without a name in ``features``", found - set(names)),
        ("named twice", twice),
    )
    return "signals are wrong: " + "; ".join(f"{', '.join(sorted(which))} {how}" for how, which in wrong if which)


def _wrong_column(name: str, values: object, n: int) -> str | None:
    column = np.asarray(values)
    if column.shape != (n,):
        return f"the signal {name!r} has the shape {column.shape}, not ({n},): it needs one number for each candidate"
    if column.dtype.kind not in _NUMBERS:
        return f"the signal {name!r} has values of the type {column.dtype}, which are not numbers"
    if not np.abs(column).max(initial=0.0) < _LARGEST:
        return f"the signal {name!r} has values that are nan, infinite, or beyond {_LARGEST:g}"
    return None


def standardised(columns: NDArray[np.float32]) -> NDArray[np.float32]:
    """Scale each column to mean 0 and standard deviation 1; a constant column becomes 0.

    >>> standardised(np.array([[1.0, 5.0], [3.0, 5.0]], np.float32))
    array([[-1.,  0.],
           [ 1.,  0.]], dtype=float32)
    """
    centred = columns - columns.mean(axis=0)
    deviation = centred.std(axis=0)
    # Differences below the precision of float32 mean nothing.
    flat = deviation < 1e-6 * np.maximum(np.abs(columns).max(axis=0), 1e-6)
    return np.where(flat, 0.0, centred / np.where(flat, 1.0, deviation)).astype(np.float32)
