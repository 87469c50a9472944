"""The files of a model: where they are, what their JSON says, and a digest of them. No pickle and no code is ever read."""

from __future__ import annotations

import hashlib
import json
import re
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

from cascade_memory.encoders.torch_settings import quiet_loading
from cascade_memory.errors import InvalidInput, MissingExtra

_NAMED = re.compile(r"[\w.-]+/[\w.-]+")
_LARGEST_JSON = 64 * 2**20  # bytes; the largest tokenizers have about half of that
_READ = ("*.json", "*.safetensors", "*.txt", "*.model")
_NOT_READ = ("onnx/*", "openvino/*")
_NAME_BYTES = 255  # of a file, on most systems


def names_a_model(name: str) -> bool:
    """Say whether a text is a folder, or has the form of a name on the hub.

    >>> names_a_model("owner/name"), names_a_model("minilm")
    (True, False)
    """
    return "/" in name or (len(name.encode(errors="replace")) <= _NAME_BYTES and Path(name).is_dir())


def folder_of_model(name: str) -> Path:
    """Return the folder of a model.

    A name on the hub may cause a download, unless HF_HUB_OFFLINE or TRANSFORMERS_OFFLINE is set.
    """
    if Path(name).is_dir():
        return Path(name)
    if not _NAMED.fullmatch(name):
        raise InvalidInput(f"there is no folder {name!r}, and it is no name on the Hugging Face hub either (owner/name)")
    try:
        from huggingface_hub import snapshot_download
    except ImportError as error:
        raise MissingExtra(
            'a model from the hub needs the extra "text-model": pip install "cascade-memory[text-model]"'
        ) from error
    try:
        with quiet_loading():
            return Path(snapshot_download(name, allow_patterns=list(_READ), ignore_patterns=list(_NOT_READ)))
    except Exception as error:
        why = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise InvalidInput(
            f"there is no folder {name!r}, and no model of that name was found in the local cache or on the hub: {why}"
        ) from error


def json_object(file: Path) -> dict[str, Any] | None:
    """Return the JSON object in a file; None if there is no file."""
    found = _json(file)
    if found is not None and not isinstance(found, dict):
        raise InvalidInput(f"{file} must hold a JSON object")
    return cast("dict[str, Any] | None", found)


def json_list(file: Path) -> list[Any] | None:
    """Return the JSON list in a file; None if there is no file."""
    found = _json(file)
    if found is not None and not isinstance(found, list):
        raise InvalidInput(f"{file} must hold a JSON list")
    return cast("list[Any] | None", found)


def _json(file: Path) -> object:
    try:
        if not file.exists():
            return None
        if not file.is_file():
            raise InvalidInput(f"{file} is not a file")
        if file.stat().st_size > _LARGEST_JSON:
            raise InvalidInput(f"{file} is too large for a model's settings")
        return json.loads(file.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InvalidInput(f"{file} cannot be read as JSON: {error}") from error


def digest_of(folder: Path) -> str:
    """Return a digest of a model's weights, tokenizer and settings. It does not depend on the name of the folder."""
    files = sorted(
        file
        for pattern in _READ
        for file in (*folder.glob(pattern), *folder.glob(f"[0-9]*_*/{pattern}"))
        if file.is_file() and file.name != "trainer_state.json"
    )
    if not any(file.suffix == ".safetensors" for file in files):
        raise InvalidInput(
            f"{folder} has no weights as safetensors: save them with save_pretrained(...); pickled ones are not read"
        )
    try:
        stamps = tuple((str(file), file.stat().st_mtime_ns, file.stat().st_size) for file in files)
        return _digest(str(folder), stamps)
    except OSError as error:
        raise InvalidInput(f"{folder} cannot be read: {error}") from error


@lru_cache(maxsize=8)
def _digest(folder: str, stamps: tuple[tuple[str, int, int], ...]) -> str:
    digest = hashlib.blake2b(digest_size=6)
    for name, _, size in stamps:
        digest.update(f"{Path(name).relative_to(folder).as_posix()}\x00{size}\x00".encode())
        with Path(name).open("rb") as content:
            while block := content.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()
