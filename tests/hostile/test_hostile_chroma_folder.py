"""Somebody edits the folder of Chroma while it is closed: it is seen, thrown away unread, and made anew from the ledger."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import random
import shutil
import sqlite3
import stat
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import chromadb
import numpy as np
import pytest
from chroma_mutations import (
    CANARY,
    FILES,
    SCHEMA,
    Canary,
    canary_known_to_chroma,
    copied,
    copied_and_sealed,
    database_of,
    look,
    marked,
    mutate_folder,
    mutated,
)
from chromadb.api.collection_configuration import load_collection_configuration_from_json
from chromadb.api.types import Schema
from chromadb.config import Settings
from imitated_chroma import FRESH
from inside import engine_of
from intensity import times

from cascade_memory import CascadeMemory
from cascade_memory.domain.case import Case
from cascade_memory.errors import StoreError
from cascade_memory.stores.chroma import ChromaFolder, collection_name
from cascade_memory.stores.chroma_answers import checked_collection
from cascade_memory.stores.folder_files import is_sealed, remove, seal

HOW_MANY = times(newcomer=60, ci=200, matrix=4_000)
pytestmark = [pytest.mark.fuzz, pytest.mark.timeout(300 + HOW_MANY)]
WHOLE = max(len(FILES), HOW_MANY // 200)  # of those for which a whole memory is opened
LEDGER = "ledger.sqlite3"


@pytest.fixture
def canary() -> Iterator[type[Canary]]:
    with canary_known_to_chroma() as found:
        yield found


def _open(folder: Path) -> CascadeMemory:
    return CascadeMemory(folder, embedder="hashing", learn="off")


def test_any_change_to_a_closed_folder_is_seen_and_no_link_is_followed(closed: Path, tmp_path: Path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").write_text("somebody's")
    pristine, right = closed / "chroma", look(closed / "chroma")
    assert is_sealed(pristine, marked(closed).seal)
    tried = 0
    for seed in range(HOW_MANY // 2):
        rng = random.Random(seed)
        place = copied(pristine, tmp_path / "chroma")
        before = seal(place)
        assert is_sealed(place, before)
        what = mutate_folder(place, rng)
        if rng.random() < 0.1:
            (place / "out").symlink_to(outside)
        if look(place) == right and "second name" not in what:
            continue  # two equal files were swapped
        assert not is_sealed(place, before), f"seed {seed}: {what}"
        tried += 1
        remove(place)
        assert not os.path.lexists(place), f"seed {seed}: {what}"
    assert tried > 0.4 * HOW_MANY
    assert (outside / "kept").read_text() == "somebody's"


def test_a_folder_that_nobody_touched_is_used_again(closed: Path, tmp_path: Path, watched: list[list[str]]):
    folder = copied(closed, tmp_path / "other")
    with _open(folder) as memory:
        memory.data.rebuild()
    folder = folder.rename(tmp_path / "memory")  # a new name is no change
    with _open(folder) as memory:
        memory.add("a new task", "new")
        memory.sync()
        assert memory.health().failures == {}
        assert all(check.ok for check in memory.data.examine())
    assert [("chroma.sqlite3" in files) for files in watched] == [False, True]


@pytest.mark.slow
def test_a_changed_folder_is_made_anew_before_chroma_sees_it(
    closed: Path, tmp_path: Path, watched: list[list[str]], canary: type[Canary], caplog: pytest.LogCaptureFixture
):
    for seed in range(WHOLE):
        rng = random.Random(seed)
        folder = copied_and_sealed(closed, tmp_path / "memory")
        place, before = folder / "chroma", marked(folder).seal
        assert is_sealed(place, before)
        if seed < len(FILES):
            name = list(FILES)[seed]
            FILES[name](rng.choice([one for one in place.rglob("*") if one.is_file() and one.stat().st_size]), rng)
        else:
            name = mutate_folder(place, rng)
        if is_sealed(place, before):
            continue  # nothing was changed
        watched.clear()
        caplog.clear()
        with caplog.at_level(logging.WARNING), _open(folder) as memory:
            assert memory.cases.search("task 7 of kind 49").cases[0].solution == "solution 7"
            memory.add("a new task", "new")
            memory.sync()
            assert watched == [[]], name  # nothing of what was edited stood there when Chroma came
            assert memory.health().failures == {"chroma": 1}
            assert memory.health().chroma == "open"
            assert engine_of(memory).parts.mirror.count("default") == 21  # type: ignore[union-attr]
            assert memory.cases.search("task 7 of kind 49").cases[0].solution == "solution 7"
        assert sum("rebuilt from the ledger" in record.getMessage() for record in caplog.records) == 1
        assert is_sealed(place, marked(folder).seal)
    assert canary.sung == 0


def test_the_doctor_says_that_a_closed_folder_was_changed(closed: Path, tmp_path: Path):
    folder = copied_and_sealed(closed, tmp_path / "memory")
    (folder / "chroma" / "more").write_bytes(b"x")
    with _open(folder) as memory:
        (found,) = [check for check in memory.data.examine() if not check.ok]
        assert found.name == "chroma"
        assert "by another program" in found.detail
        assert any(check.detail.startswith("mended") for check in memory.data.examine(fix=True))
        assert all(check.ok for check in memory.data.examine())


def test_a_chroma_that_is_a_link_to_somebody_s_folder_is_unlinked_and_never_entered(closed: Path, tmp_path: Path):
    theirs = tmp_path / "theirs"
    shutil.copytree(closed / "chroma", theirs)
    kept = seal(theirs)
    for name in ("chroma", "chroma.building"):
        folder = copied(closed, tmp_path / "memory")
        remove(folder / name)
        (folder / name).symlink_to(theirs)
        with _open(folder) as memory:
            memory.add("a new task", "new")
            memory.sync()
            assert memory.cases.search("task 7 of kind 49").cases[0].solution == "solution 7"
            memory.data.rebuild()
        assert not (folder / "chroma").is_symlink()
        assert is_sealed(theirs, kept)


def test_what_is_planted_before_the_first_case_is_thrown_away(closed: Path, tmp_path: Path, watched: list[list[str]]):
    folder = tmp_path / "memory"
    _open(folder).close()
    shutil.copytree(closed / "chroma", folder / "chroma")
    with _open(folder) as memory:
        copied(closed / "chroma", folder / "chroma")  # and again, while it is open but was never fed
        memory.add("a", "b")
        memory.sync()
        assert engine_of(memory).parts.mirror.count("default") == 1  # type: ignore[union-attr]
    assert watched == [[]]


def test_what_cannot_be_deleted_is_not_used(closed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, watched: Any):
    folder = copied(closed, tmp_path / "memory")
    (folder / "chroma" / "more").write_bytes(b"x")
    monkeypatch.setattr(shutil, "rmtree", lambda *_, **__: None)  # as root's file in a folder of ours, for who is not root
    with _open(folder) as memory:
        memory.add("a new task", "new")
        with pytest.raises(StoreError, match="delete it by hand"):
            memory.sync()
        assert memory.health().failures["chroma"]
        assert memory.cases.search("a new task").cases[0].solution == "new"
    assert watched == []


# -- the collection itself, where there was no seal to see it ------------------------------------------------------------


def _case(i: int) -> Case:
    return Case(id=f"case-{i}", namespace="default", query=f"q{i}", solution="s")


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Chroma folder with three cases of the default namespace."""
    mirror = ChromaFolder(tmp_path_factory.mktemp("small") / "chroma")
    mirror.upsert("default", [_case(i) for i in range(3)], np.eye(3, 384, dtype=np.float32))
    mirror.close()
    return mirror.path


