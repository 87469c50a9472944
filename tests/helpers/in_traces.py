"""Puts code into a span or a run, as hosts do, without the packages of these hosts."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any
from unittest import mock

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
RUNS = ("0c2b8d6e-6a4e-4f0b-9d53-0f1f4a1c7d10", "7f3c1a52-9f7e-4c55-8c0e-2f6f3d1b9e21")  # of a trace, and of a run in it


@contextlib.contextmanager
def span(trace_id: str = TRACE, span_id: str = SPAN, *, is_valid: bool = True) -> Iterator[None]:
    """Let OpenTelemetry say that a span surrounds the code."""
    ids = SimpleNamespace(trace_id=int(trace_id, 16), span_id=int(span_id, 16), is_valid=is_valid)
    with host("opentelemetry.trace", get_current_span=lambda: SimpleNamespace(get_span_context=lambda: ids)):
        yield


@contextlib.contextmanager
def run(trace_id: object = RUNS[0], run_id: object = RUNS[1]) -> Iterator[None]:
    """Let LangSmith say that a run surrounds the code."""
    with host("langsmith.run_helpers", get_current_run_tree=lambda: SimpleNamespace(trace_id=trace_id, id=run_id)):
        yield


@contextlib.contextmanager
def host(module: str, **functions: Any) -> Iterator[None]:
    """Put a stand-in in place of a module, and take the other hosts away."""
    none = dict.fromkeys(("opentelemetry.trace", "langsmith.run_helpers"))
    with mock.patch.dict(sys.modules, {**none, module: SimpleNamespace(**functions)}):
        yield
