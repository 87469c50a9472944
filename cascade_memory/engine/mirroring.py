"""Puts cases into a mirror, replaces those whose source or metadata changed, and removes those that were forgotten."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from cascade_memory.domain.case import Case
from cascade_memory.ports.case_mirror import CaseMirror

if TYPE_CHECKING:
    from cascade_memory.ledger.core import Ledger


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
