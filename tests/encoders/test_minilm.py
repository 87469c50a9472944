from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from cascade_memory import CascadeMemory
from cascade_memory.encoders import minilm
from cascade_memory.errors import MissingExtra, StoreCorrupt

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


@pytest.mark.slow
def test_vectors_are_those_of_transformers(recipe: np.ndarray):
    embedder = minilm.MiniLMEmbedder()
    np.testing.assert_allclose(embedder.embed(_TEXTS), recipe, atol=2e-6)  # of unlike lengths: padded
    for text, expected in zip(_TEXTS, recipe, strict=True):
        np.testing.assert_allclose(embedder.embed([text])[0], expected, atol=2e-6)


@pytest.mark.slow
def test_the_library_of_all_models_is_not_imported_for_this_one():
    program = (
        "import sys; from cascade_memory.encoders.minilm import MiniLMEmbedder as M; M().embed(['a']); print(*sys.modules)"
    )
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    assert "torch" in loaded
    assert "transformers" not in loaded


def test_files_that_are_not_the_official_ones_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for file in minilm.pretrained_folder().iterdir():
        if file.is_file():
            (tmp_path / file.name).symlink_to(file)
    monkeypatch.setattr(minilm, "pretrained_folder", lambda: tmp_path)
    assert minilm.MiniLMEmbedder().embed(["a"]).shape == (1, 384)
    for name in ("model.safetensors", "tokenizer.json"):
        official = (tmp_path / name).readlink()
        (tmp_path / name).unlink()
        (tmp_path / name).write_bytes(official.read_bytes()[:-1] + b" ")
        with pytest.raises(StoreCorrupt, match=f"{name} is not that of the official"):
            minilm.MiniLMEmbedder().embed(["a"])
        (tmp_path / name).unlink()
        (tmp_path / name).symlink_to(official)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_child_embeds_many_texts_whatever_its_parent_has_done():
    program = """
import os, signal, warnings
from cascade_memory.encoders.minilm import MiniLMEmbedder
warnings.simplefilter("ignore")
texts = [f"text number {i}" for i in range(40)]
embedder = MiniLMEmbedder()
embedder.embed(texts)
child = os.fork()
if not child:
    signal.alarm(30)
    os._exit(0 if embedder.embed(texts).shape == MiniLMEmbedder().embed(texts).shape == (40, 384) else 1)
print(os.waitpid(child, 0)[1])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["0"]


def test_a_module_of_the_same_name_without_weights_is_named_as_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "weightless.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(minilm, "PACKAGE", "weightless")
    with pytest.raises(MissingExtra, match=r"cascade-memory\[local\]"):
        minilm.pretrained_folder()
