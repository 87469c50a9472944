"""The child process that fills a new Chroma folder from a ledger. It prints the last case key and the folder's seal.

The seal is a digest of the folder; it shows later whether somebody has changed the folder.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from pathlib import Path

from cascade_memory.engine.mirror_projection import put
from cascade_memory.ledger.sqlite import SQLiteLedger
from cascade_memory.stores.chroma import ChromaFolder

_BATCH = 2_000


def build(ledger_path: Path, target: Path) -> tuple[int, str]:
    """Copy all cases into a new Chroma folder; return the greatest case key and the seal (a digest) of the folder."""
    target.mkdir(mode=0o700)  # fails if the folder exists, since another process made it then
    ledger, mirror = SQLiteLedger(ledger_path), ChromaFolder(target)
    key = 0
    while rows := ledger.cases.after(key, _BATCH):
        key = rows[-1][0].key
        put(mirror, rows)
    mirror.open()
    mirror.close()
    ledger.close()
    return key, mirror.seal()


def _die_with(parent: int) -> None:
    """End this process when the parent has ended, even if another child of the parent keeps the pipe open."""
    while os.getppid() == parent:
        time.sleep(0.2)
    os._exit(1)


def _die_with_pipe() -> None:
    sys.stdin.read()  # returns when the parent's end of the pipe closes
    os._exit(1)


def main() -> None:
    """Build the folder from the paths in ``sys.argv``, and print its key and seal; stop if the parent process ends."""
    threading.Thread(target=_die_with_pipe, daemon=True).start()
    threading.Thread(target=_die_with, args=(os.getppid(),), daemon=True).start()
    key, seal = build(Path(sys.argv[1]), Path(sys.argv[2]))
    sys.stdout.write(f"{key} {seal}")
