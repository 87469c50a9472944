"""The tables of the ledger, each declared once (see ``declaring``), and their version."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import get_args

from cascade_memory import capabilities
from cascade_memory.domain import trust
from cascade_memory.domain.actions import COUNTED, KINDS
from cascade_memory.domain.case import WHY
from cascade_memory.domain.episode import SOURCES, Arm, Status
from cascade_memory.domain.records import CHANGES, Unkept
from cascade_memory.domain.validation import MAX_SOLUTION_CHARS, check_id, check_moment, check_share
from cascade_memory.ledger import rules
from cascade_memory.ledger.declaring import (
    ANY,
    BLOB,
    INTEGER,
    REAL,
    TEXT,
    ActionKind,
    Column,
    Index,
    Table,
    between,
    one_of,
    whole,
)

SCHEMA_VERSION = 8
APPLICATION_ID = 0x43415343  # "CASC" in the file header: it distinguishes a ledger from any other SQLite file

# The tables of capabilities: a ledger that was made without one of them gets it when it is opened.
_DECLARED = capabilities.parts("tables")
ADDED: tuple[Table, ...] = tuple(table for part in _DECLARED for table in getattr(part, "TABLES", ()))
# The kinds of actions that they add to the audit log, by name.
ACTIONS: dict[str, ActionKind] = {kind.name: kind for part in _DECLARED for kind in getattr(part, "ACTIONS", ())}
# The rule by which one capability at most holds cases back: it takes the SQL of a namespace and of an author, and returns SQL.
HOLDS: Callable[[str, str], str] | None = next((part.holds for part in _DECLARED if hasattr(part, "holds")), None)
_KEY = Column("key", INTEGER, whole(1), key=True, counts=True)
_OF_NAMESPACE = Column("namespace", INTEGER, rules.NAMESPACE, of=("namespace",))
_IN_NAMESPACE = Column("namespace", INTEGER, rules.NAMESPACE, of=("namespace",), refers="namespace(id)")
_CHANNEL = Column(
    "channel", TEXT, check_id, optional=True, about="the door through which it came; a newer version may have more"
)
_SOURCE = Column("source", TEXT, one_of(*SOURCES))
_AT = Column("at", REAL, check_moment, dated=True)
_ID = Column("id", TEXT, check_id, unique=True)
_METADATA = Column("metadata", TEXT, rules.METADATA)
_BY_ACTOR = Index("actor", "namespace, actor", where="actor IS NOT NULL")


def _actor(about: str) -> Column:
    return Column("actor", TEXT, rules.ACTOR, optional=True, about=f"{about} (the host says it)")


def _key_of(owner: str) -> Column:
    """Return the key column of a table that has at most one row for each row of another table."""
    return Column("key", INTEGER, key=True, of=(owner,), refers=f"{owner}(key)")


def _vectors_of(owner: str, about: str = "") -> Table:
    return Table(f"{owner.removesuffix('s')}_vector", (_key_of(owner), rules.VECTOR), about=about)


def _fields_of(name: str, owner: str, column: str, index: str, about: str) -> Table:
    """Return a table of metadata, one row per value, so that a filter reads a range of an index."""
    belongs = Column(column, INTEGER, whole(), of=(owner,))
    columns = (_OF_NAMESPACE, Column("name", TEXT), Column("value", ANY), belongs)
    key = ("namespace", "name", "value", column)
    return Table(name, columns, key=key, indexes=(Index(index, column),), rule=rules.field, about=about)


def _runs_of(name: str, about: str) -> Table:
    columns = (
        Column("episode", INTEGER, key=True, of=("episode",), refers="episode(key)"),
        Column("status", TEXT, one_of("ok", "error", "interrupted")),
        *rules.SOLUTION,
        Column("at", REAL, check_moment),
    )
    return Table(name, columns, rule=rules.has_solution, about=about)


META = Table("meta", (Column("key", TEXT, key=True), Column("value", TEXT)), rule=rules.fact)
NAMESPACE = Table(
    "namespace", (Column("id", INTEGER, rules.NAMESPACE, key=True), Column("name", TEXT, rules.NAME, unique=True))
)
EPISODE = Table(
    "episode",
    (
        _KEY,
        _ID,
        _IN_NAMESPACE,
        Column("query", TEXT, rules.QUERY),
        Column("thread", TEXT, check_id, optional=True, about="the id of the conversation, or NULL"),
        Column("source", TEXT, one_of(*SOURCES), optional=True, about="who rewarded it"),
        Column("arm", TEXT, one_of(*get_args(Arm)), default="live", about="live, holdout"),
        Column("holdout", REAL, check_share, default=0, about="the probability with which it could have been held out"),
        Column("status", TEXT, one_of(*get_args(Status)), about="open, settled, censored, expired"),
        Column("opened_at", REAL, check_moment, dated=True),
        Column("closed_at", REAL, check_moment, optional=True, dated=True),
        Column("metadata", TEXT, rules.METADATA, optional=True, about="JSON, given with its recalls, or NULL"),
        Column(
            "reported", INTEGER, whole(), optional=True, stays=True, about="bytes of its agent's unconfirmed report, or NULL"
        ),
        _actor("who asked"),
        _CHANNEL,
    ),
    indexes=(
        _BY_ACTOR,
        Index("reported", "namespace, reported", where="reported IS NOT NULL"),
        Index("open", "namespace, opened_at", where="status = 'open'"),
        Index("namespace", "namespace, status"),
        Index("thread", "thread, key", where="thread IS NOT NULL"),
    ),
    counted="episodes",
)
# Texts and vectors have separate tables, so that the rows that every recall reads stay small and close together.
EPISODE_VECTOR = _vectors_of("episode", "deleted when the episode is compacted: deleted rows leave whole pages free")
ATTEMPT = _runs_of("attempt", "how a run ended; deleted when its episode is closed, or judged by anybody but its agent")
JUDGED_ATTEMPT = _runs_of("judged_attempt", "what a person has judged: it comes back if the verdict is taken back")
RECALL = Table(
    "recall",
    (
        _KEY,
        _ID,
        Column("episode", INTEGER, optional=True, of=("episode",), refers="episode(key)", about="NULL for a search"),
        _OF_NAMESPACE,
        Column("query", TEXT, rules.QUERY, optional=True, about="NULL if it is the query of the episode"),
        Column("kind", TEXT, one_of("recall", "search")),
        Column("k", INTEGER, whole()),
        Column("forgot", INTEGER, whole(0, 1), default=0, about="1 if a candidate was forgotten since"),
        _AT,
        Column("policy", TEXT, rules.name_of),
        Column("policy_version", INTEGER, whole()),
        Column("encoder", TEXT, rules.name_of),
        Column("shown", INTEGER, whole(0, 1)),
        Column("baseline", REAL, between(-rules.LARGEST, rules.LARGEST), optional=True),
        Column("candidates", BLOB, about="int64 case keys, the most similar first"),
        Column("groups", BLOB, about="int64 solution ids"),
        Column("chosen", BLOB, about="int64 positions among the candidates"),
        Column("numbers", BLOB, about="float32 (n, 6): one row per candidate, the columns of domain.records.Column"),
        Column("features", BLOB, about="float32 (n, d)"),
        Column("context", BLOB, about="float32, whatever the policy stores with its choice"),
        Column("agreement", BLOB, optional=True, about="float32 (n,): hindsight labels, once a solution was verified"),
        Column("shadow", TEXT, rules.name_of, optional=True, about="the name of the shadow policy, if there was one"),
        Column("shadow_numbers", BLOB, optional=True, about="float32 (n, 2 + d): rank (0: not chosen), propensity, features"),
        Column("shadow_context", BLOB, optional=True, about="float32, whatever the shadow stores with its choice"),
    ),
    indexes=(Index("episode", "episode"), Index("namespace", "namespace")),
    rule=rules.fits_together,
    purged="kind = 'search'",
    counted="recalls",
)
OUTCOME = Table(
    "outcome",
    (
        _KEY,
        Column("episode", INTEGER, of=("episode",), refers="episode(key)"),
        _OF_NAMESPACE,
        Column("value", REAL, between(0.0, 1.0)),
        _SOURCE,
        _AT,
        *rules.SOLUTION,
        Column("learns", INTEGER, whole(0, 1)),
        Column("cases_key", INTEGER, whole(), optional=True, stays=True, about="the case that it retained"),
        Column("withdrawn_at", REAL, check_moment, optional=True, about="set when another outcome replaced it"),
        Column("metadata", TEXT, rules.METADATA, optional=True, about="JSON, or NULL"),
        Column("agents_words", INTEGER, whole(0, 1), default=0, about="1 if the agent reported it and nobody has confirmed it"),
        Column("unkept", TEXT, one_of(*get_args(Unkept)), optional=True, about="why a reward above 0 stored no case"),
        _actor("who reported it"),
        _CHANNEL,
    ),
    indexes=(
        _BY_ACTOR,
        Index("counted", "namespace, actor, source, at", where="actor IS NOT NULL AND coalesce(unkept, '') <> 'capped'"),
        Index("episode", "episode"),
        Index("case", "cases_key", where="cases_key IS NOT NULL"),
        Index("learned", "namespace, key", where="learns = 1 AND withdrawn_at IS NULL"),
    ),
    rule=rules.has_solution,
    counted="outcomes",
)
SOLUTION = Table(
    "solution",
    (
        Column("id", INTEGER, whole(1), key=True, counts=True),
        _OF_NAMESPACE,
        Column("digest", TEXT, rules.hex_of),
    ),
    unique=("namespace, digest",),
)
CASES = Table(
    "cases",
    (
        _KEY,
        _ID,
        _IN_NAMESPACE,
        Column("query", TEXT, rules.QUERY),
        Column("head", TEXT, rules.text(MAX_SOLUTION_CHARS), about="the beginning of the solution, for comparing words"),
        Column("solution", INTEGER, whole(1), refers="solution(id)"),
        Column("pair", TEXT, rules.hex_of),
        _SOURCE,
        Column("episode", INTEGER, optional=True, stays=True),
        Column("created_at", REAL, check_moment, dated=True),
        Column("copies", INTEGER, whole(1), default=1),
        Column("shown", INTEGER, whole(), default=0),
        Column("succeeded", REAL, default=0),
        Column("novelty", REAL, rules.SHARE, default=1, about="how little its neighbours' solutions agreed with its own then"),
        Column(
            "verified_at", REAL, check_moment, default=0, dated=True, about="by the wall clock: decides whether it is shown"
        ),
        Column("verified_run", REAL, check_moment, default=0, stays=True, about="by running time: decides whether it expires"),
        Column("pinned", INTEGER, whole(0, 1), default=0, about="1 if a person wants it to stay"),
        Column("hidden", INTEGER, whole(0, 3), default=0, about="bits: a person hid it (1), a capability holds it back (2)"),
        _actor("who made it first"),
        _CHANNEL,
        Column(
            "trust", INTEGER, whole(0, trust.GREATEST), default=3, about="of its source, or of the least trusted case shown"
        ),
        Column("probation", INTEGER, default=0, stays=True, about="unused: always 0, and nothing reads it"),
    ),
    unique=("namespace, pair",),
    indexes=(
        Index("namespace", "namespace, key"),
        Index("verified", "namespace, verified_run"),
        _BY_ACTOR,
        Index("solution", "solution"),
        Index("episode", "episode", where="episode IS NOT NULL"),
    ),
    rule=rules.counts,
    needs=("case_text", "case_vector"),
    counted="cases",
)


def _check_record(row: rules.Row) -> None:
    """Reject the record of a case that is set aside, if no case could be made of it."""
    rest = rules.json_object(row["record"], "the record")
    names = [name for name in CASES.travelling if name not in ("pinned", "hidden")]
    kept = {
        **{name: CASES.column(name).before for name in names},
        **rest,
        **{name: row[name] for name in ("id", "query", "copies")},
    }
    CASES.check({**kept, "pair": row["pair"]}, names)
    check_moment(rest.get("verified_run", 0.0), "verified_run")
    rules.solution(rest.get("kind"), rest.get("text"), needed=True)
    rules.metadata_of(rest.get("metadata"))
    rules.hex_of(rest.get("digest"), "digest")


CASE_TEXT = Table(
    "case_text",
    (_key_of("cases"), Column("solution_kind", TEXT), Column("solution", TEXT), _METADATA),
    rule=rules.needs_solution,
)
CASE_VECTOR = _vectors_of("cases")
ADDITION = Table(
    "addition",
    (
        _KEY,
        _OF_NAMESPACE,
        Column("cases_key", INTEGER, whole(1), of=("cases", "expired")),
        _SOURCE,
        _AT,
        _METADATA,
        Column("solution", TEXT, rules.any_text, optional=True, about="only if it is worded differently from the case's"),
        _actor("who added it"),
        _CHANNEL,
    ),
    indexes=(Index("case", "cases_key"), _BY_ACTOR),
    about="who added a case by hand, first or again: these rows and the outcomes that ended in a case verify it",
)
FIELD = _fields_of("field", "cases", "cases_key", "case", "metadata of cases a second time, one row per value, for filters")
EXPIRED = Table(
    "expired",
    (
        Column("key", INTEGER, whole(1), key=True, about="the key that it had as a case"),
        _ID,
        _IN_NAMESPACE,
        Column("query", TEXT, rules.QUERY),
        Column("pair", TEXT, rules.hex_of),
        Column("copies", INTEGER, whole(1)),
        Column("expired_at", REAL, check_moment, dated=True, about="by the wall clock, shown to people"),
        Column("until_run", REAL, check_moment, about="the running time at which it is deleted for good"),
        Column("record", TEXT, about="everything else about the case as JSON"),
        Column("why", TEXT, one_of(*WHY), default="expired", about="expired, evicted"),
        Column("actor", TEXT, rules.ACTOR, optional=True, about="who made it first"),
    ),
    unique=("namespace, pair",),
    indexes=(Index("until", "namespace, until_run"), Index("evicted", "namespace, actor, until_run", where="why = 'evicted'")),
    rule=_check_record,
    needs=("expired_vector",),
    counted="cases",
    about="cases that were not verified for long, or had to make room: they are kept for some days, to be brought back",
)
EXPIRED_VECTOR = _vectors_of("expired")
EXPIRED_FIELD = _fields_of("expired_field", "expired", "expired", "case", "their metadata")
_FOUND = "one row per value: by it an episode can be found and forgotten, even if the case is gone"
OUTCOME_FIELD = _fields_of("outcome_field", "outcome", "outcome", "outcome", f"metadata of outcomes, {_FOUND}")
ADDITION_FIELD = _fields_of("addition_field", "addition", "addition", "addition", f"metadata of additions, {_FOUND}")
EPISODE_FIELD = _fields_of("episode_field", "episode", "episode", "episode", f"metadata of episodes, {_FOUND}")
ACTION = Table(
    "action",
    (
        Column("key", INTEGER, key=True, counts=True),
        _ID,
        _AT,
        Column("namespace", INTEGER, whole(0, rules.LAST_NAMESPACE), stays=True, about="0: of all namespaces"),
        Column("kind", TEXT, one_of(*KINDS, *ACTIONS), about="of domain.actions.KINDS or ACTIONS"),
        Column("actor", TEXT, rules.ACTOR, optional=True, about="who did it, as the caller said, or NULL"),
        Column("subject", TEXT, check_id, optional=True, about="the id of a case or episode, or an actor; NULL: several"),
        Column("counts", TEXT, rules.COUNTS, about="JSON: what was changed, as numbers by name"),
        Column("note", TEXT, rules.NOTE, optional=True, about="in the actor's words (deleted when the subject is forgotten)"),
        Column("undoes", INTEGER, whole(1), optional=True, stays=True, about="the key of the action that this one took back"),
        Column("outcome", INTEGER, whole(1), optional=True, stays=True, about="the key of the outcome that it recorded"),
        Column("replaced", INTEGER, whole(1), optional=True, stays=True, about="the key of the outcome that this one replaced"),
        Column("made", TEXT, check_id, optional=True, about="the id of the case that it stored or showed again"),
        Column("hid", TEXT, check_id, optional=True, about="the id of the case that it took from view"),
        Column(
            "digest", TEXT, rules.hex_of, optional=True, stays=True, about="of the entry before and this one, without notes"
        ),
    ),
    indexes=(
        Index("undoes", "undoes", where="undoes IS NOT NULL", unique=True),
        Index("namespace", "namespace, key"),
        Index("subject", "subject", where="subject IS NOT NULL"),
    ),
    about="what people did to the memory: no row holds the text of a case, and none is changed but for its note",
)
CHANGE = Table(
    "change",
    (
        Column("seq", INTEGER, whole(1), key=True, counts=True),
        Column("namespace", INTEGER, whole(0, rules.LAST_NAMESPACE)),
        Column("kind", TEXT, one_of(*CHANGES)),
        Column("ref", INTEGER, whole()),
        Column("id", TEXT, check_id, optional=True, about="the id of a deleted case, else NULL"),
    ),
    about="the log of changes: each process remembers the last line that it read, and reads the lines after it",
)
EVENT = Table(
    "event",
    (
        Column("key", INTEGER, key=True, counts=True),
        Column("at", REAL, check_moment),
        Column("namespace", INTEGER, optional=True),
        Column("kind", TEXT, rules.any_text),
        Column("payload", TEXT, rules.any_text),
    ),
)

# What an entry of the audit log may count.
ALL_COUNTED = (*COUNTED, *(table.counted for table in ADDED if table.counted))
# Each after those that it refers to: in this order rows are copied, and in the other one they are deleted.
TABLES: tuple[Table, ...] = (
    *(
        META,
        NAMESPACE,
        EPISODE,
        EPISODE_VECTOR,
        ATTEMPT,
        JUDGED_ATTEMPT,
        RECALL,
        OUTCOME,
        SOLUTION,
        CASES,
        CASE_TEXT,
        CASE_VECTOR,
    ),
    *(EXPIRED, EXPIRED_VECTOR, ADDITION, FIELD, EXPIRED_FIELD, OUTCOME_FIELD, ADDITION_FIELD, EPISODE_FIELD),
    *(ACTION, CHANGE, EVENT),
    *ADDED,
)
STATEMENTS = tuple(statement for table in TABLES for statement in table.statements)  # what creates them, in SQLite


def lacking(there: Collection[str]) -> list[Table]:
    """Return the tables of capabilities whose names are not in ``there``."""
    return [table for table in ADDED if table.name not in there]
