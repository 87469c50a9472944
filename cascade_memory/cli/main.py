"""Parses commands and sets the exit code: 0 for success, 1 if something is wrong with the memory, 2 if with the command."""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Sequence

from cascade_memory import __version__, capabilities
from cascade_memory.cli import bench, data, serve, show
from cascade_memory.cli.arguments import Parser, refusal
from cascade_memory.cli.groups import Commands
from cascade_memory.errors import (
    CascadeError,
    ContentChanged,
    EpisodeClosed,
    InvalidInput,
    UndoRefused,
    UnknownCase,
    UnknownEpisode,
    UnknownWarning,
)

_MORE = "cascade-memory GROUP --help lists the commands of a group."


def parser() -> argparse.ArgumentParser:
    """Build the parser for all commands."""
    root = Parser(prog="cascade-memory", description="A case memory that learns from outcomes.", epilog=_MORE)
    root.add_argument("--version", action="version", version=f"cascade-memory {__version__}")
    groups = Commands(root, "group")
    for each in (show, *capabilities.parts("commands"), data, serve, bench):
        each.add(groups)
    return root


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
    _print_any_text()
    options = parser().parse_args(sys.argv[1:] if arguments is None else arguments)
    try:
        return int(options.run(options))
    except (InvalidInput, UnknownCase, UnknownEpisode, UnknownWarning, EpisodeClosed, ContentChanged, UndoRefused) as error:
        code, message = 2, str(error)
    except CascadeError as error:
        code, message = 1, str(error)
    except BrokenPipeError:  # the reader of our output, such as head, has closed the pipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except OSError as error:  # a full disk or an unreadable folder, for example: a traceback would not help
        code, message = 1, str(error)
    except KeyboardInterrupt:
        code, message = (0, "stopped") if options.group == "serve" else (130, "interrupted")
    sys.stderr.write(f"{options.called}: {refusal(message)}\n")
    return code


def _print_any_text() -> None:
    """Make the output escape characters that its encoding lacks, as on Windows, instead of raising an error."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.encoding.lower().replace("-", "") != "utf8":
            stream.reconfigure(errors="backslashreplace")
