"""Learning across namespaces (``Ranking(policy_scope="shared")``): only the weights of the ranking head are shared.

Each namespace uses them as the mean of its prior.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from cascade_memory.bandit.light import LightPolicy
from cascade_memory.cycle.learn import needs_rebuild
from cascade_memory.domain.calculating import calculating
from cascade_memory.domain.records import Change
from cascade_memory.learning.columns import Columns
from cascade_memory.learning.ranker import Shared
from cascade_memory.ports.policy import Feedback, Floats

if TYPE_CHECKING:
    from cascade_memory.ledger.core import Ledger

_WINDOW = 1_024  # outcomes of all namespaces from which a rebuild learns the weights


class SharedWeights:
    """The weights of the signals, learned from the outcomes of all namespaces, which share nothing else: no case, no word.

    Before the first outcome, the weights are those with which a policy starts:

    >>> shared = SharedWeights(lambda: LightPolicy(dimension=2))
    >>> shared.mean()
    array([2., 0.])
    """

    def __init__(self, make: Callable[[], LightPolicy]) -> None:
        self._make = make
        self._policy = make()

    def mean(self) -> Floats:
        """Return the present weights."""
        return self._policy.weights

    def update(self, feedback: Sequence[Feedback]) -> None:
        """Learn from outcomes of any namespace. Only one thread may call this at a time."""
        self._policy.update(feedback)

    def rebuild(self, history: Sequence[Feedback]) -> None:
        """Learn again from these outcomes alone; until that is done, ``mean`` returns the old weights."""
        policy = self._make()
        policy.rebuild(history)
        self._policy = policy


class SharedHead:
    """Passes every outcome in the ledger to the shared weights, whether its namespace is loaded in this process or not."""

    def __init__(self, shared: Shared, columns: Columns, ledger: Ledger, *, outcomes: bool) -> None:
        self._shared, self._columns, self._ledger, self._outcomes = shared, columns, ledger, outcomes
        self.seq = ledger.head()
        self._learning = threading.Lock()
        self._noting = threading.Lock()
        self._todo: list[Change] = []
        self._known, self._rebuild_due = 0, False
        self.rebuild()

    def apply(self, changes: Sequence[Change]) -> None:
        """Note what there is to learn; with ``outcomes=False``, only outcomes that were withdrawn or forgotten."""
        news = [change for change in changes if change.seq > self.seq and (self._outcomes or change.takes_outcomes_back)]
        with self._noting:
            self._todo += news
            self.seq = max(self.seq, changes[-1].seq)

    def learn(self) -> bool:
        """Learn what was noted; return True if the weights were rebuilt: then the policies that use them must be, too."""
        with self._learning, calculating():
            with self._noting:
                todo, self._todo = self._todo, []
            self._rebuild_due = self._rebuild_due or needs_rebuild(todo)
            if self._rebuild_due:
                self.rebuild()
                return True
            for change in todo:
                if change.settles and change.ref > self._known:
                    self._shared.update(self._columns.read(self._ledger.lessons.feedback(change.ref)))
            return False

    def rebuild(self) -> None:
        """Make the shared weights again from the ledger."""
        known = self._ledger.lessons.last_outcome()
        history = self._ledger.lessons.history(None, _WINDOW, until=known)
        self._shared.rebuild(self._columns.read(history))
        self._known, self._rebuild_due = known, False
