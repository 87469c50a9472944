"""Which words and letter sequences two texts share, weighted by how rare these are among the stored cases.

All computations are vectorised over bytes: 64 short texts take a fraction of a millisecond. No vocabulary and no text is
stored, only a count for each hash bucket.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

_BITS = 16
BUCKETS = 1 << _BITS
MAX_TEXTS = 1 << 15  # in one call, since the number of the text and the bucket share 31 bits
_FEW = 1_024  # buckets in use; with more, a table of all buckets is quicker, and is worth its memory
_COMMON = 0.05  # share of the texts that have a term which counts half as common
_SEPARATOR = 0  # a byte that no stored text contains; in other texts it counts as a space
_PRIME = np.uint32(0x9E3779B1)
_SHIFT = np.uint32(16)
_IS_WORD = np.zeros(256, bool)
_IS_WORD[[*range(48, 58), *range(65, 91), *range(97, 123), 95, *range(128, 256)]] = True
_POWERS = (np.uint64(31) ** np.arange(64, dtype=np.uint64)).astype(np.uint32)

Terms = tuple[NDArray[np.int32], NDArray[np.int32]]  # (which text, which bucket), sorted, each pair once

_NOTHING: Terms = (np.zeros(0, np.int32), np.zeros(0, np.int32))


def letter_terms(texts: Sequence[str]) -> Terms:
    """Return each hashed sequence of four bytes that occurs in a text, as two arrays (which text, which bucket).

    >>> owners, buckets = letter_terms(["abcd", "abcd"])
    >>> len(buckets) == len(set(buckets)) * 2     # the same sequences, once for each text
    True
    """
    data, owners = _bytes(texts)
    if len(data) < 4:
        return _NOTHING
    wide = data.astype(np.uint32)
    runs = wide[:-3] | wide[1:-2] << np.uint32(8) | wide[2:-1] << np.uint32(16) | wide[3:] << np.uint32(24)
    inside = (owners[:-3] == owners[3:]) & (data[:-3] != _SEPARATOR)
    return _unique(owners[:-3][inside], runs[inside])


def word_terms(texts: Sequence[str], *, pairs: bool = False) -> Terms:
    """Return each hashed word that occurs in a text, as two arrays (which text, which bucket).

    With ``pairs``, return each pair of adjacent words as well.

    >>> owners, buckets = word_terms(["The cup, the CUP!", "a cup"])
    >>> owners.tolist()
    [0, 0, 1, 1]
    >>> owners, buckets = word_terms(["by size", "size by"], pairs=True)
    >>> owners.tolist(), len(set(buckets.tolist()))
    ([0, 0, 0, 1, 1, 1], 4)
    """
    data, owners = _bytes(texts)
    is_word = _IS_WORD.take(data)
    starts = np.flatnonzero(is_word[1:] > is_word[:-1]) + 1  # the first byte is a blank
    if not len(starts):
        return _NOTHING
    start = np.zeros(len(data), np.int64)  # where the word of each byte begins
    start[starts] = starts
    positions = np.arange(len(data)) - np.maximum.accumulate(start, out=start)
    values = (data + np.uint32(1)) * _POWERS.take(positions, mode="clip") * is_word
    owners, words = owners[starts], np.add.reduceat(values, starts, dtype=np.uint32)
    if pairs:
        together = owners[:-1] == owners[1:]
        words = np.concatenate([words, (words[:-1] * np.uint32(31) + words[1:])[together]])
        owners = np.concatenate([owners, owners[:-1][together]])
    return _unique(owners, words)


def _bytes(texts: Sequence[str]) -> tuple[NDArray[np.uint8], NDArray[np.int32]]:
    joined = " \x00 ".join(text.replace("\x00", " ") for text in texts)
    data = np.frombuffer(f" {joined} ".lower().encode("utf-8", "replace"), np.uint8)
    return data, (data == _SEPARATOR).cumsum(dtype=np.int32)


def _unique(owners: NDArray[np.int32], codes: NDArray[np.uint32]) -> Terms:
    buckets = (codes * _PRIME) >> _SHIFT  # Fibonacci hashing: the high bits are well mixed
    pairs = owners * np.int32(BUCKETS) + buckets.astype(np.int32)  # int32 sorts several times faster than int64
    pairs.sort()
    new = np.empty(len(pairs), bool)
    new[:1] = True
    np.not_equal(pairs[1:], pairs[:-1], out=new[1:])
    pairs = pairs[new]
    return pairs >> _BITS, pairs & (BUCKETS - 1)


class Tally:
    """Counts how often each of ``buckets`` hash buckets occurs, in little memory while few buckets are in use.

    At first the counts are kept for the buckets in use alone, later in a table of all buckets, which is 256 KB for 65,536.
    Other threads may read while one thread adds.

    >>> tally = Tally(8)
    >>> tally.add(np.array([3, 3, 5], np.int32))
    >>> tally.of(np.array([5, 3, 0], np.int32))
    array([1., 2., 0.], dtype=float32)
    """

    def __init__(self, buckets: int) -> None:
        self._buckets = buckets
        # The buckets in use, ascending, and the count of each: replaced as a whole, for the readers.
        self._few = (np.zeros(0, np.int32), np.zeros(0, np.float32))
        self._table: NDArray[np.float32] | None = None

    def add(self, buckets: NDArray[np.int32], *, distinct: bool = False) -> None:
        """Count these buckets, each as often as it occurs; ``distinct`` promises that none occurs twice."""
        if self._table is None:
            self._add_to_few(buckets, distinct=distinct)
        elif distinct:
            self._table[buckets] += np.float32(1.0)
        else:
            self._table += np.bincount(buckets, minlength=self._buckets).astype(np.float32)

    def _add_to_few(self, buckets: NDArray[np.int32], *, distinct: bool) -> None:
        keys, counts = self._few
        new, times = (buckets, np.ones(len(buckets), np.intp)) if distinct else np.unique(buckets, return_counts=True)
        places, known = self._found(keys, new)
        more = times.astype(np.float32)
        counts = np.array(counts)  # a copy: the present one may be read meanwhile
        counts[places[known]] += more[known]
        if not known.all():
            keys = np.concatenate([keys, new[~known]])
            counts = np.concatenate([counts, more[~known]])
            order = keys.argsort()
            keys, counts = keys[order], counts[order]
        self._few = (keys, counts)
        if len(keys) > _FEW:
            self._table = self.dense()
            self._few = (keys[:0], counts[:0])

    @staticmethod
    def _found(keys: NDArray[np.int32], buckets: NDArray[np.integer]) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
        """Return where each bucket stands or would stand among the sorted ``keys``, and whether it is one of them."""
        places = keys.searchsorted(buckets)
        known = keys.take(places, mode="clip") == buckets if len(keys) else np.zeros(len(buckets), bool)
        return places, known

    def of(self, buckets: NDArray[np.integer]) -> NDArray[np.float32]:
        """Return the counts of these buckets."""
        few, table = self._few, self._table  # in this order: the table is there before the few are emptied
        if table is not None:
            return table.take(buckets)
        keys, counts = few
        if not len(keys):
            return np.zeros(len(buckets), np.float32)
        places, known = self._found(keys, buckets)
        return counts.take(places, mode="clip") * known

    def dense(self) -> NDArray[np.float32]:
        """Return the counts of all buckets."""
        few, table = self._few, self._table
        if table is not None:
            return table
        counts = np.zeros(self._buckets, np.float32)
        counts[few[0]] = few[1]
        return counts


class Rarity:
    """How rare each term is among the texts so far. ``terms`` splits texts into words or into letter sequences.

    ``counted``, if it is given, returns further terms as well, which are counted too.

    >>> rarity = Rarity(word_terms)
    >>> _ = rarity.add(["the cup", "the lamp", "the desk"])
    >>> common, rare = rarity.shared("the cup", ["the lamp", "a cup"])
    >>> bool(common < rare)
    True
    """

    def __init__(
        self, terms: Callable[[Sequence[str]], Terms], *, counted: Callable[[Sequence[str]], Terms] | None = None
    ) -> None:
        self._terms, self._counted = terms, counted or terms
        self._tally = Tally(BUCKETS)  # of texts with a term in each bucket
        self.texts = 0  # the number of texts so far

    @property
    def counts(self) -> NDArray[np.float32]:
        """The number of texts with a term in each bucket."""
        return self._tally.dense()

    def add(self, texts: Sequence[str]) -> Terms:
        """Count the terms of new texts, and return them."""
        owners, buckets = self._counted(texts)
        self._tally.add(buckets, distinct=len(texts) == 1)
        self.texts += len(texts)
        return owners, buckets

    def shared(self, text: str, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return how much one text shares with each of the others: the cosine of both texts' terms; rare terms weigh more."""
        return self.shared_with_first(self._terms([text, *texts]), len(texts))

    def shared_with_first(self, terms: Terms, others: int) -> NDArray[np.float32]:
        """Return how much the first text of ``terms`` shares with each of the ``others``, as ``shared`` does."""
        owners, buckets = terms
        first = np.searchsorted(owners, 1)
        return self._cosines(buckets[:first], owners[first:] - 1, buckets[first:], others)

    def common(
        self, query: NDArray[np.int32], buckets: NDArray[np.integer], starts: NDArray[np.integer]
    ) -> NDArray[np.float32]:
        """Return a cosine as ``shared`` does, where the *common* terms weigh more: which terms that recur both texts have.

        All the texts are split before: the terms of text i are ``buckets[starts[i] : starts[i + 1]]``.

        >>> rarity = Rarity(word_terms)
        >>> _ = rarity.add(["list cups by size", "list lamps by size", "count the cups"])
        >>> owners, buckets = word_terms(["list lamps by size", "count the desks"])
        >>> common = rarity.common(word_terms(["list desks by size"])[1], buckets, np.searchsorted(owners, [0, 1, 2]))
        >>> bool(common[0] > 0.8), bool(common[1] < 0.1)
        (True, True)
        """
        weights = np.square(self._commonness(self._tally.of(np.concatenate([query, buckets]))))
        of_query, each = weights[: len(query)], weights[len(query) :]
        in_query = np.zeros(BUCKETS, bool)
        in_query[query] = True
        norms = np.sqrt(_sums(each, starts) * of_query.sum(dtype=np.float64))
        return (_sums(each * in_query.take(buckets), starts) / np.maximum(norms, 1e-9)).astype(np.float32)

    def common_rows(self, terms: Terms, texts: int) -> NDArray[np.float32]:
        """Return a unit row for each of so many texts, with a column for each of their terms; common terms weigh more.

        >>> rarity = Rarity(word_terms)
        >>> _ = rarity.add(["list cups by size", "list lamps by size"])
        >>> rarity.common_rows(word_terms(["list desks by size", "list roads by size", "desks"]), 3).shape
        (3, 5)
        """
        owners, buckets = terms
        occurs, column = np.zeros(BUCKETS, bool), np.empty(BUCKETS, np.int32)
        occurs[buckets] = True
        columns = np.flatnonzero(occurs).astype(np.int32)  # quicker than to sort the buckets
        column[columns] = np.arange(len(columns))
        rows = np.zeros((texts, len(columns)), np.float32)
        places = column.take(buckets)
        rows[owners, places] = self._commonness(self._tally.of(columns)).take(places)
        rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)
        return rows

    def _commonness(self, counts: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return a number between 0 and 1 for terms that so many texts have: a half if _COMMON of the texts do."""
        return counts / (counts + np.float32(max(_COMMON * self.texts, 1e-9)))

    def _cosines(
        self, query: NDArray[np.int32], owners: NDArray[np.int32], buckets: NDArray[np.int32], n: int
    ) -> NDArray[np.float32]:
        """Return the cosines of a query's terms with those of n texts, where the rare terms weigh more."""
        if not (len(buckets) and len(query)):
            return np.zeros(n, np.float32)
        counts = self._tally.of(np.concatenate([query, buckets]))
        weights = np.square(np.log((1.0 + self.texts) / (1.0 + counts)) + 1.0)  # the squared inverse document frequency
        of_query, weights = weights[: len(query)], weights[len(query) :]
        in_query = np.zeros(BUCKETS, bool)
        in_query[query] = True
        found = np.bincount(owners, weights * in_query.take(buckets), minlength=n)
        norms = np.sqrt(np.bincount(owners, weights, minlength=n) * of_query.sum(dtype=np.float64))
        return (found / np.maximum(norms, 1e-9)).astype(np.float32)


def _sums(values: NDArray[np.float32], starts: NDArray[np.integer]) -> NDArray[np.float64]:
    """Return the sum of each stretch of values, from one start to the next; that of an empty stretch is zero."""
    sums = np.zeros(len(starts) - 1)
    filled = starts[1:] > starts[:-1]
    if filled.any():
        sums[filled] = np.add.reduceat(values, starts[:-1][filled], dtype=np.float64)
    return sums
