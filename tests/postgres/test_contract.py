"""The ledger in PostgreSQL does what every ledger must do, and keeps the rows of warnings and of actors as SQLite does."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from actors_contract import ActorsContract
from warnings_contract import WarningsContract

from cascade_memory.ledger.core import Ledger
from cascade_memory.testing import LedgerContract


class _InPostgres:
    """Makes ledgers in new databases."""

    @pytest.fixture(autouse=True)
    def _databases(self, new_database: Callable[[], str]) -> Iterator[None]:
        self._new_database, self._made = new_database, []
        yield
        for ledger in self._made:
            ledger.close()

    def make(self) -> Ledger:
        from cascade_memory.ledger.postgres.ledger import PostgresLedger

        ledger = PostgresLedger(self._new_database())
        self._made.append(ledger)
        return ledger


class TestPostgresLedger(_InPostgres, LedgerContract):
    """The same suite as SQLite's."""

    COPIES = False


class TestWarningsInPostgres(_InPostgres, WarningsContract):
    """The same suite as SQLite's."""


class TestActorsInPostgres(_InPostgres, ActorsContract):
    """The same suite as SQLite's."""
