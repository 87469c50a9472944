"""The pages of what is measured: learning, and health."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from cascade_memory.bandit import Interval, intervals
from cascade_memory.domain import JudgedEpisode, counted
from cascade_memory.errors import CascadeError
from cascade_memory.insight import Health, Report
from cascade_memory.inspector import drawing
from cascade_memory.inspector.drawing import Line
from cascade_memory.inspector.view import Rendered, View

_POINTS = 160  # of a line
_RECENT = 100  # episodes that drift compares with those before them
_FEWEST = 20


@dataclass(frozen=True, slots=True)
class Measured:
    """What the page about learning shows."""

    report: Report
    stream: Sequence[JudgedEpisode]


@dataclass(frozen=True, slots=True)
class Charts:
    """The pictures of the page about learning; None where too little is known."""

    success: Markup
    with_case: int
    without: int
    holdout: Markup | None
    calibration: Markup | None
    weights: Markup | None
    surprise: Markup | None
    drift: str | None


def learning(view: View) -> Rendered:
    """Show what the memory has learned, and what that is worth."""

    def measure() -> Measured:
        return Measured(view.memory.report(), view.memory.episodes.judged())

    seen = view.remembered.get(("learning", view.namespace), measure)
    if seen is None:
        return Rendered("waits.html", {"what": "what was learned"}, reload=1)
    charts = charts_of(seen.value) if seen.value.stream else None
    return Rendered("learning.html", {"report": seen.value.report, "charts": charts, "at": seen.at})


def charts_of(measured: Measured) -> Charts:
    """Draw what was measured."""
    report, stream = measured.report, measured.stream
    last = len(stream)
    with_case = [(place, one.reward) for place, one in enumerate(stream, 1) if one.showed]
    without = [(place, one.reward) for place, one in enumerate(stream, 1) if not one.showed]
    predicted = [(place, one.reward - one.predicted) for place, one in enumerate(stream, 1) if not math.isnan(one.predicted)]
    lines = [Line("faint", rolling(without)), Line("accent", rolling(with_case))]
    label = f"Success over {last:,} judged episodes, with a case and without"
    arms = [
        (name, kind, arm.success)
        for name, kind, arm in (("with memory", "accent", report.live), ("held out", "faint", report.holdout))
        if arm.success is not None
    ]
    curve, learned = report.calibration, report.learned
    return Charts(
        success=drawing.over_time(label, lines, last),
        with_case=len(with_case),
        without=len(without),
        holdout=drawing.intervals("Mean reward with memory and held out", arms) if len(arms) == 2 else None,
        calibration=None if curve is None else drawing.calibration("Predicted against observed success", curve.bins),
        weights=None
        if learned is None
        else drawing.weights("Weights of the signals", [(name, *both) for name, both in learned.weights.items()]),
        surprise=drawing.surprise("Reward minus prediction", Line("accent", rolling(predicted)), last)
        if len(predicted) >= _FEWEST
        else None,
        drift=drift([one for _, one in predicted]),
    )


def rolling(values: Sequence[tuple[int, float]]) -> list[tuple[float, float]]:
    """Return moving averages, each with its place on the axis, at no more places than a chart can show.

    >>> rolling([(1, 0.0), (2, 1.0)])
    [(2.0, 0.5)]
    """
    if not values:
        return []
    places, numbers = np.array([one[0] for one in values], float), np.array([one[1] for one in values], float)
    window = max(2, min(100, len(values) // 8 or 1))
    if len(values) < window:
        return [(float(places[-1]), float(numbers.mean()))]
    sums = np.concatenate([[0.0], np.cumsum(numbers)])
    means = (sums[window:] - sums[:-window]) / window
    ends = places[window - 1 :]
    chosen = np.unique(np.linspace(0, len(means) - 1, min(_POINTS, len(means))).astype(int))
    return [(float(ends[i]), float(means[i])) for i in chosen]


def drift(surprises: Sequence[float]) -> str | None:
    """Return a sentence on whether rewards have moved away from the predictions lately; None if there are too few."""
    if len(surprises) < 2 * _FEWEST:
        return None
    recent = min(_RECENT, len(surprises) // 2)
    # From -1 to 1; the interval is for numbers between 0 and 1.
    halves = (np.array(surprises) + 1.0) / 2.0
    found = intervals.difference(halves[-recent:], halves[:-recent])
    return _in_words(Interval(2 * found.estimate, 2 * found.low, 2 * found.high), recent)


def _in_words(found: Interval, recent: int) -> str:
    points = f"{100 * found.estimate:+.0f} points ({100 * found.low:+.0f} to {100 * found.high:+.0f})".replace("-", "−")
    if found.low > 0:
        return f"The last {counted(recent, 'episode')} went better than predicted before: {points}."
    if found.high < 0:
        return f"The last {counted(recent, 'episode')} went worse than predicted before: {points}. Something may have changed."
    return f"No drift: the last {counted(recent, 'episode')} differ from the predictions as those before did, {points}."


def health(view: View) -> Rendered:
    """Show failures that raised no exception, and what the memory holds."""
    try:
        seen = view.remembered.get(("stats", view.namespace), lambda: view.memory.stats())
    except CascadeError:
        seen = None
    found: Health = view.memory.health()
    return Rendered(
        "health.html",
        {"health": found, "stats": None if seen is None else seen.value, "place": view.memory.data.place},
        reload=None if seen is not None else 1,
    )
