"""Finds the folder with the data of the benchmark."""

from __future__ import annotations

import os
from pathlib import Path

from cascade_memory.errors import InvalidInput


def folder_of_data(given: Path | None) -> Path:
    """Return the folder given on the command line, or otherwise by the environment variable."""
    folder = given or (Path(found) if (found := os.environ.get("CASCADE_DATA")) else None)
    if folder is None:
        raise InvalidInput("name the folder with the data: --data DIR, or the environment variable CASCADE_DATA")
    return folder
