"""Cleans or searches the records of an export field by field: in texts, secrets become placeholders; names must have none.

A text *gives* a secret if its wording says what the secret is, as in "password=abc". The secret is then looked for elsewhere.
"""

from __future__ import annotations

import base64
import contextlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from cascade_memory.domain.case import ExpiredCase
from cascade_memory.domain.trajectory import Trajectory
from cascade_memory.engine.door import Door, Incoming
from cascade_memory.engine.embedding import NothingToEmbedWith
from cascade_memory.errors import InvalidInput
from cascade_memory.ledger.schema import ADDED
from cascade_memory.redaction.finding import find
from cascade_memory.redaction.marking import OpenSecrets, marks_in

_NUMBERS = frozenset(("vector", "chosen", "numbers", "features", "context", "agreement", "shadow_numbers", "shadow_context"))
_METADATA = frozenset(("metadata", "fields"))
# The texts of rows that observers of capabilities export in the record of another row, by the table; elsewhere they are names.
_SAID = {table.name: frozenset(column.name for column in table.columns if column.said) for table in ADDED}
_TEXTS = frozenset(("query", "head", "note"))  # "text" and "solution" are texts or trajectories; all else is names and numbers
_WHAT = {"query": "task", "text": "solution", "solution": "solution", "fields": "metadata", "note": "note", "id": "id"}

MANY = 100_000  # episodes of which secrets are remembered while an export is read

Embed = Callable[[list[str]], NDArray[np.float32]]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSecret:
    """Secrets of one kind in one field that is stored. It says where they are, and never what they are."""

    kind: str  # one of ``cascade_memory.redaction.KINDS``
    where: str  # such as "case solution"
    id: str | None  # of the case or the episode; None for a search
    namespace: str
    count: int

    def as_dict(self) -> dict[str, Any]:
        """Convert to plain values, ready for JSON."""
        return asdict(self)


def cleaned(record: dict[str, Any], door: Door, embed: Embed, kept: OpenSecrets) -> dict[str, Any]:
    """Return a record without secrets. A task that has changed gets a new vector, if there is a model that makes one.

    ``kept`` remembers the secrets that the record gives (see the module), for the other records of its episode.
    """
    clean = door.settled(record, episode_of(record), kept, _passed)
    if clean.get("query") != record.get("query") and record.get("vector"):
        with contextlib.suppress(NothingToEmbedWith):
            vector = np.asarray(embed([clean["query"]])[0], "<f4")
            clean["vector"] = base64.b64encode(vector.tobytes()).decode()
    return clean


def _passed(record: dict[str, Any], incoming: Incoming) -> dict[str, Any]:
    return {name: _clean(record, name, value, incoming) for name, value in record.items()}


def episode_of(record: Mapping[str, Any]) -> str | None:
    """Return the id of the episode that a record belongs to, if it belongs to one."""
    found = record.get("id" if record.get("kind") == "episode" else "episode")
    return found if isinstance(found, str) else None


def secrets_in(read: Callable[[], Iterable[Mapping[str, Any]]], known: OpenSecrets) -> Iterator[StoredSecret]:
    """Yield the secrets in the records of an export; ``read`` is called twice.

    A secret that a field gives (see the module) is looked for in the whole record. A secret that a record gives, or that is
    ``known`` of its episode, is looked for in all records of the episode: an earlier record may hold a secret that only a later
    one gives.
    """
    door, kept = Door(), OpenSecrets(most=MANY)
    kept.held.update(known.held)
    for record in read():
        _heard(record, door, kept)
    for record in read():
        incoming = _heard(record, door, kept)
        for name, value in record.items():
            if _is_name(record, name):
                found = Counter(one.kind for one in find(value) if isinstance(value, str))
            elif name == "counts" and isinstance(value, Mapping):
                found = Counter(one.kind for counted in cast("Mapping[str, int]", value) for one in find(counted))
            else:
                found = _new_in(record, name, value, incoming)
            for kind, count in sorted(found.items()):
                yield StoredSecret(
                    kind=kind, where=_where(record, name), id=_id_of(record), namespace=str(record["namespace"]), count=count
                )


