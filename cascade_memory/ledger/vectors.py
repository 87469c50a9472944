"""The stored vectors as a whole: those of another embedder in their place, and those that cannot be of this one."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from cascade_memory.ledger.belonging import EMBEDDER, begin_generation
from cascade_memory.ledger.packing import pack_floats

Embed = Callable[[Sequence[str]], Mapping[str, NDArray[np.float32]]]

# Table of the texts, table of their vectors.
_PLACES = (("cases", "case_vector"), ("episode", "episode_vector"), ("expired", "expired_vector"))


def texts(connection: sqlite3.Connection) -> list[str]:
    """Return the distinct queries of which there is a vector."""
    query = " UNION ".join(f"SELECT query FROM {table} JOIN {target} USING (key)" for table, target in _PLACES)
    return [row[0] for row in connection.execute(query)]


def replace(connection: sqlite3.Connection, embed: Embed, embedder: str) -> int:
    """Give every query its new vector, note the embedder, and forget how far the mirror was fed; return the number of cases."""
    vectors = embed(texts(connection))
    for table, target in _PLACES:
        for key, query in connection.execute(f"SELECT key, query FROM {table} JOIN {target} USING (key)").fetchall():
            connection.execute(f"UPDATE {target} SET vector = ? WHERE key = ?", (pack_floats(vectors[query]), key))
    connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (EMBEDDER, embedder))
    connection.execute("DELETE FROM meta WHERE key LIKE 'mirror%'")
    begin_generation(connection)
    return int(connection.execute("SELECT count(*) FROM cases").fetchone()[0])


def odd(connection: sqlite3.Connection, dimension: int) -> int:
    """Return how many vectors have another length than those of the embedder."""
    return sum(
        int(connection.execute(f"SELECT count(*) FROM {target} WHERE length(vector) <> ?", (4 * dimension,)).fetchone()[0])
        for _, target in _PLACES
    )
