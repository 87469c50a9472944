"""Signs tokens with the ledger's own key, and reads tokens that are presented to it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from cascade_memory.domain.signed import Signed, Times, read, sign

if TYPE_CHECKING:
    from cascade_memory.ledger.core import SQLFacts


class Signing:
    """Makes tokens that every process with this ledger can check. The key is read at the first use, and is shown nowhere."""

    def __init__(self, facts: SQLFacts) -> None:
        self._facts = facts
        self._known: str | None = None

    @property
    def _key(self) -> str:
        if self._known is None:
            self._known = self._facts.key()
        return self._known

    def made(self, purpose: str, about: Sequence[str], *, lasts: float) -> str:
        """Make a token for a purpose and the texts ``about``; it is valid for ``lasts`` seconds."""
        now = Times(time.time(), self._facts.running())
        return sign(self._key, purpose, about, now.after(lasts))

    def read(self, purpose: str, about: Sequence[str], token: object) -> Signed | None:
        """Return what a token says; None if it was altered, or not made with this ledger for this purpose and these texts."""
        return read(self._key, purpose, about, token)
