"""The ledger in PostgreSQL: its own connections and schema, under the statements that SQLite has as well."""
