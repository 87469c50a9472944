"""What a memory says of itself: its counts, its failures, and its worth."""

from __future__ import annotations

import shutil
from typing import get_args

from cascade_memory.domain.cost import Costs
from cascade_memory.domain.records import Unkept
from cascade_memory.domain.waiting import patience
from cascade_memory.engine.engine import Engine
from cascade_memory.errors import CascadeError
from cascade_memory.insight.measuring import report_of
from cascade_memory.insight.report import Report, learned_by
from cascade_memory.insight.stats import Health, Stats
from cascade_memory.ports.policy import Policy

_REACHABLE = 2.0  # seconds to try to reach a database


def stats_of(engine: Engine, name: str, *, everywhere: bool, own: bool) -> Stats:
    """Count what a namespace holds, or all do; ``own``: the namespace is the memory's own, which need not exist yet."""
    ledger = engine.parts.ledger
    number = None if everywhere else engine.namespace_id(name)
    counts = ledger.insight.counts(number)
    missing = not everywhere and not own and not number
    policy = _policy(engine, name)
    unkept = {why: int(counts.pop(f"unkept_{why}")) for why in get_args(Unkept)}
    mean = counts.pop("mean_reward")
    whole = {key: int(value) for key, value in counts.items()}
    return Stats(
        namespace=None if everywhere else name,
        mean_reward=mean if whole["rewards"] > whole["reported"] else None,
        unkept=unkept,
        exists=not missing,
        namespaces=tuple(ledger.namespaces()) if missing else (),
        more={name: count for part in engine.capable for name, count in part.counted(number).items()},
        policy=policy.name,
        policy_version=policy.version,
        embedder=engine.parts.embedder.identity,
        **whole,
    )


def health_of(engine: Engine) -> Health:
    """Report the failures of this process, and how far Chroma is behind."""
    feeder, path = engine.feeder, engine.parts.ledger.path
    failures = dict(engine.failures)
    if feeder is not None and feeder.failures:
        failures["chroma"] = feeder.failures
    gone, read_only = _gone(engine), engine.parts.ledger.read_only
    shared = engine.parts.shared if gone is None else None
    if gone is not None:
        failures["ledger"] = 1
    return Health(
        ok=not failures and read_only is None,
        failures=failures,
        last_error=gone or engine.last_error or (feeder.last_error if feeder is not None else None),
        chroma=("none (in RAM)" if engine.parts.shared is None else "none") if feeder is None else feeder.state,
        chroma_lag=0 if feeder is None or gone is not None else feeder.lag,
        learning=engine.learning,
        free_disk_bytes=None if path is None or not path.parent.exists() else shutil.disk_usage(path.parent).free,
        read_only=read_only,
        database=engine.parts.place if path is None and engine.parts.shared is not None else None,
        log_lag=0 if shared is None else engine.behind(),
        leases={} if shared is None else shared(),
        alarms=(*engine.alarms.current(), *_alarms(engine)),
        unblamed={reason: count for part in engine.capable for reason, count in part.left_out().items()},
    )


def report_on(engine: Engine, name: str, *, everywhere: bool) -> Report:
    """Measure the worth of the cases of a namespace, or of all namespaces."""
    insight = engine.parts.ledger.insight
    if everywhere:
        costs = Costs.of(list(engine.totals.values()))
        judged, arms = list(insight.judged(None)), insight.arms(None)
        return report_of(judged, arms, None, None, costs, _alarms(engine), more=_more(engine, None))
    namespace_id = engine.namespace_id(name)
    learned = learned_by(_policy(engine, name), engine.parts.ranker.features)
    costs = Costs.of([engine.totals[name]] if name in engine.totals else [])
    judged, arms = list(insight.judged(namespace_id)), insight.arms(namespace_id)
    alarms, more = _alarms(engine, name), _more(engine, namespace_id)
    return report_of(judged, arms, name, learned, costs, alarms, more=more)


def _alarms(engine: Engine, namespace: str | None = None) -> tuple[str, ...]:
    return tuple(alarm for part in engine.capable for alarm in part.alarms(namespace))


def _more(engine: Engine, namespace: int | None) -> tuple[tuple[str, str], ...]:
    return tuple(row for part in engine.capable for row in part.reported(namespace))


def _policy(engine: Engine, name: str) -> Policy:
    return engine.namespace_state(name).policy if engine.namespace_id(name) else engine.parts.ranker.policy()


def _gone(engine: Engine) -> str | None:
    """Describe the problem if the ledger was deleted or replaced, or cannot be reached; otherwise return None."""
    try:
        engine.parts.ledger.check()
        if engine.parts.shared is not None:
            with patience(_REACHABLE):
                engine.parts.ledger.head()
    except CascadeError as error:
        return f"ledger: {type(error).__name__}: {error}"
    return None
