"""The ids of traces and spans: one way to write each, however a host, a page or a program writes it."""

from __future__ import annotations

import re
from uuid import UUID

from cascade_memory.domain.quoting import quoted
from cascade_memory.domain.validation import check_id
from cascade_memory.errors import InvalidInput

_TRACE, _SPAN = re.compile("[0-9a-f]{32}"), re.compile("[0-9a-f]{16}|[0-9a-f]{32}")
_UUID = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def trace_id_of(value: object) -> str:
    """Return the id of a trace as it is stored: 32 digits in lower case.

    >>> trace_id_of("4BF92F35-77B3-4DA6-A3CE-929D0E0E4736")
    '4bf92f3577b34da6a3ce929d0e0e4736'
    """
    return _plain(value, "trace_id", _TRACE, "32 hexadecimal digits (OpenTelemetry, Langfuse) or a UUID (LangSmith)")


def span_id_of(value: object) -> str:
    """Return the id of a span or a run as it is stored: 16 digits for a span, 32 for a run.

    >>> span_id_of("00F067AA0BA902B7"), len(span_id_of("4bf92f35-77b3-4da6-a3ce-929d0e0e4736"))
    ('00f067aa0ba902b7', 32)
    """
    return _plain(value, "span_id", _SPAN, "16 hexadecimal digits (OpenTelemetry, Langfuse) or a UUID (LangSmith)")


def _plain(value: object, name: str, form: re.Pattern[str], wanted: str) -> str:
    if isinstance(value, int):
        raise InvalidInput(f"{name} must be a text: opentelemetry.trace.format_{name} makes one of OpenTelemetry's number")
    given = check_id(value, name).strip().lower()
    plain = given.replace("-", "") if _UUID.fullmatch(given) else given
    if not form.fullmatch(plain):
        raise InvalidInput(f"{name} must be {wanted}, not {quoted(value)}")
    return plain


def is_trace_id(value: object, name: str) -> None:
    """Reject a stored value that ``trace_id_of`` would not have returned."""
    if not isinstance(value, str) or not _TRACE.fullmatch(value):
        raise InvalidInput(f"{name} must be 32 hexadecimal digits, not {quoted(value)}")


def is_span_id(value: object, name: str) -> None:
    """Reject a stored value that ``span_id_of`` would not have returned."""
    if not isinstance(value, str) or not _SPAN.fullmatch(value):
        raise InvalidInput(f"{name} must be 16 or 32 hexadecimal digits, not {quoted(value)}")


def as_written(plain: str, host: str) -> str:
    """Return a stored id as its host writes it.

    >>> as_written("4bf92f3577b34da6a3ce929d0e0e4736", "langsmith")
    '4bf92f35-77b3-4da6-a3ce-929d0e0e4736'
    """
    return str(UUID(plain)) if host == "langsmith" and len(plain) == 32 else plain
