"""Finds the run that a recall belongs to: the outermost workflow, agent or query engine around it.

A thread may outlive the run that started it, for example the thread of a tool in a run that was cancelled. What the thread does
belongs to the run that has ended: the thread begins no run of its own.
"""

from __future__ import annotations

import threading
import uuid
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any

from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.llms.base import BaseLLM
from llama_index.core.chat_engine.types import BaseChatEngine
from llama_index_instrumentation.dispatcher import active_instrument_tags
from llama_index_instrumentation.span import active_span_id
from workflows import Workflow

from cascade_memory.domain.recall import Recall
from cascade_memory.domain.waiting import Asker

_MOST = 256  # limit for runs that are found by their id: nothing reports their end
_MOST_LATE = 8_192  # spans whose threads may outlive their run; the latest ones
_RUN_ID = "llamaindex.run_id"
ACTOR = "cascade_actor"  # a tag of LlamaIndex's instrumentation: who asks
CHANNEL = "llama_index"
_RUNS: dict[type, tuple[str, ...]] = {  # the classes and methods whose spans are runs
    Workflow: ("run",),
    BaseQueryEngine: ("query", "aquery"),
    BaseChatEngine: ("chat", "achat", "stream_chat", "astream_chat"),
}


@dataclass(slots=True, eq=False, kw_only=True)
class Run:
    """An outermost run, its episode, and the recalls that were already made in it."""

    span_id: str | None
    episode_id: str
    asked: dict[Any, Recall] = field(default_factory=dict[Any, Recall])
    asking: threading.Lock = field(default_factory=threading.Lock)  # so that parallel tool calls recall only once
    spans: dict[str, bool] = field(default_factory=dict[str, bool])  # those below it, and whether they go on
    llm: BaseLLM | None = None  # the model that has answered last
    model: str | None = None  # its name, as its response has it
    goes_on: str | None = None  # the episode of an earlier task with which the user's message goes on
    over: bool = False
    asker: Asker = field(default_factory=lambda: Asker(ends_named=True))  # leaves when the run ends


class Runs:
    """Finds the outermost run of any span. Of an ended run, it keeps only spans that may go on. Thread-safe.

    While the memory is installed, runs are found by their spans; otherwise by the run id in LlamaIndex's context.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()  # the garbage collector may end a span while this thread is in here
        self._by_span: dict[str, Run] = {}
        self._late: OrderedDict[str, Run] = OrderedDict()
        self._by_id: OrderedDict[str, Run] = OrderedDict()

    def enter(self, span_id: str, parent_id: str | None, instance: Any) -> None:
        """Register a span; it belongs to the outermost run among its parents."""
        with self._lock:
            run = self._of(parent_id)
            if run is None and _is_run(span_id, instance):
                run_id = active_instrument_tags.get().get(_RUN_ID)
                run = Run(span_id=span_id, episode_id=str(run_id or uuid.uuid4().hex))
            if run is not None and run.over:
                self._note_late(span_id, run)
            elif run is not None:
                self._by_span[span_id] = run
                run.spans[span_id] = True

    def answered(self, span_id: str, llm: BaseLLM, name: str | None) -> None:
        """Note which model has answered in a span, and its name if the response has one."""
        with self._lock:
            if (run := self._of(span_id)) is not None:
                run.model = name or (run.model if llm is run.llm else None)
                run.llm = llm

    def leave(self, span_id: str, *, well: bool = True) -> Run | None:
        """Note that a span ended; return the run if it ended with this span, otherwise None.

        ``well`` says that a run ended without a failure: then the spans below it that have ended are forgotten. If a run ended
        in any other way, all spans below it are remembered, since a thread may outlive the span that started it.
        """
        with self._lock:
            self._late.pop(span_id, None)
            if (run := self._by_span.get(span_id)) is None:
                return None
            run.spans[span_id] = False
            if run.span_id != span_id:
                return None
            run.over = True
            for one, goes_on in run.spans.items():
                self._by_span.pop(one, None)
                if goes_on or not well:
                    self._note_late(one, run)
            run.spans = {}
            return run

    def _note_late(self, span_id: str, run: Run) -> None:
        self._late[span_id] = run
        while len(self._late) > _MOST_LATE:
            self._late.popitem(last=False)

    def _of(self, span_id: str | None) -> Run | None:
        return None if span_id is None else self._by_span.get(span_id) or self._late.get(span_id)

    def here(self) -> Run | None:
        """Return the run that the calling code is part of; None if there is none."""
        span_id, run_id = active_span_id.get(), active_instrument_tags.get().get(_RUN_ID)
        with self._lock:
            found = self._of(span_id)
            if found is not None or run_id is None:
                return found
            found = self._by_id.setdefault(str(run_id), Run(span_id=None, episode_id=str(run_id)))
            self._by_id.move_to_end(str(run_id))
            while len(self._by_id) > _MOST:
                self._by_id.popitem(last=False)
            return found

    def go_on(self, shown: Recall) -> None:
        """Note that the current run goes on with the task of the earlier recall ``shown``, unless it has recalled itself."""
        run = self.here()
        if run is not None and not run.asked and shown.error is None:
            run.goes_on = shown.episode_id

    def clear(self) -> None:
        """Forget all runs and spans."""
        with self._lock:
            self._by_span.clear()
            self._late.clear()
            self._by_id.clear()

    def __len__(self) -> int:
        """Return the number of registered runs."""
        return len({run.episode_id for run in self._by_span.values()})


def actor_here() -> str | None:
    """Return the actor that the program has named around a run: ``with instrument_tags({"cascade_actor": "ann"}): ...``."""
    found = active_instrument_tags.get().get(ACTOR)
    return None if found is None else str(found)


def _is_run(span_id: str, instance: Any) -> bool:
    kinds = (kind for base, kind in _RUNS.items() if isinstance(instance, base))
    return any(f".{verb}-" in span_id for verbs in kinds for verb in verbs)
