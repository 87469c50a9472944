"""Adding, proposing, forgetting and bringing back cases by hand."""

from __future__ import annotations

import itertools
import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

from cascade_memory.cycle.learn import WINDOW
from cascade_memory.cycle.retain import new_case
from cascade_memory.domain.actions import NewAction, only
from cascade_memory.domain.case import WHY, CaseText
from cascade_memory.domain.digests import digest
from cascade_memory.domain.display import quoted
from cascade_memory.domain.metadata import MetadataValue
from cascade_memory.domain.provenance import Wanted
from cascade_memory.domain.records import NewCase, RecallRecord, Settlement, Undone
from cascade_memory.domain.trajectory import Solution, solution_text
from cascade_memory.domain.trust import ByWhom
from cascade_memory.domain.validation import check_id
from cascade_memory.engine.door import Door, Incoming
from cascade_memory.engine.engine import Engine
from cascade_memory.engine.namespace_state import NamespaceState
from cascade_memory.engine.recording import proposal_record
from cascade_memory.errors import InvalidInput, NamespaceForgotten, UnknownCase, UnknownEpisode
from cascade_memory.memory.progress import progress_bar

if TYPE_CHECKING:
    from cascade_memory.insight.stats import Receipt

_T = TypeVar("_T")

_BATCH = 64
MOST_AT_ONCE = 1_000_000  # cases or ids in one call, which holds them all in RAM


def unpacked(case: object) -> tuple[Any, Any, Any]:
    """Split a case, in any accepted shape, into (query, solution, metadata).

    >>> unpacked({"query": "q", "solution": "s"})
    ('q', 's', None)
    """
    if isinstance(case, Mapping):
        given = cast("Mapping[str, Any]", case)
        if not {"query", "solution"} <= set(given) <= {"query", "solution", "metadata"}:
            raise InvalidInput("a case must have the keys query and solution; it may have the key metadata, and no other key")
        return given["query"], given["solution"], given.get("metadata")
    if isinstance(case, tuple) and len(cast("tuple[Any, ...]", case)) in (2, 3):
        query, solution, *rest = cast("tuple[Any, ...]", case)
        return query, solution, rest[0] if rest else None
    raise InvalidInput(
        "a case is (query, solution), (query, solution, metadata), or a mapping with these keys; "
        "for one case call add(query, solution), or pass a list with it"
    )


def add(
    engine: Engine,
    cases: Sequence[tuple[str, Solution, dict[str, MetadataValue]]],
    *,
    namespace: str,
    source: str,
    progress: bool | None,
    by: ByWhom,
) -> list[str]:
    """Embed all cases, then store either all of them or none. Return their ids."""
    began, namespace_id = time.time_ns(), engine.namespace_state(namespace).namespace_id
    new: list[NewCase] = []
    batches = range(0, len(cases), _BATCH)
    for start in progress_bar(batches, "adding cases", show=progress if len(batches) > 1 else False):
        part = cases[start : start + _BATCH]
        vectors = engine.embed([query for query, _, _ in part])
        engine.floor.measure()
        for (query, solution, metadata), vector in zip(part, vectors, strict=True):
            new.append(
                new_case(
                    query,
                    vector,
                    solution,
                    solution_key=digest(engine.matcher.key(solution)),
                    namespace=namespace_id,
                    source=source,
                    metadata=metadata,
                    by=by,
                )
            )
    action = NewAction(kind="add", actor=by.actor) if source == "human" else None

    def write(number: int) -> list[str]:
        its = new if number == namespace_id else [replace(one, namespace=number) for one in new]
        return engine.parts.ledger.cases.add(its, action)

    ids = in_namespace(engine, namespace, write)
    engine.learn_soon()
    for part in engine.listeners:
        part.heard("add", began, (namespace, new), ids)
    return ids


def in_namespace(engine: Engine, namespace: str, write: Callable[[int], _T]) -> _T:
    """Call ``write`` with the number of a namespace, and return its result.

    If the namespace and its name were purged meanwhile, ``write`` is called once more: the name has a new number then.
    """
    try:
        return write(engine.namespace_state(namespace).namespace_id)
    except NamespaceForgotten:
        engine.follow()
        return write(engine.namespace_state(namespace).namespace_id)


def checked_all(
    cases: Iterable[object], case_text: CaseText, door: Door, admit: Callable[[Incoming], object]
) -> list[tuple[str, Solution, dict[str, MetadataValue]]]:
    """Check many cases; if one is invalid, raise an error that gives its position, counted from 1.

    ``admit`` is called with the ``Incoming`` of each case, which knows the secrets that the case announces (as in
    "password=abc"). It refuses the names of the actor and the namespace if they hold such a secret.
    """
    found: list[tuple[str, Solution, dict[str, MetadataValue]]] = []
    for number, case in enumerate(cases, start=1):
        try:
            record = door.record()
            found.append(checked(unpacked(case), case_text, record))
            admit(record)
        except InvalidInput as error:
            raise InvalidInput(f"case {number:,}: {error}; nothing was stored") from error
        if number > MOST_AT_ONCE:
            raise InvalidInput(
                f"one call takes {MOST_AT_ONCE:,} cases at most: add the others in further calls; none was stored"
            )
    return found


