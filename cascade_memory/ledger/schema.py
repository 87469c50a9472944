"""The tables of the ledger, and their version."""

from __future__ import annotations

SCHEMA_VERSION = 8
APPLICATION_ID = 0x43415343  # "CASC" in the file header: it distinguishes a ledger from any other SQLite file

# Texts and vectors have separate tables, so that the rows that every recall reads stay small and close together.
TABLES = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

CREATE TABLE namespace (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);

CREATE TABLE episode (
  key INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  namespace INTEGER NOT NULL REFERENCES namespace(id),
  query TEXT NOT NULL,
  thread TEXT,                        -- the id of the conversation, or NULL
  source TEXT,                        -- who rewarded it
  arm TEXT NOT NULL DEFAULT 'live',   -- live, holdout
  holdout REAL NOT NULL DEFAULT 0,    -- the probability with which it could have been held out
  status TEXT NOT NULL,               -- open, settled, censored, expired
  opened_at REAL NOT NULL,
  closed_at REAL,
  metadata TEXT,                      -- JSON, given with its recalls, or NULL
  reported INTEGER,                   -- the size in bytes of its agent's report while that is unconfirmed (else NULL)
  actor TEXT,                         -- who asked (the host says it)
  channel TEXT                        -- the door through which the recall came
);
CREATE INDEX episode_actor ON episode(namespace, actor) WHERE actor IS NOT NULL;
CREATE INDEX episode_reported ON episode(namespace, reported) WHERE reported IS NOT NULL;
CREATE INDEX episode_open ON episode(namespace, opened_at) WHERE status = 'open';
CREATE INDEX episode_namespace ON episode(namespace, status);
CREATE INDEX episode_thread ON episode(thread, key) WHERE thread IS NOT NULL;

-- Deleted when the episode is compacted. In a separate table, so that deleted rows leave whole pages free.
CREATE TABLE episode_vector (key INTEGER PRIMARY KEY REFERENCES episode(key), vector BLOB NOT NULL);

-- How the run of an episode ended. Deleted when the episode is closed, or is judged by anybody but its agent.
CREATE TABLE attempt (episode INTEGER PRIMARY KEY REFERENCES episode(key), status TEXT NOT NULL, solution_kind TEXT,
  solution TEXT, at REAL NOT NULL);

-- What a person has judged: the row of ``attempt``, which comes back if the verdict is taken back.
CREATE TABLE judged_attempt (episode INTEGER PRIMARY KEY REFERENCES episode(key), status TEXT NOT NULL, solution_kind TEXT,
  solution TEXT, at REAL NOT NULL);

CREATE TABLE recall (
  key INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  episode INTEGER REFERENCES episode(key),  -- NULL for a search
  namespace INTEGER NOT NULL,
  query TEXT,                         -- NULL if it is the query of the episode
  kind TEXT NOT NULL,                 -- recall, search
  k INTEGER NOT NULL,
  forgot INTEGER NOT NULL DEFAULT 0,  -- 1 if a candidate was forgotten since
  at REAL NOT NULL,
  policy TEXT NOT NULL,
  policy_version INTEGER NOT NULL,
  encoder TEXT NOT NULL,
  shown INTEGER NOT NULL,
  baseline REAL,
  candidates BLOB NOT NULL,           -- int64 case keys, the most similar first
  groups BLOB NOT NULL,               -- int64 solution ids
  chosen BLOB NOT NULL,               -- int64 positions among the candidates
  numbers BLOB NOT NULL,              -- float32 (n, 6): one row per candidate, the columns of domain.records.Column
  features BLOB NOT NULL,             -- float32 (n, d)
  context BLOB NOT NULL,              -- float32, whatever the policy stores with its choice
  agreement BLOB,                     -- float32 (n,): hindsight labels, once a solution was verified
  shadow TEXT,                        -- the name of the shadow policy, if there was one
  shadow_numbers BLOB,                -- float32 (n, 2 + d): rank in the shadow's choice (0: not chosen), propensity, features
  shadow_context BLOB                 -- float32, whatever the shadow stores with its choice
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
  withdrawn_at REAL,                  -- set when another outcome replaced it
  metadata TEXT,                      -- JSON, or NULL
  agents_words INTEGER NOT NULL DEFAULT 0,  -- 1 if the agent reported the solution and nobody has confirmed it
  unkept TEXT,                        -- why a reward above 0 stored no case: below or solution or source or capped
  actor TEXT,                         -- who reported it (the host says it)
  channel TEXT                        -- the door through which it came
);
CREATE INDEX outcome_actor ON outcome(namespace, actor) WHERE actor IS NOT NULL;
CREATE INDEX outcome_counted ON outcome(namespace, actor, source, at)
  WHERE actor IS NOT NULL AND coalesce(unkept, '') <> 'capped';
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
  head TEXT NOT NULL,                 -- the beginning of the solution, for comparing words
  solution INTEGER NOT NULL REFERENCES solution(id),
  pair TEXT NOT NULL,
  source TEXT NOT NULL,
  episode INTEGER,
  created_at REAL NOT NULL,
  copies INTEGER NOT NULL DEFAULT 1,
  shown INTEGER NOT NULL DEFAULT 0,
  succeeded REAL NOT NULL DEFAULT 0,
  novelty REAL NOT NULL DEFAULT 1,    -- how little its neighbours' solutions agreed with its own when it was stored
  verified_at REAL NOT NULL DEFAULT 0,  -- the last verification by the wall clock: decides whether recalls show it
  verified_run REAL NOT NULL DEFAULT 0,  -- the same by the folder's running time: decides whether it expires
  pinned INTEGER NOT NULL DEFAULT 0,  -- 1 if a person wants it to stay: it is neither evicted nor does it expire
  hidden INTEGER NOT NULL DEFAULT 0,  -- two bits: a person has hidden it (1), its actor is in quarantine (2)
  actor TEXT,                         -- who made it first (the host says it)
  channel TEXT,                       -- the door through which it came first
  trust INTEGER NOT NULL DEFAULT 3,   -- the level of its source or of the least trusted case that was shown for it
  probation INTEGER NOT NULL DEFAULT 0,  -- unused: always 0, and nothing reads it
  UNIQUE (namespace, pair)
);
CREATE INDEX cases_namespace ON cases(namespace, key);
CREATE INDEX cases_verified ON cases(namespace, verified_run);
CREATE INDEX cases_actor ON cases(namespace, actor) WHERE actor IS NOT NULL;
CREATE INDEX cases_solution ON cases(solution);
CREATE INDEX cases_episode ON cases(episode) WHERE episode IS NOT NULL;

