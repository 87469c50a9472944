"""What a memory can do beside its core: each capability is a folder here. This file lists them, and nothing else names one.

Each folder contains the modules that it needs from this list:

- ``tables``: ``TABLES``, the tables that the capability adds to the ledger, ``ACTIONS``, the kinds of actions that it adds to
  the audit log, and ``holds``, which says in SQL whose cases are held back.
- ``transaction``: ``OBSERVER``, whose methods the ledger calls inside a transaction: when an outcome counts or no longer
  counts, when cases are gone or an episode is about to be deleted, to take an action back, to export and import, when an import
  is over, and to repair rows.
- ``engine_part``: ``PART``, an ``EnginePart``: what the capability does in the engine. It follows the log, holds candidates
  back, stores rows with a recall, adds to what a judgement stores, and works where learning happens.
- ``verbs``: the class behind ``memory.<name>``, a ``Capable`` (if it has tables) named like the folder: ``Notes`` in ``notes``.
- ``commands``: ``add(groups)``, which declares the capability's group of the command ``cascade-memory``.
- ``routes``: ``routes(memory)``, the ASGI applications that the MCP server on HTTP answers with beside MCP, by their paths.
- ``pages``: ``PAGES``, ``TABS`` and ``ACTS`` of the inspector; their templates are in the folder ``templates`` beside it.

``tables`` and ``transaction`` are imported with the ledger, so they may import only what the ledger may, and ``transaction``
nothing that imports ``ledger.events``. The others are imported when they are used.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
from types import ModuleType
from typing import TYPE_CHECKING, Any

# In this order they hear of a transaction, and people see their commands and pages.
CAPABILITIES: tuple[str, ...] = (
    "models",
    "review",
    "otel",
    "scores",
    "sources",
    "traces",
    "warnings",
)

if TYPE_CHECKING:
    from cascade_memory.capabilities.models.verbs import Models
    from cascade_memory.capabilities.otel.verbs import Otel
    from cascade_memory.capabilities.review.verbs import Review
    from cascade_memory.capabilities.scores.verbs import Scores
    from cascade_memory.capabilities.sources.verbs import Sources
    from cascade_memory.capabilities.traces.verbs import Traces
    from cascade_memory.capabilities.warnings.verbs import Warnings

    class Nouns:
        """What type checkers see at ``memory.<name>``: a line for each capability."""

        models: Models
        otel: Otel
        review: Review
        scores: Scores
        sources: Sources
        traces: Traces
        warnings: Warnings


@functools.cache
def parts(module: str) -> tuple[ModuleType, ...]:
    """Return the modules with this name, of all capabilities that have one, in the order of ``CAPABILITIES``.

    >>> parts("no such part")
    ()
    """
    names = (f"{__name__}.{capability}.{module}" for capability in CAPABILITIES)
    return tuple(importlib.import_module(name) for name in names if importlib.util.find_spec(name) is not None)


class Noun:
    """The attribute ``memory.<name>`` of the class of memories; the class with its methods is imported at the first use."""

    def __init__(self, capability: str) -> None:
        self._capability = capability

    def __get__(self, memory: Any, kind: type) -> Any:
        """Return the object ``memory.<name>`` of a memory; if asked for on the class, return this attribute itself."""
        return self if memory is None else self.verbs._of(memory)

    @functools.cached_property
    def verbs(self) -> Any:
        """The class of the object ``memory.<name>``."""
        module = importlib.import_module(f"{__name__}.{self._capability}.verbs")
        return getattr(module, self._capability.title().replace("_", ""))