def checked(
    case: tuple[Any, Any, Any], case_text: CaseText, record: Incoming
) -> tuple[str, Solution, dict[str, MetadataValue]]:
    """Check a case and return it as it is stored: its query is replaced by the text under which it is indexed."""
    came = record.take(query=case[0], solution=case[1], metadata=case[2])
    return record.case_text(case_text)(came.query, came.solved), came.solved, came.metadata


def proposal(
    engine: Engine, namespace_id: int, query: str, solution: Solution, *, metadata: Mapping[str, MetadataValue], by: ByWhom
) -> RecallRecord:
    """Return the record that opens an episode for a task solved without a recall; raise if there is no room for the episode."""
    engine.parts.ledger.episodes.check_room(
        namespace_id, len(f"{query}{solution_text(solution)}".encode())
    )  # before any work is spent on it
    vector = engine.embed([query])[0]
    return proposal_record(str(uuid.uuid4()), namespace_id, query, vector, metadata, by=by)


_STRICTLY = 3  # times that an undo is tried as it was prepared, if its source goes on meanwhile


class OfSource(NamedTuple):
    """A source to undo, and a function that prepares the older outcomes which its own replaced: they are to count again."""

    wanted: Wanted
    again: Callable[[], Sequence[Settlement]]


def forget(
    engine: Engine,
    case_ids: str | Iterable[str] | None,
    *,
    where: Mapping[str, Any] | None,
    episode_id: str | None,
    everything: bool,
    namespace: str,
    purge: bool,
    dry_run: bool = False,
    source: OfSource | None = None,
    by: str | None = None,
) -> Receipt:
    """Delete what exactly one argument names, and learn again from the rest; with ``dry_run``, only say what would go."""
    named = sum([case_ids is not None, where is not None, episode_id is not None, everything, source is not None])
    if named > 1 or not (named or purge):
        raise InvalidInput(
            "say what to forget, in one way only: case_ids, where=, episode_id=, a source (by_actor=, by_channel=, since=, "
            "until=) or everything=True. purge=True alone cleans the files of what was forgotten before. "
            "(memory.acting(actor=...) says who forgets.)"
        )
    ledger = engine.parts.ledger
    engine.recording.wait_for()  # else a recall could be recorded after its data was forgotten
    namespace_id = engine.namespace_id(namespace)
    state = engine.namespace_state(namespace) if namespace_id else None
    stale = () if state is None else state.stale()
    gone: Mapping[str, int] = {}
    back, copies = tuple[str, ...](), tuple[str, ...]()
    action, forgetting = NewAction(kind="forget", actor=by), ledger.forgetting
    if not named:
        pass  # only purge what was forgotten earlier
    elif source is not None:
        if state is not None:
            undone = _undone(engine, state, source, action, preview=dry_run)
            gone, back, copies = undone.counts, undone.brought_back, undone.made_after
    elif everything:
        gone = forgetting.forget_namespace(namespace_id, action, preview=dry_run) if namespace_id else {}
    elif episode_id is not None:
        found = ledger.episodes.one(check_id(episode_id, "episode_id"))
        if found is None or found.namespace != namespace:
            raise UnknownEpisode(f"there is no episode {episode_id!r} in namespace {namespace!r}")
        gone = forgetting.forget_episode(found.id, replace(action, subject=found.id), preview=dry_run)
    elif where is not None:
        gone = forgetting.forget_where(namespace_id, where, action, preview=dry_run)
    else:
        ids = _ids(() if case_ids is None else case_ids)
        keys = _keys(engine, ids, namespace_id, namespace)
        gone = forgetting.forget(namespace_id, keys, replace(action, subject=only(ids)), preview=dry_run)
    from cascade_memory.insight.stats import COUNTED, Receipt

    always: dict[str, Any] = {name: gone.get(name, 0) for name in COUNTED}
    more = {name: count for name, count in gone.items() if count and name not in COUNTED}
    receipt = Receipt(**always, more=more, stale=stale, brought_back=back, made_after=copies)
    if dry_run:
        return receipt
    engine.learn_soon()
    actor = None if source is None else source.wanted.actor
    return _purged(engine, receipt, namespace_id, by, everything=everything, actor=actor) if purge else receipt


def _purged(
    engine: Engine, receipt: Receipt, namespace: int, by: str | None, *, everything: bool, actor: str | None
) -> Receipt:
    """Remove every byte of forgotten data, and the name of a namespace that was emptied; return the completed receipt."""
    nameless = everything and bool(namespace) and engine.parts.ledger.forgetting.forget_name(namespace)
    left = _purge(engine, namespace, by)
    names = _names_left(engine, namespace, actor, nameless=nameless) if everything or actor else ()
    return replace(receipt, purged=not left, stale=(*receipt.stale, *left), names=names)


