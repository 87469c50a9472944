"""Hears what the memory has done, and passes it on to OpenTelemetry while that is switched on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from cascade_memory.engine.part import EnginePart

if TYPE_CHECKING:
    from cascade_memory.capabilities.otel.emitting import Emitter


class Heard(Protocol):
    """The part of an engine that is needed."""

    listeners: tuple[EnginePart, ...]

    def note_failure(self, step: str, error: Exception) -> None:
        """Count and log a failure that no exception reports."""
        ...


class Telling(EnginePart):
    """Switched off it is no listener, so that it costs nothing."""

    def __init__(self, engine: Heard) -> None:
        self._engine = engine
        self._emitter: Emitter | None = None

    def switch(self, emitter: Emitter | None) -> None:
        """Tell this emitter what happens from now on; None: tell nobody."""
        self._emitter = emitter
        others = tuple(one for one in self._engine.listeners if one is not self)
        self._engine.listeners = others if emitter is None else (*others, self)

    def heard(self, verb: str, began: int, asked: Any, found: Any) -> None:
        """Emit a span and metrics; what fails in that is counted, and disturbs nobody."""
        emitter = self._emitter
        if emitter is None:
            return
        try:
            getattr(emitter, verb)(began, asked, found)
        except Exception as error:  # noqa: BLE001 - whatever exports the spans must not break the agent
            self._engine.note_failure("otel", error)


PART = Telling
