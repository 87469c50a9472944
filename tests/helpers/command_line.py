"""The commands of the command line, as its parser knows them."""

from __future__ import annotations

import argparse
import functools

from cascade_memory.cli.main import parser


@functools.cache
def arguments_by_command() -> dict[tuple[str, ...], list[argparse.Action]]:
    """Return the arguments of every command: ``("bench", "run")`` and the like, their groups, and ``()``."""
    found: dict[tuple[str, ...], list[argparse.Action]] = {}

    def look(of: argparse.ArgumentParser, words: tuple[str, ...]) -> None:
        found[words] = [action for action in of._actions if not isinstance(action.choices, dict)]
        for action in of._actions:
            if isinstance(action.choices, dict):
                for name, below in action.choices.items():
                    look(below, (*words, name))

    look(parser(), ())
    return found


def every_command() -> list[tuple[str, ...]]:
    """Return every command with its group, without the groups themselves."""
    groups = {words[:-1] for words in arguments_by_command()}
    return [words for words in arguments_by_command() if words not in groups]
