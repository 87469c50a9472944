"""Reads features that another version of the encoder logged: only columns that still mean the same are learned from."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cascade_memory.encoders.light import LightEncoder
from cascade_memory.encoders.meaning import UNKNOWN, Noted, identity_of, noted
from cascade_memory.learning.ranker import Ranker
from cascade_memory.ports.encoders import PairEncoder
from cascade_memory.ports.policy import Feedback
from cascade_memory.redaction.saying import log_of

_log = log_of(__name__)


class Columns:
    """The columns of the present encoder. ``read`` turns the features of logged outcomes into them.

    A column whose meaning has changed counts as 0, so that its weight is learned anew. Columns that the present encoder
    does not have, because a newer version wrote them, are left out; the rest of the outcome counts.
    """

    def __init__(self, identity: str, names: Sequence[str]) -> None:
        self.identity = identity
        self._names, self._now = tuple(names), noted(identity)
        # Identity that wrote a row -> places of changed columns; None: an encoder of another kind wrote it.
        self._changed: dict[str, tuple[int, ...] | None] = {}
        self._warned: set[int] = set()  # places of the columns about which a warning was given

    def read(self, outcomes: Sequence[Feedback]) -> list[Feedback]:
        """Return the outcomes with their features in the columns of the present encoder."""
        return [one if one.encoder in ("", self.identity) else self._read(one) for one in outcomes]

    def _read(self, outcome: Feedback) -> Feedback:
        features, width = outcome.slate.features, len(self._names)
        changed = self._changed_since(outcome.encoder)
        if changed is None or not self._names or not features.size:
            return outcome  # of an encoder of another kind: the policy decides
        changed = [place for place in changed if place < features.shape[1]]
        if changed:
            self._warn(changed)
        elif features.shape[1] <= width:
            return outcome
        features = np.array(features[:, :width])
        features[:, changed] = 0.0
        return dataclasses.replace(outcome, slate=dataclasses.replace(outcome.slate, features=features))

    def _changed_since(self, wrote: str) -> tuple[int, ...] | None:
        if wrote not in self._changed:
            then, places = noted(wrote), range(len(self._names))
            alike = self._now.of_light and (then.of_light or then.name == self._now.name)
            self._changed[wrote] = tuple(place for place in places if not _same(then, self._now, place)) if alike else None
        return self._changed[wrote]

    def _warn(self, changed: Sequence[int]) -> None:
        """Warn once for each signal that its weight is learned anew."""
        new = [place for place in changed if place not in self._warned]
        if new:
            self._warned.update(new)
            _log.warning(
                "the meaning of the ranking signals %s has changed since some outcomes were logged: their weights are learned "
                "anew from later outcomes. If a signal depends on more than the query and the candidates (the time of day, for "
                "example), declare what it means: meanings = {name: version} in the class of the encoder",
                ", ".join(repr(self._names[place]) for place in new),
            )


def columns_of(ranker: Ranker, encoder: PairEncoder | None = None) -> Columns:
    """Describe the columns of a ranker's encoder; ``encoder`` is one that the ranker made, if there is one."""
    encoder = ranker.encoder(1, _no_vectors) if encoder is None else encoder
    names = encoder.features if isinstance(encoder, LightEncoder) else ()
    return Columns(identity_of(encoder, ranker.encoder), names)


def _no_vectors(keys: NDArray[np.int64]) -> NDArray[np.float32]:
    return np.zeros((len(keys), 1), np.float32)


def _same(then: Noted, now: Noted, place: int) -> bool:
    """Say whether the column in this place means the same in both encoders."""
    before, after = then.notes.get(place), now.notes.get(place)
    # Rows of earlier versions have no notes. Without a note, the names of the encoders are compared instead.
    unsure = UNKNOWN in (before, after) or (after is not None and not then.notes)
    return then.name == now.name if unsure else before == after
