"""What ``memory.episodes.plot()`` returns: success and regret over the episodes, as a picture that a notebook shows."""

from __future__ import annotations

import io
import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cascade_memory.domain.display import counted
from cascade_memory.errors import InvalidInput, MissingExtra
from cascade_memory.looks.card import Card
from cascade_memory.looks.card import Picture as Panels
from cascade_memory.looks.curves import Curve, Panel, moving_mean, thinned, window_for
from cascade_memory.looks.palette import Look, looks

# A case shown and none shown have the colours of the methods that always and never show one.
_ALL, _SHOWN, _NONE = "all", "case shown", "none shown"
_LOOKS: dict[str, Look] = {
    _ALL: looks(["CASCADE"])["CASCADE"],
    _SHOWN: looks(["CASCADE, always a case"])["CASCADE, always a case"],
    _NONE: looks(["no memory"])["no memory"],
}
Rewards = Sequence[tuple[float, bool]]


class Plot:
    """Success and regret over the episodes. In a notebook it shows itself; ``savefig`` and ``figure`` need the extra "plot".

    ``panels`` are what is drawn, ``figure`` is the matplotlib figure of it, and ``axes`` are its two axes.
    """

    def __init__(self, panels: Sequence[Panel], episodes: int) -> None:
        self.panels = tuple(panels)
        self._episodes = episodes
        self._figure: Any = None

    @property
    def figure(self) -> Any:
        """The matplotlib figure."""
        if self._figure is None:
            from cascade_memory.looks.figure import figure_of

            self._figure = figure_of(self.panels, "plot().figure")
        return self._figure

    @property
    def axes(self) -> list[Any]:
        """The axes of the figure: success and regret."""
        return list(self.figure.axes)

    def savefig(self, target: str | Path | Any, **how: Any) -> None:
        """Write the picture into a file, as matplotlib's ``savefig`` does."""
        from cascade_memory.looks.figure import quiet

        with quiet():
            self.figure.savefig(target, **{"dpi": 150, **how})

    def __repr__(self) -> str:
        """Summarise in one line."""
        return f"Plot({counted(self._episodes, 'episode')})"

    def _repr_html_(self) -> str:
        return Card("Success and regret", f"{self._episodes:,} rewarded episodes", [Panels(self.panels)]).html()

    def _repr_png_(self) -> bytes | None:
        """Draw the picture for viewers that show no HTML; None without matplotlib."""
        target = io.BytesIO()
        try:
            self.savefig(target, format="png")
        except MissingExtra:
            return None
        return target.getvalue()


def plot_rewards(rewards: Rewards, *, window: int) -> Plot:
    """Plot the moving average of success with and without a case, and the regret (rewards missed so far).

    >>> plot_rewards([(1.0, True), (0.0, False)], window=50)
    Plot(2 episodes)
    """
    if not rewards:
        raise InvalidInput("there is nothing to plot yet: no episode was rewarded")
    return Plot([success_panel(rewards, window), _regret_panel(rewards)], len(rewards))


def success_panel(rewards: Rewards, window: int) -> Panel:
    """Average the success of all episodes, and of those with and without a case, over windows of the same size."""
    window = window_for(window, len(rewards))
    wanted = {_ALL: (True, False), _SHOWN: (True,), _NONE: (False,)}
    curves: list[Curve] = []
    for name, which in wanted.items():
        kept = [(float(place), value) for place, (value, shown) in enumerate(rewards, 1) if shown in which]
        if len(kept) < window or (name != _ALL and len(kept) == len(rewards)):
            continue  # too few for a mean, or the same as all of them
        means = moving_mean([value for _, value in kept], window)
        points = thinned(list(zip((place for place, _ in kept[window - 1 :]), means, strict=True)))
        curves.append(Curve(name, points, _LOOKS[name], 2.6 if name == _ALL else 1.4))
    ends = ", ".join(f"{curve.name} {100 * curve.points[-1][1]:.0f} %" for curve in curves)
    mean_of = f"mean of the last {window}" if window > 1 else "each episode"
    return Panel(f"Success, {mean_of}", "episode", curves, f"Success at the end, {mean_of}: {ends}.", shares=True)


def _regret_panel(rewards: Rewards) -> Panel:
    sums = list(itertools.accumulate(1.0 - value for value, _ in rewards))
    points = thinned([(float(place), missed) for place, missed in enumerate(sums, 1)])
    words = f"{sums[-1]:,.1f} rewards missed in {counted(len(rewards), 'episode')}, compared with success in every one."
    return Panel("Regret: rewards missed so far", "episode", [Curve("", points, _LOOKS[_ALL])], words)
