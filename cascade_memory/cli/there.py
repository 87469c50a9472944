"""Is there a memory?"""

from __future__ import annotations

from pathlib import Path

from cascade_memory.assembly.folder import LEDGER
from cascade_memory.errors import InvalidInput


def check_there(path: str) -> None:
    """Say so if a folder holds no memory: a mistyped path must not become a new one."""
    if not (Path(path).expanduser() / LEDGER).is_file():
        raise InvalidInput(f"there is no memory in {path!r}; CascadeMemory({path!r}) would make one")
