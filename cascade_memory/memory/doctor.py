"""Is everything where it should be?"""

from __future__ import annotations

import shutil
import time
from dataclasses import asdict, dataclass
from typing import Any

from cascade_memory.memory.engine import Engine

_FREE = 512 * 2**20
_STALE = 7 * 24 * 3600.0


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at."""

    name: str
    ok: bool
    detail: str

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        return asdict(self)


def examine(engine: Engine) -> list[Check]:
    """Compare ledger, index and Chroma, and look at what usually goes wrong."""
    ledger = engine.parts.ledger
    checks = [_ledger(engine)]
    for name, number in ledger.namespaces().items():
        stored, indexed = int(ledger.counts(number)["cases"]), engine.partition(name).index.count
        checks.append(Check(f"index of {name!r}", stored == indexed, f"{stored:,} cases stored, {indexed:,} indexed"))
    checks += [_chroma(engine), _waiting(engine)]
    if ledger.path is not None:
        free = shutil.disk_usage(ledger.path.parent).free
        checks.append(Check("free disk", free > _FREE, f"{free / 2**30:,.1f} GiB"))
    return checks


def _ledger(engine: Engine) -> Check:
    verdict = engine.parts.ledger.integrity()
    return Check("ledger", verdict == "ok", "readable and consistent" if verdict == "ok" else verdict)


def _chroma(engine: Engine) -> Check:
    feeder, mirror = engine.feeder, engine.parts.mirror
    if feeder is None or mirror is None:
        return Check("chroma", ok=True, detail="none: this memory lives in RAM")
    if not feeder.owner:
        return Check("chroma", ok=True, detail="owned by another process")
    feeder.flush()
    ledger = engine.parts.ledger
    wrong = [
        f"{name!r} has {held:,} of {stored:,}"
        for name, number in ledger.namespaces().items()
        if (stored := int(ledger.counts(number)["cases"])) and (held := mirror.count(name)) != stored
    ]
    fine = "holds every case"
    return Check("chroma", not wrong, fine if not wrong else "; ".join(wrong) + ": run cascade-memory rebuild")


def _waiting(engine: Engine) -> Check:
    old = engine.parts.ledger.episodes(None, status="open", before=time.time() - _STALE)
    detail = f"{len(old):,} open for more than a week" + (": expire() closes them" if old else "")
    return Check("pending episodes", ok=True, detail=detail)
