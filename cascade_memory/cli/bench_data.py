"""Where the data of the benchmark lies."""

from __future__ import annotations

import os
from pathlib import Path

from cascade_memory.errors import InvalidInput


def folder_of_data(given: Path | None) -> Path:
    """Return the folder of the data that was named, or that the environment names."""
    folder = given or (Path(found) if (found := os.environ.get("CASCADE_DATA")) else None)
    if folder is None:
        raise InvalidInput("name the folder of the data: --data DIR, or the environment variable CASCADE_DATA")
    return folder
