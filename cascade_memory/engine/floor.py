"""The floor: the similarity that even unrelated texts reach under the folder's embedder. It is measured once and stored."""

from __future__ import annotations

import base64
import binascii
import hashlib
import threading
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from cascade_memory.encoders.unrelated import TEXTS, Unrelated
from cascade_memory.engine.embedding import embed_with
from cascade_memory.errors import CascadeError
from cascade_memory.ports.embedder import Embedder
from cascade_memory.ports.pair_encoder import Candidates, Query
from cascade_memory.ports.policy import Floats
from cascade_memory.redaction.saying import log_of

if TYPE_CHECKING:
    from cascade_memory.ledger.core import Ledger

_TEXTS = hashlib.blake2b("\n".join(TEXTS).encode(), digest_size=4).hexdigest()  # other texts have other vectors
_log = log_of(__name__)


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
