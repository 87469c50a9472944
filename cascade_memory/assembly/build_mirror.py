"""``python -m cascade_memory.assembly.build_mirror LEDGER TARGET``: feed a new Chroma folder, print the last case key."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path

import numpy as np

from cascade_memory.ledger.sqlite import SQLiteLedger
from cascade_memory.stores.chroma import ChromaFolder

_BATCH = 2_000


def build(ledger_path: Path, target: Path) -> int:
    """Feed every case there is and return the greatest key."""
    ledger, mirror = SQLiteLedger(ledger_path), ChromaFolder(target)
    key = 0
    while rows := ledger.cases_after(key, _BATCH):
        key = rows[-1][0].key
        for namespace in dict.fromkeys(case.namespace for case, _ in rows):
            some = [(case, vector) for case, vector in rows if case.namespace == namespace]
            mirror.upsert(namespace, [case for case, _ in some], np.stack([vector for _, vector in some]))
    mirror.open()
    mirror.close()
    ledger.close()
    return key


def _die_with_parent() -> None:
    sys.stdin.read()  # returns when the parent's end of the pipe closes
    os._exit(1)


if __name__ == "__main__":
    threading.Thread(target=_die_with_parent, daemon=True).start()
    os.nice(5)  # the agent comes first
    sys.stdout.write(str(build(Path(sys.argv[1]), Path(sys.argv[2]))))
