"""From text to numbers: embedders, pair encoders, and matchers, which judge whether two solutions agree."""

# pyright: reportUnusedImport=false
from __future__ import annotations

from typing import TYPE_CHECKING

from cascade_memory.lazy import door

if TYPE_CHECKING:
    from cascade_memory.encoders.cross_encoder import CrossEncoder
    from cascade_memory.encoders.hashing import HashingEmbedder
    from cascade_memory.encoders.lexical import Rarity, word_terms
    from cascade_memory.encoders.light import FEATURES, LightEncoder
    from cascade_memory.encoders.matchers import EmbeddingMatcher, ExactMatcher, FunctionMatcher
    from cascade_memory.encoders.minilm import MiniLMEmbedder, default_embedder, is_installed
    from cascade_memory.encoders.one_feature import CosineEncoder, RecencyEncoder
    from cascade_memory.encoders.text_model.embedder import TextModelEmbedder
    from cascade_memory.encoders.text_model.files import digest_of, folder_of_model
    from cascade_memory.encoders.torch_settings import quiet_loading
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

# The benchmark and the contract tests use the names as well that are not in __all__.
__getattr__, __dir__ = door(
    __name__,
    {
        "cross_encoder": "CrossEncoder",
        "hashing": "HashingEmbedder",
        "lexical": "Rarity word_terms",
        "light": "FEATURES LightEncoder",
        "matchers": "EmbeddingMatcher ExactMatcher FunctionMatcher",
        "minilm": "MiniLMEmbedder default_embedder is_installed",
        "one_feature": "CosineEncoder RecencyEncoder",
        "text_model.embedder": "TextModelEmbedder",
        "text_model.files": "digest_of folder_of_model",
        "torch_settings": "quiet_loading",
        "unrelated": "TEXTS",
    },
)
