"""The observers that are told what happens in a transaction, in the order in which they are called."""

from __future__ import annotations

from cascade_memory import capabilities
from cascade_memory.ledger.observer import Observer

OBSERVERS: tuple[Observer, ...] = tuple(part.OBSERVER for part in capabilities.parts("transaction"))
WATCHED = " OR ".join(one.watches for one in OBSERVERS if one.watches) or "0"  # SQL on a row of ``episode``
