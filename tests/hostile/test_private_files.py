"""What a memory holds is nobody else's business: folders 0700, files 0600, whatever the umask."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cascade_memory import CascadeMemory, restore
from cascade_memory.assembly.reindex import reindex
from cascade_memory.encoders.hashing import HashingEmbedder

pytestmark = pytest.mark.skipif(os.name == "nt", reason="Windows has no such modes")


@pytest.fixture(autouse=True, params=[0o022, 0o000])
def umask(request: pytest.FixtureRequest) -> Iterator[None]:
    before = os.umask(request.param)
    yield
    os.umask(before)


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def _open_to_others(folder: Path) -> dict[str, str]:
    """Return everything below a folder, itself included, that anybody else may read; Chroma's files apart."""
    found = [folder, *folder.rglob("*")]
    return {str(file): oct(_mode(file)) for file in found if _mode(file) & 0o077 and "chroma" not in file.parts}


def _used(memory: CascadeMemory) -> None:
    for i in range(6):
        recall = memory.recall(f"task {i}")
        memory.reward(recall.episode_id, 1.0, solution=f"solution {i % 2}")


def test_everything_that_is_made_is_private(tmp_path: Path):
    place = tmp_path / "new" / "memory"
    with CascadeMemory(place, embedder="hashing", learn="inline") as memory:
        _used(memory)
        assert _open_to_others(tmp_path / "new") == {}  # the write-ahead log as well
        memory.data.backup(tmp_path / "new" / "backups" / "first")
        memory.data.export(tmp_path / "new" / "export.jsonl")
        memory.forget(memory.add("q", "s"), purge=True)
    assert (place / "snapshots").is_dir()
    restore(tmp_path / "new" / "backups" / "first", tmp_path / "new" / "restored")
    (place / "ledger.sqlite3").write_bytes(b"no database" * 900)
    restore(tmp_path / "new" / "backups" / "first", place, replace=True)
    assert list(place.glob("*.damaged-*"))
    reindex(place, HashingEmbedder(64))
    assert _open_to_others(tmp_path / "new") == {}


def test_files_of_an_earlier_version_are_made_private_and_the_users_folder_is_left_alone(tmp_path: Path):
    place = tmp_path / "memory"
    place.mkdir(mode=0o755)
    place.chmod(0o755)
    with CascadeMemory(place, embedder="hashing", learn="inline") as memory:
        _used(memory)
    for file in [place / "snapshots", *(place / "snapshots").iterdir(), place / "ledger.sqlite3", place / "owner.lock"]:
        file.chmod(0o755 if file.is_dir() else 0o644)
    with CascadeMemory(place, embedder="hashing", learn="inline") as memory:
        _used(memory)
        assert _open_to_others(place) == {str(place): "0o755"}


def test_a_backup_into_an_empty_folder_that_all_may_read_is_private(tmp_path: Path):
    with CascadeMemory(embedder="hashing") as memory:
        memory.add("q", "s")
        (target := tmp_path / "backup").mkdir()
        target.chmod(0o777)
        memory.data.backup(target)
    assert _open_to_others(target) == {}


def test_an_export_over_an_older_one_is_private(tmp_path: Path, ram: CascadeMemory):
    (target := tmp_path / "export.jsonl").write_text("")
    target.chmod(0o666)
    ram.data.export(target)
    assert _mode(target) == 0o600


@pytest.mark.slow
def test_weights_of_an_encoder_are_private(tmp_path: Path):
    torch = pytest.importorskip("torch")
    pytest.importorskip("safetensors")
    from cascade_memory.encoders.cross_encoder.training import read_weights, write_weights
    from cascade_memory.errors import StoreCorrupt

    file, model = tmp_path / "encoder-1-0000000000000001-00000000.safetensors", torch.nn.Linear(2, 2)
    about = {"encoder": "e", "version": 1, "fitted_outcomes": 3}
    write_weights(file, model, about)
    assert _mode(file) == 0o600
    assert read_weights(file, "e")[0] == about
    with torch.no_grad():
        model.weight[0, 0] = float("nan")
    write_weights(file, model, about)
    with pytest.raises(StoreCorrupt, match="a number that is not finite"):
        read_weights(file, "e")


def test_the_umask_of_the_process_is_its_own(tmp_path: Path, on_disk: Callable[..., CascadeMemory]):
    before = os.umask(0o027)
    memory = on_disk()
    _used(memory)
    memory.data.backup(tmp_path / "backup")
    assert os.umask(before) == 0o027
