"""``cascade-memory data doctor --secrets``: where secrets are stored, and what to do about them. It never prints one."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from cascade_memory.cli.opening import existing, place
from cascade_memory.cli.tables import print_json, print_table

if TYPE_CHECKING:
    from cascade_memory.memory.stored_texts import StoredSecret

_IDS = 3  # that a row names
_TODO = (
    "Change these secrets where they are valid: whoever could read the folder may have them. Then forget what holds them: "
    "cascade-memory data forget PATH --namespace NAME --case ID --purge (or --episode ID). A search goes with the next --purge "
    "of its namespace. Backups and exports that were made before keep them: delete those. What comes in now has placeholders."
)


def doctor_secrets(options: argparse.Namespace) -> int:
    """Count the stored secrets by kind and place."""
    with existing(options) as memory:
        found = memory.data.find_secrets()
    if options.json:
        print_json({"secrets": [one.as_dict() for one in found], "todo": _TODO if found else None})
    elif not found:
        print(f"no secrets found in {place(options)}")
    else:
        print_table(f"secrets in {place(options)}", ["kind", "where", "namespace", "secrets", "ids"], _rows(found))
        print(_TODO)
    return 1 if found else 0


def _rows(found: Sequence[StoredSecret]) -> list[list[str]]:
    grouped: dict[tuple[str, str, str], list[StoredSecret]] = {}
    for one in found:
        grouped.setdefault((one.kind, one.where, one.namespace), []).append(one)
    return [[*group, f"{sum(one.count for one in same):,}", _ids(same)] for group, same in sorted(grouped.items())]


def _ids(same: Sequence[StoredSecret]) -> str:
    ids = list(dict.fromkeys(one.id for one in same if one.id is not None))
    more = f" and {len(ids) - _IDS:,} more (--json names all)" if len(ids) > _IDS else ""
    return ", ".join(ids[:_IDS]) + more
