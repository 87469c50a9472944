"""Puts together the engine of a memory: of one at a place (a folder or a database), or of one in RAM."""

from __future__ import annotations

from dataclasses import replace

from cascade_memory.assembly.embedders import resolve_embedder
from cascade_memory.assembly.mirror import MirrorBulk
from cascade_memory.assembly.place import Place
from cascade_memory.assembly.ranker_choice import resolve_ranker, resolve_shadow
from cascade_memory.assembly.settings import Matcher, Settings
from cascade_memory.bandit.similarity import SimilarityPolicy
from cascade_memory.domain.display import quoted
from cascade_memory.domain.trust import Vigilance
from cascade_memory.encoders.hashing import HashingEmbedder
from cascade_memory.encoders.matchers import ExactMatcher, FunctionMatcher
from cascade_memory.engine.door import Door
from cascade_memory.engine.embedding import stored_embedder
from cascade_memory.engine.engine import Engine
from cascade_memory.engine.parts import Parts
from cascade_memory.errors import InvalidInput
from cascade_memory.learning.ranker import Ranker
from cascade_memory.ledger.core import Ledger
from cascade_memory.ledger.sqlite import SQLiteLedger
from cascade_memory.ports.encoders import SolutionMatcher
from cascade_memory.snapshots import SnapshotStore
from cascade_memory.stores.index import TieredIndex

_OURS = ("auto", "light", "similarity", "random")  # rankers that are no model


def in_ram(settings: Settings) -> Engine:
    """Make an engine whose memory is gone when the process ends."""
    return _engine(_parts(SQLiteLedger(None), settings), settings)


def assemble(place: Place, settings: Settings, made: list[Engine]) -> None:
    """Open a place (see ``assembly.place``) and put its engine into ``made``.

    The ledger is opened first, because it says which embedder the place was written with. The engine is put into ``made``
    before its threads begin, so that a caller who is interrupted can close it.
    """
    if place.is_new:  # what cannot be had is refused before anything is made
        resolve_embedder(settings.embedder, None)
        _ranker(settings)
    ledger, parts = place.ledger(), None
    try:
        parts = place.complete(replace(_parts(ledger, settings), place=str(place)), settings)
        if (mirror := parts.mirror) is None:
            made.append(_engine(parts, settings))
            return

        def covered() -> int:
            return 0 if not made or made[0].feeder is None else made[0].feeder.covered

        def index(dimension: int, namespace: str) -> TieredIndex:
            return TieredIndex(dimension, MirrorBulk(namespace, mirror, ledger, covered))

        made.append(_engine(replace(parts, index=index), settings))
        if made[0].feeder is not None:
            made[0].feeder.start()
        place.opened(made[0])
    except BaseException:
        if made:
            made[0].close(feed=False)
        if parts is not None and parts.lock is not None:
            parts.lock.release()
        ledger.close()
        raise


def _engine(parts: Parts, settings: Settings) -> Engine:
    return Engine(parts, learn=settings.learn, candidates=settings.candidates, limits=settings.limits)


def _parts(ledger: Ledger, settings: Settings) -> Parts:
    """Make the parts that do not depend on the place."""
    embedder = resolve_embedder(settings.embedder, stored_embedder(ledger))
    hindsight = settings.matcher is not None
    return Parts(
        ledger=ledger,
        embedder=embedder,
        ranker=_ranker(settings),
        shadow=resolve_shadow(settings.shadow, hindsight=hindsight, credit=settings.credit),
        fallback=SimilarityPolicy(),
        matcher=_matcher(settings.matcher),
        hindsight=hindsight,
        vigilance=Vigilance() if settings.vigilance is None else settings.vigilance,
        warnings=settings.warnings,
        embeds_at_once=type(embedder) is HashingEmbedder,
        ranks_at_once=_ranks_at_once(settings),
        door=Door(settings.redact),
        index=lambda dimension, _: TieredIndex(dimension),
        snapshots=SnapshotStore(None),
    )


def _ranker(settings: Settings) -> Ranker:
    return resolve_ranker(
        settings.ranker,
        hindsight=settings.matcher is not None,
        shared=settings.policy_scope == "shared",
        credit=settings.credit,
        options=settings.ranker_options,
    )


def _ranks_at_once(settings: Settings) -> bool:
    """Say whether the choice of cases can never hang: it calls no model, and no object that the user passed."""
    return all(one in _OURS for one in (settings.ranker, settings.shadow or "auto"))


def _matcher(matcher: Matcher | str) -> SolutionMatcher:
    if matcher is None or matcher == "exact":
        return ExactMatcher()  # with matcher=None there is no hindsight, but equal solutions must still be recognised
    if hasattr(matcher, "agreement") and hasattr(matcher, "key"):
        return matcher  # type: ignore[return-value]
    if callable(matcher):
        return FunctionMatcher(matcher)
    wanted = '"exact", None, a function of two solutions, or a SolutionMatcher'
    raise InvalidInput(f"matcher must be {wanted}, not {quoted(matcher)}")
