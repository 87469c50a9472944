"""A snapshot as bytes: its arrays, and a manifest that says what they are."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import IO, Any, cast

import numpy as np

from cascade_memory.ports.policy import Floats
from cascade_memory.ports.snapshots import Snapshot
from cascade_memory.snapshots.arrays import digest, write_arrays

_MANIFEST = "manifest"
_MOST_CHARS = 1_000  # limit for the name of a policy or an encoder


def write_snapshot(file: IO[bytes], snapshot: Snapshot, weights: str | None) -> None:
    """Write a snapshot's arrays and its manifest. ``weights`` is the name of the file with the encoder's weights."""
    manifest = {
        "namespace": snapshot.namespace,
        "seq": snapshot.seq,
        "known": snapshot.known,
        "policy": snapshot.policy,
        "encoder": snapshot.encoder,
        "weights": weights,
        "digest": digest(snapshot.state),
    }
    text = np.frombuffer(json.dumps(manifest).encode(), np.uint8)
    write_arrays(file, {_MANIFEST: cast("Any", text), **snapshot.state})


def read_snapshot(arrays: Mapping[str, Floats], whose: tuple[int, int] | None) -> tuple[Snapshot, Any]:
    """Return a snapshot and the name of its weights, which the caller must check. Damaged content may raise any exception.

    ``whose`` is the (namespace, entry of the log) under which the snapshot is stored.
    """
    state = dict(arrays)
    manifest = json.loads(state.pop(_MANIFEST).tobytes())
    namespace, seq, known = manifest["namespace"], manifest["seq"], manifest.get("known", 0)
    if any(type(number) is not int for number in (namespace, seq, known)) or (namespace, seq) != whose:
        raise ValueError("its manifest belongs to another file")
    policy, encoder = manifest["policy"], manifest["encoder"]
    if not all(isinstance(text, str) and len(text) <= _MOST_CHARS for text in (policy, encoder)) or known < 0:
        raise ValueError("its manifest is not valid")
    # Snapshots of earlier versions have no digest; their arrays are still checked when they are loaded.
    if "digest" in manifest and manifest["digest"] != digest(state):
        raise ValueError("its content has changed since it was written")
    found = Snapshot(namespace=namespace, seq=seq, known=known, policy=policy, encoder=encoder, state=state)
    return found, manifest.get("weights")
