"""Rules for rows of the ledger and records of an export. They are strict: a bool is not a number, nothing is converted.

The tables are declared with them (``schema``). A rule for one value also takes the name of its column.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from cascade_memory.domain import records
from cascade_memory.domain.actions import check_known_actor, check_note
from cascade_memory.domain.display import quoted
from cascade_memory.domain.metadata import MetadataValue, check_fields
from cascade_memory.domain.trajectory import Solution, check_solution
from cascade_memory.domain.validation import (
    MAX_ID_CHARS,
    check_id,
    check_namespace,
    check_number,
    check_query,
    check_text,
    check_whole,
    check_word,
)
from cascade_memory.errors import CascadeError, InvalidInput
from cascade_memory.ledger.compaction import NUMBERS
from cascade_memory.ledger.declaring import BLOB, TEXT, Column, Row, Rule, between, whole
from cascade_memory.ledger.facts import LONGEST
from cascade_memory.ledger.rows import unpack_floats, unpack_ints, unpack_solution
from cascade_memory.ports.encoders import noted

LARGEST = 1e12  # greatest absolute value of a feature
LAST_NAMESPACE = 2**62  # greatest id: ids are only names, so large ones do no harm
_TOLERANCE = 1e-3  # for sums of floating-point numbers
_NAME_CHARS = 10_000  # of a policy or an encoder: users may choose any name
_SURROGATE = re.compile("[\ud800-\udfff]")  # surrogates cannot be encoded as UTF-8
_HEX = re.compile("[0-9a-f]{32}")
_SOLUTION_KINDS = ("text", "trajectory")
_NO_FLOATS = np.zeros(0, np.float32)


# -- single values -------------------------------------------------------------------------------------------------------


def name_of(value: object, name: str) -> str:
    """Check the name of a policy or an encoder."""
    if type(value) is not str or len(value) > _NAME_CHARS or _SURROGATE.search(value):
        raise InvalidInput(f"{name} must be a text of at most {_NAME_CHARS:,} characters, not {quoted(value)}")
    return value


def hex_of(value: object, name: str) -> str:
    """Check a digest."""
    if type(value) is not str or not _HEX.fullmatch(value):
        raise InvalidInput(f"{name} must be 32 hexadecimal digits, not {quoted(value)}")
    return value


def blob(value: object, name: str, item: int) -> bytes:
    """Check that a value is bytes that hold a whole number of items of ``item`` bytes each; return it."""
    if type(value) is not bytes or len(value) % item:
        raise InvalidInput(f"{name} must be bytes, {item} for each number")
    return value


def unit_vector(value: object, dimension: int | None) -> NDArray[np.float32]:
    """Check a vector's length and that its norm is one; return it."""
    vector = unpack_floats(blob(value, "the vector", 4))
    if not len(vector) or (dimension is not None and len(vector) != dimension):
        raise InvalidInput(f"the vector has {len(vector)} numbers, not {dimension}")
    with np.errstate(all="ignore"):
        norm = float(np.sqrt(np.dot(vector, vector)))  # a nan or infinity makes the norm one too
    if not abs(norm - 1.0) <= _TOLERANCE:
        raise InvalidInput("the vector must consist of finite numbers and have the norm 1")
    return vector


def solution(kind: object, text: object, *, needed: bool = False) -> Solution | None:
    """Parse a solution from its stored kind and text."""
    if kind is None and text is None and not needed:
        return None
    if type(text) is not str:
        raise InvalidInput(f"the solution must be a text, not {quoted(text)}")
    try:
        return check_solution(unpack_solution(check_word(kind, _SOLUTION_KINDS, "solution_kind"), text))
    except CascadeError:
        raise
    except Exception as error:
        raise InvalidInput(f"the solution is not a trajectory ({type(error).__name__})") from error