def _heard(record: Mapping[str, Any], door: Door, kept: OpenSecrets) -> Incoming:
    """Return an ``Incoming`` (see ``engine.door``) that knows the secrets given in a record or ``kept`` for its episode."""
    incoming = door.record(episode_of(record), kept)
    for name, value in record.items():
        if not _is_name(record, name):
            incoming.count_on_after(str(value))
            _new_in(record, name, value, incoming)
    if (episode := episode_of(record)) is not None:
        incoming.keep_for(episode)
    return incoming


def _new_in(record: Mapping[str, Any], name: str, value: Any, incoming: Incoming) -> Counter[str]:
    """Count the secrets of each kind in a field that have no placeholder yet."""
    if name in ("head", "counts"):  # the beginning of the solution, and names
        return Counter()
    with contextlib.suppress(InvalidInput):  # of a name within it
        clean = _clean(record, name, value, incoming)
        return Counter() if clean == value else Counter(kind for kind, _ in marks_in(str(clean)) - marks_in(str(value)))
    return Counter()


def set_aside_record(case: ExpiredCase) -> dict[str, Any]:
    """Return an expired or evicted case as a record like those of an export; an export itself leaves such cases out."""
    about = {"kind": "expired", "id": case.id, "namespace": case.namespace, "query": case.query}
    if isinstance(case.solution, Trajectory):
        return {**about, "text": case.solution.to_json(), "solution_kind": "trajectory"}
    return {**about, "text": case.solution, "solution_kind": "text"}


def _is_name(record: Mapping[str, Any], name: str) -> bool:
    texts = (
        name in _TEXTS
        or name in _SAID.get(str(record.get("kind")), ())
        or name in _METADATA
        or name in _NUMBERS
        or name in ("additions", "candidates", "groups")
    )
    return isinstance(record[name], str) and not (texts or _is_solution(record, name))


def _is_solution(record: Mapping[str, Any], name: str) -> bool:
    """Say whether a field holds a solution; in the record of a case, the field ``solution`` is only a digest."""
    return name == "text" or (name == "solution" and record.get("kind") != "case")


def _clean(record: Mapping[str, Any], name: str, value: Any, incoming: Incoming) -> Any:
    if value is None or name in _NUMBERS:
        return value
    if _is_solution(record, name) and isinstance(value, str):
        return _solution(value, record.get("solution_kind"), incoming)
    if name == "additions" and isinstance(value, list):
        kind = record.get("solution_kind")
        return [_addition(one, kind, incoming) for one in cast("list[Any]", value)]
    if name == "counts" and isinstance(value, Mapping):
        return {incoming.name(one, "the name of a count"): count for one, count in cast("Mapping[str, Any]", value).items()}
    if name in _SAID and isinstance(value, Mapping):
        given = {**cast("Mapping[str, Any]", value), "kind": name}
        return {inner: _clean(given, inner, one, incoming) for inner, one in cast("Mapping[str, Any]", value).items()}
    if _is_name(record, name):
        return incoming.name(value, f"the field {name!r}")
    return incoming.plain(name, value)


def _addition(one: Any, kind: Any, incoming: Incoming) -> Any:
    if not isinstance(one, Mapping):
        return incoming.plain("addition", one)
    fields = {"kind": "addition", **cast("Mapping[str, Any]", one), "solution_kind": kind}
    return {name: _clean(fields, name, value, incoming) for name, value in cast("Mapping[str, Any]", one).items()}


def _solution(text: str, kind: Any, incoming: Incoming) -> str:
    if kind == "trajectory":
        # If it cannot be read, the import refuses it with its reason.
        with contextlib.suppress(ValueError, TypeError, KeyError, RecursionError):
            given = Trajectory.from_json(text)
            clean = incoming.solution(given)
            return text if clean == given or not isinstance(clean, Trajectory) else clean.to_json()
    return incoming.text(text)


def _where(record: Mapping[str, Any], name: str) -> str:
    kind = str(record.get("kind"))
    if kind == "recall" and record.get("recall_kind") == "search":
        kind = "search"
    return f"{kind} {_WHAT.get(name, name)}"


def _id_of(record: Mapping[str, Any]) -> str | None:
    kind = record.get("kind")
    found = record.get("episode") if kind in ("attempt", "outcome", "recall") else record.get("id")
    return None if found is None else str(found)
