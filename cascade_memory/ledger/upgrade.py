"""Upgrades a ledger from older schema versions to the present one, in one step per version."""

from __future__ import annotations

import sqlite3

from cascade_memory.errors import SchemaTooNew, StoreCorrupt
from cascade_memory.ledger.belonging import begin_generation
from cascade_memory.ledger.declaring import Table
from cascade_memory.ledger.schema import ADDED, APPLICATION_ID, SCHEMA_VERSION, lacking

# The statements that turn a ledger of a version into one of the next version. A released step must never change: folders that
# were upgraded with it do not run it again.
STEPS: dict[int, tuple[str, ...]] = {
    1: (
        "ALTER TABLE cases ADD COLUMN novelty REAL NOT NULL DEFAULT 1",
        "ALTER TABLE cases ADD COLUMN verified_at REAL NOT NULL DEFAULT 0",
        "UPDATE cases SET verified_at = created_at",
        "CREATE INDEX cases_verified ON cases(namespace, verified_at)",
        """CREATE TABLE outcome_field (namespace INTEGER NOT NULL, name TEXT NOT NULL, value NOT NULL, outcome INTEGER NOT NULL,
             PRIMARY KEY (namespace, name, value, outcome)) WITHOUT ROWID""",
        "CREATE INDEX outcome_case ON outcome(cases_key) WHERE cases_key IS NOT NULL",
        "CREATE TABLE episode_vector (key INTEGER PRIMARY KEY REFERENCES episode(key), vector BLOB NOT NULL)",
        "INSERT INTO episode_vector SELECT key, vector FROM episode",
        "ALTER TABLE episode DROP COLUMN vector",
        "CREATE INDEX recall_namespace ON recall(namespace)",
        "CREATE INDEX outcome_field_outcome ON outcome_field(outcome)",
        """INSERT INTO outcome_field SELECT field.namespace, field.name, field.value, outcome.key
             FROM field JOIN outcome ON outcome.cases_key = field.cases_key WHERE outcome.withdrawn_at IS NULL""",
    ),
    2: (
        "ALTER TABLE episode ADD COLUMN holdout REAL NOT NULL DEFAULT 0",
        "ALTER TABLE recall ADD COLUMN shadow TEXT",
        "ALTER TABLE recall ADD COLUMN shadow_numbers BLOB",
        "ALTER TABLE recall ADD COLUMN shadow_context BLOB",
    ),
    3: (
        "ALTER TABLE episode ADD COLUMN metadata TEXT",
        "ALTER TABLE episode ADD COLUMN reported INTEGER",
        "CREATE INDEX episode_reported ON episode(namespace, reported) WHERE reported IS NOT NULL",
        "ALTER TABLE outcome ADD COLUMN metadata TEXT",
        "ALTER TABLE outcome ADD COLUMN agents_words INTEGER NOT NULL DEFAULT 0",
        "UPDATE outcome SET agents_words = 1 WHERE source = 'agent' AND solution IS NOT NULL",
        "UPDATE outcome SET solution_kind = NULL, solution = NULL WHERE withdrawn_at IS NOT NULL",
        """CREATE TABLE addition (key INTEGER PRIMARY KEY AUTOINCREMENT, namespace INTEGER NOT NULL, cases_key INTEGER NOT NULL,
             source TEXT NOT NULL, at REAL NOT NULL, metadata TEXT NOT NULL, solution TEXT)""",
        "CREATE INDEX addition_case ON addition(cases_key)",
        """CREATE TABLE addition_field (namespace INTEGER NOT NULL, name TEXT NOT NULL, value NOT NULL,
             addition INTEGER NOT NULL, PRIMARY KEY (namespace, name, value, addition)) WITHOUT ROWID""",
        "CREATE INDEX addition_field_addition ON addition_field(addition)",
        """CREATE TABLE episode_field (namespace INTEGER NOT NULL, name TEXT NOT NULL, value NOT NULL,
             episode INTEGER NOT NULL, PRIMARY KEY (namespace, name, value, episode)) WITHOUT ROWID""",
        "CREATE INDEX episode_field_episode ON episode_field(episode)",
        # Version 3 did not record who added a case by hand. So a case with more copies than outcomes gets one addition, with
        # the source and the metadata of the case.
        """INSERT INTO addition (namespace, cases_key, source, at, metadata)
             SELECT cases.namespace, cases.key, source, created_at, metadata FROM cases JOIN case_text USING (key)
             WHERE copies > (SELECT count(*) FROM outcome WHERE cases_key = cases.key AND withdrawn_at IS NULL)""",
        """INSERT INTO addition_field SELECT field.namespace, name, value, addition.key
             FROM field JOIN addition USING (cases_key)""",
        "ALTER TABLE cases ADD COLUMN verified_run REAL NOT NULL DEFAULT 0",  # running time is counted from now on
        "DROP INDEX cases_verified",
        "CREATE INDEX cases_verified ON cases(namespace, verified_run)",
        """CREATE TABLE expired (key INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE,
             namespace INTEGER NOT NULL REFERENCES namespace(id), query TEXT NOT NULL, pair TEXT NOT NULL,
             copies INTEGER NOT NULL, expired_at REAL NOT NULL, until_run REAL NOT NULL, record TEXT NOT NULL,
             UNIQUE (namespace, pair))""",
        "CREATE INDEX expired_until ON expired(namespace, until_run)",
        "CREATE TABLE expired_vector (key INTEGER PRIMARY KEY REFERENCES expired(key), vector BLOB NOT NULL)",
        """CREATE TABLE expired_field (namespace INTEGER NOT NULL, name TEXT NOT NULL, value NOT NULL, expired INTEGER NOT NULL,
             PRIMARY KEY (namespace, name, value, expired)) WITHOUT ROWID""",
        "CREATE INDEX expired_field_case ON expired_field(expired)",
        "ALTER TABLE outcome ADD COLUMN unkept TEXT",
    ),
    4: (  # version 4 marked such recalls by a negative k
        "ALTER TABLE recall ADD COLUMN forgot INTEGER NOT NULL DEFAULT 0",
        "UPDATE recall SET forgot = 1, k = -k WHERE k < 0",
    ),
    5: (
        "ALTER TABLE cases ADD COLUMN pinned INTEGER NOT NULL DEFAULT 0",
        "ALTER TABLE cases ADD COLUMN hidden INTEGER NOT NULL DEFAULT 0",
        """CREATE TABLE judged_attempt (episode INTEGER PRIMARY KEY REFERENCES episode(key), status TEXT NOT NULL,
             solution_kind TEXT, solution TEXT, at REAL NOT NULL)""",
        """CREATE TABLE action (key INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, at REAL NOT NULL,
             namespace INTEGER NOT NULL, kind TEXT NOT NULL, actor TEXT, subject TEXT, counts TEXT NOT NULL, note TEXT,
             undoes INTEGER, outcome INTEGER, replaced INTEGER, made TEXT, hid TEXT)""",
        "CREATE UNIQUE INDEX action_undoes ON action(undoes) WHERE undoes IS NOT NULL",
        "CREATE INDEX action_namespace ON action(namespace, key)",
        "CREATE INDEX action_subject ON action(subject) WHERE subject IS NOT NULL",
    ),
    6: (
        *(
            f"ALTER TABLE {table} ADD COLUMN {name} TEXT"
            for table in ("episode", "outcome", "addition", "cases")
            for name in ("actor", "channel")
        ),
        "ALTER TABLE cases ADD COLUMN trust INTEGER NOT NULL DEFAULT 3",
        # Which cases were shown when a case was made is not asked: its source alone counts.
        "UPDATE cases SET trust = CASE source WHEN 'agent' THEN 0 WHEN 'judge' THEN 2 WHEN 'human' THEN 4 ELSE 3 END",
        "ALTER TABLE cases ADD COLUMN probation INTEGER NOT NULL DEFAULT 0",
        "ALTER TABLE expired ADD COLUMN why TEXT NOT NULL DEFAULT 'expired'",
        "ALTER TABLE expired ADD COLUMN actor TEXT",
        "CREATE INDEX expired_evicted ON expired(namespace, actor, until_run) WHERE why = 'evicted'",
        "ALTER TABLE action ADD COLUMN digest TEXT",
        *(
            f"CREATE INDEX {table}_actor ON {table}(namespace, actor) WHERE actor IS NOT NULL"
            for table in ("episode", "outcome", "addition", "cases")
        ),
        """CREATE INDEX outcome_counted ON outcome(namespace, actor, source, at)
             WHERE actor IS NOT NULL AND coalesce(unkept, '') <> 'capped'""",
    ),
    7: (),  # tables of warnings: those of a capability, which any ledger gets that lacks them
}


