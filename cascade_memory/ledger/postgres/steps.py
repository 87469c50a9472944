"""The statements that upgrade a database to the present schema, one step per version; they can be printed for others to run."""

from __future__ import annotations

from collections.abc import Collection

from cascade_memory.ledger import upgrade
from cascade_memory.ledger.postgres.dialect import SCHEMA, defined
from cascade_memory.ledger.schema import SCHEMA_VERSION, STATEMENTS, lacking

OWN_TABLES = f"""
-- Who may do a job that one worker does for all. The epoch grows with each holder, and never goes back.
CREATE TABLE {SCHEMA}.lease (
  job text NOT NULL,
  namespace bigint NOT NULL,  -- 0: for all namespaces
  holder text NOT NULL,
  epoch bigint NOT NULL,
  expires timestamptz NOT NULL,
  PRIMARY KEY (job, namespace)
);
-- Learned state up to a line of the log.
CREATE TABLE {SCHEMA}.snapshot (
  namespace bigint NOT NULL,
  ranker text NOT NULL,
  seq bigint NOT NULL,
  content bytea NOT NULL,
  PRIMARY KEY (namespace, ranker, seq)
);
-- The weights of a trained encoder, in parts.
CREATE TABLE {SCHEMA}.snapshot_weights (
  namespace bigint NOT NULL,
  ranker text NOT NULL,
  seq bigint NOT NULL,
  part bigint NOT NULL,
  content bytea NOT NULL,
  PRIMARY KEY (namespace, ranker, seq, part),
  FOREIGN KEY (namespace, ranker, seq) REFERENCES {SCHEMA}.snapshot ON DELETE CASCADE
);
"""


VERSION = SCHEMA_VERSION
ONE_AT_A_TIME = f"SELECT pg_advisory_xact_lock({0x43415344})"  # for those who migrate; it ends with the transaction

# The statements that turn a ledger of a version into one of the next version, as for SQLite: they are written once. A released
# step must never change. Version 5 was the first in PostgreSQL.
STEPS: dict[int, str] = {version: defined(upgrade.STEPS[version]) for version in range(5, VERSION)}

_SCHEMA = f"""DO $$ BEGIN
  IF to_regnamespace('{SCHEMA}') IS NULL THEN CREATE SCHEMA {SCHEMA}; END IF;
END $$;
"""
# Workers of the version before do not know the new columns: from now on they may not write.
_NEW_GENERATION = f"""INSERT INTO {SCHEMA}.meta VALUES ('generation', md5(gen_random_uuid()::text))
  ON CONFLICT (key) DO UPDATE SET value = excluded.value;
"""
_AGAIN = "print the statements again: cascade-memory data migrate URL --print-sql"
_GRANTS = f"""-- A role that may not create tables, here agents, needs these rights. Grant them again after each migration.
-- GRANT USAGE ON SCHEMA {SCHEMA} TO agents;
-- GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {SCHEMA} TO agents;
-- GRANT SELECT, UPDATE ON ALL SEQUENCES IN SCHEMA {SCHEMA} TO agents;
"""


def statements() -> str:
    """Return, as one text, all SQL statements that create an empty ledger of the present version."""
    return (
        f"{_SCHEMA}{defined(STATEMENTS)}{OWN_TABLES}"
        f"INSERT INTO {SCHEMA}.meta VALUES ('identity', substr(md5(gen_random_uuid()::text), 1, 12));\n"
        f"CREATE TABLE {SCHEMA}.version (number bigint NOT NULL);\nINSERT INTO {SCHEMA}.version VALUES ({VERSION});\n"
    )


def step_after(version: int | None) -> str | None:
    """Return the statements of the step after a version (None: there is no ledger yet); None if there is no such step."""
    if version is None:
        return statements()
    step = STEPS.get(version)
    if step is None:
        return None
    return f"{_ended(step)}UPDATE {SCHEMA}.version SET number = {version + 1};\n"


def added_to(there: Collection[str]) -> str | None:
    """Return the statements that create the tables of ``ledger.schema.ADDED`` that ``there`` lacks; None if it has all."""
    new = [statement for table in lacking(there) for statement in table.statements]
    return _ended(defined(new)) if new else None


def script(version: int | None, there: Collection[str] = ()) -> str:
    """Return what psql has to run to upgrade from a version, one transaction per step: a step runs completely or not at all.

    ``there`` has the names of the tables that the schema has already.

    >>> from cascade_memory.ledger.schema import ADDED
    >>> print(script(VERSION, [table.name for table in ADDED]), end="")
    -- The schema cascade_memory has the present version 8 already: there is nothing to do.
    """
    added = None if version is None else added_to(there)
    if version == VERSION and added is None:
        return f"-- The schema {SCHEMA} has the present version {VERSION} already: there is nothing to do.\n"
    parts = [
        f'-- The schema of cascade-memory, version {VERSION}. Save it as migrate.sql, and run: psql --file migrate.sql "URL"\n'
    ]
    while version != VERSION and (step := step_after(version)) is not None:
        parts.append(f"BEGIN;\n{ONE_AT_A_TIME};\n{_guard(version)}{step}COMMIT;\n")
        version = VERSION if version is None else version + 1
    if added is not None:
        parts.append(f"BEGIN;\n{ONE_AT_A_TIME};\n{added}COMMIT;\n")
    return "\n".join([*parts, _GRANTS])


def _guard(version: int | None) -> str:
    """Return a statement that fails if the schema no longer has this version (None: if there is a schema by now)."""
    if version is None:
        found, said = f"to_regclass('{SCHEMA}.version') IS NOT NULL", f"there is a schema {SCHEMA} already"
    else:
        found, said = (
            f"(SELECT number FROM {SCHEMA}.version) <> {version}",
            f"the schema {SCHEMA} no longer has version {version}",
        )
    return f"DO $$ BEGIN\n  IF {found} THEN RAISE EXCEPTION '{said}; {_AGAIN}'; END IF;\nEND $$;\n"


def _ended(statements: str) -> str:
    return f"{statements.rstrip().rstrip(';')};\n{_NEW_GENERATION}"
