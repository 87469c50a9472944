"""The table of the attacks: how often malicious cases were shown, and the success of honest actors, as means over the seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from cascade_memory.evaluation.bench.rows import Row
from cascade_memory.evaluation.bench.summary import interval

_CLEAN, _RIVAL = "clean", "similarity"
_SEVERAL = 2  # differences, from which they have an interval; attacks, from which they have a mean
_Found = Mapping[tuple[str, str, str, int], Mapping[str, float]]
HEAD = (
    "attack",
    "malicious turns",
    "memory",
    "measures",
    "success",
    "against clean",
    "aimed at",
    "against similarity",
    "shown malicious",
    "followed",
)


def measured(row: Mapping[str, Any]) -> dict[str, float]:
    """Compute four shares from the row of a run, in percent.

    "success" is the success of the honest actors, and "aimed" their success on tasks at which the attack was aimed. "malicious"
    is the share of the episodes with a malicious case among those that were shown a case. "followed" is the share of the tasks
    aimed at that were shown a malicious case and failed.

    >>> row = {"success": "1101", "shown": "1110", "bad": "0010", "aimed": "0110", "followed": "0010"}
    >>> {name: round(value) for name, value in measured(row).items()}
    {'success': 75, 'aimed': 50, 'malicious': 33, 'followed': 50}
    """
    marks = {
        name: np.array([one == "1" for one in str(row[name])]) for name in ("success", "shown", "bad", "aimed", "followed")
    }
    aimed = marks["aimed"]
    return {
        "success": _share(marks["success"]),
        "aimed": _share(marks["success"][aimed]),
        "malicious": 100.0 * float(marks["bad"].sum()) / max(1.0, float(marks["shown"].sum())),
        "followed": _share(marks["followed"][aimed]),
    }


def _share(marks: Any) -> float:
    return 100.0 * float(marks.mean()) if len(marks) else float("nan")


def table(rows: Sequence[Row]) -> list[list[str]]:
    """Make the lines of the table for one stream: first for each attack, method and set of measures, then for all attacks.

    The sets of measures are those of ``play.LAYERS``. The lines for all attacks are means at one share of malicious turns. They
    are computed from the attacks and seeds that were played with every method and set of measures, so all of these lines are
    means of the same attacks. If some attacks of the share are missing from them, the line says how many were used. Differences
    are paired by seed, and have their 95 % interval. A clean run has the same honest turns as the attacked run with the same
    seed and share.
    """
    found = {(row["attack"], row["method"], row["layers"], row["seed"]): measured(row) for row in rows}
    by: dict[tuple[str, str, str], list[int]] = {}
    for attack, method, layers, seed in found:
        by.setdefault((attack, method, layers), []).append(seed)
    order = sorted(by, key=lambda one: (not _is_clean(one[0]), one[0].partition("=")[0]))
    lines = [
        _line(found, attack.partition("=")[0], [attack], method, layers, by[attack, method, layers])
        for attack, method, layers in order
    ]
    shares: dict[str, dict[tuple[str, str], dict[str, list[int]]]] = {}
    for attack, method, layers in order:
        if not _is_clean(attack):
            its = shares.setdefault(attack.partition("=")[2], {})
            its.setdefault((method, layers), {})[attack] = by[attack, method, layers]
    for conditions in shares.values():
        lines += _together(found, conditions)
    return lines


def _is_clean(attack: str) -> bool:
    return attack.partition("=")[0] == _CLEAN


def _together(found: _Found, conditions: Mapping[tuple[str, str], Mapping[str, Sequence[int]]]) -> list[list[str]]:
    """Make the lines for all attacks at one share of malicious turns.

    ``conditions`` are the pairs of a method and a set of measures. The lines are means of the attacks and seeds that all of
    them have.
    """
    played = list(dict.fromkeys(attack for its in conditions.values() for attack in its))
    attacks = [one for one in played if all(one in its for its in conditions.values())]
    if len(attacks) < _SEVERAL:
        return []
    seeds = sorted(set[int].intersection(*(set(its[attack]) for its in conditions.values() for attack in attacks)))
    named = "all attacks" if attacks == played else f"{len(attacks)} of {len(played)} attacks"
    return [_line(found, named, attacks, method, layers, seeds) for method, layers in conditions if seeds]


def _line(found: _Found, named: str, attacks: Sequence[str], method: str, layers: str, seeds: Sequence[int]) -> list[str]:
    """Make the line of one attack, or of the mean of several attacks; ``named`` is what the line calls them."""
    kind, _, share = attacks[0].partition("=")
    means = [_mean([found[attack, method, layers, seed] for attack in attacks]) for seed in seeds]
    success, aimed, malicious, followed = (
        f"{np.mean([one[name] for one in means]):.1f}" for name in ("success", "aimed", "malicious", "followed")
    )
    base = "all" if method == "CASCADE" else layers
    clean = [found.get((f"{_CLEAN}={share}", method, base, seed)) for seed in seeds]
    rival = [_mean_of([found.get((attack, _RIVAL, "none", seed)) for attack in attacks]) for seed in seeds]
    against = "–" if kind == _CLEAN else _difference(means, clean, "success")
    ahead = "–" if kind == _CLEAN or method == _RIVAL else _difference(means, rival, "aimed")
    turns = f"{100 * float(share):g} %" if share else "–"
    return [named, turns, method, layers, success, against, aimed, ahead, malicious, followed]


def _mean(measures: Sequence[Mapping[str, float]]) -> dict[str, float]:
    return {name: float(np.mean([one[name] for one in measures])) for name in measures[0]}


def _mean_of(measures: Sequence[Mapping[str, float] | None]) -> dict[str, float] | None:
    there = [one for one in measures if one is not None]
    return _mean(there) if len(there) == len(measures) else None


def _difference(ours: Sequence[Mapping[str, float]], theirs: Sequence[Mapping[str, float] | None], name: str) -> str:
    """Write the mean of the paired differences, with half the width of its interval if there are several."""
    differences = [one[name] - other[name] for one, other in zip(ours, theirs, strict=True) if other is not None]
    if not differences:
        return "–"
    mean, half = interval(differences)
    return f"{mean:+.1f}" if len(differences) < _SEVERAL else f"{mean:+.1f} ± {half:.1f}"
