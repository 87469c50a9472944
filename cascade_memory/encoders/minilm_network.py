"""The network of all-MiniLM-L6-v2, and its tokenizer. The vectors are those that the library transformers computes.

That library takes seconds to import, and for a single query it spends a fifth of the time in Python code.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

_LAYERS, _HEADS, _WIDTH = 6, 12, 384
_EPSILON = 1e-12
_MAX_TOKENS = 256


class _Linear(NamedTuple):
    bias: Any
    weight: Any  # stored in the order in which a product reads it, which saves a tenth of the time of a single query

    def __call__(self, torch: Any, x: Any) -> Any:
        return torch.addmm(self.bias, x, self.weight)


class _Norm(NamedTuple):
    weight: Any
    bias: Any

    def __call__(self, torch: Any, x: Any) -> Any:
        return torch.nn.functional.layer_norm(x, (_WIDTH,), self.weight, self.bias, _EPSILON)


class _Layer(NamedTuple):
    query: _Linear
    key: _Linear
    value: _Linear
    attended: _Linear
    attended_norm: _Norm
    wide: _Linear
    narrow: _Linear
    norm: _Norm


class Network:
    """A BERT network with six layers; the vector of a text is the mean over its tokens."""

    def __init__(self, folder: Path) -> None:
        import torch
        from safetensors.torch import load_file
        from tokenizers import Tokenizer

        self.torch: Any = torch
        self._tokenizer: Any = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.enable_truncation(_MAX_TOKENS)
        self._tokenizer.enable_padding()
        weights: dict[str, Any] = load_file(folder / "model.safetensors")

        def linear(name: str) -> _Linear:
            return _Linear(weights[f"{name}.bias"], weights[f"{name}.weight"].t().contiguous())

        def norm(name: str) -> _Norm:
            return _Norm(weights[f"{name}.LayerNorm.weight"], weights[f"{name}.LayerNorm.bias"])

        self._words = weights["embeddings.word_embeddings.weight"]
        self._token_type = weights["embeddings.token_type_embeddings.weight"][0]
        self._positions = weights["embeddings.position_embeddings.weight"]
        self._norm = norm("embeddings")
        self._layers = [
            _Layer(
                query=linear(f"{name}.attention.self.query"),
                key=linear(f"{name}.attention.self.key"),
                value=linear(f"{name}.attention.self.value"),
                attended=linear(f"{name}.attention.output.dense"),
                attended_norm=norm(f"{name}.attention.output"),
                wide=linear(f"{name}.intermediate.dense"),
                narrow=linear(f"{name}.output.dense"),
                norm=norm(f"{name}.output"),
            )
            for name in (f"encoder.layer.{i}" for i in range(_LAYERS))
        ]

    def vectors(self, texts: Sequence[str]) -> Any:
        """Return one unit vector for each text; a text is cut after 256 tokens."""
        torch, functional = self.torch, self.torch.nn.functional
        read = self._tokenizer.encode_batch(list(texts))
        tokens = torch.tensor([text.ids for text in read], device="cpu")
        mask = torch.tensor([text.attention_mask for text in read], device="cpu")
        attends = None if bool(mask.all()) else mask.bool()[:, None, None, :]
        with torch.inference_mode():
            words = self._words[tokens] + self._token_type + self._positions[: tokens.shape[1]]
            x = self._norm(torch, words).view(-1, _WIDTH)  # one row for each token
            for layer in self._layers:
                heads = (
                    one(torch, x).view(*tokens.shape, _HEADS, -1).transpose(1, 2)
                    for one in (layer.query, layer.key, layer.value)
                )
                attended = functional.scaled_dot_product_attention(*heads, attn_mask=attends)
                attended = layer.attended(torch, attended.transpose(1, 2).reshape(-1, _WIDTH))
                x = layer.attended_norm(torch, attended + x)
                x = layer.norm(torch, layer.narrow(torch, functional.gelu(layer.wide(torch, x))) + x)
            share = mask.unsqueeze(-1).to(x.dtype)
            pooled = (x.view(*tokens.shape, _WIDTH) * share).sum(1) / share.sum(1)
            return functional.normalize(pooled, dim=1)
