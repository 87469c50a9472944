"""Measures how similar unrelated texts are: a similarity below this level says nothing.

The level depends on the embedder, on the task and on the case (a long text is a little like everything), and on the number of
cases, since among more cases one is more likely to be similar by chance. So it is measured, with some texts that have nothing
in common.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from cascade_memory.ports.policy import Floats

CHANCE = 0.015  # with which the most similar of many unrelated cases may seem related
_APART = 0.8  # cases of one bank are like each other, so n of them give n^0.8 chances: fitted to five streams and two embedders
_TAIL = 0.1  # share of the pairs from which the highest similarities are extrapolated
_LEAST_SPREAD = 0.02
TEXTS = (
    "The recipe needs two eggs, a cup of flour and a pinch of salt.",
    "Who won the football match between the two cities last night?",
    "ERROR 503: upstream server did not respond within 30 seconds",
    "Please translate this letter into French for my grandmother.",
    "A thirty-year-old patient reports a sharp pain in the left knee.",
    "Shares of the car maker fell four percent after the announcement.",
    "Write a short poem about the first snow of the year.",
    "SELECT name, price FROM products ORDER BY price DESC LIMIT 10",
    "How do I train my puppy to walk on a leash?",
    "The committee postponed the vote on the new housing law.",
    "go to the bedroom, open the drawer and take the pencil",
    "My phone screen is cracked, can it be repaired under warranty?",
    "What is the capital of the smallest country in Africa?",
    "Compute the area of a triangle with sides 3, 4 and 5.",
    "The orchestra played a symphony by a composer nobody knew.",
    "Book a table for four people at an Italian restaurant on Friday.",
    "Interface eth0 changed its state to down after a link failure.",
    "Which plants grow well in the shade of old trees?",
    "Summarise the meeting in five bullet points for my manager.",
    "The volcano erupted and ash covered the villages below.",
    "I want to cancel my gym membership before the next payment.",
    "Refactor this function so that it does not use global variables.",
    "The tenant must give notice three months before moving out.",
    "How many moons does the planet Jupiter have?",
    "My flight was delayed and I missed the connection in Madrid.",
    "Turn off the lights in the kitchen and lock the front door.",
    "The museum shows paintings from the seventeenth century.",
    "Give me a workout plan for beginners without any equipment.",
    "He forgot his umbrella on the train and walked home in the rain.",
    "Convert 72 degrees Fahrenheit to Celsius.",
    "The bees are dying because of a new pesticide, scientists say.",
    "Reset the password of the account that belongs to Ms Miller.",
    "Find all files larger than one gigabyte and delete the oldest.",
    "What should I wear to a wedding in the mountains in autumn?",
    "The bridge was closed after engineers found cracks in a pillar.",
    "Explain how vaccines help the immune system to fight a virus.",
    "The old sailor told the children a story about a white whale.",
    "Order printer paper and two blue cartridges for the office.",
    "List the employees who were hired after 2015 and earn the least.",
    "Why does my sourdough bread not rise in the oven?",
)


class Unrelated:
    """The similarities of unrelated texts under an embedder, given the embedder's unit vectors (n, d) of ``TEXTS``.

    A similarity of a task and a case is standardised twice: by the mean and the standard deviation of the task's similarities
    to these texts, and by those of the case. The result is the average of both. This is how speaker recognition compares voices
    ("symmetric score normalisation"). The highest tenth of the results among the texts is extrapolated, as an exponential tail,
    to the best of many cases.

    >>> rng = np.random.default_rng(0)
    >>> rows = rng.normal(size=(42, 64)).astype(np.float32)
    >>> rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    >>> unrelated = Unrelated(rows[:40])
    >>> (rows[40] @ rows[41] < unrelated.floors(rows[40], rows[41:], cases=1)).tolist()
    [True]
    >>> (rows[40] @ rows[40] < unrelated.floors(rows[40], rows[40:41], cases=100_000)).tolist()
    [False]
    """

    def __init__(self, vectors: NDArray[np.float32]) -> None:
        self._vectors = vectors
        alike = vectors.astype(np.float64) @ vectors.T
        apart = ~np.eye(len(alike), dtype=bool)
        others = alike[apart].reshape(len(alike), -1)  # of each text, the similarities to all others
        mean, spread = others.mean(axis=1), np.maximum(others.std(axis=1), _LEAST_SPREAD)
        scores = ((alike - mean[:, None]) / spread[:, None] + (alike - mean) / spread) / 2.0
        pairs = scores[np.triu_indices(len(alike), 1)]
        # A quantile. np.quantile would load numpy.ma, for a third of the time that a first recall takes otherwise.
        self._begin = float(np.interp((len(pairs) - 1) * (1.0 - _TAIL), np.arange(len(pairs)), np.sort(pairs)))
        above = pairs[pairs > self._begin] - self._begin
        self._slope = float(above.mean()) if len(above) else 0.0  # an embedder may find all texts alike

    def floors(self, query: NDArray[np.float32], vectors: NDArray[np.float32], *, cases: int) -> Floats:
        """Return, for each case, the cosine that the best of ``cases`` unrelated ones reaches with probability ``CHANCE``."""
        least = self._begin + self._slope * math.log(_TAIL * max(cases, 1) ** _APART / CHANCE)
        means, spreads = self._among_texts(vectors)
        mean, spread = self._among_texts(query[None])
        return (2.0 * least + mean / spread + means / spreads) / (1.0 / spread + 1.0 / spreads)

    def _among_texts(self, vectors: NDArray[np.float32]) -> tuple[Floats, Floats]:
        alike = vectors @ self._vectors.T
        return alike.mean(axis=1), np.maximum(alike.std(axis=1), _LEAST_SPREAD)
