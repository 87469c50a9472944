"""The records of an export, field by field: what of them is text, and must come in by the door, and what is a name."""

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
from cascade_memory.redaction.finding import find

_NUMBERS = frozenset(("vector", "chosen", "numbers", "features", "context", "agreement", "shadow_numbers", "shadow_context"))
_METADATA = frozenset(("metadata", "fields"))
_OF_FAILURE = frozenset(("tool", "action", "happened", "instead"))  # texts, which elsewhere are names
_TEXTS = frozenset(("query", "head", "note"))  # "text" and "solution" are texts or trajectories; all else is names and numbers
_WHAT = {"query": "task", "text": "solution", "solution": "solution", "fields": "metadata", "note": "note", "id": "id"}

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


def cleaned(record: Mapping[str, Any], door: Door, embed: Embed) -> dict[str, Any]:
    """Return a record as it may be stored. A task that has changed gets a new vector, if there is a model that makes one."""
    incoming = door.record()
    clean = {name: _clean(record, name, value, incoming) for name, value in record.items()}
    if clean.get("query") != record.get("query") and record.get("vector"):
        with contextlib.suppress(NothingToEmbedWith):
            vector = np.asarray(embed([clean["query"]])[0], "<f4")
            clean["vector"] = base64.b64encode(vector.tobytes()).decode()
    return clean


def secrets_in(records: Iterable[Mapping[str, Any]]) -> Iterator[StoredSecret]:
    """Yield the secrets in the records of an export."""
    door = Door()
    for record in records:
        for name, value in record.items():
            found: Counter[str] = Counter()
            if _is_name(record, name):
                found.update(one.kind for one in find(value) if isinstance(value, str))
            elif name == "counts" and isinstance(value, Mapping):
                found.update(one.kind for counted in cast("Mapping[str, int]", value) for one in find(counted))
            elif name != "head":  # the beginning of the solution
                incoming = door.record()
                _clean(record, name, value, incoming)
                found = incoming.found
            for kind, count in sorted(found.items()):
                yield StoredSecret(
                    kind=kind, where=_where(record, name), id=_id_of(record), namespace=str(record["namespace"]), count=count
                )


def set_aside_record(case: ExpiredCase) -> dict[str, Any]:
    """Return a case that was set aside in the form of a record; an export does not have it."""
    about = {"kind": "expired", "id": case.id, "namespace": case.namespace, "query": case.query}
    if isinstance(case.solution, Trajectory):
        return {**about, "text": case.solution.to_json(), "solution_kind": "trajectory"}
    return {**about, "text": case.solution, "solution_kind": "text"}


def _is_name(record: Mapping[str, Any], name: str) -> bool:
    texts = (
        name in _TEXTS
        or (record.get("kind") == "failure" and name in _OF_FAILURE)
        or name in _METADATA
        or name in _NUMBERS
        or name in ("additions", "candidates", "groups")
    )
    return isinstance(record[name], str) and not (texts or _is_solution(record, name))


def _is_solution(record: Mapping[str, Any], name: str) -> bool:
    """Say whether a field holds a solution: in the record of a case, that of this name is a digest."""
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
    if name == "failure" and isinstance(value, Mapping):
        given = {**cast("Mapping[str, Any]", value), "kind": "failure"}
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