def _edited(small: Path, to: Path, configuration: str | None, schema: str | None) -> Path:
    place = copied(small, to)
    connection = sqlite3.connect(place / "chroma.sqlite3")
    with connection:
        connection.execute("UPDATE collections SET config_json_str = ?, schema_str = ?", (configuration, schema))
    connection.close()
    return place


NAMING = {"hnsw": {"space": "cosine"}, "embedding_function": CANARY}
NAMED: dict[str, Callable[[Path, Path], Path]] = {
    "configuration": lambda small, to: _edited(small, to, json.dumps(NAMING), None),
    "schema": lambda small, to: _edited(small, to, "{}", json.dumps(_schema(small))),
}


def _schema(small: Path) -> Any:
    connection = sqlite3.connect(small / "chroma.sqlite3")
    schema = json.loads(connection.execute("SELECT schema_str FROM collections").fetchone()[0] or "{}")
    connection.close()
    for part in (schema.get("defaults", {}), *schema.get("keys", {}).values()):
        for index in part.get("float_list", {}).values(), part.get("sparse_vector", {}).values():
            for one in index:
                one["config"]["embedding_function"] = CANARY
    return schema


def _plainly(place: Path) -> None:
    """What an unsuspecting user of chromadb does."""
    settings: Any = Settings(_env_file=None, anonymized_telemetry=False)  # type: ignore[call-arg]
    client = chromadb.PersistentClient(str(place), settings=settings)
    try:
        collection = client.get_or_create_collection("default", embedding_function=None)
        collection.upsert(ids=["x"], embeddings=[np.ones(384, np.float32)], documents=["d"], metadatas=[{"a": "b"}])
    finally:
        client.close()