CREATE TABLE case_text (key INTEGER PRIMARY KEY REFERENCES cases(key), solution_kind TEXT NOT NULL, solution TEXT NOT NULL,
  metadata TEXT NOT NULL);
CREATE TABLE case_vector (key INTEGER PRIMARY KEY REFERENCES cases(key), vector BLOB NOT NULL);

-- Who added a case by hand, for the first time or again. These rows and the outcomes that ended in a case verify it.
CREATE TABLE addition (
  key INTEGER PRIMARY KEY AUTOINCREMENT,
  namespace INTEGER NOT NULL,
  cases_key INTEGER NOT NULL,
  source TEXT NOT NULL,
  at REAL NOT NULL,
  metadata TEXT NOT NULL,
  solution TEXT,                      -- only if it is worded differently from the case's (else NULL)
  actor TEXT,                         -- who added it (the host says it)
  channel TEXT                        -- the door through which it came
);
CREATE INDEX addition_case ON addition(cases_key);
CREATE INDEX addition_actor ON addition(namespace, actor) WHERE actor IS NOT NULL;

-- Metadata of cases a second time, one row per value, so that a filter reads a range of an index.
CREATE TABLE field (namespace INTEGER NOT NULL, name TEXT NOT NULL, value NOT NULL, cases_key INTEGER NOT NULL,
  PRIMARY KEY (namespace, name, value, cases_key)) WITHOUT ROWID;
CREATE INDEX field_case ON field(cases_key);

-- Cases that were not verified for too long, or had to make room. They are kept for some days, to be brought back.
CREATE TABLE expired (
  key INTEGER PRIMARY KEY,            -- the key that it had as a case
  id TEXT NOT NULL UNIQUE,
  namespace INTEGER NOT NULL REFERENCES namespace(id),
  query TEXT NOT NULL,
  pair TEXT NOT NULL,
  copies INTEGER NOT NULL,
  expired_at REAL NOT NULL,           -- by the wall clock, shown to people
  until_run REAL NOT NULL,            -- the running time at which it is deleted for good
  record TEXT NOT NULL,               -- everything else about the case as JSON
  why TEXT NOT NULL DEFAULT 'expired',  -- expired, evicted
  actor TEXT,                         -- who made it first
  UNIQUE (namespace, pair)
);
CREATE INDEX expired_until ON expired(namespace, until_run);
CREATE INDEX expired_evicted ON expired(namespace, actor, until_run) WHERE why = 'evicted';
CREATE TABLE expired_vector (key INTEGER PRIMARY KEY REFERENCES expired(key), vector BLOB NOT NULL);
CREATE TABLE expired_field (namespace INTEGER NOT NULL, name TEXT NOT NULL, value NOT NULL, expired INTEGER NOT NULL,
  PRIMARY KEY (namespace, name, value, expired)) WITHOUT ROWID;
CREATE INDEX expired_field_case ON expired_field(expired);

-- Metadata of outcomes, one row per value. Their episodes can be found and forgotten by it, even if the case is gone.
CREATE TABLE outcome_field (namespace INTEGER NOT NULL, name TEXT NOT NULL, value NOT NULL, outcome INTEGER NOT NULL,
  PRIMARY KEY (namespace, name, value, outcome)) WITHOUT ROWID;
CREATE INDEX outcome_field_outcome ON outcome_field(outcome);

-- Metadata of additions and of episodes, one row per value, for the same reason.
CREATE TABLE addition_field (namespace INTEGER NOT NULL, name TEXT NOT NULL, value NOT NULL, addition INTEGER NOT NULL,
  PRIMARY KEY (namespace, name, value, addition)) WITHOUT ROWID;
