"""The table of scores. It holds no label, no comment and no correction: a correction becomes a case, and has a digest here."""

from __future__ import annotations

from cascade_memory.domain.trust import REVISED
from cascade_memory.ledger import INTEGER, REAL, TEXT, Column, Index, Table, between, one_of, rules, whole

NAME_CHARS, PLATFORM_CHARS, TRACE_CHARS = 256, 64, 64
LATEST = 1e11  # seconds since 1970: what is later was given in milliseconds

SCORE = Table(
    "score",
    (
        Column("key", INTEGER, whole(1), key=True, counts=True),
        Column("episode", INTEGER, whole(1), of=("episode",), refers="episode(key)"),
        Column("namespace", INTEGER, rules.NAMESPACE, of=("namespace",)),
        Column("platform", TEXT, rules.text(PLATFORM_CHARS)),
        Column("feedback", TEXT, rules.ID, about="the id that the platform gave it"),
        Column("trace_id", TEXT, rules.text(TRACE_CHARS), optional=True, about="as the platform writes it"),
        Column("span_id", TEXT, rules.text(TRACE_CHARS), optional=True),
        Column("name", TEXT, rules.text(NAME_CHARS), about="what was scored"),
        Column("value", REAL, between(0.0, 1.0), optional=True, about="NULL if it means no number from 0 to 1"),
        Column("judge", TEXT, one_of("human", "judge", "code", "agent"), about="what gave it"),
        Column("correction", TEXT, rules.hex_of, optional=True, about="a digest of the right answer"),
        Column("deleted", INTEGER, whole(0, 1), about="1 if it was withdrawn on its platform"),
        Column("actor", TEXT, rules.ACTOR, optional=True, about="who gave it (the platform says it)"),
        Column("channel", TEXT, one_of(*REVISED), about="that of its outcome, with which it is forgotten"),
        Column("at", REAL, between(0.0, LATEST), dated=True, about="when it was given or last changed"),
    ),
    unique=("episode, platform, feedback",),
    indexes=(Index("feedback", "namespace, platform, feedback"), Index("newest", "namespace, platform, at")),
    about="scores from other platforms that an episode got",
    nested="scores",
)
TABLES = (SCORE,)
