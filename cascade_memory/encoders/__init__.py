"""From text to numbers: embedders, pair encoders, and matchers, which judge whether two solutions agree."""

# pyright: reportUnusedImport=false
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cascade_memory.lazy import load

if TYPE_CHECKING:
    from cascade_memory.encoders.cosine import CosineEncoder
    from cascade_memory.encoders.cross_encoder import CrossEncoder
    from cascade_memory.encoders.hashing import HashingEmbedder
    from cascade_memory.encoders.lexical import Rarity, word_terms
    from cascade_memory.encoders.light import FEATURES, LightEncoder
    from cascade_memory.encoders.matchers import EmbeddingMatcher, ExactMatcher, FunctionMatcher
    from cascade_memory.encoders.minilm import MiniLMEmbedder, default_embedder, is_installed
    from cascade_memory.encoders.quiet import quiet_loading
    from cascade_memory.encoders.recency import RecencyEncoder
    from cascade_memory.encoders.text_model.embedder import TextModelEmbedder
    from cascade_memory.encoders.text_model.files import digest_of, folder_of_model
    from cascade_memory.encoders.unrelated import TEXTS

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
    # The benchmark and the contract tests use these as well.
    "Rarity": "lexical",
    "TEXTS": "unrelated",
    "TextModelEmbedder": "text_model.embedder",
    "default_embedder": "minilm",
    "digest_of": "text_model.files",
    "folder_of_model": "text_model.files",
    "is_installed": "minilm",
    "quiet_loading": "quiet",
    "word_terms": "lexical",
}


def __getattr__(name: str) -> Any:
    value = globals()[name] = load(__name__, name, _HOMES)
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
