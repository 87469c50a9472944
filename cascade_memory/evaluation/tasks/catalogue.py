"""The catalogue: the sixteen tasks in the CASCADE paper and two more, with the sources of their data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cascade_memory.errors import InvalidInput
from cascade_memory.evaluation.environments.bfcl.tasks import INSTALL as INSTALL_BFCL
from cascade_memory.evaluation.environments.bfcl.tasks import lacking as lacking_for_bfcl
from cascade_memory.evaluation.judging.labels import every_defendant, every_entity, exact, jaccard, one_of
from cascade_memory.evaluation.search.questions import lacking as lacking_for_search
from cascade_memory.evaluation.tasks import wording
from cascade_memory.evaluation.tasks.dtlbench import DTLBENCH, Published
from cascade_memory.evaluation.tasks.label_task import LabelTask, Source
from cascade_memory.evaluation.tasks.sql_task import SQLTask
from cascade_memory.evaluation.tasks.tables_task import TablesTask
from cascade_memory.evaluation.tasks.task import Task
from cascade_memory.evaluation.tasks.template import Template

# In the other tasks, two equal solutions are rare or a coincidence: a query of SQL answers one question, a list names the
# medications of one patient, several specialties may be right. There, a case helps if it can be adapted: only an attempt tells.
LABELLED = frozenset({"ddxplus", "mimic-iv-tlp", "banking77", "rca", "lfd"})


def recurs(task: Task) -> bool:
    """Say whether the right solutions of a task are labels that recur: its name is in ``LABELLED`` or its judge is ``exact``.

    >>> from cascade_memory.evaluation.tasks.catalogue import task_named
    >>> recurs(task_named("banking77")), recurs(task_named("spider"))
    (True, False)
    """
    return task.name in LABELLED or getattr(task, "judge", None) is exact


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A task with the data that we use for it; ``paper_name`` is empty if the task is not one of the paper's."""

    name: str
    title: str
    paper_name: str
    files: tuple[str, ...]
    max_steps: int = 1
    source: str
    licence: str
    make: Callable[[Entry], Task] | None = None  # None: the task is played in an environment
    stand_in: str = ""  # how the data here differs from the paper's
    there: Callable[[Path], bool] | None = None  # whether a folder holds the files, if they may have other names

    @property
    def published(self) -> Published | None:
        """How DTLBench publishes the task; None if it is not of the paper."""
        return DTLBENCH.get(self.name)

    def is_there(self, data: Path) -> bool:
        """Say whether a folder holds the files of the task; a task without an environment can use DTLBench's files instead."""
        if self.there is not None:
            return self.there(data)
        if self.make is not None and self.published is not None and self.published.is_there(data):
            return True
        return all((data / file).is_file() for file in self.files)


def _labels(
    judge: Callable[[str, Any], float],
    template: Template,
    stand_in: Template | None = None,
    *,
    answers: str = "text",
    reveals_truth: bool = False,
) -> Callable[[Entry], Task]:
    def make(entry: Entry) -> Task:
        published = () if entry.published is None else (Source(entry.published.files[0], template),)
        sources = (*published, Source(entry.files[0], stand_in or template))
        return LabelTask(name=entry.name, sources=sources, judge=judge, answers=answers, reveals_truth=reveals_truth)

    return make


def _sql(entry: Entry) -> Task:
    file, databases = entry.files
    published = None if entry.published is None else (entry.published.files[0], entry.published.files[1])
    return SQLTask(name=entry.name, file=file, databases=databases, published=published)


def _tables(entry: Entry) -> Task:
    return TablesTask(name=entry.name, file=entry.files[0])


