"""The tables that only a ledger in PostgreSQL has: they do what files and the operating system's locks do for a folder."""

from __future__ import annotations

SCHEMA = "cascade_memory"

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
