"""The command line: ``cascade-memory``. Besides ``main``, it offers what the commands of a capability need."""

from cascade_memory.cli.groups import Commands, actor, add_actor
from cascade_memory.cli.main import main
from cascade_memory.cli.opening import existing
from cascade_memory.cli.tables import print_done, print_json, print_record, print_table

__all__ = [
    "Commands",
    "actor",
    "add_actor",
    "existing",
    "main",
    "print_done",
    "print_json",
    "print_record",
    "print_table",
]
