"""How things look, each in one place: the colours and what they mean, charts, and the HTML that objects show in a notebook."""

# pyright: reportUnusedImport=false
from __future__ import annotations

from typing import TYPE_CHECKING

from cascade_memory.lazy import door

if TYPE_CHECKING:
    from cascade_memory.looks.curves import Curve, Panel, moving_mean, window_for
    from cascade_memory.looks.figure import End, EndNames, figure_of, need_matplotlib, new_figure, saved, styled
    from cascade_memory.looks.palette import (
        BLACK,
        FRAME,
        INK,
        OTHER,
        WHITE,
        Look,
        as_variable,
        legend,
        looks,
        page_variables,
        strong,
        with_variables,
    )

# The names that the benchmark, the contract tests and the inspector use. A module is imported at the first use of its names.
__getattr__, __dir__ = door(
    __name__,
    {
        "curves": "Curve Panel moving_mean window_for",
        "figure": "End EndNames figure_of need_matplotlib new_figure saved styled",
        "palette": "BLACK FRAME INK Look OTHER WHITE as_variable legend looks page_variables strong with_variables",
    },
)
