"""The passages of 2WikiMultihopQA, found with BM25."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import bm25s


@dataclass(frozen=True)
class Passage:
    """A paragraph of Wikipedia."""

    title: str
    text: str


class Passages:
    """The passages of a file ``2wiki_corpus.jsonl``, indexed in RAM. Titles are searched too, and count more than the text."""

    def __init__(self, path: Path) -> None:
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        self._passages = [Passage(row["title"], row["text"]) for row in rows]
        self._index = bm25s.BM25()
        texts = [f"{passage.title} {passage.title} {passage.text}" for passage in self._passages]
        self._index.index(bm25s.tokenize(texts, show_progress=False), show_progress=False)

    def search(self, query: str, k: int = 3) -> list[Passage]:
        """Return the k passages that fit a query best, the best first."""
        words = bm25s.tokenize(query, show_progress=False)
        found, scores = self._index.retrieve(words, k=k, show_progress=False)
        return [self._passages[number] for number, score in zip(found[0], scores[0], strict=True) if score > 0]
