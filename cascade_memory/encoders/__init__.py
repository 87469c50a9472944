"""From text to numbers: embedders, pair encoders, and matchers, which judge whether two solutions agree."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cascade_memory.lazy import load

if TYPE_CHECKING:
    from cascade_memory.encoders.cosine import CosineEncoder
    from cascade_memory.encoders.cross_encoder import CrossEncoder
    from cascade_memory.encoders.hashing import HashingEmbedder
    from cascade_memory.encoders.light import FEATURES, LightEncoder
    from cascade_memory.encoders.matchers import EmbeddingMatcher, ExactMatcher, FunctionMatcher
    from cascade_memory.encoders.minilm import MiniLMEmbedder
    from cascade_memory.encoders.recency import RecencyEncoder

__all__ = [
    "FEATURES",
    "CosineEncoder",
    "CrossEncoder",
    "EmbeddingMatcher",
    "ExactMatcher",
    "FunctionMatcher",
    "HashingEmbedder",
    "LightEncoder",
    "MiniLMEmbedder",
    "RecencyEncoder",
]

_HOMES = {
    "FEATURES": "light",
    "CosineEncoder": "cosine",
    "CrossEncoder": "cross_encoder",
    "EmbeddingMatcher": "matchers",
    "ExactMatcher": "matchers",
    "FunctionMatcher": "matchers",
    "HashingEmbedder": "hashing",
    "LightEncoder": "light",
    "MiniLMEmbedder": "minilm",
    "RecencyEncoder": "recency",
}


def __getattr__(name: str) -> Any:
    value = globals()[name] = load(__name__, name, _HOMES)
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
