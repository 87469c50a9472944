from __future__ import annotations

import hashlib
import subprocess
import sys

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


_TEXTS = [
    "heat the cup",
    "a somewhat longer text about the price of gold in Zürich",
    "",
    "東京 ☕️ العربية, and a word that is " + "long" * 60,
    "one of many words " * 90,
]


@pytest.fixture(scope="module")
def recipe() -> np.ndarray:
    """The model card's recipe with transformers itself: the mean over tokens, then unit length."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    folder = minilm.pretrained_folder()
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder).eval()
    rows = []
    for text in _TEXTS:
        with torch.inference_mode():
            tokens = model(**tokenizer(text, return_tensors="pt", truncation=True, max_length=256)).last_hidden_state[0]
        rows.append(torch.nn.functional.normalize(tokens.mean(0), dim=0).numpy())
    return np.stack(rows)


def test_vectors_are_those_of_transformers(recipe: np.ndarray):
    embedder = minilm.MiniLMEmbedder()
    np.testing.assert_allclose(embedder.embed(_TEXTS), recipe, atol=2e-6)  # of unlike lengths: padded
    for text, expected in zip(_TEXTS, recipe, strict=True):
        np.testing.assert_allclose(embedder.embed([text])[0], expected, atol=2e-6)


def test_the_library_of_all_models_is_not_imported_for_this_one():
    program = (
        "import sys; from cascade_memory.encoders.minilm import MiniLMEmbedder as M; M().embed(['a']); print(*sys.modules)"
    )
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    assert "torch" in loaded
    assert "transformers" not in loaded


def test_weights_that_are_not_the_official_ones_are_refused(tmp_path, monkeypatch):
    (tmp_path / "model.safetensors").write_bytes(b"other weights")
    with pytest.raises(StoreCorrupt, match="not the official"):
        minilm._verify(tmp_path / "model.safetensors")
    expected = hashlib.sha256(b"other weights").hexdigest()
    monkeypatch.setattr(minilm, "_SHA256", expected)
    minilm._verify(tmp_path / "model.safetensors")
