"""The mark that the ledger keeps about the mirror, and the removals that the mirror has to make according to the log."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass

from cascade_memory.domain.plain_json import parsed
from cascade_memory.domain.records import Change

_GREATEST = 2**53  # of keys and of lines of the log
_LAYOUT = 2  # version of the mirror's layout, collection names included: an older mirror is rebuilt
CHANGED = "Chroma was copied here, or changed, or only opened, by another program while no memory had it open"


@dataclass(frozen=True, slots=True)
class Mark:
    """What the ledger notes about the mirror: up to which case and log line it was fed, and whether it was closed cleanly.

    ``seal`` describes the mirror's files as they were at closing. If they differ now, another program has changed them.
    """

    key: int
    seq: int
    clean: bool
    seal: str = ""
    layout: int = _LAYOUT

    @classmethod
    def read(cls, text: str | None) -> Mark:
        """Parse a mark that ``written`` formatted.

        No text means that there never was a mirror; a text that cannot be parsed gives a mark that is not trusted.

        >>> Mark.read(Mark(7, 9, clean=True, seal="a-b").written())
        Mark(key=7, seq=9, clean=True, seal='a-b', layout=2)
        """
        if text is None:
            return cls(0, 0, clean=True)
        match noted := parsed(text):
            case {"key": int(key), "seq": int(seq), "clean": bool(clean)} if max(abs(key), abs(seq)) < _GREATEST:
                seal, layout = noted.get("seal", ""), noted.get("layout", 1)
                return cls(key, seq, clean, seal if isinstance(seal, str) else "", layout if layout in range(100) else 0)
            case _:
                return cls(0, 0, clean=False, layout=0)

    def written(self) -> str:
        """Format the mark as text, as the ledger stores it."""
        return json.dumps(asdict(self))

    @property
    def current(self) -> bool:
        """True if the mirror has the present layout; False if an older version fed it."""
        return self.layout == _LAYOUT

    @property
    def trusted(self) -> bool:
        """True if there may be a mirror that this version fed and closed cleanly."""
        return self.clean and self.key > 0 and self.current


def removals(changes: Sequence[Change], known: Collection[int]) -> tuple[dict[int, list[str]], list[int]]:
    """Return the ids of removed cases by namespace, and the emptied namespaces; only for known namespaces.

    >>> removals([Change(1, 1, "case-", 7, "a"), Change(2, 9, "forgotten", 0)], known={1})
    ({1: ['a']}, [])
    """
    gone: dict[int, list[str]] = {}
    emptied: dict[int, None] = {}
    for change in changes:
        if change.namespace not in known:
            continue  # an older version logged a namespace that never existed
        if change.takes_case and change.id is not None:
            gone.setdefault(change.namespace, []).append(change.id)
        elif change.empties_namespace:
            emptied[change.namespace] = None
    return gone, list(emptied)
