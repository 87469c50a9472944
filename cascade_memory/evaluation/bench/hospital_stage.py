"""The stage (``stage.Stage``) of questions about health records: the paper's (MIMIC-III), or ours (an invented hospital)."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from cascade_memory.evaluation.bench.plan import ALONE_REUSE, Run
from cascade_memory.evaluation.bench.stage import Folders, Stage, best_embedder, order_of, solved_alone
from cascade_memory.evaluation.environments.hospital.questions import (
    Question,
    hospital_questions,
    mimic_files,
    mimic_questions,
)
from cascade_memory.evaluation.environments.hospital.rounds import Records
from cascade_memory.evaluation.environments.hospital.synthetic import build_hospital
from cascade_memory.evaluation.reuse.code import CodeAgent
from cascade_memory.evaluation.stream import PrecomputedEmbedder

HOSPITAL, MIMIC = "hospital", "mimic-iii"
CODED = (HOSPITAL, MIMIC)  # streams that are answered by code


def prepare_hospital(run: Run, folders: Folders) -> None:  # noqa: ARG001 - the same for all runs
    """Build the database of our invented hospital, unless it exists."""
    build_hospital(_hospital(folders))


def _hospital(folders: Folders) -> Path:
    return folders.work / "hospital.sqlite"


@lru_cache(maxsize=2)
def embedded(task: str, limit: int | None, data: Path, work: Path, model: str) -> tuple[list[Question], PrecomputedEmbedder]:
    """Load the questions and their vectors, once per process; ``model`` is the folder of the embedder."""
    of_paper = task == MIMIC
    questions = mimic_questions(mimic_files(data).questions) if of_paper else hospital_questions(work / "hospital.sqlite")
    questions = questions[:limit]
    return questions, PrecomputedEmbedder(best_embedder(model), [one.text for one in questions])


def questions_of(run: Run, folders: Folders) -> tuple[list[Question], PrecomputedEmbedder]:
    """Return the questions in the order of the seed, and the vectors of their texts."""
    stream, embedder = embedded(run.task, run.limit, folders.data, folders.work, folders.model(run, "embedder"))
    return [stream[i] for i in order_of(len(stream), run.seed, run.order)], embedder


def records_of(run: Run, folders: Folders) -> Records:
    """Open the records that the questions are about."""
    return Records(mimic_files(folders.data).database if run.task == MIMIC else _hospital(folders))


def hospital_stage(run: Run, folders: Folders) -> Stage:
    """Build the stage: the questions in the order of the seed, and the agent that reuses code."""
    questions, embedder = questions_of(run, folders)
    alone = solved_alone(run, len(questions))
    agent = CodeAgent(
        questions, records_of(run, folders), alone=alone, seed=run.seed, outcomes=folders.work / "hospital-outcomes.sqlite"
    )
    return Stage(
        queries=[one.text for one in questions],
        solver=agent,
        embedder=embedder,
        declared={"alone": ALONE_REUSE, **agent.declared},
        truths=[one.code for one in questions],
        alone=alone,
        kinds=[one.kind for one in questions],
        close=agent.close,
    )
