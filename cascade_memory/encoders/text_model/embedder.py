"""Any text model of transformers as an embedder: from tokens to hidden states, and from these to one vector."""

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
from cascade_memory.encoders.text_model.files import digest_of, folder_of_model
from cascade_memory.encoders.text_model.layout import Layout, layout_of
from cascade_memory.encoders.torch_settings import calm, quiet_loading
from cascade_memory.errors import InvalidInput, MissingExtra
from cascade_memory.ports.encoders import LoadsModel

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
        self._model: _TextModel | None = None
        self._budget = TokenBudget(_AT_ONCE)

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return unit vectors; a text is cut where the model's files say."""
        return self._embedded(texts, self._layout.prompt)

    def embed_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the vectors of passages that are searched with the vector of a query, with the model's prompt for passages."""
        return self._embedded(texts, self._layout.passage_prompt)

    def _embedded(self, texts: Sequence[str], prompt: str) -> NDArray[np.float32]:
        model = self._model or self._load()
        vectors = np.zeros((len(texts), self.dimension), np.float32)
        tokens = [model.tokenised(text, prompt) for text in texts]

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

    def _load(self) -> _TextModel:
        with self._lock:
            if self._model is None:
                with calculating():
                    self._model = _TextModel(self._folder, self._layout, device=self._device)
            return self._model


class _TextModel:
    """Loads a model for inference. Nothing is downloaded, no code of the model is run, and only safetensors are read."""

    def __init__(self, folder: Path, layout: Layout, *, device: str | None) -> None:
        try:
            import torch
            from transformers import AutoConfig, AutoModel, AutoTokenizer
        except ImportError as error:
            raise MissingExtra(
                'an embedder from a folder needs the extra "text-model": pip install "cascade-memory[text-model]"'
            ) from error
        self._torch: Any = torch
        self._layout = layout
        self._device = device or ("cuda" if torch.cuda.is_available() else "cpu")
        safe: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
        try:
            config: Any = AutoConfig.from_pretrained(folder, **safe)
            if hasattr(config, "reference_compile"):
                config.reference_compile = False  # compiling takes longer than it saves
            self._tokenizer: Any = AutoTokenizer.from_pretrained(folder, **safe)
            with quiet_loading():
                model, report = AutoModel.from_pretrained(
                    folder, config=config, use_safetensors=True, output_loading_info=True, dtype=torch.float32, **safe
                )
        except Exception as error:
            why = (str(error).strip() or type(error).__name__).splitlines()[0]
            raise InvalidInput(f"the model in {folder} cannot be loaded: {why}") from error
        lacking = sorted(name for name in report["missing_keys"] if not name.startswith("pooler"))
        if lacking:
            raise InvalidInput(
                f"the weights in {folder} lack {lacking[0]!r}, so its vectors would be random: they are of another model"
            )
        self._model: Any = model.eval().requires_grad_(requires_grad=False).to(self._device)
        self._prompt_tokens = 0 if layout.pools_prompt or not layout.prompt else self._length_of(layout.prompt)

    def _length_of(self, prompt: str) -> int:
        """Return how many tokens the prompt takes at the beginning of a text, without the special token at its end."""
        tokens = self._tokenizer(prompt)["input_ids"]
        return len(tokens) - (bool(tokens) and tokens[-1] in self._tokenizer.all_special_ids)

    def tokenised(self, text: str, prompt: str) -> list[int]:
        """Return the tokens of a text with a prompt before it."""
        text = f"{prompt}{text}"
        text = text.lower() if self._layout.lower_case else text
        found: list[int] = self._tokenizer(text, truncation=True, max_length=self._layout.max_tokens)["input_ids"]
        return found or [self._padding]  # some tokenizers turn an empty text into no token at all

    @property
    def _padding(self) -> int:
        return int(self._tokenizer.pad_token_id or 0)

    def vectors(self, tokens: Sequence[list[int]]) -> NDArray[np.float32]:
        """Return one unit vector for each sequence of tokens."""
        torch = self._torch
        longest = max(map(len, tokens))
        ids = torch.full((len(tokens), longest), self._padding, dtype=torch.long)
        mask = torch.zeros((len(tokens), longest), dtype=torch.long)
        for row, one in enumerate(tokens):  # padding follows the text, whatever the tokenizer would do
            ids[row, : len(one)] = torch.tensor(one)
            mask[row, : len(one)] = 1
        with torch.inference_mode():
            ids, mask = ids.to(self._device), mask.to(self._device)
            states = self._model(input_ids=ids, attention_mask=mask).last_hidden_state.float()
            mask[:, : min(self._prompt_tokens, longest - 1)] = 0
            mask[:, 0] |= mask.sum(1) == 0  # a text of nothing but the prompt
            pooled = torch.cat([self._pooled(states, mask, mode) for mode in self._layout.poolings], dim=1)
            vectors: NDArray[np.float32] = torch.nn.functional.normalize(pooled, dim=1).cpu().numpy()
        if not np.isfinite(vectors).all() or vectors.shape[1] != self._layout.dimension:
            raise InvalidInput(
                "the embedder's model returned vectors that are not numbers, or not as long as its config.json says"
            )
        return vectors

    def _pooled(self, states: Any, mask: Any, mode: str) -> Any:
        torch = self._torch
        rows = torch.arange(len(states), device=states.device)
        places = torch.arange(states.shape[1], device=states.device)
        if mode == "cls":
            return states[rows, mask.argmax(1)]  # the first token that counts
        if mode == "lasttoken":
            return states[rows, (mask * places).argmax(1)]
        counts = mask.unsqueeze(-1).to(states.dtype)
        if mode == "max":
            return states.masked_fill(counts == 0, -1e9).amax(1)
        if mode == "weightedmean":
            counts = counts * (places + 1).unsqueeze(-1)
        total, number = (states * counts).sum(1), counts.sum(1).clamp(min=1e-9)
        return total / (number.sqrt() if mode == "mean_sqrt_len_tokens" else number)


def _digest(folder: Path, layout: Layout) -> str:
    """Digest a model and how it is used: if a later version has another rule for pooling, the digest must change."""
    return hashlib.blake2b(f"{digest_of(folder)} {layout}".encode(), digest_size=6).hexdigest()


def _torch() -> Any:
    import torch

    return torch
