"""Cases as a table of pandas."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from cascade_memory.domain.case import Case
from cascade_memory.domain.trajectory import solution_text
from cascade_memory.domain.trust import named
from cascade_memory.errors import MissingExtra


def frame_of(cases: Iterable[Case]) -> Any:
    """Return a ``DataFrame`` with a row for each case; without cases it still has all columns, each with its type."""
    try:
        import pandas as pd  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise MissingExtra("to_pandas() needs pandas: pip install pandas") from error
    found = list(cases)
    created: Any = pd.to_datetime(pd.Series([case.created_at for case in found], dtype="float64"), unit="s", utc=True)
    columns: dict[str, Any] = {
        "id": pd.Series([case.id for case in found], dtype="object"),
        "query": pd.Series([case.query for case in found], dtype="object"),
        "solution": pd.Series([solution_text(case.solution) for case in found], dtype="object"),
        "source": pd.Series([case.source for case in found], dtype="object"),
        "actor": pd.Series([case.actor for case in found], dtype="object"),
        "channel": pd.Series([case.channel for case in found], dtype="object"),
        "trust": pd.Series([named(case.trust) for case in found], dtype="object"),
        "episode_id": pd.Series([case.episode_id for case in found], dtype="object"),
        "created_at": created.astype("datetime64[ns, UTC]"),
        "copies": pd.Series([case.copies for case in found], dtype="int64"),
        "shown": pd.Series([case.shown for case in found], dtype="int64"),
        "succeeded": pd.Series([case.succeeded for case in found], dtype="float64"),
        "metadata": pd.Series([dict(case.metadata) for case in found], dtype="object"),
    }
    return pd.DataFrame(columns)
