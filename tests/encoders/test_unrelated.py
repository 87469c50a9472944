"""A young memory shows nothing that is unrelated to the task, with any embedder, until outcomes say that unlike cases help."""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from inside import engine_of, state_of

from cascade_memory import CascadeMemory
from cascade_memory.encoders.hashing import HashingEmbedder
from cascade_memory.encoders.minilm import MiniLMEmbedder, is_installed
from cascade_memory.encoders.unrelated import TEXTS
from cascade_memory.evaluation.stream import PrecomputedEmbedder
from cascade_memory.ports.encoders import Embedder, LoadsModel

STREAMS = ("banking77", "ddxplus", "rca_huawei_module", "sentifin", "spider_dev")
EMBEDDERS: dict[str, Callable[[], Embedder]] = {"hashing": HashingEmbedder, "minilm": MiniLMEmbedder}
needs_model = pytest.mark.skipif(not is_installed(), reason="needs the extra 'local'")


@needs_model
def test_the_router_has_nothing_to_do_with_a_poem():
    with CascadeMemory(learn="inline") as memory:
        memory.add("reset the router", "hold the button for 10 s")
        recall = memory.recall("write a poem about autumn")
        assert (recall.cases, recall.abstained) == ((), True)
        why = recall.explain()
        assert "no case was shown: none is related to the task (the most similar one has 0.09" in why.summary
        assert why.candidates[0].utility < why.baseline
        assert memory.recall("how do I reset my router?").cases
        memory.add("the printer reports a paper jam", "open the tray")
        assert [case.query for case in memory.recall("router reset", k=3).cases] == ["reset the router"]


def alike(text: str, rng: np.random.Generator) -> str:
    """Say nearly the same: without a word, politely, in small letters."""
    words = text.split(" ")
    if len(words) > 3:
        del words[rng.integers(len(words))]
    return ("please, " + " ".join(words)).lower()


def texts_of(stream: str, many: int) -> list[str]:
    folder = Path(os.environ.get("CASCADE_DATA", "nowhere"))
    if not folder.is_dir():
        pytest.skip("CASCADE_DATA names no folder")
    lines = (folder / f"{stream}.jsonl").read_text().splitlines()
    rng = np.random.default_rng(7)
    return [json.loads(lines[i])["task"] for i in rng.permutation(len(lines))[:many]]


def shown(embedder: Embedder, bank: Sequence[str], tasks: Sequence[str]) -> float:
    """Return the share of tasks for which a bank of cases shows something."""
    with CascadeMemory(embedder=embedder, learn="inline") as memory:
        memory.add([(text, f"solution {i}") for i, text in enumerate(bank)], progress=False)
        return float(np.mean([bool(memory.recall(task).cases) for task in tasks]))


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("hashing", (1, 20)),
        pytest.param("minilm", (20,), marks=needs_model),
        pytest.param("hashing", (5, 200), marks=pytest.mark.long),
        pytest.param("minilm", (1, 5, 200), marks=[needs_model, pytest.mark.long]),  # 2,250 texts are embedded
    ],
)
def test_tasks_of_another_stream_are_shown_next_to_nothing_and_near_duplicates_nearly_always(name: str, sizes: tuple[int, ...]):
    rng = np.random.default_rng(20)
    texts = {stream: texts_of(stream, 400) for stream in STREAMS}
    asked = {stream: many[200:250] for stream, many in texts.items()}
    near = {stream: [alike(text, rng) for text in many[: max(sizes)]] for stream, many in texts.items()}
    banks = {stream: many[: max(sizes)] for stream, many in texts.items()}
    used = [text for part in (near, banks, asked) for many in part.values() for text in many]
    embedder = PrecomputedEmbedder(EMBEDDERS[name](), used)
    for size in sizes:
        unrelated, duplicates = [], []
        for stream in STREAMS:
            other = [text for one in STREAMS if one != stream for text in asked[one]]
            unrelated.append(shown(embedder, banks[stream][:size], other))
            duplicates.append(shown(embedder, banks[stream][:size], near[stream][:size]))
        of_another, of_these = float(np.mean(unrelated)), float(np.mean(duplicates))
        sys.stdout.write(f"{name}, {size} cases: of another stream {of_another:.1%}, near-duplicates {of_these:.1%}\n")
        assert of_another <= 0.03
        assert of_these >= 0.95


def words(rng: np.random.Generator) -> str:
    return " ".join("".join(rng.choice(list("bcdfghklmnprstvz"), 6)) for _ in range(5))


