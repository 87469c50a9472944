"""Detects when a column of an encoder changes its meaning: its values on fixed examples then change."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cascade_memory.domain.digests import digest
from cascade_memory.encoders.light import FEATURES, LightEncoder, Lookup, standardised
from cascade_memory.ports.encoders import Candidates, PairEncoder, Query
from cascade_memory.redaction.saying import log_of

UNKNOWN = "?"  # the note of a column whose values on the examples are not known or vary
_DIMENSION = 8  # of the examples' vectors, whatever the embedder is: another embedder must not change the notes
_DIGITS = 6
# Values are compared in tenths of a standard deviation, since processors differ in the last bits. The offset is there because
# many values are round numbers, and a round number must not lie on the edge between two tenths.
_STEP, _OFFSET = 0.1, 0.0371
_NOTE = r"\d{1,4}=[0-9a-f?]{1,32}"
_NOTED = re.compile(rf"(?P<name>.*) \[(?P<notes>{_NOTE}(, {_NOTE})*)\]", re.DOTALL | re.ASCII)
_OURS = re.compile(r"light-\d+")
_log = log_of(__name__)

# Texts of different lengths, with and without paragraphs, digits, questions, capitals, code and other alphabets.
_TEXTS = (
    "heat some cup and put it in cabinet",
    "cool some plate and put it in fridge",
    "How do I reset my password?",
    "My card was declined in Lisbon on 3 May 2024, error 402!",
    "list the orders of customer 17\n\nTable orders: id, customer, total.\n\nAnswer with one SQL query.",
    "list the customers of region 4\n\nTable customers: id, name, region.\n\nAnswer with one SQL query.",
    "Dear shop,\n\nthe parcel never came. I have waited for eleven days.\n\nPlease send it once more",
    "DEAR SHOP!\n\nThe parcel came twice, and I need it only once.\n\nPlease refund one of them",
    "def mean(values): return sum(values) / len(values)  # TypeError: 'NoneType' object is not iterable",
    "x",
    "Übersetze den Satz ins Englische: «Der Zug fährt um 7:45 Uhr ab.»",
    "把这句话翻译成英文",
)
_HEADS = (
    "take the cup, microwave it, put it in the cabinet",
    "take the plate, cool it, put it in the fridge",
    "Send a reset link.",
    "enable foreign transactions",
    "SELECT * FROM orders WHERE customer = 17",
    "SELECT * FROM customers WHERE region = 4",
    "resend",
    "refund",
    "return 0.0 if not values else sum(values) / len(values)",
    "",
    "The train leaves at 7:45.",
    "Translate this sentence into English.",
)
_QUERIES = (
    "put a hot cup into the cabinet, please",
    "list the orders of region 4\n\nTable orders: id, customer, region, total.\n\nAnswer with one SQL query.",
)


class Noted(NamedTuple):
    """The parsed identity of a pair encoder: its name, and by place the notes on the columns that it added or changed."""

    name: str
    notes: Mapping[int, str]

    @property
    def of_light(self) -> bool:
        """Whether this is the light encoder or one derived from it: then the columns are in the order of ``FEATURES``."""
        return bool(self.notes) or _OURS.fullmatch(self.name) is not None


def noted(identity: str) -> Noted:
    """Parse an identity.

    >>> noted("light-6-length [9=1a2b3c]"), noted("light-6").notes
    (Noted(name='light-6-length', notes={9: '1a2b3c'}), {})
    """
    found = _NOTED.fullmatch(identity)
    if found is None:
        return Noted(identity, {})
    pairs = (one.split("=") for one in found["notes"].split(", "))
    return Noted(found["name"], {int(place): note for place, note in pairs})


def identity_of(encoder: PairEncoder, make: Callable[[int, Lookup], PairEncoder]) -> str:
    """Return the identity of an encoder that ``make`` made, with a note on each column that it added or changed.

    The note is a short hash of the column's values on a few fixed examples. So it changes when somebody edits the function of a
    signal, even if its name stays. If ``meanings`` declares the column's meaning, that is hashed instead. If neither is known,
    the note is "?". The columns of ``LightEncoder`` itself have no note.

    >>> identity_of(LightEncoder(2, lambda keys: np.zeros((len(keys), 2), np.float32)), LightEncoder)
    'light-6'
    """
    if not isinstance(encoder, LightEncoder):
        return encoder.identity
    declared = encoder.meanings
    found = {} if type(encoder) is LightEncoder else _notes(encoder, make)
    notes: dict[int, str] = {}
    for place, name in enumerate(encoder.features):
        if name in declared:
            notes[place] = _short(f"{name}\x00{declared[name]}")
        elif name in found:
            notes[place] = found[name]
        elif place >= len(FEATURES) or name != FEATURES[place]:
            notes[place] = UNKNOWN
    listed = ", ".join(f"{place}={note}" for place, note in notes.items())
    return f"{encoder.identity} [{listed}]" if listed else encoder.identity


def meanings_of(make: Callable[[int, Lookup], PairEncoder]) -> dict[str, str]:
    """Return a short hash of each column's values on the examples, for a light encoder. Raise what its signals raise.

    >>> list(meanings_of(LightEncoder))
    ['similarity', 'cluster', 'words', 'letters', 'solution words', 'opening', 'closing', 'form', 'metadata']
    """
    names, tenths = _tried(make)
    return {name: _short(f"{name}\x00{column.tolist()}") for name, column in zip(names, tenths.T, strict=True)}


def _notes(encoder: LightEncoder, make: Callable[[int, Lookup], PairEncoder]) -> dict[str, str]:
    """Return notes on the columns that differ from the built-in ones; log a warning if a change would not be noticed."""
    try:
        first, second, ours = meanings_of(make), meanings_of(make), _of_ours()
    except Exception as error:  # noqa: BLE001 - the user's signals may fail in any way; recalls report it if they fail there too
        _log.warning(
            "the signals of %s cannot be computed on examples (%r), so a change of their meaning will not be noticed: change "
            "`identity` yourself when you change one",
            type(encoder).__name__,
            error,
        )
        return {}
    vague = [name for name in first if name not in encoder.meanings and first[name] != second.get(name)]
    if vague:
        _log.warning(
            "the signals %s of %s have other values each time, so a change of their meaning will not be noticed: change "
            "`identity` yourself when you change one",
            ", ".join(map(repr, vague)),
            type(encoder).__name__,
        )
    return {name: UNKNOWN if name in vague else note for name, note in first.items() if note != ours.get(name)}


@functools.cache
def _of_ours() -> Mapping[str, str]:
    return meanings_of(LightEncoder)


def _tried(make: Callable[[int, Lookup], PairEncoder]) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    """Encode the examples with a new encoder; return the columns' names and their values in tenths of a standard deviation."""
    n = len(_TEXTS)
    vectors = _unit(np.cos(0.7 * np.outer(np.arange(1.0, n + 1.0), np.arange(1.0, _DIMENSION + 1.0))))
    numbers = np.arange(n)
    cases = Candidates(
        keys=numbers + 1,
        texts=_TEXTS,
        heads=_HEADS,
        vectors=vectors,
        groups=numbers // 2,
        alike=(numbers % 3 / 2).astype(np.float32),
    )
    encoder: Any = make(_DIMENSION, lambda keys: vectors[np.asarray(keys) - 1])
    encoder.retain(cases)
    weights = encoder.alignment.weights
    # There are too few examples to compute the weights. With paragraphs that decide alone, the form would not be seen.
    encoder.alignment.weights = np.full(len(weights), 0.5, np.float32)
    encoder.form.weight = 1.0
    tables: list[NDArray[np.float32]] = []
    for number, text in enumerate(_QUERIES):
        vector = _unit(vectors[[4 * number]] + 0.5 * vectors[[4 * number + 1]])[0]
        features = np.asarray(encoder.encode(Query(text=text, vector=vector), cases, vectors @ vector), np.float32)
        if not np.isfinite(features).all():
            raise ValueError("a column has values that are nan or infinite")
        tables.append(standardised(features))
    return tuple(encoder.features), np.floor(np.concatenate(tables) / _STEP + _OFFSET).astype(np.int64)


def _unit(vectors: NDArray[np.floating[Any]]) -> NDArray[np.float32]:
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def _short(text: str) -> str:
    return digest(text)[:_DIGITS]
