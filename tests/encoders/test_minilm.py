from __future__ import annotations

import hashlib

import numpy as np
import pytest

from cascade_memory import CascadeMemory
from cascade_memory.encoders import minilm
from cascade_memory.errors import StoreCorrupt

pytestmark = pytest.mark.skipif(not minilm.is_installed(), reason="needs the extra 'local'")


def test_the_default_memory_understands_paraphrases():
    with CascadeMemory(learn="inline") as memory:
        memory.add([("warm up the mug", "microwave"), ("what does gold cost", "market")])
        assert memory.search("heat the cup").cases[0].solution == "microwave"
        assert memory.stats().embedder == minilm.MiniLMEmbedder.identity


def test_vectors_are_those_of_the_model_card_s_recipe():
    """Mean over tokens, then unit length: two ways to write it down give the same numbers."""
    import torch

    embedder = minilm.MiniLMEmbedder()
    texts = ["heat the cup", "a somewhat longer text about the price of gold in Zürich"]
    vectors = embedder.embed(texts)
    _, tokenizer, model = embedder._load()
    for text, vector in zip(texts, vectors, strict=True):
        with torch.inference_mode():
            tokens = model(**tokenizer(text, return_tensors="pt")).last_hidden_state[0]
        mean = tokens.mean(0).numpy()
        np.testing.assert_allclose(vector, mean / np.linalg.norm(mean), atol=1e-5)


def test_weights_that_are_not_the_official_ones_are_refused(tmp_path, monkeypatch):
    (tmp_path / "model.safetensors").write_bytes(b"other weights")
    with pytest.raises(StoreCorrupt, match="not the official"):
        minilm._verify(tmp_path / "model.safetensors")
    expected = hashlib.sha256(b"other weights").hexdigest()
    monkeypatch.setattr(minilm, "_SHA256", expected)
    minilm._verify(tmp_path / "model.safetensors")
