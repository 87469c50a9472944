"""Measures on the stored cases, before any reward, what decides: the first or last paragraph, or the form of the solution."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cascade_memory.encoders.lexical import Rarity, Terms, word_terms
from cascade_memory.ports.encoders import Candidates

TEXT_CHARS = 1_000  # characters of each text that are compared
_BETWEEN = re.compile(r"\r?\n[ \t]*\r?\n\s*")
_EARLIER = 16  # a new case is compared with this many earlier ones
_CLOSELY = 1_024  # cases; after them only one case in _EARLIER is compared, since the answer rarely changes
# For the form, all of the first _ALL cases are compared, then one in four, and after _MANY one in 256.
_ALL, _MANY = 40, 256
_LEAST = 24  # solutions without which the form never counts: few may be two kinds of cases, which prove nothing
_SURE = 2.0  # standard errors below which a coefficient counts as zero
_RIDGE = 1e-3  # keeps the equations solvable where all texts are alike
_CHANCE = 0.1  # how much of a likeness between tasks is taken for chance when a form is predicted
_ALIKE = 1e-6  # what differs less is the same
_FEWEST = 3  # earlier cases with which a new one is compared: of fewer, none is usual
_TOPIC, _FORM, _WORDS, _SOLUTION, _SIGNAL = range(5)


def has_ends(text: str) -> bool:
    r"""Say whether a text has several paragraphs.

    >>> has_ends("Put the cup away."), has_ends("A kitchen.\n\nPut the cup away.")
    (False, True)
    """
    return _BETWEEN.search(text.strip()) is not None


def ends_of(text: str) -> tuple[str, str]:
    r"""Return the first and the last paragraph; the last one is empty if the text has ``TEXT_CHARS`` characters or more.

    >>> ends_of("A kitchen.\n\nA fridge.\n\nPut the cup away.")
    ('A kitchen.', 'Put the cup away.')
    """
    paragraphs = _BETWEEN.split(text.strip())
    whole = len(text) < TEXT_CHARS
    return paragraphs[0][:TEXT_CHARS], paragraphs[-1] if whole else ""


@dataclass(frozen=True, slots=True)
class _Earlier:
    opening: str
    closing: str
    solution: str
    group: int
    vector: NDArray[np.float32]


def _phrases(texts: Sequence[str]) -> Terms:
    return word_terms(texts, pairs=True)


class _Correlations:
    """Collects so many likenesses of pairs of cases."""

    def __init__(self, likenesses: int) -> None:
        self.pairs = 0.0
        self._sums, self._products = np.zeros(likenesses), np.zeros((likenesses, likenesses))

    def add(self, likeness: NDArray[np.floating]) -> None:
        """Add the likenesses of some pairs, as rows."""
        self.pairs += likeness.shape[1]
        self._sums += likeness.sum(axis=1)
        self._products += likeness @ likeness.T

    def _covariance(self) -> NDArray[np.float64]:
        mean = self._sums / self.pairs
        return self._products / self.pairs - np.outer(mean, mean)

    def deviations(self) -> NDArray[np.float64]:
        """Return the standard deviation of each likeness."""
        return np.sqrt(np.maximum(np.diag(self._covariance()), 1e-9))

    def table(self) -> NDArray[np.float64]:
        """Return how the likenesses go together, as a table of correlations."""
        deviations = self.deviations()
        return self._covariance() / np.outer(deviations, deviations)


class Alignment:
    """How much the first and the last paragraph say about the solution, compared with the embedding of the whole text.

    Each new case with several paragraphs is compared with up to sixteen earlier ones (after 1,024 such cases, only every
    sixteenth one is). A paragraph's weight is the correlation between the similarity of the paragraphs and the similarity of
    the solutions, minus one standard error, divided by the highest of the three correlations: of the first paragraphs, of the
    last paragraphs, and of the whole texts. The weight is near 1 for a paragraph that says as much as the whole text, and 0 for
    a greeting.
    """

    def __init__(self) -> None:
        self._earlier: deque[_Earlier] = deque(maxlen=_EARLIER)
        self._cases = 0
        self.compared = _Correlations(4)  # of whole texts, first paragraphs, last paragraphs, solutions
        # Replaced as a whole, since other threads read it meanwhile.
        self.weights: NDArray[np.float32] = np.zeros(2, np.float32)

    def retain(self, cases: Candidates, letters: Rarity) -> None:
        """Compare new cases that have several paragraphs with earlier ones, and compute the weights of the paragraphs again.

        ``letters`` measures how similar two texts are, by the letter sequences that they share.
        """
        counted = self._cases
        for place, text in enumerate(cases.texts):
            if "\n" not in text or not has_ends(text):
                continue
            self._cases += 1
            if self._cases > _CLOSELY and self._cases % _EARLIER:
                continue
            case = _Earlier(*ends_of(text), cases.heads[place], int(cases.groups[place]), cases.vectors[place].copy())
            if self._earlier:
                self._compare(case, letters)
            self._earlier.append(case)
        if self._cases > counted:
            self.weights = self._weights()

    def leaves_open(self, text: str) -> float:
        """Return how much the paragraphs of a text leave for its form to decide: 1.0 if it has one paragraph only."""
        return 1.0 - float(self.weights.max()) if has_ends(text) else 1.0

    def _compare(self, case: _Earlier, letters: Rarity) -> None:
        others = list(self._earlier)
        same = np.array([other.group == case.group for other in others])
        likeness = np.stack(
            [
                np.array([other.vector @ case.vector for other in others]),
                letters.shared(case.opening, [other.opening for other in others]),
                letters.shared(case.closing, [other.closing for other in others]),
                np.where(same, 1.0, letters.shared(case.solution, [other.solution for other in others])),
            ]
        )
        self.compared.add(likeness)

    def _weights(self) -> NDArray[np.float32]:
        if not self.compared.pairs:
            return np.zeros(2, np.float32)
        says = self.compared.table()[:3, 3]
        surely = says - 1.0 / np.sqrt(self._cases)  # pairs share cases, so only the cases count as independent
        return np.clip(surely[1:] / max(says.max(), 1e-9), 0.0, 1.0).astype(np.float32)


class NewestForms:
    """The words of the newest cases, to find those that have the form of a task. Since forms recur, the newest have them all.

    >>> words, forms = Rarity(word_terms), NewestForms()
    >>> texts = ["sort the cups by size", "count the cups", "sort the lamps by size"]
    >>> forms.add(np.array([7, 8, 9]), [words.add(texts)])
    >>> forms.nearest("sort the roads by size", words, k=2).tolist()
    [7, 9]
    """

    MOST = 1_024

    def __init__(self) -> None:
        # The keys of the cases, where the words of each case begin, and the words: replaced as a whole, for the readers.
        self._rows = (np.zeros(0, np.int64), np.zeros(1, np.int32), np.zeros(0, np.uint16))

    def add(self, keys: NDArray[np.int64], words: Sequence[Terms]) -> None:
        """Add new cases with the words of their tasks, and drop the oldest."""
        known, starts, buckets = self._rows
        owners = np.concatenate([np.zeros(0, np.int32), *(owners for owners, _ in words)])
        counts = np.bincount(owners, minlength=len(keys))
        keys = np.concatenate([known, keys])
        starts = np.concatenate([starts, starts[-1] + np.cumsum(counts)]).astype(np.int32)
        buckets = np.concatenate([buckets, *(new.astype(np.uint16) for _, new in words)])
        first = max(len(keys) - self.MOST, 0)
        self._rows = (keys[first:].copy(), starts[first:] - starts[first], buckets[starts[first] :].copy())

    def nearest(self, text: str, words: Rarity, k: int) -> NDArray[np.int64]:
        """Return the keys of at most k cases whose tasks share most common words with a text, in ascending order."""
        keys, starts, buckets = self._rows
        alike = words.common(word_terms([text])[1], buckets, starts)
        least = np.partition(alike, -k)[-k] if k < len(alike) else 0.0
        near = np.flatnonzero((alike >= least) & (alike > 0.0))  # at least k, if several are as far as the last one
        return np.sort(keys[near[np.argsort(-alike[near], kind="stable")[:k]]])


@dataclass(frozen=True, slots=True)
class _Split:
    """The hashed words of a task, its phrases, and those of its solution: a text is split once, and compared often.

    The phrases are the words and the pairs of adjacent words.
    """

    words: NDArray[np.int32]
    phrases: NDArray[np.int32]
    solution: NDArray[np.int32]


def _each(terms: Terms, texts: int) -> list[NDArray[np.int32]]:
    """Return the terms of each of so many texts."""
    owners, buckets = terms
    return np.split(buckets, np.searchsorted(owners, np.arange(1, texts)))


class ExpectedForm:
    """Which solution has the form that a task calls for, as tasks and solutions of other cases tell.

    The form of a text are the words, and the pairs of adjacent words, that are common among such texts. From the forms of the
    candidates' tasks a kernel ridge regression predicts the form of the solution: a candidate counts the more the more its task
    has in common with the new one, and less if other candidates say the same. So what follows from "the three largest" is
    learned from all candidates that have these words, and not from the most similar one alone. Nothing is fitted in advance:
    the regression is over the candidates of one recall, so it forgets what is deleted.

    >>> form = ExpectedForm()
    >>> tasks = ["count the cups", "count the red lamps", "list the cups by size", "list the lamps by size"]
    >>> solutions = ["SELECT COUNT(cup)", "SELECT COUNT(lamp)", "SELECT cup ORDER BY size", "SELECT lamp ORDER BY size"]
    >>> _ = form.add(tasks, solutions)
    >>> sorted(form.likeness("list the red cups by size", tasks, solutions).argsort()[2:].tolist())
    [2, 3]
    """

    def __init__(self) -> None:
        self.tasks, self.solutions = Rarity(word_terms, counted=_phrases), Rarity(word_terms, counted=_phrases)

    def add(self, tasks: Sequence[str], solutions: Sequence[str]) -> list[_Split]:
        """Count the phrases of further tasks and their solutions, and return what each task and its solution consist of."""
        terms = (word_terms(tasks), self.tasks.add(tasks), self.solutions.add(solutions))
        return [_Split(*each) for each in zip(*(_each(one, len(tasks)) for one in terms), strict=True)]

    def likeness(self, task: str, tasks: Sequence[str], solutions: Sequence[str]) -> NDArray[np.float32]:
        """Return for each case how much its solution has of the predicted form: the cosine of both."""
        forms = self.solutions.common_rows(_phrases(solutions), len(solutions))
        mean = forms.mean(axis=0)
        predicted = self._votes(_phrases([task, *tasks]), len(tasks)) @ (forms - mean) + mean
        return np.asarray(forms @ (predicted / max(float(np.linalg.norm(predicted)), _ALIKE)), np.float32)

    def tried(self, tasks: Terms, solutions: Terms, cases: int) -> tuple[NDArray[np.float32], ...]:
        """Return three likenesses for each case: of its solution to the predicted form, to the new case's own, and the signal.

        The solution of the new case is the first of ``solutions``. What all the cases have in common is left out of the first
        two. Otherwise a usual solution would be like any prediction, and like any solution: if all solutions had one form ("the
        answer is 7"), the form would seem to decide.
        """
        rows = self.solutions.common_rows(solutions, cases + 1)
        mean = rows[1:].mean(axis=0)
        forms = rows[1:] - mean
        predicted = self._votes(tasks, cases) @ forms
        return _cosines(forms, predicted), _cosines(forms, rows[0] - mean), _cosines(rows[1:], predicted + mean)

    def _votes(self, tasks: Terms, cases: int) -> NDArray[np.float32]:
        """Return how much each case counts for a prediction, from the phrases of the new task and of the tasks of the cases."""
        rows = self.tasks.common_rows(tasks, cases + 1)
        of_task, known = rows[0], rows[1:]
        return np.linalg.solve(known @ known.T + np.float32(_CHANCE) * np.eye(cases, dtype=np.float32), known @ of_task)


def _cosines(rows: NDArray[np.float32], one: NDArray[np.float32]) -> NDArray[np.float32]:
    lengths = np.maximum(np.linalg.norm(rows, axis=1), _ALIKE)
    return np.asarray(rows @ (one / max(float(np.linalg.norm(one)), _ALIKE)) / lengths, np.float32)


@dataclass(frozen=True, slots=True)
class _EarlierCase:
    split: _Split
    group: int
    vector: NDArray[np.float32]


def _joined(texts: Sequence[NDArray[np.int32]]) -> Terms:
    """Return the terms of several texts together, from those of each, as they are if the texts are split in one call."""
    owners = np.repeat(np.arange(len(texts), dtype=np.int32), [len(buckets) for buckets in texts])
    return owners, np.concatenate(texts)


class Form:
    """How much the form of a task says about the form of its solution, beyond what its topic says.

    ``expected`` predicts the form of a task's solution. A new case is compared with those of the sixteen before it that have
    another solution (after 40 cases only every fourth is, and after 256 every 256th). The likeness of their solutions' forms is
    regressed on the cosine of the tasks, on how far the earlier solution has the predicted form, and on the rare words of the
    tasks; what the earlier solutions have in common is left out of their forms. The weight is the coefficient of the form, less
    what chance adds to it, divided by the largest coefficient: near 1 where the form decides, and 0 where the topic does or
    where the coefficient is below two standard errors. A solution that recurs counts once, so labels say next to nothing.

    >>> Form().weight
    0.0
    """

    def __init__(self) -> None:
        self.expected, self.newest = ExpectedForm(), NewestForms()
        self._earlier: deque[_EarlierCase] = deque(maxlen=_EARLIER)
        self._waiting: list[_EarlierCase] = []  # the first cases, until there are enough to say something
        self._cases = 0
        self._solutions: set[int] = set()  # that were compared
        # Of topics, forms, rare words, forms of solutions; and the signal itself, of which only the spread is asked.
        self._compared = _Correlations(5)
        self.weight, self._spread = 0.0, 1.0

    def retain(self, cases: Candidates, words: Sequence[Terms]) -> None:
        """Compare new cases with earlier ones, and compute the weight again; ``words`` are those of their tasks, in parts."""
        self.newest.add(cases.keys, words)
        pairs, first, last = self._compared.pairs, self._cases + 1, self._cases + len(cases.texts)
        self._cases = last
        chosen = [n - first for n in range(first, last + 1) if n <= _ALL or not n % (4 if n <= _MANY else 256)]
        while chosen:
            # As many as would wait if they came one by one, so that cases that are read together say the same.
            enough = 1 if self._compared.pairs else _LEAST - len(self._waiting)
            self._waiting += self._counted(cases, chosen[:enough])
            chosen = chosen[enough:]
            if self._compared.pairs or len(self._waiting) >= _LEAST:
                self._compare_waiting()
        if self._compared.pairs > pairs and len(self._solutions) >= _LEAST:
            self.weight, self._spread = self._weight(), float(self._compared.deviations()[_SIGNAL])

    def _counted(self, cases: Candidates, places: Sequence[int]) -> Iterator[_EarlierCase]:
        """Count the words of new cases, and yield what later ones are compared with."""
        texts, heads = [cases.texts[place][:TEXT_CHARS] for place in places], [cases.heads[place] for place in places]
        for place, split in zip(places, self.expected.add(texts, heads), strict=True):
            vector = cases.vectors[place].copy()  # a part of the array would keep all of it in memory
            yield _EarlierCase(split, int(cases.groups[place]), vector)

    def _compare_waiting(self) -> None:
        for case in self._waiting:
            self._compare(case, [other for other in self._earlier if other.group != case.group])
            self._earlier.append(case)
        self._waiting = []

    def _compare(self, case: _EarlierCase, others: list[_EarlierCase]) -> None:
        if len(others) < _FEWEST:
            return
        splits, n = [case.split, *(other.split for other in others)], len(others)
        topic = np.array([other.vector @ case.vector for other in others])
        phrases, solutions = _joined([one.phrases for one in splits]), _joined([one.solution for one in splits])
        form, solution, signal = self.expected.tried(phrases, solutions, n)
        rare = self.expected.tasks.shared_with_first(_joined([one.words for one in splits]), n)
        likeness = np.stack([topic, form, rare, solution, signal]).astype(np.float64)
        self._compared.add(likeness)
        self._solutions.add(case.group)

    def weight_for(self, likeness: NDArray[np.float32]) -> float:
        """Return the weight for the candidates of a recall: less if they differ less than half as much as any cases do.

        Where all candidates have the right form, what still differs is chance, and must not decide.
        """
        return self.weight * min(2.0 * float(likeness.std()) / self._spread, 1.0)

    def _weight(self) -> float:
        correlation = self._compared.table()
        says = np.linalg.solve(
            correlation[:_SOLUTION, :_SOLUTION] + _RIDGE * np.eye(_SOLUTION), correlation[:_SOLUTION, _SOLUTION]
        )
        # Pairs share their cases, and cases share their solutions, so only different solutions count as independent.
        form, doubt = min(float(says[_FORM]), 1.0), _SURE / np.sqrt(len(self._solutions))
        if form <= doubt:
            return 0.0
        return float(min(form * (1.0 - (doubt / form) ** 2) / says.max(), 1.0))
