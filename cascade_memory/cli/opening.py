"""Opens the memory that a command names: a folder or the URL of a database, or what the environment names."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING

from cascade_memory.domain.display import no_namespace
from cascade_memory.errors import InvalidInput

if TYPE_CHECKING:
    from cascade_memory.assembly.cascade import CascadeMemory
    from cascade_memory.assembly.place import Place

URL, CHROMA = "CASCADE_MEMORY_URL", "CASCADE_MEMORY_CHROMA"
NAMESPACE, EMBEDDER = "CASCADE_MEMORY_NAMESPACE", "CASCADE_MEMORY_EMBEDDER"
EMBEDDERS = ("auto", "minilm", "chroma", "hashing")


def add_place(command: argparse.ArgumentParser, *, option: bool = False) -> None:
    """Add the options that name a memory. A URL with a password belongs in the environment, not in a command."""
    about = f"the folder of the memory, or the URL of its PostgreSQL database (default: the environment variable {URL})"
    command.set_defaults(path=os.environ.get(URL))  # before both ways to name it, each of which would replace the other's value
    help_of = {True: about, False: argparse.SUPPRESS}
    command.add_argument("--path", default=argparse.SUPPRESS, help=help_of[option])
    command.add_argument("path", nargs="?", default=argparse.SUPPRESS, help=help_of[not option])
    command.add_argument(
        "--chroma",
        default=os.environ.get(CHROMA),
        metavar="URL",
        help=f"the Chroma server that searches the cases (default: the environment variable {CHROMA})",
    )


def add_namespace(command: argparse.ArgumentParser) -> None:
    """Add the option that says whose cases a command is about; its default is the same for all commands."""
    about = f"whose cases (default: the environment variable {NAMESPACE}, else default)"
    command.add_argument("--namespace", default=os.environ.get(NAMESPACE) or "default", help=about)


def place(options: argparse.Namespace) -> Place:
    """Return the place of the memory (a folder or a database); as text, the place shows no password."""
    from cascade_memory.assembly.place import place_of

    if not options.path:
        raise InvalidInput(f"name the folder of the memory or the URL of its database, or set {URL} to one of them")
    return place_of(options.path)


def existing(options: argparse.Namespace, namespace: str | None = None, actor: str | None = None) -> CascadeMemory:
    """Open an existing memory, acting in a namespace.

    An unknown namespace is refused, except "default" in an empty memory.
    """
    from cascade_memory.assembly.cascade import CascadeMemory

    place(options).check_there()
    memory = CascadeMemory(options.path, embedder="stored", chroma=options.chroma)
    names = memory.data.namespaces()
    if namespace is not None and namespace not in names and (names or namespace != "default"):
        memory.close()
        raise InvalidInput(no_namespace(namespace, names))
    return memory.acting(actor=actor, channel="cli", namespace=namespace)
