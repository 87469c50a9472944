"""Rules for rows of the ledger and records of an export. They are strict: a bool is not a number, nothing is converted."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any, TypeAlias, cast, get_args

import numpy as np
from numpy.typing import NDArray

from cascade_memory.domain import trust
from cascade_memory.domain.actions import KINDS, check_known_actor, check_note
from cascade_memory.domain.episode import SOURCES, Arm, Status
from cascade_memory.domain.metadata import MetadataValue, check_fields
from cascade_memory.domain.quoting import quoted
from cascade_memory.domain.records import Column, Unkept
from cascade_memory.domain.trajectory import Solution, check_solution
from cascade_memory.domain.validation import (
    MAX_ID_CHARS,
    MAX_SOLUTION_CHARS,
    check_id,
    check_moment,
    check_number,
    check_query,
    check_share,
    check_text,
    check_whole,
    check_word,
)
from cascade_memory.errors import CascadeError, InvalidInput
from cascade_memory.ledger.compaction import NUMBERS
from cascade_memory.ledger.rows import unpack_floats, unpack_ints, unpack_solution

Row: TypeAlias = Mapping[str, Any]

_LARGEST = 1e12  # greatest absolute value of a feature
_TOLERANCE = 1e-3  # for sums of floating-point numbers
_NAME_CHARS = 10_000  # of a policy or an encoder: users may choose any name
_SURROGATE = re.compile("[\ud800-\udfff]")  # surrogates cannot be encoded as UTF-8
_HEX = re.compile("[0-9a-f]{32}")
_ENDED = ("ok", "error", "interrupted")
_SOLUTION_KINDS = ("text", "trajectory")
_RECALL_KINDS = ("recall", "search")
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
    """Check bytes that hold a whole number of items."""
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


# -- rows ----------------------------------------------------------------------------------------------------------------


def episode(row: Row) -> None:
    """Reject an invalid episode."""
    check_id(row["id"], "id")
    check_query(row["query"])
    if row["thread"] is not None:
        check_id(row["thread"], "thread")
    if row["source"] is not None:
        check_word(row["source"], SOURCES, "source")
    check_word(row["arm"], get_args(Arm), "arm")
    check_word(row["status"], get_args(Status), "status")
    check_share(row["holdout"], "holdout")
    check_moment(row["opened_at"], "opened_at")
    if row["closed_at"] is not None:
        check_moment(row["closed_at"], "closed_at")
    by_whom(row)


def by_whom(row: Row) -> None:
    """Reject an invalid actor or channel. A newer version may have more channels."""
    check_known_actor(row["actor"])
    if row["channel"] is not None:
        check_id(row["channel"], "channel")


def attempt(row: Row) -> None:
    """Reject an invalid end of a run."""
    check_word(row["status"], _ENDED, "status")
    solution(row["solution_kind"], row["solution"])
    check_moment(row["at"], "at")


def case(row: Row) -> None:
    """Reject an invalid case; its text and its vector have their own rules."""
    check_id(row["id"], "id")
    check_query(row["query"])
    check_word(row["source"], SOURCES, "source")
    check_text(row["head"], "head", MAX_SOLUTION_CHARS, allow_empty=True)
    counts(row)
    check_moment(row["created_at"], "created_at")
    check_moment(row["verified_at"], "verified_at")
    check_moment(row["verified_run"], "verified_run")
    check_whole(row["pinned"], "pinned", 0, 1)
    check_whole(row["hidden"], "hidden", 0, 3)
    by_whom(row)
    check_whole(row["trust"], "trust", 0, trust.GREATEST)


def counts(row: Row) -> None:
    """Reject counts with which a case would never be evicted, or always be evicted first."""
    check_whole(row["copies"], "copies", 1)
    shown = check_whole(row["shown"], "shown")
    check_number(row["succeeded"], "succeeded", -_TOLERANCE, shown + _TOLERANCE * (shown + 1))
    check_number(row["novelty"], "novelty", -_TOLERANCE, 1.0 + _TOLERANCE)


def k_and_forgot(k: object) -> tuple[object, int]:
    """Return (k, forgot) of a row of an older version, where a negative ``k`` means that a candidate was forgotten."""
    return (-k, 1) if isinstance(k, int) and k < 0 else (k, 0)


def recall(row: Row) -> None:
    """Reject a recall whose arrays do not fit together: every later read would fail."""
    check_id(row["id"], "id")
    if row["query"] is not None:
        check_query(row["query"])
    check_word(row["kind"], _RECALL_KINDS, "kind")
    check_whole(row["k"], "k")
    check_whole(row["forgot"], "forgot", 0, 1)
    check_moment(row["at"], "at")
    for name in ("policy", "encoder"):
        name_of(row[name], name)
    check_whole(row["policy_version"], "policy_version")
    check_whole(row["shown"], "shown", 0, 1)
    if row["baseline"] is not None:
        check_number(row["baseline"], "baseline", -_LARGEST, _LARGEST)
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
    if not (np.abs(table[:, Column.SIMILARITY]) <= 1.0 + _TOLERANCE).all() or not _shares(table[:, Column.PROPENSITY]):
        raise InvalidInput("a similarity or a propensity is out of its range")
    features = _floats(row, "features")
    if len(features) % n if n else len(features):
        raise InvalidInput(f"features has {len(features)} numbers for {n} candidates")
    for name, array in (("features", features), ("context", _floats(row, "context"))):
        if not (np.abs(array) <= _LARGEST).all():
            raise InvalidInput(f"{name} must be finite numbers up to {_LARGEST:g}")
    agreement = None if row["agreement"] is None else _floats(row, "agreement")
    if agreement is not None and (len(agreement) != n or not _shares(agreement)):
        raise InvalidInput("agreement must be a number from 0 to 1, or nan, for each candidate")


def _opinion(row: Row, n: int) -> None:
    if row["shadow"] is None:
        if row["shadow_numbers"] is not None or row["shadow_context"] is not None:
            raise InvalidInput("it has the numbers of a shadow, but no shadow is named")
        return
    name_of(row["shadow"], "shadow")
    numbers, context = _floats(row, "shadow_numbers"), _floats(row, "shadow_context")
    if (len(numbers) % n or len(numbers) < 2 * n) if n else len(numbers):
        raise InvalidInput("the shadow's numbers do not have a row for each candidate")
    if not (np.abs(numbers) <= _LARGEST).all() or not (np.abs(context) <= _LARGEST).all():
        raise InvalidInput(f"the shadow's numbers must be finite and at most {_LARGEST:g}")


def _floats(row: Row, name: str) -> NDArray[np.float32]:
    value = blob(row[name], name, 4)
    return unpack_floats(value) if value else _NO_FLOATS


def _shares(array: NDArray[np.float32]) -> bool:
    return bool((((array >= 0.0) & (array <= 1.0 + _TOLERANCE)) | np.isnan(array)).all())


def outcome(row: Row) -> None:
    """Reject an invalid outcome."""
    check_number(row["value"], "value", 0.0, 1.0)
    check_word(row["source"], SOURCES, "source")
    check_moment(row["at"], "at")
    solution(row["solution_kind"], row["solution"])
    check_whole(row["learns"], "learns", 0, 1)
    check_whole(row["agents_words"], "agents_words", 0, 1)
    if row["unkept"] is not None:
        check_word(row["unkept"], get_args(Unkept), "unkept")
    if row["withdrawn_at"] is not None:
        check_moment(row["withdrawn_at"], "withdrawn_at")
    by_whom(row)


def addition(row: Row) -> None:
    """Reject an invalid record of an addition by hand; its metadata have their own rules."""
    check_word(row["source"], SOURCES, "source")
    check_moment(row["at"], "at")
    if row["solution"] is not None and type(row["solution"]) is not str:
        raise InvalidInput(f"the solution must be a text, not {quoted(row['solution'])}")
    by_whom(row)


def action(row: Row) -> None:
    """Reject an invalid row of the audit log."""
    check_id(row["id"], "id")
    check_moment(row["at"], "at")
    check_whole(row["namespace"], "namespace", 0, 2**62)
    check_word(row["kind"], KINDS, "kind")
    check_known_actor(row["actor"])
    check_note(row["note"])
    if row["digest"] is not None:
        hex_of(row["digest"], "digest")
    for name in ("subject", "made", "hid"):
        if row[name] is not None:
            check_id(row[name], name)
    for name in ("undoes", "outcome", "replaced"):
        if row[name] is not None:
            check_whole(row[name], name, 1)
    counts_of(row["counts"])


def field(row: Row) -> None:
    """Reject an invalid metadata value."""
    value = row["value"]
    if type(row["name"]) is not str or not row["name"] or len(row["name"]) > MAX_ID_CHARS:
        raise InvalidInput(f"the name of a field must be a text of 1 to {MAX_ID_CHARS} characters")
    known = value in (b"\x00", b"\x01") if type(value) is bytes else type(value) in (str, int, float)
    if not known or (type(value) is float and not math.isfinite(value)):
        raise InvalidInput(f"the field {quoted(row['name'])} has a value that metadata cannot have")
