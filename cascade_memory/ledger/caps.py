"""Caps on rewards: the outcomes that one actor reports beyond the hourly cap are stored, but nothing is learned from them."""

from __future__ import annotations

import dataclasses

from cascade_memory.domain.records import Settlement
from cascade_memory.domain.reward_channel import HOUR, MINUTE
from cascade_memory.ledger.database import Connection

# The index ``outcome_counted`` has these rows and no others, so that a flood makes counting no slower.
COUNTED = """SELECT count(*), count(*) FILTER (WHERE at > ?) FROM outcome
  WHERE namespace = ? AND actor = ? AND source = ? AND at > ? AND coalesce(unkept, '') <> 'capped'"""


def applied(connection: Connection, new: Settlement) -> tuple[Settlement, int]:
    """Return an outcome as it is to be stored, and how many its actor has reported from its source within the last minute.

    Beyond the cap of ``new``, an outcome teaches nothing and stores no case. The count includes this outcome. Without a cap
    nothing is counted, and the count is 0.
    """
    if new.cap is None or new.actor is None:
        return new, 0
    values = (new.at - MINUTE, new.namespace, new.actor, new.source, new.at - HOUR)
    of_hour, of_minute = connection.execute(COUNTED, values).fetchone()
    if of_hour >= new.cap:
        new = dataclasses.replace(new, learns=False, case=None, agreement={}, unkept="capped", blame=None)
    return new, of_minute + 1
