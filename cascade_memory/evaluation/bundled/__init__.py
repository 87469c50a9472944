"""The real stream that comes with the package, so that the benchmark can be tried without any download.

Its source and its licence (CC BY 4.0) are in the README beside it.
"""

from __future__ import annotations

from pathlib import Path

from cascade_memory.errors import InvalidInput
from cascade_memory.evaluation.tasks.task import Item

DIFFERS = {"banking77": "a sample of 2,000 messages, which comes with the package"}


def bundled_data() -> Path:
    """Return the folder with the streams that come with the package; it can be given to ``--data``.

    >>> (bundled_data() / "banking77.jsonl").is_file()
    True
    """
    return Path(__file__).parent


def bundled_tasks(limit: int | None = None) -> list[Item]:
    """Return real tasks: messages of customers of a bank (``query``), each with the right one of 77 intents (``solution``).

    Args:
        limit: How many tasks to return, from the first on; by default all 2,000. Their order is random, and always the same.

    >>> first, second = bundled_tasks(limit=2)
    >>> first.query, first.solution
    ('I was just needing to know why my card got declined', 'declined card payment')
    """
    from cascade_memory.evaluation.tasks.catalogue import task_named

    if limit is not None and limit < 1:
        raise InvalidInput("limit must be 1 or more")
    return task_named("banking77").items(bundled_data())[:limit]
