"""What an engine knows of its embedder: whether its vectors are good, which one it is, and how similar unrelated texts are.

The *floor* is the similarity that even unrelated texts reach. It is measured once, and stored in the folder.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import random
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from cascade_memory.domain.case import Case
from cascade_memory.encoders.unrelated import TEXTS, Unrelated
from cascade_memory.errors import (
    CascadeError,
    EmbedderFailed,
    EncoderMismatch,
    InvalidInput,
    MissingExtra,
    StoreCorrupt,
    StoreError,
)
from cascade_memory.ports.encoders import Candidates, Embedder, Query, noted
from cascade_memory.ports.policy import Floats
from cascade_memory.redaction.saying import log_of

if TYPE_CHECKING:
    from cascade_memory.ledger.core import Ledger

_META = "embedder"
_SAMPLE = 16  # this many of the newest cases, and as many of all cases
_SAME = 0.99  # least cosine of two vectors of one text: rounding depends on threads and batches
_TEXTS = hashlib.blake2b("\n".join(TEXTS).encode(), digest_size=4).hexdigest()  # other texts have other vectors
_log = log_of(__name__)


class NothingToEmbedWith(InvalidInput):
    """The memory was opened for inspection only, without its embedder."""


def embed_with(embedder: Embedder, texts: Sequence[str]) -> NDArray[np.float32]:
    """Return unit vectors, or raise an error that says what is wrong with the embedder's output."""
    try:
        raw = np.asarray(embedder.embed(texts))
        expected = (len(texts), embedder.dimension)
    except (MissingExtra, StoreError, NothingToEmbedWith):
        raise
    except Exception as error:
        raise EmbedderFailed(f"embedder {embedder.identity!r} failed with {error!r}") from error
    if raw.shape != expected:
        raise EmbedderFailed(f"embedder {embedder.identity!r} returned shape {raw.shape}, expected {expected}")
    if raw.dtype.kind not in "fiu":
        raise EmbedderFailed(f"embedder {embedder.identity!r} returned {raw.dtype} values, expected numbers")
    with np.errstate(over="ignore"):
        vectors = np.asarray(raw, np.float32)
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    if not np.isfinite(norms).all():
        if not np.isfinite(vectors).all():
            raise EmbedderFailed(f"embedder {embedder.identity!r} returned nan or infinity; nothing was stored")
        # Scaled first: the squares of huge values would overflow.
        vectors = vectors / np.abs(vectors).max(axis=1, keepdims=True)
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    if (norms == 0).any():
        raise EmbedderFailed(f"embedder {embedder.identity!r} returned a zero vector, which is similar to nothing")
    return vectors / norms


def named(embedder: Embedder) -> str:
    """Describe an embedder as text, as the folder stores it."""
    return json.dumps([embedder.identity, embedder.dimension])


def check_embedder(ledger: Ledger, embedder: Embedder, place: str) -> None:
    """Declare the embedder of a ledger; raise if the ledger was written with another embedder."""
    ledger.bind(named(embedder))  # before reading: another process may reindex in between
    stored = stored_embedder(ledger)
    if stored is not None and stored != (embedder.identity, embedder.dimension):
        raise EncoderMismatch(
            f"{place} was written with the embedder {stored[0]!r} ({stored[1]} dimensions), "
            f"not with {embedder.identity!r} ({embedder.dimension}): their vectors cannot be compared. "
            "Open it with the former, or embed everything again with: "
            f"cascade-memory data reindex {place} --embedder ..."
        )


def stored_embedder(ledger: Ledger) -> tuple[str, int] | None:
    """Read the (identity, dimension) of the embedder that the folder was written with."""
    text = ledger.facts.get(_META)
    if text is None:
        return None
    found = noted(text)
    if found is None:
        raise StoreCorrupt(f"the ledger's note of its embedder is damaged ({text[:80]!r}); restore it from a backup")
    return found


def sample(ledger: Ledger) -> list[tuple[Case, NDArray[np.float32]]]:
    """Return some of the newest cases and some of all cases, with their vectors."""
    last = max((int(ledger.newest(number, 1).max(initial=0)) for number in ledger.namespaces().values()), default=0)
    found = ledger.cases.after(last - _SAMPLE, _SAMPLE)
    for _ in range(_SAMPLE):
        found += ledger.cases.after(random.randrange(max(last, 1)), 1)
    return list({case.key: (case, vector) for case, vector in found}.values())


def strangers(embedder: Embedder, cases: Sequence[tuple[Case, NDArray[np.float32]]]) -> int:
    """Count the vectors that differ from what the embedder makes of the same text."""
    if not cases:
        return 0
    fresh = embed_with(embedder, [case.query for case, _ in cases])
    cosines = np.einsum("ij,ij->i", fresh, np.stack([vector for _, vector in cases]))
    return int((cosines < _SAME).sum())


class Floor:
    """Measures how similar unrelated texts are.

    If the embedder is fast (``at_once``), it does so when the floor is first needed. Otherwise it does so at the first write,
    so that no recall waits for it.
    """

    def __init__(self, ledger: Ledger, embedder: Embedder, *, at_once: bool) -> None:
        self._ledger, self._embedder, self._at_once = ledger, embedder, at_once
        self._fact = f"unrelated-{_TEXTS}:{embedder.identity}"
        self._found: Unrelated | None = None
        self._looked = self._tried = False
        self._lock = threading.Lock()

    def now(self) -> Unrelated | None:
        """Return the measured similarities, or None if there are none yet; a fast embedder measures them now."""
        if self._found is None and not self._looked:
            with self._lock:  # whoever comes second waits, since without a floor it would show anything
                if not self._looked:
                    vectors = self._stored()
                    if vectors is not None:
                        self._found = Unrelated(vectors)
                    elif self._at_once:
                        self._embed()
                    self._looked = True
        return self._found

    def under(self, query: Query, candidates: Candidates, *, cases: int) -> Floats | None:
        """Return, for each candidate, the cosine that an unrelated text also reaches; None if nothing was measured yet."""
        unrelated = self.now()
        return None if unrelated is None else unrelated.floors(query.vector, candidates.vectors, cases=cases)

    def measure(self) -> None:
        """Embed unrelated texts and store their vectors, unless that was tried before; if it fails, the memory has no floor."""
        if self.now() is None and not self._at_once and not self._tried:
            self._embed()

    def _embed(self) -> None:
        self._tried = True
        try:
            vectors = embed_with(self._embedder, TEXTS)
        except CascadeError as error:
            _log.debug("similarities of unrelated texts could not be measured: %s", error)
            return
        if not self._ledger.read_only:
            try:
                self._ledger.facts.set(self._fact, base64.b64encode(vectors.astype(np.float16).tobytes()).decode())
            except CascadeError as error:
                _log.debug("similarities of unrelated texts could not be stored: %s", error)
        self._found = Unrelated(vectors)

    def _stored(self) -> NDArray[np.float32] | None:
        text = self._ledger.facts.get(self._fact)
        if text is None:
            return None
        try:
            vectors = np.frombuffer(base64.b64decode(text, validate=True), np.float16).reshape(len(TEXTS), -1)
        except (ValueError, binascii.Error):
            return None
        lengths = np.linalg.norm(vectors.astype(np.float32), axis=1)
        usable = vectors.shape[1] == self._embedder.dimension and bool((np.abs(lengths - 1.0) < 0.01).all())
        return vectors.astype(np.float32) if usable else None