CREATE INDEX addition_field_addition ON addition_field(addition);
CREATE TABLE episode_field (namespace INTEGER NOT NULL, name TEXT NOT NULL, value NOT NULL, episode INTEGER NOT NULL,
  PRIMARY KEY (namespace, name, value, episode)) WITHOUT ROWID;
CREATE INDEX episode_field_episode ON episode_field(episode);

-- The step that a failed run is blamed for, if its outcome stands. All of a namespace with the same warning are one mistake.
-- Rows go with what they refer to even if a process of an older version deletes it.
CREATE TABLE failure (
  key INTEGER PRIMARY KEY REFERENCES outcome(key) ON DELETE CASCADE,  -- the key of its outcome
  namespace INTEGER NOT NULL,
  warning TEXT NOT NULL,              -- a digest, equal for steps that are the same mistake
  why TEXT NOT NULL,                  -- failed, refused, left
  tool TEXT,                          -- NULL if the action is free text
  action TEXT NOT NULL,
  happened TEXT NOT NULL,             -- what was observed after it
  words TEXT NOT NULL,                -- JSON: what an action must have to count as the same mistake
  instead TEXT NOT NULL,              -- what worked, or nothing
  cases_key INTEGER,                  -- the case that says so
  trust INTEGER NOT NULL,             -- the level of its source or of the least trusted case that was shown
  vector BLOB NOT NULL                -- of the query of its episode, whose own vector goes when it is compacted
);
CREATE INDEX failure_namespace ON failure(namespace, key);
CREATE INDEX failure_warning ON failure(namespace, warning);
CREATE INDEX failure_case ON failure(cases_key) WHERE cases_key IS NOT NULL;

-- Whether chance let an agent be warned, once for each episode and warning, and what came of it.
CREATE TABLE checked (
  key INTEGER PRIMARY KEY AUTOINCREMENT,
  episode INTEGER NOT NULL REFERENCES episode(key) ON DELETE CASCADE,
  namespace INTEGER NOT NULL,
  warning TEXT NOT NULL,
  warned INTEGER NOT NULL,            -- 0 if it kept silent
  propensity REAL NOT NULL,           -- the probability with which it warned
  at REAL NOT NULL,
  call TEXT,                          -- the id of the tool call
  repeated INTEGER,                   -- 1 if the mistake came again in this episode, NULL until that is known
  reward REAL,                        -- of the outcome that stands, if it teaches (else NULL)
  UNIQUE (episode, warning)
);
CREATE INDEX checked_warning ON checked(namespace, warning);

-- What was decided about warnings: the last row about a matter counts, and goes if its action is taken back.
CREATE TABLE warning_decision (
  key INTEGER PRIMARY KEY AUTOINCREMENT,
  namespace INTEGER NOT NULL,
  warning TEXT NOT NULL,
  action TEXT NOT NULL UNIQUE,        -- the id of the entry in the audit log
  retired INTEGER,                    -- 1 if it is never shown, 0 if it is shown whatever its record says, NULL: about advice
  advice TEXT,                        -- what is shown instead of what worked, or NULL for nothing
  by_model INTEGER NOT NULL DEFAULT 0  -- 1 if a model wrote the advice, which goes with any failure of the warning
);
CREATE INDEX warning_decision_warning ON warning_decision(namespace, warning);

-- What people did to the memory. No row holds the text of a case, and none is changed but for its note.
CREATE TABLE action (
  key INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  at REAL NOT NULL,
  namespace INTEGER NOT NULL,         -- 0: of all namespaces
  kind TEXT NOT NULL,                 -- one of domain.actions.KINDS
  actor TEXT,                         -- who did it, as the caller said, or NULL
  subject TEXT,                       -- the id of the case or the episode, or NULL if there is more than one
  counts TEXT NOT NULL,               -- JSON: what was changed, as numbers by name
  note TEXT,                          -- in the actor's words, or NULL (deleted when the subject is forgotten)
  undoes INTEGER,                     -- the key of the action that this one took back
  outcome INTEGER,                    -- the key of the outcome that it recorded
  replaced INTEGER,                   -- the key of the outcome that this one replaced, or NULL if the episode was open
  made TEXT,                          -- the id of the case that it stored or showed again
  hid TEXT,                           -- the id of the case that it took from view
  digest TEXT                         -- of the entry before and this one, without its note (NULL: an older version wrote it)
);
CREATE UNIQUE INDEX action_undoes ON action(undoes) WHERE undoes IS NOT NULL;
CREATE INDEX action_namespace ON action(namespace, key);
CREATE INDEX action_subject ON action(subject) WHERE subject IS NOT NULL;

-- The log of changes. Each process remembers the last line that it read, and reads the lines after it.
CREATE TABLE change (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  namespace INTEGER NOT NULL,
  kind TEXT NOT NULL,
  ref INTEGER NOT NULL,
  id TEXT                             -- the id of a deleted case, else NULL
);

CREATE TABLE event (
  key INTEGER PRIMARY KEY AUTOINCREMENT,
  at REAL NOT NULL,
  namespace INTEGER,
  kind TEXT NOT NULL,
  payload TEXT NOT NULL
);
"""
