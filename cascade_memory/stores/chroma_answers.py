"""Checks of what Chroma answers: a server, or somebody who edited the files, may answer anything.

No collection objects of Chroma are built from an answer, because they would build the embedding function that it names, in our
process.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any, cast
from uuid import UUID

from cascade_memory.domain.display import shorten
from cascade_memory.domain.interruptible import interruptible
from cascade_memory.domain.metadata import RESERVED_PREFIX
from cascade_memory.domain.validation import MAX_ID_CHARS
from cascade_memory.errors import StoreError

SPACE = "cosine"
NAMESPACE = f"{RESERVED_PREFIX}namespace"
_MOST = 2**53  # cases: more than any server can hold
_SHOWN = 200  # characters of an answer that are quoted in a message
_NO_FUNCTION = ("legacy", "unknown")  # Chroma's words for a collection without an embedding function


@interruptible
def failing_as_one(where: str) -> Generator[None, None, None]:
    """Turn every error of Chroma into a ``StoreError``, also panics of its Rust code, which are not an ``Exception``."""
    try:
        yield
    except StoreError:
        raise
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        raise StoreError(f"{where} failed: {type(error).__name__}: {shown(error)}") from error


def shown(answer: object) -> str:
    r"""Return a text from outside as one short line without control characters.

    >>> shown("\x1b[31mHa!\n" + "ha" * 200)[:8]
    '?[31mHa!'
    """
    try:
        text = str(answer)[: 4 * _SHOWN]
    except Exception:  # noqa: BLE001 - str() fails on lists that are nested too deeply
        text = "a value that is nested too deeply"
    return shorten("".join(c if c.isprintable() or c.isspace() else "?" for c in text), _SHOWN)


def checked_collection(model: Any, name: str, namespace: str) -> UUID:
    """Return the id of a collection. Refuse one that differs from those that we create: it may name code to run."""
    wrong = _wrong(model, name, namespace)
    if wrong:
        raise StoreError(
            f"the collection {name!r} in Chroma was not created by this memory: {wrong}. It is not used; "
            "memory.data.rebuild() deletes it and creates it again"
        )
    return model.id


def _wrong(model: Any, name: str, namespace: str) -> str | None:
    configuration, metadata = model.configuration_json, model.metadata
    if not isinstance(model.id, UUID) or model.name != name:
        return f"it is called {shown(model.name)!r}"
    if not isinstance(metadata, Mapping) or cast("Mapping[str, Any]", metadata).get(NAMESPACE) != namespace:
        return "its metadata does not name the namespace"
    if not isinstance(configuration, Mapping) or _space(cast("Mapping[str, Any]", configuration)) != SPACE:
        return f"its distance is not {SPACE}"
    if _names_function(configuration) or _names_function(model.serialized_schema):
        return "it names an embedding function"
    return None


def _space(configuration: Mapping[str, Any]) -> object:
    index = configuration.get("hnsw") or configuration.get("spann")
    return cast("Mapping[str, Any]", index).get("space") if isinstance(index, Mapping) else None


def _names_function(value: object) -> bool:
    """Say whether a JSON value names an embedding function, which Chroma would build in our process."""
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, Mapping):
            if "type" in one and not _is_none(one):
                return True
            for key, inner in cast("Mapping[object, object]", one).items():
                if key == "embedding_function" and inner is not None and not _is_none(inner):
                    return True
                # The names below "keys" in a schema are those of the user's metadata, which may be any text.
                waiting += [*inner.values()] if key == "keys" and isinstance(inner, Mapping) else [inner]
        elif isinstance(one, list):
            waiting += cast("list[object]", one)
    return False


def _is_none(function: object) -> bool:
    return any(function == {"type": none} for none in _NO_FUNCTION)


def checked_count(answer: object) -> int:
    """Return a number of cases; raise if Chroma answered with anything else.

    >>> checked_count(3)
    3
    """
    if type(answer) is not int or not 0 <= answer < _MOST:
        raise StoreError(f"Chroma answered {shown(answer)!r} instead of a number of cases")
    return answer


def checked_ids(answer: object, k: int) -> list[str]:
    """Return the ids in the answer to a query; raise if it is not a list of at most ``k`` ids.

    >>> checked_ids({"ids": [["a", "b"]], "distances": [[0.1, 0.2]]}, k=2)
    ['a', 'b']
    """
    lists = cast("Mapping[str, Any]", answer).get("ids") if isinstance(answer, Mapping) else None
    if not isinstance(lists, list) or len(cast("list[object]", lists)) != 1:
        raise StoreError("Chroma's answer to a query is not one list of ids")
    ids: object = lists[0]
    if not isinstance(ids, list) or len(cast("list[object]", ids)) > k:
        raise StoreError(f"Chroma's answer to a query for {k} cases is not a list of at most {k} ids")
    found = cast("list[object]", ids)
    if not all(isinstance(one, str) and len(one) <= MAX_ID_CHARS for one in found):
        raise StoreError(f"Chroma's answer to a query has an id that is not a text of up to {MAX_ID_CHARS} characters")
    return cast("list[str]", found)