def json_object(text: object, name: str) -> dict[str, Any]:
    """Parse an object that was stored as JSON."""
    try:
        found = json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"{name} is not JSON") from error
    if not isinstance(found, dict):
        raise InvalidInput(f"{name} is not a JSON object")
    return cast("dict[str, Any]", found)


def counts_of(text: object) -> dict[str, int]:
    """Parse the counts of an entry of the audit log, which were stored as JSON."""
    counts = json_object(text, "counts")
    return {check_id(name, "the name of a count"): check_whole(count, "a count") for name, count in counts.items()}


def metadata_of(text: object) -> dict[str, MetadataValue]:
    """Parse metadata that were stored as JSON."""
    return check_fields(json_object(text, "the metadata"))


def embedder_of(text: object) -> tuple[str, int]:
    """Parse the folder's note about its embedder into (identity, dimension)."""
    found = noted(text)
    if found is None:
        raise InvalidInput("the note of the embedder cannot be read")
    return found


def is_good(rule: Callable[..., object], *values: object) -> bool:
    """Tell whether a rule accepts values.

    >>> is_good(hex_of, "none", "digest")
    False
    """
    try:
        rule(*values)
    except InvalidInput:
        return False
    return True


# -- columns -------------------------------------------------------------------------------------------------------------


def _alone(check: Callable[[Any], object]) -> Rule:
    """Return the rule made from a function that checks a value; the rule ignores the name of the column."""
    return lambda value, _: check(value)


QUERY, NAME, ACTOR, NOTE = map(_alone, (check_query, check_namespace, check_known_actor, check_note))
METADATA, COUNTS = map(_alone, (metadata_of, counts_of))
NAMESPACE, ID = whole(1, LAST_NAMESPACE), check_id
SHARE = between(-_TOLERANCE, 1.0 + _TOLERANCE)
VECTOR = Column("vector", BLOB)  # ``unit_vector`` is its rule, which needs the ledger's dimension
SOLUTION = (
    Column("solution_kind", TEXT, optional=True, about="text, trajectory, NULL"),
    Column("solution", TEXT, optional=True),
)


def text(limit: int, *, empty: bool = True) -> Rule:
    """Return the rule for a text of at most ``limit`` characters."""
    return lambda value, name: check_text(value, name, limit, allow_empty=empty)


def any_text(value: object, name: str) -> None:
    """Reject what is no text."""
    if type(value) is not str:
        raise InvalidInput(f"the {name} must be a text, not {quoted(value)}")


# -- rows ----------------------------------------------------------------------------------------------------------------


def fact(row: Row) -> None:
    """Reject a fact about the folder that cannot be read."""
    key, value = row["key"], row["value"]
    if type(key) is not str or type(value) is not str:
        raise InvalidInput("a fact about the folder must be a text")
    if len(value) > LONGEST:
        raise InvalidInput(f"a fact about the folder has at most {LONGEST:,} bytes")
    if key == "embedder":
        embedder_of(value)
    elif key.startswith("compacted:") and not (value.isascii() and value.isdigit() and len(value) <= 16):
        raise InvalidInput("it must be the key of an outcome")
    elif key == "identity" and not (value.isascii() and value.isalnum() and len(value) <= 64):
        raise InvalidInput("the identity of a folder is letters and digits")
    elif key.startswith("mirror"):
        _mark(value)


def _mark(value: str) -> None:
    mark = json_object(value, "the note about Chroma")
    if not {"key", "seq", "clean"} <= set(mark):
        raise InvalidInput("the note about Chroma cannot be read")
    check_whole(mark["key"], "key")
    check_whole(mark["seq"], "seq")


def has_solution(row: Row) -> None:
    """Reject a row whose solution cannot be read."""
    solution(row["solution_kind"], row["solution"])


def needs_solution(row: Row) -> None:
    """Reject a row without a solution that can be read."""
    solution(row["solution_kind"], row["solution"], needed=True)


