"""Any text model of transformers as an embedder."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cascade_memory.domain.calculating import calculating
from cascade_memory.encoders.cross_encoder.batching import TokenBudget
from cascade_memory.encoders.one_thread import calm
from cascade_memory.encoders.text_model.files import digest_of, folder_of_model
from cascade_memory.encoders.text_model.layout import Layout, layout_of
from cascade_memory.encoders.text_model.network import TextModel
from cascade_memory.ports.embedder import LoadsModel

_AT_ONCE = 16_384  # tokens
_FEW = 4  # texts; up to this number one thread is as fast as several
PREFIX = "text-model-1"


class TextModelEmbedder(LoadsModel):
    """A model from a folder, or from the hub by its name, with the pooling and the prompt that its own files specify.

    The identity changes with the weights, the tokenizer and the settings, but not with the folder's name. The files are read
    and checked now; the weights are loaded at the first use. Vectors have unit length.

    Args:
        name: A folder, or ``owner/name``. A name may cause a download, unless HF_HUB_OFFLINE or TRANSFORMERS_OFFLINE is set.
        device: "cuda", "cpu", ...; None takes CUDA if it is available.
    """

    def __init__(self, name: str, *, device: str | None = None) -> None:
        self._folder: Path = folder_of_model(name)
        self._layout: Layout = layout_of(self._folder)
        self._device = device
        self.dimension = self._layout.dimension
        self.identity = f"{PREFIX}:{self._layout.kind}:{_digest(self._folder, self._layout)}"
        self._lock = threading.Lock()
        self._model: TextModel | None = None
        self._budget = TokenBudget(_AT_ONCE)

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return unit vectors; a text is cut where the model's files say."""
        model = self._model or self._load()
        vectors = np.zeros((len(texts), self.dimension), np.float32)
        tokens = [model.tokenised(text) for text in texts]

        def work(batch: list[int]) -> None:
            with calculating():
                vectors[batch] = model.vectors([tokens[place] for place in batch])

        with calm(_torch(), short=len(texts) <= _FEW):
            self._budget.run([len(one) for one in tokens], work, restart=lambda: None)
        return vectors

    def prepare(self) -> None:
        """Load the model now instead of at the first use."""
        if self._model is None:
            self._load()

    def _load(self) -> TextModel:
        with self._lock:
            if self._model is None:
                with calculating():
                    self._model = TextModel(self._folder, self._layout, device=self._device)
            return self._model


def _digest(folder: Path, layout: Layout) -> str:
    """Digest a model and how it is used: if a later version has another rule for pooling, the digest must change."""
    return hashlib.blake2b(f"{digest_of(folder)} {layout}".encode(), digest_size=6).hexdigest()


def _torch() -> Any:
    import torch

    return torch