@pytest.mark.filterwarnings("ignore")
def test_the_attack_is_real_chromadb_builds_what_a_collection_names(small: Path, tmp_path: Path, canary: type[Canary]):
    place = NAMED["schema"](small, tmp_path / "chroma")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with contextlib.suppress(Exception):  # what it does then is its own affair
            _plainly(place)
    assert canary.sung


@pytest.mark.parametrize("where", NAMED)
def test_a_collection_that_names_a_function_is_refused_by_every_call_and_nothing_is_built(
    small: Path, tmp_path: Path, canary: type[Canary], where: str
):
    place, vector = NAMED[where](small, tmp_path / "chroma"), np.ones(384, np.float32)
    calls: list[Callable[[ChromaFolder], object]] = [
        lambda mirror: mirror.upsert("default", [_case(9)], vector[None]),
        lambda mirror: mirror.nearest_ids("default", vector, 3),
        lambda mirror: mirror.prepare("default", vector),
        lambda mirror: mirror.count("default"),
        lambda mirror: mirror.delete("default", ["case-1"]),
    ]
    for call in calls:
        mirror = ChromaFolder(place)
        with pytest.raises(StoreError, match="not created by this memory"):
            call(mirror)
        mirror.close()
    mirror = ChromaFolder(place)
    mirror.drop("default")  # which asks nothing of it
    assert mirror.count("default") == 0
    mirror.discard()
    assert canary.sung == 0