def _names_left(engine: Engine, namespace: int, actor: str | None, *, nameless: bool) -> tuple[str, ...]:
    """Return sentences for people that say where names stay after a purge of an actor (None: of a whole namespace).

    ``nameless`` says that the name of the namespace was removed.
    """
    found: list[str] = []
    if entries := engine.parts.ledger.forgetting.names(namespace, actor):
        whose = "this actor" if actor else "those who acted in it"
        found.append(f"{entries:,} entries of the audit log name {whose}: its digests keep anybody from changing what it says")
    of_actor = engine.parts.ledger.provenance.sources(namespace) if actor else []
    if kept := sum(one.cases + one.episodes for one in of_actor if one.actor == actor):
        found.append(
            f"{kept:,} episodes and cases of this actor stay with their texts, since others judged them: forget them by id"
        )
    if namespace and not actor and not nameless:
        found.append("the namespace keeps its name, since something has come in meanwhile: forget everything again")
    return tuple(found)


def _undone(engine: Engine, state: NamespaceState, source: OfSource, action: NewAction, *, preview: bool) -> Undone:
    """Undo a source; with ``preview``, only say what would be undone.

    If the source writes while the outcomes that count again are prepared (see ``OfSource``), they are prepared again. After
    three such attempts, the source is undone in any case.
    """

    def undo(*, strict: bool) -> Undone:
        return engine.parts.ledger.forgetting.forget_source(
            state.namespace_id,
            source.wanted,
            replace(action, note=f"what came from: {source.wanted.described()}"),
            again=source.again(),
            strict=strict,
            max_cases=None if state.limits is None else state.limits.max_cases,
            window=WINDOW,
            preview=preview,
        )

    for _ in range(_STRICTLY):
        if (undone := undo(strict=True)).as_prepared:
            return undone
    return undo(strict=False)


def _purge(engine: Engine, namespace: int, by: str | None) -> tuple[str, ...]:
    """Remove every byte of forgotten data from all files; return descriptions of what could not be cleaned."""
    if (kept := engine.parts.door.kept).held:
        kept.forget()
    engine.learn_soon()
    engine.learn_now()  # this also writes new snapshots
    left = [
        f"what was learned in {name!r}: learning again failed ({engine.last_error}) and will be tried again"
        for name in engine.rebuild_due()
    ]
    line, unclean = engine.parts.ledger.forgetting.scrub(namespace, NewAction(kind="purge", actor=by))
    engine.follow()  # the namespace may have no name any more
    if unclean:
        left.append(unclean)
    left += engine.parts.sweep()
    return (*left, *(() if engine.feeder is None else engine.feeder.purge(line)))


def _ids(case_ids: str | Iterable[str]) -> list[str]:
    if isinstance(case_ids, str):
        return [check_id(case_ids, "case_id")]
    try:
        given = iter(case_ids)
    except TypeError:
        raise InvalidInput(f"case_ids must be an id or several, not {quoted(case_ids)}") from None
    ids = [check_id(one, "case_id") for one in itertools.islice(given, MOST_AT_ONCE + 1)]
    if len(ids) > MOST_AT_ONCE:
        raise InvalidInput(f"case_ids are more than {MOST_AT_ONCE:,}, which one call takes at most: name them in several calls")
    return ids


def _keys(engine: Engine, ids: Sequence[str], namespace_id: int, namespace: str) -> list[int]:
    found = engine.parts.ledger.cases.by_id(ids, namespace_id)
    expired = engine.parts.ledger.expiry.keys_of(namespace_id, ids)
    missing = sorted(set(ids) - {case.id for case in found} - set(expired))
    if missing:
        raise UnknownCase(f"there is no case {missing[0]!r} in namespace {namespace!r}; nothing was forgotten")
    return [*(case.key for case in found), *expired.values()]


def bring_back(engine: Engine, case_ids: str | Iterable[str] | None, *, namespace: str, actor: str | None = None) -> list[str]:
    """Bring back expired or evicted cases, either all of the named ones or none; return their ids."""
    ids = None if case_ids is None else _ids(case_ids)
    namespace_id = engine.namespace_id(namespace)
    expiry = engine.parts.ledger.expiry
    there = {case.id for why in WHY for case in expiry.expired(namespace_id, why)} if ids else set[str]()
    missing = sorted(set(ids or ()) - there)
    if missing:
        raise UnknownCase(f"namespace {namespace!r} has no case {missing[0]!r} that was set aside and could be brought back")
    back = expiry.revive(namespace_id, ids, NewAction(kind="bring_back", actor=actor))
    engine.learn_soon()
    return back
