"""Loading a model from disk without a progress bar for it."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def quiet_loading() -> Generator[None, None, None]:
    """Keep transformers from drawing bars inside the block; what the host has set is put back."""
    from transformers.utils import logging

    bars = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if bars:
            logging.enable_progress_bar()
