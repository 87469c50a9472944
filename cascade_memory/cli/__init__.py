"""The command line: ``cascade-memory``."""

from cascade_memory.cli.main import main

__all__ = ["main"]
