"""What is remembered of the mirror between two openings, and what the log says that it must let go of."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass

from cascade_memory.domain.records import Change

_LAYOUT = 2  # of what is fed, the names of collections included: a mirror of an older one is made anew
CHANGED = "Chroma was changed, or only opened, by another program while no memory had it open"


@dataclass(frozen=True, slots=True)
class Mark:
    """What the ledger notes about the mirror: fed up to this case and this line of the log, and closed cleanly or not.

    ``seal`` is what a mirror looked like when it was closed. One that looks different was changed by somebody else.
    """

    key: int
    seq: int
    clean: bool
    seal: str = ""
    layout: int = _LAYOUT

    @classmethod
    def read(cls, text: str | None) -> Mark:
        """Parse the note; no note means that there never was a mirror, and one that says nothing is not believed.

        >>> Mark.read(Mark(7, 9, clean=True, seal="a-b").written())
        Mark(key=7, seq=9, clean=True, seal='a-b', layout=2)
        """
        if text is None:
            return cls(0, 0, clean=True)
        try:
            noted = json.loads(text)
            key, seq = int(noted["key"]), int(noted["seq"])
            return cls(key, seq, noted["clean"] is True, str(noted.get("seal", "")), int(noted.get("layout", 1)))
        except (ValueError, TypeError, LookupError, AttributeError):
            return cls(0, 0, clean=False, layout=0)

    def written(self) -> str:
        """Return the note as text."""
        return json.dumps(asdict(self))

    @property
    def current(self) -> bool:
        """False where an older version fed it."""
        return self.layout == _LAYOUT

    @property
    def trusted(self) -> bool:
        """True where there may be a mirror that this version fed and closed."""
        return self.clean and self.key > 0 and self.current


def removals(changes: Sequence[Change], known: Collection[int]) -> tuple[dict[int, list[str]], list[int]]:
    """Return the ids of cases that are gone by namespace, and the namespaces that were emptied; of known namespaces only.

    >>> removals([Change(1, 1, "case-", 7, "a"), Change(2, 9, "forgotten", 0)], known={1})
    ({1: ['a']}, [])
    """
    gone: dict[int, list[str]] = {}
    emptied: dict[int, None] = {}
    for change in changes:
        if change.namespace not in known:
            continue  # an older version wrote about a namespace that never was
        if change.takes_case and change.id is not None:
            gone.setdefault(change.namespace, []).append(change.id)
        elif change.empties_namespace:
            emptied[change.namespace] = None
    return gone, list(emptied)