def test_edited_rows_are_used_as_numbers_or_refused_but_never_built(small: Path, tmp_path: Path, canary: type[Canary]):
    for seed in range(max(10, HOW_MANY // 100)):
        rng = random.Random(seed)
        said = (json.dumps(mutated(NAMING, rng)), None) if seed % 2 else ("{}", json.dumps(mutated(_schema(small), rng)))
        mirror = ChromaFolder(_edited(small, tmp_path / "chroma", *said))
        for call in (
            lambda mirror=mirror: mirror.upsert("default", [_case(9)], np.ones((1, 384), np.float32)),
            lambda mirror=mirror: mirror.nearest_ids("default", np.ones(384, np.float32), 3),
            lambda mirror=mirror: mirror.count("default"),
        ):
            try:
                call()
            except StoreError:
                continue
        mirror.discard()
    assert canary.sung == 0


def test_what_a_collection_says_is_compared_with_what_we_make(canary: type[Canary]):
    right = {
        "id": uuid4(),
        "name": "default",
        "configuration_json": FRESH,
        "metadata": {"cascade_namespace": "default"},
        "serialized_schema": None,
    }
    assert checked_collection(SimpleNamespace(**right), "default", "default") == right["id"]
    keys = {"embedding_function": {"string": {"string_inverted_index": {"enabled": True, "config": {}}}}}
    named = {**right, "serialized_schema": {"keys": keys}}  # a user's metadata may be called anything
    assert checked_collection(SimpleNamespace(**named), "default", "default")
    refused = 0
    for seed in range(HOW_MANY):
        said = mutated({**right, "serialized_schema": SCHEMA if seed % 3 == 0 else None}, random.Random(seed))
        said = said if isinstance(said, dict) else {}
        model = SimpleNamespace(**{name: said.get(name) for name in right})
        try:
            checked_collection(model, "default", "default")
        except StoreError:
            refused += 1
            continue
        assert model.metadata["cascade_namespace"] == "default"
        with contextlib.suppress(Exception):  # Chroma itself finds nothing to build in what we take
            load_collection_configuration_from_json(model.configuration_json)
        with contextlib.suppress(Exception):
            Schema.deserialize_from_json(model.serialized_schema or {})
        assert canary.sung == 0, seed
    assert refused > HOW_MANY / 3


def test_a_collection_of_another_namespace_is_refused(small: Path, tmp_path: Path):
    place = copied(small, tmp_path / "chroma")
    connection = sqlite3.connect(database_of(place / "any"))
    with connection:
        connection.execute("UPDATE collection_metadata SET str_value = 'a tenant'")
    connection.close()
    mirror = ChromaFolder(place)
    with pytest.raises(StoreError, match="does not name the namespace"):
        mirror.count("default")
    mirror.close()


def test_names_have_128_bits_and_fit_every_chroma():
    names = [collection_name(namespace) for namespace in ("tenant/42", "ä" * 900, " ", "a" * 64, "ns-x", "x" * 40 + "/")]
    for name in names:
        assert len(name.rsplit("-", 1)[1]) == 32
        assert 3 <= len(name) <= 63
        assert name.replace("-", "").isalnum()
    assert collection_name("a" * 62) == "a" * 62


def test_a_folder_of_an_older_layout_is_made_anew(closed: Path, tmp_path: Path, watched: list[list[str]]):
    folder = copied(closed, tmp_path / "memory")
    connection = sqlite3.connect(folder / LEDGER)
    for note in ('{"key": 21, "seq": 21, "clean": true}', "[]", "?", '{"key": "x"}'):
        with connection:
            connection.execute("UPDATE meta SET value = ? WHERE key = 'mirror'", (note,))
        with _open(folder) as memory:
            memory.sync()
            assert engine_of(memory).parts.mirror.count("tenant/7") == 1  # type: ignore[union-attr]
    connection.close()
    assert watched == [[]] * 4


@pytest.mark.slow
def test_nobody_else_may_read_what_chroma_writes(tmp_path: Path):
    before = os.umask(0)  # the worst that a host may have set
    try:
        with _open(tmp_path / "memory") as memory:
            for name in ("default", "tenant/7"):
                memory.acting(namespace=name).add([(f"task {i}", f"s{i}") for i in range(1_100)])
                memory.sync()
                _check_private(tmp_path / "memory" / "chroma")
        _check_private(tmp_path / "memory" / "chroma")
    finally:
        os.umask(before)


def _check_private(folder: Path) -> None:
    files = [folder, *folder.rglob("*")]
    assert len(files) > 5
    for file in files:
        assert stat.S_IMODE(file.stat().st_mode) == (0o700 if file.is_dir() else 0o600), file
