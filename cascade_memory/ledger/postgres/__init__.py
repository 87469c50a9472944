"""The ledger in PostgreSQL: it has its own connections and schema, and runs the same statements as the one in SQLite."""