def test_where_unlike_cases_help_it_comes_to_show_them():
    """All tasks are random letters, and all have one solution: SIMULATED, it succeeds with a case and seldom without."""
    rng = np.random.default_rng(0)
    with CascadeMemory(embedder="hashing", learn="inline") as memory:
        memory.add(words(rng), "press the red button")
        shows = []
        for _ in range(120):
            recall = memory.recall(words(rng))
            shows.append(bool(recall.cases))
            memory.reward(
                recall.episode_id, 1.0 if recall.cases or rng.random() < 0.3 else 0.0, solution="press the red button"
            )
        assert not any(shows[:5])
        assert np.mean(shows[-40:]) > 0.9
        assert "cases that seem unrelated to a task are shown as well" in str(memory.report())


class Foreign(HashingEmbedder):
    """Somebody's embedder, which counts what it is asked for."""

    def __init__(self, *, refuses: bool = False) -> None:
        super().__init__()
        self.asked: list[int] = []
        self.refuses = refuses

    def embed(self, texts: Sequence[str]):
        self.asked.append(len(texts))
        if self.refuses and len(texts) == len(TEXTS):
            raise ValueError("too many texts at once")
        return super().embed(texts)


def test_a_slow_embedder_is_asked_once_at_the_first_write_and_never_by_a_recall(tmp_path: Path):
    first, second = Foreign(), Foreign()
    with CascadeMemory(tmp_path / "memory", embedder=first, learn="inline") as memory:
        memory.recall("write a poem about autumn")
        assert first.asked == [1]
        memory.add("reset the router", "hold the button for 10 s")
        assert first.asked == [1, 1, len(TEXTS)]
        assert not memory.recall("write a poem about autumn").cases
    with CascadeMemory(tmp_path / "memory", embedder=second, learn="inline") as memory:
        assert not memory.recall("write a poem about autumn").cases
        memory.add("reset the printer", "hold the other button")
        assert second.asked == [1, 1]


class Held(HashingEmbedder, LoadsModel):
    """An embedder that is slow to embed the texts of the floor."""

    def __init__(self) -> None:
        super().__init__()
        self.begun, self.go_on = threading.Event(), threading.Event()

    def prepare(self) -> None: ...

    def embed(self, texts: Sequence[str]):
        if len(texts) == len(TEXTS):
            self.begun.set()
            assert self.go_on.wait(60)
        return super().embed(texts)


def test_a_recall_during_the_first_measurement_waits_for_it():
    embedder = Held()
    with CascadeMemory(embedder=embedder, learn="inline", deadline=None) as memory:
        measuring = threading.Thread(target=memory.warm)
        measuring.start()
        assert embedder.begun.wait(60)
        threading.Timer(0.2, embedder.go_on.set).start()
        memory.add("reset the router", "hold the button for 10 s")
        assert not memory.recall("write a poem about autumn").cases
        measuring.join()


@pytest.mark.parametrize("damage", ["", "?", "AAAA", "AAAA" * 10_240])
def test_what_was_stored_and_cannot_be_read_is_measured_again(tmp_path: Path, damage: str):
    with CascadeMemory(tmp_path / "memory", embedder="hashing", learn="inline") as memory:
        memory.add("reset the router", "hold the button for 10 s")
        facts = engine_of(memory).parts.ledger.facts
        (name,) = facts.names("unrelated-")
        facts.set(name, damage)
    with CascadeMemory(tmp_path / "memory", embedder="hashing", learn="inline") as memory:
        assert not memory.recall("write a poem about autumn").cases
        assert memory.recall("reset my router").cases


def test_an_embedder_that_fails_on_these_texts_leaves_a_memory_without_a_floor():
    with CascadeMemory(embedder=Foreign(refuses=True), learn="inline") as memory:
        memory.add("reset the router", "hold the button for 10 s")
        assert memory.recall("write a poem about autumn").cases
        assert memory.health().ok


def test_contexts_without_a_floor_teach_as_before(ram: CascadeMemory):
    for i in range(20):
        ram.reward(ram.recall(f"task {i}").episode_id, 1.0, solution="s")
    policy = state_of(ram).policy
    before = policy.value.rates
    assert len(policy.value.state()["rows"][0]) == 4 + 4
    policy.value.observe(np.array([1.0, 0.5, 0.2]), shown=True, reward=1.0, fitted=1.0, weight=1.0)
    assert policy.value.rates != before or len(policy.value.state()["new"])
