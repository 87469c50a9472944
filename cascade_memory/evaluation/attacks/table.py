"""The table of the attacks: what got through, and what it cost the honest, as means over the seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from cascade_memory.evaluation.bench.rows import Row

HEAD = (
    "attack",
    "malicious turns",
    "memory",
    "measures",
    "success",
    "against clean",
    "aimed at",
    "shown malicious",
    "followed",
)


def measured(row: Mapping[str, Any]) -> dict[str, float]:
    """Compute the shares of one run, in percent.

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
    """Make the lines of the table for the rows of one stream: a line for each condition."""
    clean = {(row["method"], row["layers"], row["seed"]): measured(row)["success"] for row in rows if row["attack"] == "clean"}
    by: dict[tuple[str, str, str], list[Row]] = {}
    for row in sorted(rows, key=lambda row: (row["attack"] != "clean", row["attack"].partition("=")[0])):
        by.setdefault((row["attack"], row["method"], row["layers"]), []).append(row)
    lines: list[list[str]] = []
    for (attack, method, layers), its in by.items():
        kind, _, share = attack.partition("=")
        found = [measured(row) for row in its]
        baseline = [clean.get((method, "all" if method == "CASCADE" else layers, row["seed"])) for row in its]
        lost = [one["success"] - base for one, base in zip(found, baseline, strict=True) if base is not None]
        numbers = [float(np.mean([one[name] for one in found])) for name in ("success", "aimed", "malicious", "followed")]
        success, aimed, malicious, followed = (f"{number:.1f}" for number in numbers)
        against = f"{np.mean(lost):+.1f}" if lost and kind != "clean" else "–"
        turns = f"{100 * float(share):g} %" if share else "–"
        lines.append([kind, turns, method, layers, success, against, aimed, malicious, followed])
    return lines
