"""The mirror as a projection of the log: feeds it, removes from it what the log removes, and rebuilds it.

The ledger keeps a mark about the mirror: how far it was fed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from cascade_memory.domain.case import Case
from cascade_memory.domain.plain_json import parsed
from cascade_memory.domain.records import Change
from cascade_memory.engine.follower import take_in
from cascade_memory.engine.parts import MirrorBuild, Parts
from cascade_memory.errors import StoreError
from cascade_memory.ports.case_index import CaseMirror

if TYPE_CHECKING:
    from cascade_memory.ledger.core import Ledger

MIRROR = "mirror"  # prefix of the ledger's notes about mirrors; the mirror's place follows
BUILD_ELSEWHERE = 2_000  # cases: with fewer, a rebuild runs here; with more, in another process
_GREATEST = 2**53  # of keys and of lines of the log
_LAYOUT = 2  # version of the mirror's layout, collection names included: an older mirror is rebuilt
CHANGED = "Chroma was copied here, or changed, or only opened, by another program while no memory had it open"


def put(mirror: CaseMirror, rows: Sequence[tuple[Case, NDArray[np.float32]]]) -> None:
    """Store cases of any namespace, with their vectors."""
    for namespace in dict.fromkeys(case.namespace for case, _ in rows):
        some = [(case, vector) for case, vector in rows if case.namespace == namespace]
        mirror.upsert(namespace, [case for case, _ in some], np.stack([vector for _, vector in some]))


def replace_changed(mirror: CaseMirror, ledger: Ledger, keys: Sequence[int]) -> list[Case]:
    """Replace the cases with these keys, since their source or metadata changed; return them.

    They are deleted first, since a plain update would leave old metadata keys behind.
    """
    rows = [row for key in dict.fromkeys(keys) for row in ledger.cases.after(key - 1, 1) if row[0].key == key]
    for namespace in dict.fromkeys(case.namespace for case, _ in rows):
        mirror.delete(namespace, [case.id for case, _ in rows if case.namespace == namespace])
    put(mirror, rows)
    return [case for case, _ in rows]


def remove_forgotten(mirror: CaseMirror, ledger: Ledger, cases: Sequence[Case]) -> None:
    """Remove the given cases from the mirror if the ledger no longer has them."""
    numbers = ledger.namespaces()
    for namespace in dict.fromkeys(case.namespace for case in cases):
        ids = [case.id for case in cases if case.namespace == namespace]
        there = {case.id for case in ledger.cases.by_id(ids, numbers.get(namespace, 0))}
        if gone := [one for one in ids if one not in there]:
            mirror.delete(namespace, gone)


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


class MirrorProjection:
    """Applies the log to the mirror at its own pace; its position is a ``Mark``.

    It is used by one thread at a time. It calls ``note_failure`` for every problem that it repairs, and ``note_success`` for
    every batch.
    """

    def __init__(
        self,
        parts: Parts,
        mirror: CaseMirror,
        build: Callable[[], MirrorBuild] | None,
        *,
        note_failure: Callable[[Exception, str], None],
        note_success: Callable[[], None],
    ) -> None:
        self._ledger, self._mirror, self._build = parts.ledger, mirror, build
        self._fence = parts.fence
        self._note_failure, self._note_success = note_failure, note_success
        self._fact = f"{MIRROR}{mirror.place}"  # a folder used both with its own Chroma and with a server has two marks
        self._building: MirrorBuild | None = None
        self._build_due = False
        self.mark = Mark(0, 0, clean=True)
        self.serving = False  # open, warm, and in step with the mark

    @property
    def seq(self) -> int:
        """The last log line that the mirror has applied."""
        return self.mark.seq

    @property
    def is_building(self) -> bool:
        """True while another process builds the mirror, or is about to build it."""
        return self._building is not None or self._build_due

    # -- the mark ----------------------------------------------------------------------------------------------------

    def noted(self) -> Mark:
        """The mark as stored in the ledger: another process may have fed the mirror since."""
        return Mark.read(self._ledger.facts.get(self._fact))

    def note(self, mark: Mark) -> None:
        """Store the mark in the ledger; raise ``StoreError`` if another process feeds the mirror by now."""
        with self._fence():
            self._ledger.facts.set(self._fact, mark.written())
        self.mark = mark

    def mark_dirty(self) -> bool:
        """Note on disk that the mirror is in use, before it is opened, and return True.

        If its files were changed since it was closed, rebuild it instead, and return False.
        """
        if not self.mark.clean or self._mirror.shared:
            return True
        if self.mark.key and not self._mirror.is_sealed(self.mark.seal):
            self._note_failure(StoreError(CHANGED), "rebuilt from the ledger")
            self.rebuild()
            return False
        if not self.mark.key and self._mirror.exists():
            self._mirror.discard()
            if self._mirror.exists():
                raise StoreError("the folder of Chroma cannot be deleted: delete it by hand")
        self.note(replace(self.mark, clean=False))
        return True

    # -- feeding -----------------------------------------------------------------------------------------------------

    def feed(self, size: int) -> bool:
        """Apply new log lines, then feed up to ``size`` new cases; return whether there may be more."""
        more = take_in(self._ledger, self)
        if not self.is_built():
            return False
        rows = self._ledger.cases.after(self.mark.key, size)
        if not rows:
            return more
        if not self.mark_dirty():
            return self.is_built()
        put(self._mirror, rows)
        self._fed(Mark(rows[-1][0].key, self.seq, clean=self._mirror.shared), [case for case, _ in rows])
        return True

    def apply(self, changes: Sequence[Change]) -> None:
        """Remove what the log removes. New cases are not taken from the log: they are fed by their keys, in batches."""
        if any(change.purges for change in changes):
            self.rebuild()  # Chroma's files still contain what was deleted from them
            return
        names = {number: name for name, number in self._ledger.namespaces().items()}
        gone, emptied = _removals(changes, names)
        seq = changes[-1].seq
        changed = [change.ref for change in changes if change.changes_case and change.ref <= self.mark.key]
        # A case that was stored anew under its id may have been fed already: it is put there again after the deletion.
        anew = self._ledger.cases.keys_of([one for ids in gone.values() for one in ids]) if gone else []
        changed += [key for key in anew if key <= self.mark.key]
        if not (gone or emptied or changed):
            self.mark = replace(self.mark, seq=seq)
            return
        if not self.mark_dirty():
            return
        for namespace, ids in gone.items():
            self._mirror.delete(names[namespace], ids)
        replaced = replace_changed(self._mirror, self._ledger, changed)
        self._fed(Mark(self._empty([*emptied], names), seq, clean=self._mirror.shared), replaced)

    def _empty(self, namespaces: Sequence[int], names: dict[int, str]) -> int:
        """Drop the collections of emptied namespaces; return the case key after which to feed again.

        Cases that were added to these namespaces later have to be fed again.
        """
        key = self.mark.key
        for namespace in namespaces:
            self._mirror.drop(names[namespace])
            if first := self._ledger.cases.page(namespace, 1):
                key = min(key, first[0] - 1)
        return key

    def _fed(self, mark: Mark, cases: Sequence[Case]) -> None:
        self.serving = True
        self._note_success()
        if not self._mirror.shared:
            self.mark = mark
            return
        try:
            self.note(mark)  # for other processes that ask the mirror, and for the next owner
        except StoreError:
            # If this process was away for so long that another one feeds the mirror, that one has removed what was forgotten
            # meanwhile, and does not know that this one has just put it there again.
            remove_forgotten(self._mirror, self._ledger, cases)
            raise

    # -- rebuilding --------------------------------------------------------------------------------------------------

    def rebuild(self) -> None:
        """Delete the mirror and feed a new one from the ledger, in another process if there are many cases."""
        self._ledger.check()  # the folder may belong to another memory by now
        self.abandon_build()
        self.serving = False
        # Before: if the deletion ends with an error or an interrupt, nothing that was fed until now counts as fed.
        self.mark = Mark(0, self.seq, clean=True)
        self._mirror.discard()
        # Start at the end of the log: a mirror that is fed from the present state does not need the log's past.
        self.note(Mark(0, self._ledger.head(), clean=True))  # holds no case: if this process dies, the next owner rebuilds it
        self._build_due = self._build is not None and self._ledger.cases.count(None) >= BUILD_ELSEWHERE

    def is_built(self) -> bool:
        """Return True unless another process is still building the mirror; if the build has ended, take over its result."""
        if self._build_due and self._build is not None:
            self._build_due, self._building = False, self._build()
        if self._building is None:
            return True
        status = self._building.poll()
        if status is None:
            return False
        building, self._building = self._building, None
        if status == 0:
            key, seal = building.finish()
            self.note(Mark(key, self.seq, clean=True, seal=seal))  # the log position at which the build began
        else:
            building.abandon()
            error = StoreError(f"rebuilding the mirror failed with status {status}; feeding it here instead")
            self._note_failure(error, "tried again")
        return True

    def abandon_build(self) -> None:
        """Stop the process that builds the mirror, if there is one."""
        self._build_due = False
        if self._building is not None:
            self._building.abandon()
            self._building = None

    def check_shared(self) -> None:
        """Rebuild the mirror if the server has lost cases while it was unreachable, or holds them under older names."""
        if not self.mark.current:
            self.rebuild()
        for name, number in self._ledger.namespaces().items():
            fed = self._ledger.cases.count(number, until=self.mark.key)
            if fed and self._mirror.count(name) < fed:
                self.rebuild()
                break


def _removals(changes: Sequence[Change], known: Collection[int]) -> tuple[dict[int, list[str]], list[int]]:
    """Return the ids of removed cases by namespace, and the emptied namespaces; only for known namespaces.

    >>> _removals([Change(1, 1, "case-", 7, "a"), Change(2, 9, "forgotten", 0)], known={1})
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
