"""Load a model from disk without a progress bar."""

from __future__ import annotations

from collections.abc import Generator

from cascade_memory.domain.interruptible import interruptible


@interruptible
def quiet_loading() -> Generator[None, None, None]:
    """Let transformers draw no progress bars inside the block; afterwards the host's setting is restored."""
    from transformers.utils import logging

    bars = logging.is_progress_bar_enabled()
    try:
        logging.disable_progress_bar()
        yield
    finally:
        if bars:
            logging.enable_progress_bar()
