"""The passages on this machine, and the files that questions and passages come from."""

from __future__ import annotations

import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from cascade_memory.encoders.hashing import HashingEmbedder
from cascade_memory.errors import InvalidInput
from cascade_memory.evaluation.search import questions as passages_module
from cascade_memory.evaluation.search.local import BM25, RETRIEVALS, Dense, LocalSearch
from cascade_memory.evaluation.search.questions import Passage, lacking, read_passages, read_questions

PUBLISHED = Path(__file__).parents[1] / "fixtures" / "dtlbench"
CORPUS = PUBLISHED / "2wiki" / "corpus.jsonl"


class Counting(HashingEmbedder):
    """Counts the texts that it embeds."""

    embedded = 0

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.embedded += len(texts)
        return super().embed(texts)


@pytest.mark.parametrize("retrieval", RETRIEVALS)
def test_each_retrieval_finds_an_article_by_its_name(retrieval):
    found = LocalSearch(read_passages(CORPUS), retrieval, embedder=HashingEmbedder)
    for name in ("Mirela Oswin", "Copper Rain", "Lantern Song"):
        passages = found.search(name)
        assert passages[0].title == name
        assert len(passages) == 3 or retrieval == "bm25"
    assert found.about.startswith(retrieval)


def test_words_that_no_passage_has_find_nothing_by_bm25_and_something_by_vectors():
    passages = read_passages(CORPUS)
    assert LocalSearch(passages, "bm25").search("zzz qqq") == []
    assert LocalSearch(passages, "bm25").search("") == []
    assert len(LocalSearch(passages, "dense", embedder=HashingEmbedder).search("zzz qqq")) == 3


def test_bm25_agrees_with_its_formula():
    texts = ["red red fish", "blue fish swims far away", "green bird"]
    scores = BM25([Passage("", text) for text in texts]).scores("red fish")
    lengths = np.array([3, 5, 2])
    damping = 1.5 * (1 - 0.75 + 0.75 * lengths / lengths.mean())
    red, fish = np.log(1 + 2.5 / 1.5), np.log(1 + 1.5 / 2.5)
    expected = [red * 2 / (damping[0] + 2) + fish / (damping[0] + 1), fish / (damping[1] + 1), 0.0]
    assert scores == pytest.approx(expected, rel=1e-5)


def test_both_lists_decide_together():
    passages = [Passage("a", "x x x"), Passage("b", "fish"), Passage("c", "fish fish fish")]

    class Leans:
        identity, dimension = "leans", 2

        def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
            return np.array([[1, 0] if "b" in one or one == "fish" else [0, 1] for one in texts], np.float32)

    assert [one.title for one in LocalSearch(passages, "both", embedder=Leans).search("fish", k=2)] == ["b", "c"]


def test_vectors_are_computed_once_and_again_if_the_file_is_damaged(tmp_path: Path):
    passages, first, second, third = read_passages(CORPUS), Counting(), Counting(), Counting()
    expected = Dense(passages, first, kept_in=tmp_path).scores("lighthouse")
    assert first.embedded == len(passages) + 1
    assert Dense(passages, second, kept_in=tmp_path).scores("lighthouse") == pytest.approx(expected)
    assert second.embedded == 1
    (file,) = tmp_path.glob("*.npy")
    file.write_bytes(file.read_bytes()[:200])
    assert Dense(passages, third, kept_in=tmp_path).scores("lighthouse") == pytest.approx(expected)
    assert third.embedded == len(passages) + 1
    Dense([*passages, Passage("one", "more")], third, kept_in=tmp_path)
    assert len(list(tmp_path.glob("*.npy"))) == 2


def test_two_runs_at_once_compute_the_vectors_once(tmp_path: Path):
    passages, embedders = read_passages(CORPUS), [Counting(), Counting()]
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(lambda one: Dense(passages, one, kept_in=tmp_path).scores("lighthouse"), embedders)
    assert first == pytest.approx(second)
    assert sorted(one.embedded for one in embedders) == [1, len(passages) + 1]


def test_pickled_vectors_are_not_read(tmp_path: Path):
    passages, embedder = read_passages(CORPUS), Counting()
    Dense(passages, embedder, kept_in=tmp_path)
    (file,) = tmp_path.glob("*.npy")
    np.save(file, np.array([{"a": 1}], dtype=object), allow_pickle=True)
    Dense(passages, embedder, kept_in=tmp_path)
    assert embedder.embedded == 2 * len(passages)
    assert np.load(file, allow_pickle=False).shape == (len(passages), 384)


@pytest.mark.parametrize(
    "line",
    [
        "no json",
        "[]",
        "{}",
        '{"title": "a"}',
        '{"title": 1, "text": "b"}',
        '{"contents": ["a"]}',
        '{"title": "", "text": " "}',
        "[" * 9000,
    ],
)
def test_bad_lines_are_refused_with_their_number(line, tmp_path: Path):
    (tmp_path / "corpus.jsonl").write_text(f'{{"title": "a", "text": "b"}}\n\n{line}\n')
    with pytest.raises(InvalidInput, match="line 3"):
        read_passages(tmp_path / "corpus.jsonl")


def test_empty_missing_and_too_large_files_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "empty.jsonl").write_text("\n")
    with pytest.raises(InvalidInput, match="no passages"):
        read_passages(tmp_path / "empty.jsonl")
    with pytest.raises(InvalidInput, match="cannot read"):
        read_passages(tmp_path / "missing.jsonl")
    monkeypatch.setattr(passages_module, "MOST", 5)
    with pytest.raises(InvalidInput, match="--search URL"):
        read_passages(CORPUS)


def test_both_forms_of_passages_are_read(tmp_path: Path):
    (tmp_path / "c.jsonl").write_text('{"title": "A", "text": "b"}\n{"id": "1", "contents": "\\"C\\"\\nd\\ne"}\n')
    assert read_passages(tmp_path / "c.jsonl") == [Passage("A", "b"), Passage("C", "d\ne")]


def test_the_published_layout_and_ours_are_read(tmp_path: Path):
    items = read_questions(PUBLISHED)
    assert (len(items), items[0].label, items[2].label) == (8, ["Tarvik"], ["Porto Alvo", "Alvo"])
    row = {"task": "Who?", "label": "Ada", "aliases": ["Ada Lovelace", "Ada"]}
    (tmp_path / "2wiki_rag.jsonl").write_text(json.dumps(row))
    assert read_questions(tmp_path)[0].label == ["Ada", "Ada Lovelace"]
    assert lacking(PUBLISHED) is None
    assert "no passages" in str(lacking(tmp_path))
    assert lacking(tmp_path, passages=False) is None
    assert "no questions" in str(lacking(tmp_path / "nowhere"))


@pytest.mark.parametrize("label", [[], [""], 7, {"a": 1}, ["a", None], ["x"] * 101])
def test_labels_that_are_no_answers_are_refused(label, tmp_path: Path):
    (tmp_path / "2wiki.jsonl").write_text(json.dumps({"task": "Who?", "label": label}))
    with pytest.raises(InvalidInput, match=r"Who\?"):
        read_questions(tmp_path)