CREDENTIALED = "PhysioNet Credentialed Health Data License: an account, a course and a signed agreement are asked for"
CATALOGUE = {
    entry.name: entry
    for entry in (
        Entry(
            name="ddxplus",
            title="Medical diagnosis",
            paper_name="DDXPlus",
            files=("ddxplus.jsonl",),
            source="https://github.com/mila-iqia/ddxplus",
            licence="CC BY 4.0",
            stand_in="the wording of the profiles is not StreamBench's",
            make=_labels(exact, wording.DIAGNOSIS),
        ),
        Entry(
            name="mimic-iv-mr",
            title="Medication recommendation",
            paper_name="MIMIC-IV-MR",
            files=("mimic_iv_mr.jsonl",),
            source="https://physionet.org/content/mimiciv/",
            licence=CREDENTIALED,
            make=_labels(jaccard, wording.MEDICATION, answers="data", reveals_truth=True),
        ),
        Entry(
            name="mimic-iv-msr",
            title="Referral to a medical specialty",
            paper_name="MIMIC-IV-MSR",
            files=("mimic_iv_msr.jsonl",),
            source="https://physionet.org/content/mimiciv/",
            licence=CREDENTIALED,
            make=_labels(one_of, wording.SPECIALTY),
        ),
        Entry(
            name="mimic-iv-tlp",
            title="Triage level",
            paper_name="MIMIC-IV-TLP",
            files=("mimic_iv_tlp.jsonl",),
            source="https://physionet.org/content/mimic-iv-ed/",
            licence=CREDENTIALED,
            make=_labels(exact, wording.TRIAGE),
        ),
        Entry(
            name="mud",
            title="Charges against several defendants",
            paper_name="MUD",
            files=("mud.jsonl",),
            source="the MUD dataset, from China Judgments Online (https://wenshu.court.gov.cn)",
            licence="see the dataset's own terms",
            make=_labels(every_defendant, wording.CHARGES, answers="data"),
        ),
        Entry(
            name="cmdl",
            title="Penalties of several defendants",
            paper_name="CMDL",
            files=("cmdl.jsonl",),
            source="CMDL-big, test split, from China Judgments Online (https://wenshu.court.gov.cn)",
            licence="see the dataset's own terms",
            make=_labels(every_defendant, wording.PENALTIES, answers="data"),
        ),
        Entry(
            name="banking77",
            title="Intent of a bank's customer",
            paper_name="Banking77",
            files=("banking77.jsonl",),
            source="https://github.com/PolyAI-LDN/task-specific-datasets",
            licence="CC BY 4.0",
            stand_in="another draw of 5,000 queries from the same data",
            make=_labels(exact, wording.INTENT),
        ),
        Entry(
            name="sentifin",
            title="Sentiment about each entity of a headline",
            paper_name="SEntFiN",
            files=("sentifin.jsonl",),
            source="https://github.com/pyRis/SEntFiN",
            licence="MIT",
            stand_in="another draw of 2,299 headlines, of which 1,687 name one entity; the paper keeps those that name several",
            make=_labels(every_entity, wording.SENTIMENT, answers="objects"),
        ),
        Entry(
            name="rca",
            title="Root cause of an alarm",
            paper_name="RCA",
            files=("rca_huawei_module.jsonl",),
            source="https://github.com/LeaperOvO/KnowLog",
            licence="MIT",
            stand_in="the label is the module that sent the message, not one of the paper's six types of alarm",
            make=_labels(exact, wording.ALERT, wording.MODULE),
        ),
        Entry(
            name="lfd",
            title="Faults in a log",
            paper_name="LFD",
            files=("bgl_2k.jsonl",),
            source="https://github.com/logpai/loghub",
            licence="for research, with notice",
            stand_in="BGL in the order of its time stamps, 93 % of it normal; not the Tianchi logs",
            make=_labels(exact, wording.FAULT, wording.CATEGORY),
        ),
        Entry(
            name="spider",
            title="Text to SQL",
            paper_name="SPIDER",
            files=("spider_dev.jsonl", "spider_dev_dbs.tar.gz"),
            source="https://yale-lily.github.io/spider",
            licence="CC BY-SA 4.0",
            stand_in="the development split; a query that returns nothing is right where the right one does",
            make=_sql,
        ),
        Entry(
            name="bird",
            title="Text to SQL with background knowledge",
            paper_name="BIRD",
            files=("bird_dev.jsonl", "bird_dev_dbs.tar.gz"),
            source="https://bird-bench.github.io",
            licence="CC BY-SA 4.0",
            make=_sql,
        ),
        Entry(
            name="llb-db",
            title="Questions about tables",
            paper_name="",
            files=("llb_db.json",),
            source="LifelongAgentBench (arXiv:2505.11942), as https://github.com/MemTensor/MemRL has it",
            licence="not stated",
            stand_in="SQLite plays MySQL, and cannot give the recorded answers of nine of the 500 tasks",
            make=_tables,
        ),
        Entry(
            name="bfcl",
            title="Function calls in several turns",
            paper_name="",
            files=(),
            source=f"BFCL v4, multi-turn, in the package bfcl-eval ({INSTALL_BFCL})",
            licence="Apache-2.0",
            stand_in="the memory is asked once for each task, with all that the user says; 240 of the 800 tasks are set aside",
            there=lambda data: lacking_for_bfcl() is None,  # noqa: ARG005 - they are installed, not in a folder
        ),
        Entry(
            name="alfworld",
            title="Household tasks",
            paper_name="ALFWorld",
            files=("alfworld_gen.jsonl", "alfworld_gen_seed100.tar.gz"),
            max_steps=30,
            source="https://github.com/alfworld/alfworld",
            licence="MIT",
            stand_in="generated games, whose scores do not compare with the paper's, unless the folder of data has ALFWorld's "
            "own: alfworld/json_2.1.1 (or ALFWORLD_DATA says where), and alfworld/alfworld.jsonl names those of the paper",
        ),
        Entry(
            name="scienceworld",
            title="Science experiments",
            paper_name="ScienceWorld",
            files=(),
            max_steps=30,
            source="https://github.com/allenai/ScienceWorld (pip install scienceworld; needs Java)",
            licence="Apache-2.0",
            stand_in="drawn from the same variations, unless the folder of data has scienceworld/scienceworld.jsonl; the reuse "
            "agent plays nine of the eleven types",
        ),
        Entry(
            name="2wiki",
            title="Deep search",
            paper_name="2Wiki",
            files=("2wiki_rag.jsonl", "2wiki_corpus.jsonl"),
            max_steps=5,
            source="https://github.com/Alab-NII/2wikimultihop",
            licence="Apache-2.0; texts CC BY-SA",
            stand_in="97 questions, yes or no among them, and 6,119 passages; not 2,500 questions and all of Wikipedia",
            there=lambda data: lacking_for_search(data) is None,
        ),
        Entry(
            name="mimic-iii",
            title="Questions about health records",
            paper_name="MIMIC-III",
            files=("ehr/ehr.jsonl", "ehr/source/mimic_iii.db"),
            max_steps=5,
            source="https://physionet.org/content/mimiciii/ with https://github.com/glee4810/EHRSQL",
            licence=CREDENTIALED,
            stand_in="current_time and Calendar mean EHRSQL's present, 2105-12-31; without these files, play the task hospital",
        ),
    )
}


def task_named(name: str) -> Task:
    """Return a task of the catalogue that needs no environment.

    >>> task_named("banking77").max_steps
    1
    """
    entry = CATALOGUE.get(name)
    if entry is None or entry.make is None:
        known = ", ".join(sorted(one.name for one in CATALOGUE.values() if one.make is not None))
        raise InvalidInput(f"there is no task {name!r} with questions and answers; there are {known}")
    return entry.make(entry)
