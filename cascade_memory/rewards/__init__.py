"""Ready-made ``reward_fn``s: each looks at an ``Episode`` and returns 1.0, 0.0, or None if it cannot judge the episode.

memory = CascadeMemory("./memory", reward_fn=rewards.contains({"What is 6 * 7?": "42"}))
"""

# pyright: reportUnusedImport=false
from __future__ import annotations

from cascade_memory.rewards.answers import contains, exact_match, matches
from cascade_memory.rewards.checks import command_succeeds, no_tool_failed, valid_json
from cascade_memory.rewards.verdict import verdict_in, verdict_question

__all__ = ["command_succeeds", "contains", "exact_match", "matches", "no_tool_failed", "valid_json"]