def counts(row: Row) -> None:
    """Reject counts with which a case would never be evicted, or always be evicted first."""
    shown = row["shown"]
    check_number(row["succeeded"], "succeeded", -_TOLERANCE, shown + _TOLERANCE * (shown + 1))


def k_and_forgot(k: object) -> tuple[object, int]:
    """Return (k, forgot) of a row of an older version, where a negative ``k`` means that a candidate was forgotten."""
    return (-k, 1) if isinstance(k, int) and k < 0 else (k, 0)


def fits_together(row: Row) -> None:
    """Reject a recall whose arrays do not fit together: every later read would fail."""
    n = len(blob(row["candidates"], "candidates", 8)) // 8
    _arrays(row, n)
    _opinion(row, n)


def _arrays(row: Row, n: int) -> None:
    chosen = unpack_ints(blob(row["chosen"], "chosen", 8))
    if len(blob(row["groups"], "groups", 8)) != 8 * n or (len(chosen) and (chosen.min() < 0 or chosen.max() >= n)):
        raise InvalidInput("its groups or its chosen positions do not fit its candidates")
    if len(np.unique(chosen)) != len(chosen):
        raise InvalidInput("a candidate was chosen twice")
    numbers = _floats(row, "numbers")
    if len(numbers) != NUMBERS * n:
        raise InvalidInput(f"numbers has {len(numbers)} numbers for {n} candidates")
    table = numbers.reshape(n, NUMBERS)
    if not (np.abs(table[:, records.Column.SIMILARITY]) <= 1.0 + _TOLERANCE).all() or not _shares(
        table[:, records.Column.PROPENSITY]
    ):
        raise InvalidInput("a similarity or a propensity is out of its range")
    features = _floats(row, "features")
    if len(features) % n if n else len(features):
        raise InvalidInput(f"features has {len(features)} numbers for {n} candidates")
    for name, array in (("features", features), ("context", _floats(row, "context"))):
        if not (np.abs(array) <= LARGEST).all():
            raise InvalidInput(f"{name} must be finite numbers up to {LARGEST:g}")
    agreement = None if row["agreement"] is None else _floats(row, "agreement")
    if agreement is not None and (len(agreement) != n or not _shares(agreement)):
        raise InvalidInput("agreement must be a number from 0 to 1, or nan, for each candidate")


def _opinion(row: Row, n: int) -> None:
    if row["shadow"] is None:
        if row["shadow_numbers"] is not None or row["shadow_context"] is not None:
            raise InvalidInput("it has the numbers of a shadow, but no shadow is named")
        return
    numbers, context = _floats(row, "shadow_numbers"), _floats(row, "shadow_context")
    if (len(numbers) % n or len(numbers) < 2 * n) if n else len(numbers):
        raise InvalidInput("the shadow's numbers do not have a row for each candidate")
    if not (np.abs(numbers) <= LARGEST).all() or not (np.abs(context) <= LARGEST).all():
        raise InvalidInput(f"the shadow's numbers must be finite and at most {LARGEST:g}")


def _floats(row: Row, name: str) -> NDArray[np.float32]:
    value = blob(row[name], name, 4)
    return unpack_floats(value) if value else _NO_FLOATS


def _shares(array: NDArray[np.float32]) -> bool:
    return bool((((array >= 0.0) & (array <= 1.0 + _TOLERANCE)) | np.isnan(array)).all())


def field(row: Row) -> None:
    """Reject an invalid metadata value."""
    value = row["value"]
    if type(row["name"]) is not str or not row["name"] or len(row["name"]) > MAX_ID_CHARS:
        raise InvalidInput(f"the name of a field must be a text of 1 to {MAX_ID_CHARS} characters")
    known = value in (b"\x00", b"\x01") if type(value) is bytes else type(value) in (str, int, float)
    if not known or (type(value) is float and not math.isfinite(value)):
        raise InvalidInput(f"the field {quoted(row['name'])} has a value that metadata cannot have")
