"""A snapshot as bytes: its arrays, and a manifest that says what they are.

The file is not trusted: reading its arrays returns only numbers, and never needs more memory than the size of the file.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, cast

import numpy as np
from numpy.lib import format as npy

from cascade_memory.domain.private_files import open_plain
from cascade_memory.ports.policy import Floats
from cascade_memory.ports.snapshots import Snapshot

_MOST_BYTES = 512 * 2**20
_MOST_ARRAYS = 256
_READERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
_MANIFEST = "manifest"
_MOST_CHARS = 1_000  # limit for the name of a policy or an encoder


def write_arrays(file: IO[bytes], arrays: Mapping[str, Floats]) -> None:
    """Write the arrays in numpy's format, uncompressed."""
    try:
        np.savez(file, **cast("dict[str, Any]", dict(arrays)))
    except ValueError as error:  # an archive that an interrupt left half open cannot be closed, and says that instead
        if isinstance(error.__context__, KeyboardInterrupt | SystemExit):
            raise error.__context__ from None
        raise


def read_arrays(path: Path) -> dict[str, Floats]:
    """Read the arrays of a file. Damaged files may raise any exception, since zip, numpy and JSON readers are involved."""
    with open_plain(path) as opened:
        content = opened.read(_MOST_BYTES + 1)
    return parse_arrays(content)


def parse_arrays(content: bytes) -> dict[str, Floats]:
    """Parse what ``write_arrays`` wrote. Damaged content may raise any exception, as in ``read_arrays``."""
    if len(content) > _MOST_BYTES:
        raise ValueError(f"it has more than {_MOST_BYTES:,} bytes")
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = archive.infolist()
        if len(members) > _MOST_ARRAYS:
            raise ValueError(f"it holds {len(members):,} arrays, more than {_MOST_ARRAYS}")
        # A compressed array could grow to any size. The library never compresses them.
        if any(one.compress_type != zipfile.ZIP_STORED for one in members) or sum(one.file_size for one in members) > len(
            content
        ):
            raise ValueError("it is compressed")
        return {one.filename.removesuffix(".npy"): _array(archive.read(one)) for one in members}


def _array(content: bytes) -> Floats:
    stream = io.BytesIO(content)
    shape, fortran, dtype = _READERS[npy.read_magic(stream)](stream)
    data = memoryview(content)[stream.tell() :]
    if dtype.kind not in "fiu" or dtype.hasobject:
        raise ValueError(f"an array of {dtype} is not an array of numbers")
    items = 1
    for side in shape:
        items *= int(side)
    if any(side < 0 for side in shape) or items * dtype.itemsize != len(data):
        raise ValueError(f"an array of shape {shape} does not have {len(data):,} bytes")
    flat = np.frombuffer(data, dtype).astype(dtype.newbyteorder("="))
    return flat.reshape(shape, order="F" if fortran else "C")


def digest(arrays: Mapping[str, Floats]) -> str:
    """Hash arrays with their names, types and shapes.

    >>> digest({"a": np.zeros(2)}) == digest({"a": np.zeros(2)}), digest({"a": np.zeros(2)}) == digest({"a": np.zeros((2, 1))})
    (True, False)
    """
    found = hashlib.blake2b(digest_size=16)
    for name, array in sorted(arrays.items()):
        found.update(f"{name}\x00{array.dtype.str}\x00{array.shape}\x00".encode())
        found.update(np.ascontiguousarray(array).tobytes())
    return found.hexdigest()


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
