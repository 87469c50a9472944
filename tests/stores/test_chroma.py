"""The Chroma folder belongs to everybody."""

from __future__ import annotations

import os
import sys
import types
import uuid
from pathlib import Path

import numpy as np
import pytest
from inside import engine_of, state_of

from cascade_memory import CascadeMemory, Step
from cascade_memory.assembly.mirror import identity
from cascade_memory.domain.case import Case
from cascade_memory.encoders.hashing import HashingEmbedder
from cascade_memory.errors import StoreError
from cascade_memory.stores.chroma import MOST_OPEN, ChromaFolder
from cascade_memory.stores.chroma_answers import checked_collection


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with CascadeMemory(tmp_path / "memory", embedder="hashing", learn="inline") as memory:
        for i in range(60):
            recall = memory.recall(f"task {i}")
            memory.reward(recall.episode_id, 1.0, solution=f"solution {i}", metadata={"n": i, "tags": ["a", "b"]})
        memory.acting(namespace="tenant/7").add("walk", [Step(action="look", observation="a door")])
    return tmp_path / "memory" / "chroma"


def test_plain_chromadb_opens_it_with_all_cases(folder: Path):
    import chromadb

    client = chromadb.PersistentClient(str(folder))
    cases = client.get_collection("default", embedding_function=None)
    assert cases.count() == 60
    vector = HashingEmbedder().embed(["task 7"])[0]
    found = cases.query(query_embeddings=[vector], n_results=1)
    assert found["documents"] == [["task 7"]]
    assert found["metadatas"][0][0]["cascade_solution"] == "solution 7"  # type: ignore[index]
    assert found["metadatas"][0][0]["n"] == 7  # type: ignore[index]
    assert found["distances"][0][0] == pytest.approx(0.0, abs=1e-5)  # type: ignore[index]
    assert len(client.list_collections()) == 2
    client.close()


def test_langchain_opens_it_with_all_cases(folder: Path):
    pytest.importorskip("langchain_chroma")
    from langchain_chroma import Chroma
    from langchain_core.embeddings import Embeddings

    class Hashing(Embeddings):
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return HashingEmbedder().embed(texts).tolist()

        def embed_query(self, text: str) -> list[float]:
            return self.embed_documents([text])[0]

    store = Chroma("default", Hashing(), persist_directory=str(folder))
    assert len(store.get()["ids"]) == 60
    (document,) = store.similarity_search("task 7", k=1)
    assert document.page_content == "task 7"
    assert document.metadata["cascade_solution"] == "solution 7"
    store._client.close()


def test_llama_index_opens_it_with_all_cases(folder: Path):
    import chromadb

    pytest.importorskip("llama_index.vector_stores.chroma")
    from llama_index.core.vector_stores.types import VectorStoreQuery
    from llama_index.vector_stores.chroma import ChromaVectorStore

    client = chromadb.PersistentClient(str(folder))
    store = ChromaVectorStore(chroma_collection=client.get_collection("default", embedding_function=None))
    vector = HashingEmbedder().embed(["task 7"])[0].tolist()
    found = store.query(VectorStoreQuery(query_embedding=vector, similarity_top_k=60))
    assert found.nodes is not None
    assert len(found.nodes) == 60
    assert found.nodes[0].get_content() == "task 7"
    assert found.nodes[0].metadata["cascade_solution"] == "solution 7"
    client.close()


def test_forgotten_cases_leave_chroma_too(tmp_path: Path):
    with CascadeMemory(tmp_path, embedder="hashing", learn="inline") as memory:
        ids = memory.add([(f"task {i}", "s") for i in range(5)])
        memory.acting(namespace="gone").add("other", "s")
        memory.sync()
        memory.forget(ids[0])
        memory.acting(namespace="gone").forget(everything=True)
        memory.acting(namespace="gone").add("after", "s")
        memory.sync()
        mirror = engine_of(memory).parts.mirror
        assert mirror is not None
        assert mirror.count("default") == 4
        assert mirror.count("gone") == 1


def test_beyond_the_exact_range_chroma_answers_and_a_new_case_is_found_at_once(tmp_path: Path, monkeypatch):
    with CascadeMemory(tmp_path, embedder="hashing", learn="inline") as memory:
        memory.add([(f"task {i} {i * i}", f"s{i}") for i in range(300)])
        memory.sync()
        exact = [case.solution for case in memory.cases.search("task 17 289", k=5).cases]
        monkeypatch.setattr(state_of(memory).index, "exact_limit", 10)
        asked: list[int] = []
        mirror = engine_of(memory).parts.mirror
        assert mirror is not None
        nearest = mirror.nearest_ids
        monkeypatch.setattr(mirror, "nearest_ids", lambda name, vector, k: asked.append(k) or nearest(name, vector, k))
        assert [case.solution for case in memory.cases.search("task 17 289", k=5).cases] == exact
        assert asked
        memory.add("a brand new task", "new")
        assert memory.cases.search("a brand new task").cases[0].solution == "new"
        memory.forget(memory.cases.search("task 17 289").cases[0].id)
        assert memory.cases.search("task 17 289").cases[0].solution != "s17"


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="counts descriptors in /proc")
def test_few_collections_are_open_at_a_time_however_many_there_are(tmp_path: Path):
    names = [f"tenant-{i}" for i in range(3 * MOST_OPEN)]
    with CascadeMemory(tmp_path, embedder="hashing", learn="inline") as memory:
        before = len(os.listdir("/proc/self/fd"))
        for name in names:
            memory.acting(namespace=name).add(
                [("a printer jams", f"answer of {name}"), ("a screen is dark", "press the switch")]
            )
        memory.sync()
        assert len(os.listdir("/proc/self/fd")) - before < 4 * MOST_OPEN + 20
        feeder = engine_of(memory).feeder
        assert feeder is not None
        assert [feeder.count(name) for name in names] == [2] * len(names)
        assert memory.health().failures == {}


