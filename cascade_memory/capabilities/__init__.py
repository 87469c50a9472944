"""What a memory can do beside its core: each capability is a folder here. This file lists them, and nothing else names one.

A folder has those of these modules that it needs:

- ``tables``: ``TABLES``, the tables that it adds to the ledger, and ``OBSERVER``, which hears of each transaction.
- ``verbs``: the class behind ``memory.<name>``, a ``Capable`` that is called like the folder: ``Notes`` in ``notes``.
- ``commands``: ``add(groups)``, which declares its group of the command ``cascade-memory``.
- ``pages``: ``PAGES``, ``TABS`` and ``ACTS`` of the inspector; its templates stand in ``templates`` beside it.

``tables`` is imported with the ledger, so it may import only what the ledger may; the others are imported when they are used.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
from types import ModuleType
from typing import TYPE_CHECKING, Any

# In this order they hear of a transaction, and people see their commands and pages.
CAPABILITIES: tuple[str, ...] = (
    "review",
    "sources",
    "warnings",
)

if TYPE_CHECKING:
    from cascade_memory.capabilities.review.verbs import Review
    from cascade_memory.capabilities.sources.verbs import Sources
    from cascade_memory.capabilities.warnings.verbs import Warnings

    class Nouns:
        """What type checkers see at ``memory.<name>``: a line for each capability."""

        review: Review
        sources: Sources
        warnings: Warnings


@functools.cache
def parts(module: str) -> tuple[ModuleType, ...]:
    """Return the modules of one name of all capabilities that have one, in their order.

    >>> parts("no such part")
    ()
    """
    names = (f"{__name__}.{capability}.{module}" for capability in CAPABILITIES)
    return tuple(importlib.import_module(name) for name in names if importlib.util.find_spec(name) is not None)


class Noun:
    """``memory.<name>``, as an attribute of the class of memories; the verbs are imported at its first use."""

    def __init__(self, capability: str) -> None:
        self._capability = capability

    def __get__(self, memory: Any, kind: type) -> Any:
        """Return the noun of a memory; of the class, return this."""
        return self if memory is None else self.verbs._of(memory)

    @functools.cached_property
    def verbs(self) -> Any:
        """The class of the noun."""
        module = importlib.import_module(f"{__name__}.{self._capability}.verbs")
        return getattr(module, self._capability.title().replace("_", ""))
