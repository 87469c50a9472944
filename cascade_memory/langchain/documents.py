"""Recalled cases as LangChain documents."""

from __future__ import annotations

import math

from langchain_core.documents import Document

from cascade_memory.cycle.reuse import body
from cascade_memory.domain.recall import Recall, RecalledCase


def documents(recall: Recall) -> list[Document]:
    """Return one document per case. The metadata is plain JSON, so that a checkpointer can store it."""
    return [_document(recall, case) for case in recall.cases]


def _document(recall: Recall, case: RecalledCase) -> Document:
    return Document(
        id=case.id,
        page_content=body(case),
        metadata={
            **case.metadata,
            "case_id": case.id,
            "cascade_episode_id": recall.episode_id,
            "similarity": _number(case.similarity),
            "predicted_success": _number(case.utility),
            "uncertainty": _number(case.uncertainty),
        },
    )


def _number(value: float) -> float | None:
    """Return a plain float, or None for nan: checkpointers cannot store numpy's floats, and JSON has no nan."""
    return float(value) if math.isfinite(value) else None
