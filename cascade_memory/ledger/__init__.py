"""The ledger: one SQLite file that holds everything acknowledged, the source of truth."""
