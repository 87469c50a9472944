"""The observers that are told what happens in a transaction, in the order in which they are called."""

from __future__ import annotations

from cascade_memory import capabilities
from cascade_memory.ledger.observer import Observer

_EVENTS = ("on_settled", "on_withdrawn", "on_case_gone", "on_episode_gone")

OBSERVERS: tuple[Observer, ...] = tuple(part.OBSERVER for part in capabilities.parts("transaction"))
# Those that hear of events: the others need not be called at each reward.
HEARING = tuple(one for one in OBSERVERS if any(getattr(type(one), name) is not getattr(Observer, name) for name in _EVENTS))
WATCHED = " OR ".join(one.watches for one in OBSERVERS if one.watches) or "0"  # SQL on a row of ``episode``