def check_version(application: int, version: int, path: str) -> None:
    """Raise if a file is not a ledger of this library, or is one of a newer version."""
    if application != APPLICATION_ID:
        raise StoreCorrupt(f"{path} is a SQLite file, but not a ledger of cascade-memory; choose another folder")
    if version > SCHEMA_VERSION:
        raise SchemaTooNew(
            f"{path} has schema version {version}, and this library reads up to {SCHEMA_VERSION}; upgrade cascade-memory"
        )
    if version < 1:
        raise StoreCorrupt(f"{path} has the invalid schema version {version}; restore it from a backup")


def upgrade(connection: sqlite3.Connection, version: int) -> None:
    """Upgrade a ledger to ``SCHEMA_VERSION`` inside the caller's transaction: completely, or not at all.

    A process of an older version may have the ledger open. It does not know the new columns, so from now on it may not write.
    """
    new = lacked_by(connection)
    if version == SCHEMA_VERSION and not new:
        return
    for step in range(version, SCHEMA_VERSION):
        for statement in STEPS[step]:
            connection.execute(statement)
    for table in new:
        for statement in table.statements:
            connection.execute(statement)
    begin_generation(connection)
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")


def lacked_by(connection: sqlite3.Connection) -> list[Table]:
    """Return the tables of capabilities that a ledger lacks; no name is read from the file, which may contain any name."""
    known = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?"
    return lacking([table.name for table in ADDED if connection.execute(known, (table.name,)).fetchone()])
