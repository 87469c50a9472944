"""Step 6, retain: stores a successful solution as a case and, if space is limited, chooses cases to evict."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from cascade_memory.bandit.case_worth import novelty, worth
from cascade_memory.domain.case import CaseText
from cascade_memory.domain.digests import pair_key
from cascade_memory.domain.metadata import MetadataValue
from cascade_memory.domain.records import CaseRecords, NewCase, Unkept, Unsettled
from cascade_memory.domain.trajectory import Solution
from cascade_memory.domain.trust import NOBODY, ByWhom
from cascade_memory.domain.validation import check_query

if TYPE_CHECKING:
    from cascade_memory.ledger.core import Ledger

_SLACK = 0.05  # share of the limit that is cleared at once: rating all cases for each new one costs too much


def why_unkept(value: float, source: str, *, retain_at: float, retain_from: Collection[str]) -> Unkept | None:
    """Return the reason why a reward stores no case; None if it stores one (provided there is a solution).

    A case is retained only if somebody other than the agent itself judged that its solution solved the task.

    >>> why_unkept(1.0, "agent", retain_at=1.0, retain_from=("host", "human"))
    'source'
    """
    if source not in retain_from:
        return "source"
    return "below" if value < retain_at else None


def case_from(
    episode: Unsettled,
    solution: Solution,
    *,
    solution_key: str,
    agreement: Mapping[int, NDArray[np.float32]],
    source: str,
    episode_id: str,
    metadata: Mapping[str, MetadataValue],
    case_text: CaseText,
    embed: Callable[[Sequence[str]], NDArray[np.float32]],
    failed: Callable[[str, Exception], object],
) -> NewCase:
    """Build the case of an episode that was solved. ``agreement`` are the labels that its recalls got in hindsight."""
    text, vector = _index_text(episode, solution, case_text, embed, failed)
    first = next(iter(agreement), None)  # of the episode's recalls
    return new_case(
        text,
        vector,
        solution,
        solution_key=solution_key,
        namespace=episode.namespace,
        source=source,
        episode_id=episode_id,
        metadata=metadata,
        novelty=1.0 if first is None else novelty(episode.similarity[first], agreement[first]),
    )


def _index_text(
    episode: Unsettled,
    solution: Solution,
    case_text: CaseText,
    embed: Callable[[Sequence[str]], NDArray[np.float32]],
    failed: Callable[[str, Exception], object],
) -> tuple[str, NDArray[np.float32]]:
    """Return the indexed text of a new case and its vector; on failure, those of the task, so that the outcome is not lost."""
    try:
        text = case_text(episode.query, solution)
        if text != episode.query:
            return check_query(text), embed([text])[0]
    except Exception as error:  # noqa: BLE001 - the user's function or the embedder may fail
        failed("case_text", error)
    known = len(episode.vector) > 0  # else the episode was settled long ago, and its vector was compacted away
    return episode.query, episode.vector if known else embed([episode.query])[0]


def new_case(
    query: str,
    vector: NDArray[np.float32],
    solution: Solution,
    *,
    solution_key: str,
    namespace: int,
    source: str,
    episode_id: str | None = None,
    metadata: Mapping[str, MetadataValue] | None = None,
    novelty: float = 1.0,
    by: ByWhom = NOBODY,
) -> NewCase:
    """Build a case ready to be stored; the same query with an equal solution gets the same ``pair_key``.

    ``solution_key`` comes from the matcher: it is the same for solutions that agree.
    """
    return NewCase(
        id=str(uuid.uuid4()),
        namespace=namespace,
        query=query,
        solution=solution,
        solution_key=solution_key,
        pair_key=pair_key(query, solution),
        vector=vector,
        metadata=metadata or {},
        source=source,
        episode_id=episode_id,
        created_at=time.time(),
        novelty=novelty,
        actor=by.actor,
        channel=by.channel,
    )


def surplus(records: CaseRecords, *, max_cases: int, ledger: Ledger, namespace: int, window: int) -> list[int]:
    """Return the keys of the least valuable cases, which are evicted to make room.

    Pinned cases stay. Cases that were added by hand get full novelty; of equally valuable cases, the older one is evicted.
    """
    if len(records) <= max_cases:
        return []
    value = worth(records.keys, records.novelty, records.shown, records.succeeded, ledger.lessons.votes(namespace, window))
    value[records.pinned] = np.inf
    going = min(len(records) - max_cases + int(_SLACK * max_cases), int((~records.pinned).sum()))
    return sorted(records.keys[np.argsort(value, kind="stable")[:going]].tolist())
