"""How many tasks it takes to tell whether a memory helps, planned in advance from how often tasks succeed without memory."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from cascade_memory.domain.validation import check_share
from cascade_memory.errors import InvalidInput

_SURE = 1.959963984540054  # standard deviations: the 95 % interval of ``report()`` lies above 0
_POWER = 0.8416212335729143  # and it does so in four of five such experiments


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What it takes to detect a lift with ``holdout``: the number of ``tasks``, and how many of them run ``without`` memory."""

    succeeds: float
    lift: float
    holdout: float
    tasks: int
    without: int
    days: float | None  # None if it is unknown how many tasks come a day

    def as_dict(self) -> dict[str, Any]:
        """Convert to plain values, ready for JSON."""
        return asdict(self)


def planned(*, succeeds: float, lift: float = 0.05, holdout: float = 0.05, a_day: float | None = None) -> Plan:
    """Say how many tasks must be judged so that ``report()`` detects a lift in four of five experiments.

    ``succeeds`` is the share of tasks that succeed without memory, ``lift`` what the memory adds to it, and ``holdout`` the
    share of episodes that run without memory. Two shares with unequal numbers of tasks are compared, as for any experiment.

    >>> plan = planned(succeeds=0.6, holdout=0.5)
    >>> plan.tasks, plan.without
    (2941, 1470)
    >>> planned(succeeds=0.6, holdout=0.05, a_day=200).days
    76.5
    """
    check_share(succeeds, "succeeds")
    if not 0.0 < holdout < 1.0:
        raise InvalidInput(
            f"holdout must be a share between 0 and 1, such as 0.1, not {holdout}: without it nothing is compared"
        )
    if not 0.0 < lift <= 1.0 - succeeds:
        raise InvalidInput(
            f"lift ({lift:g}) must be above 0 and at most {1.0 - succeeds:g}: more than all tasks cannot succeed"
        )
    if a_day is not None and not 0.0 < a_day < math.inf:
        raise InvalidInput(f"the tasks of a day must be a number above 0, not {a_day}")
    with_memory = succeeds + lift
    alike = (1.0 - holdout) * with_memory + holdout * succeeds
    none_differs = alike * (1.0 - alike) * (1.0 / holdout + 1.0 / (1.0 - holdout))
    differs = succeeds * (1.0 - succeeds) / holdout + with_memory * (1.0 - with_memory) / (1.0 - holdout)
    tasks = math.ceil(((_SURE * math.sqrt(none_differs) + _POWER * math.sqrt(differs)) / lift) ** 2)
    days = None if a_day is None else round(tasks / a_day, 1)
    return Plan(succeeds=succeeds, lift=lift, holdout=holdout, tasks=tasks, without=round(holdout * tasks), days=days)
