"""DTLBench, the paper's benchmark, as its authors publish it: where it is, and which files and fields each task has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_OPEN = "https://huggingface.co/datasets/guosy/DTLBench"
_CREDENTIALED = "https://physionet.org/content/mimic-iv-ext-dtlbench/1.0.0/ (announced; its authors will publish it)"
_SHUFFLED = "shuffled once: the order of the file, the same for every seed"
_JSONL = "JSON lines, UTF-8"
_LABELLED = {"task": "the text to answer"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """How DTLBench publishes one task. The names of files are relative to the folder of the data."""

    files: tuple[str, ...]
    fields: Mapping[str, str]
    samples: int
    place: str = _OPEN
    layout: str = _JSONL
    order: str = _SHUFFLED
    resources: str = ""  # what is downloaded besides, and where it goes
    run: str = "cascade-memory bench run --tasks {name} --order file --model NAME --base-url URL --data DIR"

    def is_there(self, data: Path) -> bool:
        """Say whether a folder of data holds all files and folders of the task."""
        return all((data / name).exists() for name in self.files)


def _one(name: str, label: str, samples: int, **more: str) -> Published:
    return Published(files=(f"{name}/{name}.jsonl",), fields={**_LABELLED, "label": label}, samples=samples, **more)


DTLBENCH: Mapping[str, Published] = {
    "ddxplus": _one("ddxplus", "one of 49 diagnoses", 3136),
    "mimic-iv-mr": _one("mimic-iv-mr", "a list of medications, out of 122", 2881, place=_CREDENTIALED),
    "mimic-iv-msr": _one("mimic-iv-msr", "the right specialties, out of 19", 2115, place=_CREDENTIALED),
    "mimic-iv-tlp": _one("mimic-iv-tlp", "the level, a number from 1 to 5", 2200, place=_CREDENTIALED),
    "mud": _one("mud", "an object from each defendant to one of 22 crimes", 1740),
    "cmdl": _one("cmdl", "an object from each defendant to a list of penalties, out of 6 kinds", 2080),
    "banking77": _one("banking77", "one of 77 intents", 5000),
    "sentifin": _one("sentifin", 'a list of objects with "entity" and "label", in the order of the headline', 2299),
    "rca": _one("rca", "one of 6 types of alert", 2925),
    "lfd": _one("lfd", "CPU, Memory or Hardware", 3000, order="by the time of the log: the order of the file"),
    "spider": Published(
        files=("spider/spider.jsonl", "spider/source"),
        fields={"task": "the question", "query": "the right SQL", "db_id": "the name of the database"},
        samples=2147,
        layout=f"{_JSONL}; databases in spider/source/DB/DB.sqlite",
        resources="the databases of Spider's test split, from the address in the README of github.com/guosyjlu/CASCADE",
    ),
    "bird": Published(
        files=("bird/bird.jsonl", "bird/source"),
        fields={
            "task": "the question",
            "evidence": "knowledge that the question needs, or an empty text",
            "SQL": "the right SQL",
            "db_id": "the name of the database",
        },
        samples=1534,
        layout=f"{_JSONL}; databases in bird/source/dev_databases/DB/DB.sqlite",
        resources="https://bird-bench.oss-cn-beijing.aliyuncs.com/dev.zip, unpacked (with the archives in it) in bird/source",
    ),
    "alfworld": Published(
        files=("alfworld/alfworld.jsonl",),
        fields={"task": "the first observation", "game_file": "the game, relative to the folder of ALFWorld's games"},
        samples=2000,
        order="1,866 games of the train split and the 134 of the unseen split, in the order of the file",
        resources="the official games: pip install alfworld, then alfworld-download",
        run="cascade-memory bench run --tasks alfworld --order file --model NAME --base-url URL --data DIR",
    ),
    "scienceworld": Published(
        files=("scienceworld/scienceworld.jsonl",),
        fields={"task": "the task and the first look", "taskName": "its type", "variationIdx": "the number of its variation"},
        samples=1857,
        resources='the simulator: pip install "cascade-memory[bench]", and Java 11 or later',
        run="cascade-memory bench run --tasks scienceworld --order file --model NAME --base-url URL --data DIR",
    ),
    "2wiki": Published(
        files=("2wiki/2wiki.jsonl",),
        fields={"task": "the question", "label": "the right answers"},
        samples=2500,
        resources=(
            "the paper searches wiki-18.jsonl (huggingface.co/datasets/PeterJinGo/wiki-18-corpus) by a server of its own, for "
            "which there is --search; passages here (2wiki/corpus.jsonl) may be up to a million"
        ),
        run="cascade-memory bench run --tasks 2wiki --order file --model NAME --base-url URL --data DIR",
    ),
    "mimic-iii": Published(
        files=("ehr/ehr.jsonl", "ehr/source"),
        fields={"task": "the question", "label": "the right answer, a text"},
        samples=2500,
        layout=f"{_JSONL}; tables in ehr/source/ADMISSIONS.csv and 16 more, and ehr/source/mimic_iii.db",
        resources="EHRAgent's archive of the tables, from the address in the README of github.com/guosyjlu/CASCADE",
        run="cascade-memory bench run --tasks mimic-iii --order file --model NAME --base-url URL --data DIR",
    ),
}
