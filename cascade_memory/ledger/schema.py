"""The tables of the ledger, and their version."""

from __future__ import annotations

SCHEMA_VERSION = 5
APPLICATION_ID = 0x43415343  # "CASC" in the file header: tells our ledger from anybody's SQLite file

# Texts and vectors stand in tables of their own: the rows that every recall reads stay small and close together.
TABLES = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

CREATE TABLE namespace (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);

CREATE TABLE episode (
  key INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  namespace INTEGER NOT NULL REFERENCES namespace(id),
  query TEXT NOT NULL,
  thread TEXT,                        -- of the conversation, where the host has such a thing
  source TEXT,                        -- who rewarded it
  arm TEXT NOT NULL DEFAULT 'live',   -- live, holdout
  holdout REAL NOT NULL DEFAULT 0,    -- the probability with which it could have been held out
  status TEXT NOT NULL,               -- open, settled, censored, expired
  opened_at REAL NOT NULL,
  closed_at REAL,
  metadata TEXT,                      -- JSON, given with its recalls, or NULL
  reported INTEGER                    -- bytes of what its agent reported, while nobody else has said a word, or NULL
);
CREATE INDEX episode_reported ON episode(namespace, reported) WHERE reported IS NOT NULL;
CREATE INDEX episode_open ON episode(namespace, opened_at) WHERE status = 'open';
CREATE INDEX episode_namespace ON episode(namespace, status);
CREATE INDEX episode_thread ON episode(thread, key) WHERE thread IS NOT NULL;

-- Until the episode is settled and compacted: whole rows that go leave whole pages free.
CREATE TABLE episode_vector (key INTEGER PRIMARY KEY REFERENCES episode(key), vector BLOB NOT NULL);

-- How the run of an open episode ended, while nobody has judged it yet.
CREATE TABLE attempt (episode INTEGER PRIMARY KEY REFERENCES episode(key), status TEXT NOT NULL, solution_kind TEXT,
  solution TEXT, at REAL NOT NULL);

CREATE TABLE recall (
  key INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  episode INTEGER REFERENCES episode(key),  -- NULL: a search
  namespace INTEGER NOT NULL,
  query TEXT,                         -- NULL: the episode's own
  kind TEXT NOT NULL,                 -- recall, search
  k INTEGER NOT NULL,
  forgot INTEGER NOT NULL DEFAULT 0,  -- 1: a candidate was forgotten since
  at REAL NOT NULL,
  policy TEXT NOT NULL,
  policy_version INTEGER NOT NULL,
  encoder TEXT NOT NULL,
  shown INTEGER NOT NULL,
  baseline REAL,
  candidates BLOB NOT NULL,           -- int64 case keys, best similarity first
  groups BLOB NOT NULL,               -- int64 solution ids
  chosen BLOB NOT NULL,               -- int64 positions among the candidates
  numbers BLOB NOT NULL,              -- float32 (n, 6): a row for each candidate, its columns are domain.records.Column
  features BLOB NOT NULL,             -- float32 (n, d)
  context BLOB NOT NULL,              -- float32, the policy's own
  agreement BLOB,                     -- float32 (n,): hindsight labels, once a solution was verified
  shadow TEXT,                        -- the policy that thought along, if one did
  shadow_numbers BLOB,                -- float32 (n, 2 + d): place among what it would have shown (0: not), propensity, features
  shadow_context BLOB                 -- float32, the shadow's own
);
CREATE INDEX recall_episode ON recall(episode);
CREATE INDEX recall_namespace ON recall(namespace);

CREATE TABLE outcome (
  key INTEGER PRIMARY KEY AUTOINCREMENT,
  episode INTEGER NOT NULL REFERENCES episode(key),
  namespace INTEGER NOT NULL,
  value REAL NOT NULL,
  source TEXT NOT NULL,
  at REAL NOT NULL,
  solution_kind TEXT,                 -- text, trajectory, NULL
  solution TEXT,
  learns INTEGER NOT NULL,
  cases_key INTEGER,                  -- the case that it retained
  withdrawn_at REAL,                  -- set when another outcome took its place
  metadata TEXT,                      -- JSON, or NULL
  agents_words INTEGER NOT NULL DEFAULT 0,  -- the solution is what the agent reported, and nobody has confirmed it
  unkept TEXT                         -- why a reward above 0 made no case: below, solution, source
);
CREATE INDEX outcome_episode ON outcome(episode);
CREATE INDEX outcome_case ON outcome(cases_key) WHERE cases_key IS NOT NULL;
CREATE INDEX outcome_learned ON outcome(namespace, key) WHERE learns = 1 AND withdrawn_at IS NULL;

CREATE TABLE solution (id INTEGER PRIMARY KEY AUTOINCREMENT, namespace INTEGER NOT NULL, digest TEXT NOT NULL,
  UNIQUE (namespace, digest));

