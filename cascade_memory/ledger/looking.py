"""What can be asked of a ledger as a whole: what it holds, what came of it, and whether it is sound."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from cascade_memory.ledger import audit, history, judged, mending, soundness
from cascade_memory.ledger.connections import Connections
from cascade_memory.ports.judged import Judged


class Looking:
    """The part of the ledger that looks back."""

    connections: Connections

    def counts(self, namespace: int | None) -> dict[str, float]:
        """Return how many of everything there are."""
        with self.connections.read() as connection:
            return history.counts(connection, namespace)

    def rewards(self, namespace: int | None) -> list[tuple[float, bool]]:
        """Return (value, whether a case was shown) of every standing outcome, oldest first."""
        with self.connections.read() as connection:
            return history.rewards(connection, namespace)

    def judged(self, namespace: int | None) -> Iterator[Judged]:
        """Yield the settled episodes of a namespace, or of all, oldest first, with how their first choice was made."""
        with self.connections.read() as connection:
            yield from judged.judged(connection, namespace)

    def arms(self, namespace: int | None) -> dict[str, int]:
        """Return how many episodes each arm has, of those in which chance decided."""
        with self.connections.read() as connection:
            return judged.arms(connection, namespace)

    def integrity(self) -> str:
        """Return SQLite's own verdict on the file: ``ok`` or what is wrong."""
        with self.connections.read() as connection:
            return soundness.verdict(connection)

    def orphans(self) -> dict[str, int]:
        """Return how many rows of which table belong to nothing."""
        with self.connections.read() as connection:
            return soundness.orphans(connection)

    def remove_orphans(self) -> None:
        """Delete rows that belong to nothing."""
        with self.connections.write(durable=True) as connection:
            soundness.remove_orphans(connection)

    def faults(self, limit: int) -> list[str]:
        """Return up to ``limit`` rows that cannot be used, in words."""
        with self.connections.read() as connection:
            return [str(fault) for fault in audit.faults(connection, limit)]

    def mend(self, embed: Callable[[Sequence[str]], NDArray[np.float32]]) -> str:
        """Put rows right that cannot be used, or remove them; say what was done. Never removes a case that is whole."""
        with self.connections.write(durable=True) as connection:
            return mending.summary(mending.mend(connection, embed))

    def ahead_of(self, now: float) -> int:
        """Return how many times lie in the future."""
        with self.connections.read() as connection:
            return soundness.ahead_of(connection, now)

    def bring_back(self, now: float) -> None:
        """Set times that lie in the future to the present."""
        with self.connections.write(durable=True) as connection:
            soundness.bring_back(connection, now)

    def open_before(self, moment: float) -> int:
        """Return how many open episodes began earlier."""
        query = "SELECT count(*) FROM episode WHERE status = 'open' AND opened_at < ?"
        with self.connections.read() as connection:
            return int(connection.execute(query, (moment,)).fetchone()[0])
