"""Loads the embedder's model and a namespace before the first recall needs them."""

from __future__ import annotations

import threading

from cascade_memory.engine.engine import Engine
from cascade_memory.ports.embedder import LoadsModel


def warmed(engine: Engine, namespace: str, *, wait: bool) -> None:
    """Load the model and the namespace now; if ``wait`` is False, on a thread, and only if the embedder has a model to load."""

    def load() -> None:
        if wait and isinstance(engine.parts.embedder, LoadsModel):
            engine.parts.embedder.prepare()  # all of it: without waiting, a recall may come when the model can only just answer
        engine.load(namespace)
        engine.embed(["warm"])

    def load_meanwhile() -> None:
        try:
            load()
        except Exception as error:  # noqa: BLE001 - the first recall tries again, and says what is wrong
            if not engine.closed:
                engine.note_failure("warm", error)

    if wait:
        load()
    elif isinstance(engine.parts.embedder, LoadsModel):
        threading.Thread(target=load_meanwhile, name="cascade-memory-warm", daemon=True).start()
