"""Results for people to look at: report, lift, off-policy log, statistics and plots."""

# pyright: reportUnusedImport=false
from __future__ import annotations

from typing import TYPE_CHECKING

from cascade_memory.lazy import door

if TYPE_CHECKING:
    from cascade_memory.insight.measuring import is_one_choice, logged, with_nothing
    from cascade_memory.insight.report import Bin, Report
    from cascade_memory.insight.stats import Health

# The names that the benchmark, the contract tests and the inspector use. A module is imported at the first use of its names.
__getattr__, __dir__ = door(
    __name__,
    {
        "measuring": "is_one_choice logged with_nothing",
        "report": "Bin Report",
        "stats": "Health",
    },
)