def test_a_collection_that_is_queried_stays_open_or_is_opened_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("cascade_memory.stores.chroma._MOST_BESIDE_LARGE", 3)
    vectors = HashingEmbedder().embed(["a printer jams", "a screen is dark"])
    store = ChromaFolder(tmp_path / "chroma")
    store.upsert("large", [_case("1", "large"), _case("2", "large")], vectors)
    store.prepare("large", vectors[0])
    for i in range(8):
        store.upsert(f"tenant-{i}", [_case("1", f"tenant-{i}")], vectors[:1])
        assert store.nearest_ids("large", vectors[1], 1) == ["2"]
    prepare, refused = store.prepare, []

    def asked_meanwhile(namespace: str, vector: np.ndarray) -> None:
        with pytest.raises(StoreError, match="opened again"):  # so the exact scan answers
            store.nearest_ids("large", vectors[1], 1)
        refused.append(store.answers)
        prepare(namespace, vector)

    monkeypatch.setattr(store, "prepare", asked_meanwhile)
    for i in range(8, 11):
        store.upsert(f"tenant-{i}", [_case("1", f"tenant-{i}")], vectors[:1])
    assert refused == [True] * len(refused) != []  # the mirror was not taken for broken
    assert store.nearest_ids("large", vectors[1], 1) == ["2"]
    store.close()


def _case(case_id: str, namespace: str) -> Case:
    return Case(
        key=int(case_id),
        id=case_id,
        namespace=namespace,
        query="q",
        solution="s",
        metadata={},
        source="host",
        episode_id=None,
        created_at=0.0,
    )


@pytest.mark.slow
@pytest.mark.parametrize("at", ["discard", "remove", "head", "note"])
def test_a_rebuild_that_fails_anywhere_is_done_again(folder: Path, at: str):
    def profiler(frame: types.FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_name == at:
            raise _SoftLimit

    with CascadeMemory(folder.parent, embedder="hashing", learn="off") as memory:
        memory.add("cool some egg", "fridge")
        memory.sync()
        before = sys.getprofile()
        try:
            sys.setprofile(profiler)
            memory.data.rebuild()
        except _SoftLimit:
            sys.setprofile(before)
        memory.add("cool some mug", "fridge")
        memory.sync()
        feeder = engine_of(memory).feeder
        assert feeder is not None
        assert feeder.count("default") == 62


class _SoftLimit(Exception):
    """Raised by a worker's time limit; what suppresses exceptions suppresses it, too."""


def test_what_is_stored_after_a_deletion_is_there_whatever_interrupted_it(tmp_path: Path):
    mirror, number, calls = ChromaFolder(tmp_path / "chroma"), 0, 1
    case = Case(id="a", query="cool some egg", solution="fridge", namespace="default")
    vector = np.ones((1, 8), np.float32)

    def profiler(frame: types.FrameType, event: str, _: object) -> None:
        nonlocal calls
        calls += event == "call" and "/stores/" in frame.f_code.co_filename
        if calls == number:
            raise _SoftLimit

    mirror.upsert("default", [case], vector)
    while calls >= number:
        number, calls = number + 1, 0
        before = sys.getprofile()
        try:
            sys.setprofile(profiler)
            mirror.discard()
        except _SoftLimit:
            mirror.discard()
        finally:
            sys.setprofile(before)
        mirror.upsert("default", [case], vector)
        mirror.close()
        assert mirror.count("default") == 1, f"interrupted at call {number}"
    assert number > 5
    mirror.close()


def test_memories_on_one_server_have_names_of_their_own_that_stay(tmp_path: Path):
    names: list[str | None] = []
    for folder in ("one", "two", "one"):
        with CascadeMemory(tmp_path / folder, embedder="hashing", learn="inline") as memory:
            names.append(identity(engine_of(memory).parts.ledger))
    assert names[0] == names[2] != names[1]
    assert all(names)


def test_a_collection_of_another_name_is_not_used():
    one = types.SimpleNamespace(id=uuid.uuid4(), name="default", metadata={}, configuration_json={}, serialized_schema=None)
    with pytest.raises(StoreError, match="its metadata does not name the namespace"):
        checked_collection(one, "default", "default")
    with pytest.raises(StoreError, match="it is called 'default'"):
        checked_collection(one, "another", "default")
