"""Who hears what happens in a transaction, in this order."""

from __future__ import annotations

from cascade_memory.ledger.failures import Warnings
from cascade_memory.ledger.observer import Observer

OBSERVERS: tuple[Observer, ...] = (Warnings(),)
