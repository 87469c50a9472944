"""Authors, testimonies and quarantine in a SQLite ledger; the same contract holds in PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from actors_contract import ActorsContract

from cascade_memory.ledger.core import Ledger
from cascade_memory.ledger.sqlite import SQLiteLedger


class TestActorsInAFile(ActorsContract):
    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path: Path) -> Iterator[None]:
        self._path, self._made = tmp_path, list[SQLiteLedger]()
        yield
        for ledger in self._made:
            ledger.close()

    def make(self) -> Ledger:
        self._made.append(SQLiteLedger(self._path / f"{len(self._made)}.sqlite3"))
        return self._made[-1]
