"""``memory.otel``: spans and metrics of what the memory does."""

from __future__ import annotations

from typing import Any

from cascade_memory.capabilities.otel.engine_part import Telling
from cascade_memory.domain.display import quoted
from cascade_memory.errors import InvalidInput, MissingExtra
from cascade_memory.memory.bound import Bound


class Otel(Bound):
    """Spans and metrics for OpenTelemetry, named as its conventions for generative AI name them. They are off at first.

    They go where the OpenTelemetry of your program sends them; the memory itself sends nothing anywhere.
    """

    def on(self, *, content: bool = False, tracer_provider: Any = None, meter_provider: Any = None) -> None:
        """Emit a span and metrics for each recall, reward, added case and deletion from now on, in all namespaces.

        Args:
            content: Put tasks and cases into the spans. They pass ``redact=`` before that, as before they are stored.
            tracer_provider: The provider for spans, instead of the global one.
            meter_provider: The provider for metrics, instead of the global one.

        >>> from cascade_memory import CascadeMemory
        >>> memory = CascadeMemory(embedder="hashing")
        >>> memory.otel.on()
        >>> memory.otel.off()
        """
        for given, method, name in ((tracer_provider, "get_tracer", "tracer"), (meter_provider, "get_meter", "meter")):
            if given is not None and not callable(getattr(given, method, None)):
                raise InvalidInput(f"{name}_provider must have {method}, as OpenTelemetry's own have, unlike {quoted(given)}")
        try:
            from cascade_memory.capabilities.otel.emitting import Emitter
        except ImportError as error:
            raise MissingExtra('spans need the extra "otel": pip install "cascade-memory[otel]"') from error
        ranker = self._open().parts.ranker.name
        self._part().switch(Emitter(ranker, tracer_provider, meter_provider, content=content))

    def off(self) -> None:
        """Emit nothing any more."""
        self._part().switch(None)

    def _part(self) -> Telling:
        return next(part for part in self._open().capable if isinstance(part, Telling))
