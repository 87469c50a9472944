"""Weights of a trained encoder in a file: safetensors with a manifest in the header. The file is complete or missing."""

from __future__ import annotations

import json
import os
import uuid
from pathlib import Path
from typing import Any

from cascade_memory.domain.private_files import create_file, is_plain, make_private
from cascade_memory.errors import EncoderMismatch, StoreCorrupt, StoreUnwritable

_MANIFEST = "cascade_memory"


def write_weights(file: Path, model: Any, manifest: dict[str, Any]) -> None:
    """Write the weights under another name, then rename the file, so that a process that dies leaves no incomplete ``file``."""
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    unfinished = file.with_suffix(f".{uuid.uuid4().int}.part")  # a name under which nobody has put a link
    tensors = {name: tensor.detach().cpu().clone() for name, tensor in model.state_dict().items()}
    try:
        create_file(unfinished)  # safetensors overwrites it; only the owner may read it
        save_file(tensors, unfinished, metadata={_MANIFEST: json.dumps(manifest)})
        with unfinished.open("rb+") as written:
            os.fsync(written.fileno())
        make_private(unfinished)
        unfinished.replace(file)
    except (OSError, SafetensorError) as error:
        unfinished.unlink(missing_ok=True)
        raise StoreUnwritable(f"cannot write {file}: {error}") from error


def read_weights(file: Path, identity: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the manifest and the weights; refuse those of another model or tokenizer, and numbers that are not finite."""
    from safetensors import SafetensorError, safe_open

    try:
        if not is_plain(file):
            raise ValueError("it is not a plain file")  # noqa: TRY301 - the message is composed below
        with safe_open(file, framework="pt") as opened:
            manifest = json.loads((opened.metadata() or {})[_MANIFEST])
            weights = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118 - it is not a mapping
        _check(manifest, weights)
    except (OSError, SafetensorError, KeyError, ValueError, TypeError, RecursionError) as error:
        raise StoreCorrupt(f"{file} is not a snapshot of an encoder ({error}); delete it; it will be learned again") from error
    if manifest.get("encoder") != identity:
        raise EncoderMismatch(
            f"{file} holds weights of {manifest.get('encoder')}, not of {identity}: "
            "another architecture, dimension or tokenizer. Open the folder with the reranker that it was trained with"
        )
    return manifest, weights


def _check(manifest: Any, weights: dict[str, Any]) -> None:
    """Refuse a manifest without its counts, and weights with which every score would be nan."""
    counts = (manifest["version"], manifest["fitted_outcomes"])
    if any(type(count) is not int or count < 0 for count in counts):
        raise ValueError("its manifest is damaged")
    broken = [name for name, tensor in weights.items() if tensor.is_floating_point() and not bool(tensor.isfinite().all())]
    if broken:
        raise ValueError(f"{broken[0]} holds a number that is not finite")
