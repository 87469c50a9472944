"""A mistake that agents repeat, for tests of warnings: a query for a column that is not there."""

from __future__ import annotations

from typing import Any

from cascade_memory import FailureWarning, Step

WRONG, RIGHT = "SELECT nme FROM staff", "SELECT name FROM staff"
ERROR = "no such column: nme"
TASK = "who works in Berlin?"


def answered(sql: str) -> str:
    """Answer a query, or raise ``ValueError``."""
    if "nme" in sql:
        raise ValueError(ERROR)
    return "Ann works there"


def solved(episode: Any) -> bool:
    """Judge an episode: for ``reward_fn=``."""
    return "Ann" in episode.answer


def wrong_step() -> Step:
    return Step(tool="query", arguments={"sql": WRONG}, observation=ERROR, failed=True)


def known_mistake(memory: Any) -> FailureWarning:
    """Let a run fail at it, and a person insist that agents are warned."""
    episode_id = memory.recall("who works in Paris?").episode_id
    memory.reward(episode_id, 0.0, solution=[wrong_step()], source="env")
    (warning,) = memory.warnings.all()
    memory.acting(actor="ann").warnings.restore(warning.id)
    return warning


def is_warning(text: object) -> bool:
    """Say whether a text that a model was shown is the warning."""
    return ERROR in str(text) and "--- memory-" in str(text)
