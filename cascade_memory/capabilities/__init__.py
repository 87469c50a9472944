"""What a memory can do beside its core: each capability is a folder here. This file lists them, and nothing else names one.

A folder has those of these modules that it needs:

- ``tables``: ``TABLES``, the tables that it adds to the ledger, and ``OBSERVER``, which hears of each transaction.
- ``verbs``: the class behind ``memory.<name>``, a ``Capable`` that is called like the folder: ``Notes`` in ``notes``.
- ``commands``: ``add(groups)``, which declares its group of the command ``cascade-memory``.
- ``pages``: ``PAGES`` and ``TABS`` of the inspector; its templates stand in ``templates`` beside it.

``tables`` is imported with the ledger, so it may import only what the ledger may; the others are imported when they are used.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
from types import ModuleType
from typing import TYPE_CHECKING

# In this order they hear of a transaction, and people see their commands and pages.
CAPABILITIES: tuple[str, ...] = ()

if TYPE_CHECKING:

    class Nouns:
        """What type checkers see at ``memory.<name>``: a line for each capability."""


@functools.cache
def parts(module: str) -> tuple[ModuleType, ...]:
    """Return the modules of one name of all capabilities that have one, in their order.

    >>> parts("no such part")
    ()
    """
    names = (f"{__name__}.{capability}.{module}" for capability in CAPABILITIES)
    return tuple(importlib.import_module(name) for name in names if importlib.util.find_spec(name) is not None)


def verbs_of(capability: str) -> type:
    """Return the class of its noun."""
    module = importlib.import_module(f"{__name__}.{capability}.verbs")
    found: type = getattr(module, capability.title().replace("_", ""))
    return found
