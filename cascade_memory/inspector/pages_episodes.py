"""The pages of episodes: a list, and one episode with the decision that was made."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, cast

from cascade_memory.domain import SOURCES, STATUSES, RecordedCandidate, RecordedRecall, Status
from cascade_memory.errors import InvalidInput
from cascade_memory.inspector.actions import told
from cascade_memory.inspector.drawing import contribution_bars
from cascade_memory.inspector.shown import cut, is_cut, solved, steps_of
from cascade_memory.inspector.view import Rendered, View

PER_PAGE = 50
_LOOKS_SOLVED = 0.5  # rewards from here on say that the task was solved


def episodes(view: View) -> Rendered:
    """List episodes, newest first."""
    status, source = view.choice("status", STATUSES), view.source
    values: dict[str, Any] = {
        "status": status,
        "statuses": STATUSES,
        "source": source,
        "sources": SOURCES,
        "later": view.asked("after") is not None,
        "error": None,
        "page": None,
    }
    try:
        values["page"] = view.memory.episodes.page(
            status=cast("Status | None", status), source=source, after=view.asked("after"), limit=PER_PAGE
        )
    except InvalidInput as error:
        return Rendered("episodes.html", {**values, "error": str(error)}, status=400)
    return Rendered("episodes.html", values)


@dataclass(frozen=True, slots=True)
class Row:
    """A candidate of a decision, and a picture of what its signals add."""

    candidate: RecordedCandidate
    bars: Any


@dataclass(frozen=True, slots=True)
class Decided:
    """A decision, a sentence that says how it ended, and its candidates."""

    recall: RecordedRecall
    summary: str
    rows: tuple[Row, ...]


def episode(view: View) -> Rendered:
    """Show one episode."""
    found, whole = view.episode(view.query.get("id", "")), view.asked("whole") is not None
    text = solved(found.solution)
    return Rendered(
        "episode.html",
        {
            "episode": found,
            "query": cut(found.query, whole),
            "text": cut(text, whole),
            "trajectory": steps_of(found.solution),
            "whole": whole,
            "can_be_whole": is_cut(found.query) or is_cut(text),
            "decisions": [_decided(one, found.arm) for one in view.memory.episodes.decisions(found.id)],
            "waits": found.waits_for_a_verdict,
            "failed": found.has_only_agents_word and found.reward is not None and found.reward < _LOOKS_SOLVED,
            **told(view, found.id),
            "outcomes": view.memory.episodes.outcomes(episode_id=found.id),
        },
    )


def _decided(recall: RecordedRecall, arm: str) -> Decided:
    scale = max((abs(one) for row in recall.candidates for one in row.contributions), default=0.0)
    rows = tuple(Row(one, contribution_bars(recall.signals, one.contributions, scale)) for one in recall.candidates)
    return Decided(recall, _summary(recall, arm), rows)


def _summary(recall: RecordedRecall, arm: str) -> str:
    chosen = sum(one.chosen for one in recall.candidates)
    if arm == "holdout":
        return "Held out: this episode ran without memory, so that the worth of the memory can be measured."
    if not recall.candidates:
        forgot = " Candidates were forgotten since." if recall.forgot else ""
        return f"No case was found, so none was shown.{forgot}"
    if not recall.shown:
        return "The memory abstained: it expected to do better without any of these cases."
    kept = "" if recall.whole else " Only what was shown is still kept of this decision."
    chance = next((one.propensity for one in recall.candidates if one.chosen), math.nan)
    odds = "" if math.isnan(chance) or chance >= 0.9995 else f", with a probability of {chance:.0%}"
    return f"{chosen} of {len(recall.candidates)} candidates {'was' if chosen == 1 else 'were'} shown{odds}.{kept}"
