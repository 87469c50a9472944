"""Warnings of known failures: what is a mistake, whether to warn of it, the verbs, the command and the pages."""

# pyright: reportUnusedImport=false
from __future__ import annotations

from typing import TYPE_CHECKING

from cascade_memory.lazy import door

if TYPE_CHECKING:
    from cascade_memory.capabilities.warnings.blame import Solved, blamed_step
    from cascade_memory.capabilities.warnings.places import CLEARLY, Call, Mistake
    from cascade_memory.capabilities.warnings.records import Blame

# The benchmark of warnings uses these names. A module is imported at the first use of its names.
__getattr__, __dir__ = door(__name__, {"blame": "Solved blamed_step", "places": "CLEARLY Call Mistake", "records": "Blame"})
