"""Keeps the names of models while runs go on; each becomes metadata of its episode when the run ends or is rewarded."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Protocol

from cascade_memory.capabilities.models.tallies import MODEL, line_of, tallies
from cascade_memory.domain.metadata import MetadataValue
from cascade_memory.domain.validation import MAX_ID_CHARS
from cascade_memory.engine.door import Door
from cascade_memory.engine.part import EnginePart
from cascade_memory.ledger.core import Ledger
from cascade_memory.visible import on_one_line

MOST = 4_096  # episodes whose runs go on, and namespaces; the latest ones
_REPORTED = 8  # models in a report


class HasLedger(Protocol):
    """The parts of an engine that are needed."""

    @property
    def ledger(self) -> Ledger:
        """The ledger."""
        ...

    @property
    def door(self) -> Door:
        """The door that all texts pass."""
        ...


class Stamps(Protocol):
    """What is needed of an engine."""

    ending: tuple[EnginePart, ...]

    @property
    def parts(self) -> HasLedger:
        """The parts."""
        ...

    def note_failure(self, step: str, error: Exception) -> None:
        """Count and log a failure that no exception reports."""
        ...


class Naming(EnginePart):
    """It hears of the end of episodes only after it has heard the name of a model, so that it costs nothing before.

    The model that answered last in a namespace will probably answer the next task there, too.
    """

    def __init__(self, engine: Stamps) -> None:
        self._engine = engine
        self._names: OrderedDict[str, str] = OrderedDict()  # by episode: the model that has answered last
        self._latest: OrderedDict[str, str] = OrderedDict()  # by namespace
        self._lock = threading.Lock()

    def answered(self, episode_id: str, name: object, namespace: str) -> None:
        """Keep the name of the model that has answered last in an episode of a namespace; leave out what is no name."""
        plain = name_of(name)
        if plain is None:
            return
        with self._lock:
            for names, place in ((self._names, episode_id), (self._latest, namespace)):
                names[place] = plain
                names.move_to_end(place)
                if len(names) > MOST:
                    names.popitem(last=False)
            if self not in self._engine.ending:
                self._engine.ending = (*self._engine.ending, self)

    def ends(self, episode_id: str) -> Mapping[str, MetadataValue]:
        """Return the name as metadata, unless those of the episode have this field already: then somebody else has set it."""
        with self._lock:
            name = self._names.pop(episode_id, None)
        if name is None:
            return {}
        try:
            parts = self._engine.parts
            found = parts.ledger.episodes.one(episode_id)
            if found is not None and MODEL not in found.metadata:
                return parts.door.record(episode_id).metadata({MODEL: name})
        except Exception as error:  # noqa: BLE001 - an episode must end, whether or not its model can be named
            self._engine.note_failure("models", error)
        return {}

    def expects(self, namespace: str) -> Mapping[str, MetadataValue]:
        """Return the model that answered last in a namespace."""
        name = self._latest.get(namespace)
        return {} if name is None else {MODEL: name}

    def reported(self, namespace: int | None) -> Sequence[tuple[str, str]]:
        """Return a row for each of the models that were used most, for the report."""
        with self._engine.parts.ledger.connections.read() as tx:
            found = tallies(tx, namespace)
        rows = [("by model" if not place else "", line_of(one)) for place, one in enumerate(found[:_REPORTED])]
        more = len(found) - len(rows)
        return [*rows, ("", f"and {more:,} more: memory.models.all()")] if more else rows


def name_of(name: object) -> str | None:
    r"""Return the name of a model, as it is stamped; None if the value is no name: too long, or not one plain line.

    A provider may send the name in each part of a stream. LangChain then joins these names, so that a name is repeated.

    >>> name_of("gpt-5.2"), name_of("gpt-5.2gpt-5.2gpt-5.2"), name_of(None), name_of("gpt\u200b"), name_of("unknown")
    ('gpt-5.2', 'gpt-5.2', None, None, None)
    """
    if not isinstance(name, str):
        return None
    plain = str.__str__(name).strip()
    plain = plain[: (plain + plain).find(plain, 1)]
    if not plain or plain == "unknown" or len(plain) > MAX_ID_CHARS or on_one_line(plain) != plain:  # LlamaIndex says "unknown"
        return None
    return plain


PART = Naming
