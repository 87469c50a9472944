"""Snapshots that somebody else has written: looked at before they are used, and learned again where they lie."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from inside import state_of
from learned_folder import OnDisk, teach

from cascade_memory import CascadeMemory, restore
from cascade_memory.snapshots import Snapshot, SnapshotStore
from cascade_memory.snapshots.format import digest, read_arrays


def _rewritten(file: Path, manifest: dict[str, Any], **arrays: Any) -> None:
    """Write a snapshot as somebody would who knows how: with a digest that is right."""
    state = read_arrays(file)
    said = {**json.loads(state.pop("manifest").tobytes()), **manifest}
    state.update(arrays)
    said["digest"] = digest(state)
    np.savez(file, manifest=np.frombuffer(json.dumps(said).encode(), np.uint8), **state)
    npz = file.with_name(file.name + ".npz")
    if npz.exists():
        npz.replace(file)


@pytest.mark.parametrize("how", ["absolute", "relative", "link"])
def test_no_manifest_makes_a_memory_delete_or_read_a_file_elsewhere(backup: Path, tmp_path: Path, how: str):
    mine = tmp_path / "mine.txt"
    mine.write_text("mine")
    (file,) = (backup / "snapshots").iterdir()
    weights = {"absolute": str(mine), "relative": "../../mine.txt", "link": file.name.replace("policy", "encoder")[:-4]}[how]
    if how == "link":
        weights += "-00000000.safetensors"
        (backup / "snapshots" / weights).symlink_to(mine)
    _rewritten(file, {"weights": weights}, counters=np.full(3, np.nan))
    restore(backup, tmp_path / "restored")
    with CascadeMemory(tmp_path / "restored", embedder="hashing", learn="inline") as memory:
        assert memory.recall("task 3 of kind 3").error is None
        assert state_of(memory).policy.rewards == 12  # from the ledger
        memory.data.examine(fix=True)
    assert mine.read_text() == "mine"


def test_a_store_deletes_nothing_but_its_own_files_whatever_it_is_told(tmp_path: Path):
    mine = tmp_path / "mine.safetensors"
    mine.write_text("mine")
    store = SnapshotStore(tmp_path / "snapshots")
    (tmp_path / "snapshots").mkdir()
    for weights in (mine, Path("/") / mine, tmp_path / "snapshots" / ".." / mine.name):
        store.remove(Snapshot(namespace=1, seq=1, known=0, policy="p", encoder="e", state={}, weights=weights))
    assert mine.read_text() == "mine"


HOSTILE_STATE: dict[str, tuple[str, Any]] = {
    "weights that are nan": ("head.mode", np.full(8, np.nan)),
    "weights that are huge": ("head.mode", np.full(8, 1e300)),
    "a precision that is none": ("head.precision", -np.eye(7)),
    "a precision that is not symmetric": ("head.precision", np.triu(np.full((7, 7), 2.0)) + np.eye(7)),
    "weights of another length": ("head.mode", np.zeros(3)),
    "a rate that is negative": ("value.rates", np.full((3, 2), -1.0)),
    "a covariance of nothing": ("value.covariance", -1e6 * np.eye(3)),
    "rewards that are none": ("head.bandit", np.full((4, 9), 7.0)),
    "counters of nan": ("counters", np.full(5, np.nan)),
    "sizes that do not add up": ("head.sizes", np.array([5.0, 1e9])),
}


@pytest.mark.parametrize("name", HOSTILE_STATE)
def test_learned_state_that_cannot_be_is_learned_again_from_the_ledger(folder: Path, on_disk: OnDisk, name: str):
    honest = on_disk()
    expected = state_of(honest).policy.state_dict()
    honest.close()
    (file,) = (folder / "snapshots").iterdir()
    key, array = HOSTILE_STATE[name]
    _rewritten(file, {}, **{key: array})
    memory = on_disk()
    policy = state_of(memory).policy
    assert policy.rewards == 12
    np.testing.assert_allclose(policy.state_dict()["head.mode"], expected["head.mode"], atol=0.5)
    assert memory.recall("task 3 of kind 3").error is None
    assert memory.health().ok


def test_a_snapshot_that_claims_to_know_every_outcome_does_not_stop_the_learning(folder: Path, on_disk: OnDisk):
    (file,) = (folder / "snapshots").iterdir()
    _rewritten(file, {"known": 2**60})
    memory = on_disk()
    teach(memory, 3)
    assert state_of(memory).policy.rewards == 15


@pytest.mark.long
def test_any_flipped_bit_of_what_was_learned_is_noticed(folder: Path, on_disk: OnDisk):
    (file,) = (folder / "snapshots").iterdir()
    content = file.read_bytes()
    store, said = SnapshotStore(folder / "snapshots"), []
    for place in range(0, len(content), 41):
        flipped = bytearray(content)
        flipped[place] ^= 1 << (place % 8)
        file.write_bytes(flipped)
        found = store.read(file)
        if found is not None:
            said.append(digest(found.state))
    file.write_bytes(content)
    assert set(said) <= {digest(store.read(file).state)}  # a bit that nobody reads may be any
    on_disk().close()


def test_a_small_file_that_unpacks_to_much_is_not_unpacked(tmp_path: Path):
    import zipfile

    file = tmp_path / "policy-1-0000000000000001.npz"
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("manifest.npy", b"\x93NUMPY" + bytes(50_000_000))
    began = time.monotonic()
    with pytest.raises(ValueError, match="compressed"):
        read_arrays(file)
    assert time.monotonic() - began < 1.0
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,), }"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("manifest.npy", b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header)
    with pytest.raises(ValueError, match="does not have"):
        read_arrays(file)


def test_a_snapshot_that_knows_less_than_nothing_is_not_read(folder: Path, on_disk: OnDisk):
    (file,) = (folder / "snapshots").iterdir()
    store = SnapshotStore(folder / "snapshots")
    assert store.read(file) is not None
    _rewritten(file, {"known": -1})
    assert store.read(file) is None