CREATE TABLE cases (
  key INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  namespace INTEGER NOT NULL REFERENCES namespace(id),
  query TEXT NOT NULL,
  head TEXT NOT NULL,                 -- how the solution begins: enough to compare words with
  solution INTEGER NOT NULL REFERENCES solution(id),
  pair TEXT NOT NULL,
  source TEXT NOT NULL,
  episode INTEGER,
  created_at REAL NOT NULL,
  copies INTEGER NOT NULL DEFAULT 1,
  shown INTEGER NOT NULL DEFAULT 0,
  succeeded REAL NOT NULL DEFAULT 0,
  novelty REAL NOT NULL DEFAULT 1,    -- how little its neighbours knew of its solution when it came
  verified_at REAL NOT NULL DEFAULT 0,  -- when it was last verified by the wall clock: what hides it
  verified_run REAL NOT NULL DEFAULT 0,  -- and by the running time of the folder: what lets it go
  UNIQUE (namespace, pair)
);
CREATE INDEX cases_namespace ON cases(namespace, key);
CREATE INDEX cases_verified ON cases(namespace, verified_run);
CREATE INDEX cases_solution ON cases(solution);
CREATE INDEX cases_episode ON cases(episode) WHERE episode IS NOT NULL;

CREATE TABLE case_text (key INTEGER PRIMARY KEY REFERENCES cases(key), solution_kind TEXT NOT NULL, solution TEXT NOT NULL,
  metadata TEXT NOT NULL);
CREATE TABLE case_vector (key INTEGER PRIMARY KEY REFERENCES cases(key), vector BLOB NOT NULL);

-- Who put a case in by hand, or put it in again: with the outcomes that ended in it, all who vouch for it.
CREATE TABLE addition (
  key INTEGER PRIMARY KEY AUTOINCREMENT,
  namespace INTEGER NOT NULL,
  cases_key INTEGER NOT NULL,
  source TEXT NOT NULL,
  at REAL NOT NULL,
  metadata TEXT NOT NULL,
  solution TEXT                       -- where it is written otherwise than the case's, or NULL
);
CREATE INDEX addition_case ON addition(cases_key);

-- Metadata once more, a row per value, so that a filter is a range of an index.
CREATE TABLE field (namespace INTEGER NOT NULL, name TEXT NOT NULL, value NOT NULL, cases_key INTEGER NOT NULL,
  PRIMARY KEY (namespace, name, value, cases_key)) WITHOUT ROWID;
CREATE INDEX field_case ON field(cases_key);

-- Cases that were not verified for too long: kept for a while, so that they can be brought back.
CREATE TABLE expired (
  key INTEGER PRIMARY KEY,            -- of the case that it was
  id TEXT NOT NULL UNIQUE,
  namespace INTEGER NOT NULL REFERENCES namespace(id),
  query TEXT NOT NULL,
  pair TEXT NOT NULL,
  copies INTEGER NOT NULL,
  expired_at REAL NOT NULL,           -- by the wall clock, for people
  until_run REAL NOT NULL,            -- the running time at which it is deleted for good
  record TEXT NOT NULL,               -- all the rest of it, as JSON
  UNIQUE (namespace, pair)
);
CREATE INDEX expired_until ON expired(namespace, until_run);
CREATE TABLE expired_vector (key INTEGER PRIMARY KEY REFERENCES expired(key), vector BLOB NOT NULL);
CREATE TABLE expired_field (namespace INTEGER NOT NULL, name TEXT NOT NULL, value NOT NULL, expired INTEGER NOT NULL,
  PRIMARY KEY (namespace, name, value, expired)) WITHOUT ROWID;
CREATE INDEX expired_field_case ON expired_field(expired);

-- The same of outcomes, so that their episodes can be found and forgotten, whatever becomes of the case.
CREATE TABLE outcome_field (namespace INTEGER NOT NULL, name TEXT NOT NULL, value NOT NULL, outcome INTEGER NOT NULL,
  PRIMARY KEY (namespace, name, value, outcome)) WITHOUT ROWID;
CREATE INDEX outcome_field_outcome ON outcome_field(outcome);

-- And of additions, and of episodes, whatever became of them.
CREATE TABLE addition_field (namespace INTEGER NOT NULL, name TEXT NOT NULL, value NOT NULL, addition INTEGER NOT NULL,
  PRIMARY KEY (namespace, name, value, addition)) WITHOUT ROWID;
CREATE INDEX addition_field_addition ON addition_field(addition);
CREATE TABLE episode_field (namespace INTEGER NOT NULL, name TEXT NOT NULL, value NOT NULL, episode INTEGER NOT NULL,
  PRIMARY KEY (namespace, name, value, episode)) WITHOUT ROWID;
CREATE INDEX episode_field_episode ON episode_field(episode);

-- What happened, in order: whoever follows the ledger reads on from the last line it knows.
CREATE TABLE change (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  namespace INTEGER NOT NULL,
  kind TEXT NOT NULL,
  ref INTEGER NOT NULL,
  id TEXT                             -- of a case that is gone
);

CREATE TABLE event (
  key INTEGER PRIMARY KEY AUTOINCREMENT,
  at REAL NOT NULL,
  namespace INTEGER,
  kind TEXT NOT NULL,
  payload TEXT NOT NULL
);
"""
