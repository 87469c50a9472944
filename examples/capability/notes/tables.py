"""The table of notes."""

from __future__ import annotations

from cascade_memory.ledger import INTEGER, REAL, TEXT, Column, Index, Table, between, rules, whole

LONGEST = 2_000  # characters of a note

NOTE = Table(
    "note",
    (
        Column("key", INTEGER, whole(1), key=True, counts=True),
        Column("id", TEXT, rules.ID, unique=True),
        Column("cases_key", INTEGER, whole(1), of=("cases", "expired")),
        Column("namespace", INTEGER, rules.NAMESPACE, of=("namespace",)),
        Column("text", TEXT, rules.text(LONGEST)),
        Column("actor", TEXT, rules.ACTOR, optional=True, about="who wrote it (the host says it)"),
        Column("at", REAL, between(0.0, 1e11), dated=True, about="seconds since 1970"),
    ),
    indexes=(Index("case", "cases_key"), Index("namespace", "namespace, at")),
    about="notes that people pinned to cases",
    nested="notes",
)
TABLES = (NOTE,)
