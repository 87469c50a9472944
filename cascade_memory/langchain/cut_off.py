"""Sees whether a stream was cut off. LangChain reports this as a normal end, since it catches ``GeneratorExit`` itself."""

from __future__ import annotations

import gc
import inspect
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cascade_memory.langchain.run_tree import Root

_NEAR = 16  # calls between LangChain's function and the handler are fewer
_STREAMS = ("langchain_core.runnables.base", "_transform_stream_with_config")  # the function that reports the end


class _Collector:
    """Knows on which thread the garbage collector runs at the moment; ``thread`` is None while it does not run."""

    thread: int | None = None

    def __call__(self, phase: str, _: object, ident: Callable[[], int] = threading.get_ident) -> None:
        self.thread = ident() if phase == "start" else None


_collector = _Collector()
gc.callbacks.append(_collector)


def was_cut_off(root: Root) -> bool:
    """Say whether the run that is just reporting its end is a stream whose reader stopped early; call this during the report.

    LangChain reads a stream from a generator. If the stream was read to its end, the generator has ended as well. If the reader
    stopped early, the generator is still suspended after the last part that was read. The garbage collector may have closed the
    generator by then. But it collects only streams that nobody reads any more, so a run that ends on the collector's thread was
    cut off, too.
    """
    found = _read_from(root)
    return inspect.isgenerator(found) and (found.gi_frame is not None or _collector.thread == threading.get_ident())


def _read_from(root: Root) -> Any:
    """Return the iterator from which LangChain reads the stream of this run; None if the run is no stream."""
    frame = inspect.currentframe()
    for _ in range(_NEAR):
        frame = None if frame is None else frame.f_back
        if frame is None:
            break
        if (frame.f_globals.get("__name__"), frame.f_code.co_name) == _STREAMS:
            seen = frame.f_locals
            if getattr(seen.get("run_manager"), "run_id", None) == root.run_id:
                return seen.get("iterator")
    return None
