"""The doctor: checks a memory for damage and inconsistencies, and repairs what can be repaired."""

from __future__ import annotations

import contextlib
import random
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cascade_memory.domain.display import counted
from cascade_memory.engine.embedding import NothingToEmbedWith, sample, strangers
from cascade_memory.engine.engine import Engine
from cascade_memory.engine.mirror_projection import CHANGED
from cascade_memory.engine.namespace_state import usable_cases
from cascade_memory.errors import CascadeError

if TYPE_CHECKING:
    from cascade_memory.ledger.core import Ledger

_FREE = 512 * 2**20
_SHOWN = 3  # unusable rows that the message names
_LISTED = 100  # namespaces: with more, those in order share one line
_COUNTED = 500  # namespaces whose copies in Chroma are counted, which takes some 20 ms each
_WEEK = 7 * 24 * 3600.0
_TOLERANCE = 120.0  # seconds by which the clocks of two machines may differ


@dataclass(frozen=True, slots=True)
class Check:
    """One finding. ``fix`` repairs it; it is None if a repair is impossible or would lose valuable data."""

    name: str
    ok: bool
    detail: str
    fix: Callable[[], object] | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        return {"name": self.name, "ok": self.ok, "detail": self.detail}


def examine(engine: Engine) -> list[Check]:
    """Compare ledger, index and Chroma, and check for the usual problems."""
    return list(_checks(engine))


def mend(engine: Engine) -> list[Check]:
    """Repair what can be repaired, and check again; return the new findings, with the repaired ones marked as mended."""
    wrong = {}
    for check in _checks(engine):
        if not check.ok and check.fix is not None:
            done = check.fix()
            wrong[check.name] = f"{check.detail}: {done}" if isinstance(done, str) and done else check.detail
    return [
        Check(now.name, ok=True, detail=f"mended: {wrong[now.name]}") if now.ok and now.name in wrong else now
        for now in _checks(engine)
    ]


def _checks(engine: Engine) -> Iterator[Check]:
    yield _ledger(engine)
    why = engine.parts.ledger.read_only
    yield Check("writable", why is None, "yes" if why is None else why)
    yield _rows(engine)
    yield _orphans(engine)
    yield _clock(engine)
    yield _audit_log(engine)
    yield from _indexes(engine)
    yield _vectors(engine)
    yield _encoders(engine)
    yield _chroma(engine)
    yield _waiting(engine)
    if engine.parts.ledger.path is not None:
        free = shutil.disk_usage(engine.parts.ledger.path.parent).free
        yield Check("free disk", free > _FREE, f"{free / 2**30:,.1f} GiB")


def _ledger(engine: Engine) -> Check:
    maintenance = engine.parts.ledger.maintenance
    verdict = maintenance.integrity()
    detail = "readable and consistent" if verdict == "ok" else f"{verdict}: restore it from a backup, or export what is left"
    return Check("ledger", verdict == "ok", detail, maintenance.rebuild_indexes)


def _rows(engine: Engine) -> Check:
    ledger = engine.parts.ledger
    found = ledger.maintenance.faults(_SHOWN + 1)
    more = " and more" if len(found) > _SHOWN else ""

    def fix() -> str:
        done = ledger.maintenance.mend(engine.embed)
        engine.learn_soon()
        engine.rebuild()
        engine.learn_now()
        if engine.feeder is not None and engine.feeder.owner and "cases mended" in done:
            engine.feeder.rebuild()  # Chroma may hold the rows as they were before
        return done

    return Check("rows that cannot be used", not found, "; ".join(found[:_SHOWN]) + more if found else "none", fix)


def _orphans(engine: Engine) -> Check:
    ledger = engine.parts.ledger
    found = ledger.maintenance.orphans()
    detail = ", ".join(f"{count:,} in {table}" for table, count in found.items()) or "none"

    def fix() -> None:
        ledger.maintenance.remove_orphans()
        engine.learn_soon()  # so that the index drops cases that were among these rows

    return Check("rows that belong to nothing", not found, detail, fix)


def _clock(engine: Engine) -> Check:
    ledger, now = engine.parts.ledger, time.time()
    ahead = ledger.maintenance.ahead_of(now + _TOLERANCE)
    detail = f"{counted(ahead, 'time')} in the future: the clock was set back" if ahead else "no time is in the future"
    return Check("clock", not ahead, detail, lambda: ledger.maintenance.bring_back(now))


def _audit_log(engine: Engine) -> Check:
    """Check the audit log's hash chain. This check comes after those of rows and times, whose repair may change an entry."""
    ok, detail = engine.parts.ledger.maintenance.audit_log()
    return Check("audit log", ok, detail, engine.parts.ledger.maintenance.seal_audit_log)


