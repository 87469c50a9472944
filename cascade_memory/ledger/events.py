"""The observers that are told what happens in a transaction, in the order in which they are called."""

from __future__ import annotations

from cascade_memory import capabilities
from cascade_memory.ledger.failures import Warnings
from cascade_memory.ledger.observer import Observer

_OF_CAPABILITIES: list[Observer] = [part.OBSERVER for part in capabilities.parts("tables") if hasattr(part, "OBSERVER")]
OBSERVERS: tuple[Observer, ...] = (Warnings(), *_OF_CAPABILITIES)
