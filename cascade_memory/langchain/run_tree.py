"""Groups LangChain runs into trees, from the outermost run down.

A thread may outlive the run that started it, for example the thread of a tool in a run that was cancelled. What the thread does
belongs to the run that has ended: the thread begins no run of its own, and joins no other.

LangChain does not report the end of every run. Examples are a stream with fallbacks that is cut off after its first part, and a
generator that is thrown away with its event loop. LangChain holds the id of a run while the run can go on. So a run counts as
lost if nobody holds its id any more and nothing was reported of the run for a while.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections import OrderedDict, deque
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast
from uuid import UUID

from cascade_memory.domain.waiting import Asker, asked_by

if TYPE_CHECKING:
    from cascade_memory.langchain.block import Block

EPISODE_KEY = "cascade_episode_id"  # in a run's metadata, which all runs below it inherit
METADATA_KEY = "cascade_metadata"  # also in a run's metadata: the metadata of its episode
ACTOR_KEY = "cascade_actor"  # in ``configurable`` or in a run's metadata: who asks
CHANNEL = "langchain"
SILENT = 30.0  # seconds without a word from a run whose id is gone
MOST_LATE = 8_192  # runs whose threads may outlive their root; the latest ones


def actor_in(*places: object) -> str | None:
    """Return the name of the actor: ``cascade_actor`` in the first of these mappings that has it; None if none has it.

    The mappings are parts of a run's configuration, never messages or the state.

    >>> actor_in(None, {"cascade_actor": "ann"})
    'ann'
    """
    for place in places:
        found = cast("Mapping[str, object]", place).get(ACTOR_KEY) if isinstance(place, Mapping) else None
        if found is not None:
            return str(found)
    return None


@dataclass(slots=True, eq=False, kw_only=True)
class ToolCall:
    """A tool run, as it will appear in the trajectory."""

    name: str
    arguments: object
    thought: str
    call_id: str | None = None
    observation: str = ""
    failed: bool = False
    own: bool = False  # True if it shows recalled cases: then it is not part of the solution


@dataclass(slots=True, eq=False, kw_only=True)
class Root:
    """An outermost run; recalls below it belong to its episode."""

    run_id: UUID
    episode_id: str
    thread_id: str | None = None
    block: Block | None = None  # the user's own ``with`` block, which ends the episode
    opened: bool = False  # True once there was a recall
    claimed: bool = False  # True once ``claim`` has returned the id, for an episode that the middleware ends
    interrupted: bool = False
    adopted: list[tuple[str, str | None]] = field(default_factory=list["tuple[str, str | None]"])  # the middleware's episodes
    main: str | None = None  # the one of them whose steps are the calls below: it was opened outside of any tool
    calls: list[ToolCall] = field(default_factory=list["ToolCall"])
    thought: str = ""
    runs: dict[UUID, bool] = field(default_factory=dict["UUID", bool])  # those below it, and whether they go on
    heard: float = field(default_factory=time.monotonic)  # when one of them began or ended
    watch: weakref.ref[UUID] | None = None  # tells when LangChain lets go of the id
    over: bool = False
    asker: Asker = field(default_factory=lambda: Asker(ends_named=True))  # leaves when the episode has ended with the run

    @property
    def own_calls(self) -> set[str]:
        """The ids of the tool calls that showed recalled cases."""
        return {call.call_id for call in self.calls if call.own and call.call_id}


@dataclass(slots=True, eq=False)
class Run:
    """A run somewhere below a root."""

    root: Root
    tool: ToolCall | None = None  # the outermost tool call around this run
    asked: str | None = None  # the name of the model that it calls


class RunTree:
    """Finds the root of any run; of a root that has ended, it remembers only the runs that may go on. Thread-safe."""

    def __init__(self) -> None:
        # A run may also be ended by the garbage collector, while this thread is in here.
        self._lock = threading.RLock()
        self._late: OrderedDict[UUID, Run] = OrderedDict()
        self._let_go: deque[UUID] = deque()  # the ids of roots that LangChain has let go of, without an end
        self._runs: dict[UUID, Run] = {}
        self._roots: dict[UUID, Root] = {}

    def start(
        self,
        run_id: UUID,
        parent: UUID | None,
        metadata: Mapping[str, Any] | None,
        *,
        is_chain: bool,
        block: Block | None = None,
    ) -> tuple[Run | None, bool]:
        """Record a run; return the run and whether it is new. The run is None if it belongs to no known root."""
        fields = metadata or {}
        with self._lock:
            if run_id in self._runs:
                return self._runs[run_id], False  # the same handler was attached twice
            above = self._known(parent)
            if above is not None:
                return self._add(run_id, Run(above.root, above.tool)), True
            if parent is None and not is_chain:
                return None, True  # a model or a tool alone: no recalls are made for it
            if parent is not None and not (is_chain and "langgraph_node" not in fields):
                root = self._live(fields)  # the handler never saw its parent: LangSmith's wrappers, for example
                return (None if root is None else self._add(run_id, Run(root))), True
            own = UUID(int=run_id.int)
            root = Root(run_id=own, episode_id=str(fields.get(EPISODE_KEY) or own), block=block)
            root.watch = weakref.ref(run_id, lambda _: self._let_go.append(own))
            self._roots[own] = root
            return self._add(own, Run(root)), True

    def _add(self, run_id: UUID, run: Run) -> Run:
        if run.root.over:
            self._note_late(run_id, run)
        else:
            self._runs[run_id] = run
            run.root.runs[run_id] = True
            run.root.heard = time.monotonic()
        return run

    def _note_late(self, run_id: UUID, run: Run) -> None:
        self._late[run_id] = run
        while len(self._late) > MOST_LATE:
            self._late.popitem(last=False)

    def _known(self, run_id: UUID | None) -> Run | None:
        return None if run_id is None else self._runs.get(run_id) or self._late.get(run_id)

    def _live(self, metadata: Mapping[str, Any]) -> Root | None:
        """Return the only root that a run with an unknown parent can belong to; None if there is none or more than one."""
        episode, thread = metadata.get(EPISODE_KEY), metadata.get("thread_id")
        found = [
            root
            for root in self._roots.values()
            if (episode is not None and root.episode_id == str(episode))
            or (episode is None and thread is not None and root.thread_id == str(thread))
        ]
        return found[0] if len(found) == 1 else None

    def join(self, run_id: UUID | None, metadata: Mapping[str, Any] | None) -> Root | None:
        """Return the root that a recall below this run belongs to, and record that the root has a recall."""
        found = self.find(run_id, metadata)
        if found is None:
            return None
        with self._lock:
            if found.tool is not None:
                found.tool.own = True
            found.root.opened = True
        return found.root

    def claim(self, run_id: UUID | None, metadata: Mapping[str, Any]) -> str | None:
        """Return the id for the first episode of the outermost run.

        Return None if this id was returned before, if the run has an episode, or if the run is unknown.
        """
        found = self.find(run_id, metadata)
        with self._lock:
            if found is None or found.root.opened or found.root.claimed:
                return None
            found.root.claimed = True
            return found.root.episode_id

    def recalling(self, run_id: UUID | None, metadata: Mapping[str, Any] | None) -> AbstractContextManager[object]:
        """Return a block for a recall below this run: if the outermost run ends meanwhile, the recall opens no episode."""
        found = self.find(run_id, metadata)
        return nullcontext() if found is None else asked_by(found.root.asker)

    def adopt(self, run_id: UUID | None, metadata: Mapping[str, Any], episode_id: str, namespace: str | None) -> bool:
        """Watch an episode that the middleware or a node will end; if its run fails before, the handler ends it.

        Return False if the run has ended already: then nobody will end the episode.
        """
        with self._lock:
            found = self.find(run_id, metadata)
            if found is not None and not found.root.over:
                found.root.adopted.append((episode_id, namespace))
                if found.tool is None and found.root.main is None:
                    found.root.main = episode_id
            return found is None or not found.root.over

    def find(self, run_id: UUID | None, metadata: Mapping[str, Any] | None = None) -> Run | None:
        """Return a recorded run, or a new one below the only root that fits, or None."""
        with self._lock:
            found = self._known(run_id)
            if found is None and (root := self._live(metadata or {})) is not None:
                found = Run(root)
            return found

    def end(self, run_id: UUID, *, well: bool = False) -> Root | None:
        """Record that a run has ended; if it is a root, return it and forget the runs below it that cannot go on.

        ``well`` says that a root ended without a failure: then the runs below it that have ended are forgotten. If a root ended
        in any other way, all runs below it are remembered, since a thread may outlive the run that started it.
        """
        with self._lock:
            self._late.pop(run_id, None)
            if (run := self._runs.get(run_id)) is not None:
                run.root.runs[run_id] = False
                run.root.heard = time.monotonic()
            root = self._roots.pop(run_id, None)
            if root is not None:
                root.over = True
                for one, goes_on in root.runs.items():
                    below = self._runs.pop(one)
                    if goes_on or not well:
                        self._note_late(one, below)
                root.runs = {}
            return root

    def lost(self) -> list[Root]:
        """Forget the roots whose end nobody will report, and return them."""
        found: list[Root | None] = []
        for _ in range(len(self._let_go)):
            try:
                own = self._let_go.popleft()
            except IndexError:  # another thread looks as well
                break
            root = self._roots.get(own)
            if root is not None and time.monotonic() - root.heard < SILENT:
                self._let_go.append(own)
            elif root is not None:
                found.append(self.end(own))
        return [root for root in found if root is not None]

    @property
    def late(self) -> int:
        """How many runs below ended roots are remembered because one of their threads may still be running."""
        return len(self._late)

    def __len__(self) -> int:
        """Return 0 if no run is being watched; otherwise outermost runs count twice, and runs below them until those end."""
        return len(self._runs) + len(self._roots)