def _indexes(engine: Engine) -> Iterator[Check]:
    """Compare each namespace with its index, or with what its index will hold when the namespace is loaded."""
    ledger, dimension = engine.parts.ledger, engine.parts.embedder.dimension
    with contextlib.suppress(CascadeError):  # what others wrote a moment ago is no damage
        engine.follow()
    namespaces = ledger.namespaces()
    in_order = 0
    for name, namespace_id in namespaces.items():
        state = engine.loaded_state(name)
        usable = usable_cases(ledger, namespace_id, dimension) if state is None else ()
        indexed = sum(len(rows) for rows in usable) if state is None else state.index.count
        stored = ledger.cases.count(namespace_id, hidden=False)
        if stored != indexed or len(namespaces) <= _LISTED:
            yield Check(f"index of {name!r}", stored == indexed, f"{counted(stored, 'case')} stored, {indexed:,} indexed")
        else:
            in_order += 1
    if in_order:
        yield Check("indexes of the other namespaces", ok=True, detail=f"{in_order:,} namespaces: all stored cases indexed")


def _vectors(engine: Engine) -> Check:
    """Look for vectors that another embedder made: compare all lengths, and embed some texts again."""
    ledger, embedder = engine.parts.ledger, engine.parts.embedder
    odd = ledger.maintenance.odd_vectors(embedder.dimension)
    todo = f"embed everything again: cascade-memory data reindex {engine.parts.place} --embedder ..."
    if odd:
        return Check("vectors", ok=False, detail=f"{odd:,} are not from {embedder.identity!r} (their length differs): {todo}")
    some = sample(ledger)
    try:
        strange = strangers(embedder, some)
    except NothingToEmbedWith:
        return Check("vectors", ok=True, detail="all of the same length; memory.data.examine() in Python embeds some again")
    except Exception as error:  # noqa: BLE001 - the model is missing or fails: then nothing can be recalled either
        return Check("vectors", ok=False, detail=f"all of the same length, but the embedder fails: {error}")
    detail = f"{strange} of {len(some)} checked cases have a vector that {embedder.identity!r} did not make: {todo}"
    return Check(
        "vectors", not strange, detail if strange else f"{counted(len(some), 'case')} embedded again: the same vectors"
    )


def _encoders(engine: Engine) -> Check:
    trained = engine.parts.ranker.training is not None  # only a trained encoder keeps what was forgotten: others need no look
    names = engine.parts.ledger.namespaces() if trained else ()
    stale = [one for name in names for one in engine.namespace_state(name).stale()]
    unfit = engine.parts.snapshots.unusable()
    detail = "; ".join([*stale, *([f"{unfit} unreadable or unfinished snapshots"] if unfit else [])])

    fix = None if stale else engine.parts.snapshots.remove_unusable
    return Check("what was learned", not (stale or unfit), detail or "up to date", fix)


def _chroma(engine: Engine) -> Check:
    feeder = engine.feeder
    if feeder is None:
        return Check("chroma", ok=True, detail="none: this memory lives in RAM")
    if not feeder.owner:
        return Check("chroma", ok=True, detail="owned by another process")
    try:
        if not feeder.is_sealed():
            return Check("chroma", ok=False, detail=f"{CHANGED}: run cascade-memory data rebuild", fix=feeder.rebuild)
        feeder.flush()
        stored = _counted(engine.parts.ledger)
        looked_at = list(stored) if len(stored) <= _COUNTED else random.sample(list(stored), _COUNTED)
        wrong = [
            f"{name!r} has {held:,} of {stored[name]:,}" for name in looked_at if (held := feeder.count(name)) != stored[name]
        ]
    except Exception as error:  # noqa: BLE001 - a damaged Chroma may fail in any way, and can be built again
        return Check("chroma", ok=False, detail=f"{error}: run cascade-memory data rebuild", fix=feeder.rebuild)
    every = "holds every case" + (f" of {len(looked_at):,} namespaces drawn at random" if len(looked_at) < len(stored) else "")
    detail = "; ".join(wrong) + ": run cascade-memory data rebuild" if wrong else every
    return Check("chroma", not wrong, detail, feeder.rebuild)


def _counted(ledger: Ledger) -> dict[str, int]:
    """Return the number of cases of each namespace that has any."""
    return {name: count for name, number in ledger.namespaces().items() if (count := ledger.cases.count(number))}


def _waiting(engine: Engine) -> Check:
    ledger = engine.parts.ledger
    open_, old = ledger.maintenance.open_before(time.time()), ledger.maintenance.open_before(time.time() - _WEEK)
    detail = f"{open_:,} open, {old:,} of them for more than a week" + (": expire() closes those" if old else "")
    return Check("pending episodes", ok=True, detail=detail)
