"""The converters, by the names of their tasks, and how one is run.

They make the messages of Banking77, the patients of DDXPlus (in our wording), the headlines of SEntFiN, the questions of
Spider, BIRD and 2WikiMultihopQA, and stand-ins for the paper's data on faults (lines of a supercomputer's log) and on alarms
(messages of network devices), which are not published.
"""

from __future__ import annotations

import io
import re
import tarfile
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

from cascade_memory.errors import InvalidInput
from cascade_memory.evaluation.conversion.converter import (
    Converted,
    Converter,
    Row,
    drawn,
    json_of,
    lines_of,
    table_of,
    words_of,
)
from cascade_memory.evaluation.judging.literals import read_literal

# Banking77: messages of customers of a bank, each with one of 77 intents.
_BANKING = "banking_data"


def _banking77(source: Path, count: int) -> Converted:
    """Draw messages from both splits; in the names of intents, underscores become spaces, so that a model reads words."""
    rows: list[Row] = []
    for split in ("train", "test"):
        name = f"{split}.csv"
        for index, line in enumerate(table_of(source, ("text", "category"), f"{_BANKING}/{name}", name)):
            label = words_of(line["category"].replace("_", " "))
            rows.append({"task": words_of(line["text"]), "label": label, "split": split, "orig_index": index})
    return {"banking77.jsonl": drawn(rows, count)}


BANKING77 = Converter(
    get="git clone https://github.com/PolyAI-LDN/task-specific-datasets",
    reads=("banking_data/train.csv", "banking_data/test.csv"),
    rows=5_000,
    tried="the repository at commit 57ec275",
    convert=_banking77,
)

# DDXPlus: what invented patients say, and their diagnosis. The wording is ours.
_PATIENTS, _EVIDENCES, _SPLIT = "release_validate_patients", "release_evidences.json", "validate"
_SEX = {"M": "Male", "F": "Female"}
_OF_PATIENTS = ("AGE", "SEX", "PATHOLOGY", "EVIDENCES", "INITIAL_EVIDENCE")


def _ddxplus(source: Path, count: int) -> Converted:
    """Draw patients, and write down what is known of each."""
    evidences = json_of(source, _EVIDENCES, dict, "an object that describes each evidence")
    patients = table_of(source, _OF_PATIENTS, f"{_PATIENTS}.csv", _PATIENTS)
    kept = drawn([{"split": _SPLIT, "orig_index": index, **line} for index, line in enumerate(patients)], count)
    return {"ddxplus.jsonl": [_patient(patient, evidences, source) for patient in kept]}


def _patient(patient: Row, evidences: Mapping[str, Any], source: Path) -> Row:
    found: object = read_literal(patient["EVIDENCES"])
    if not isinstance(found, list):
        raise InvalidInput(f"{source / _PATIENTS}: row {patient['orig_index'] + 1} has no list of evidences")
    values: dict[str, list[str]] = {}
    for token in map(str, cast("list[Any]", found)):
        name, _, value = token.partition("_@_")
        values.setdefault(name, []).append(value)
    said = {name: _said(name, these, evidences, source) for name, these in values.items()}
    past = [name for name in said if evidences[name].get("is_antecedent")]
    lines = [f"Sex: {_SEX.get(patient['SEX'], patient['SEX'])}, Age: {patient['AGE']}"]
    first = str(patient["INITIAL_EVIDENCE"])
    lines.append(f"Chief complaint: {said.get(first) or _said(first, [''], evidences, source)}")
    for heading, names in (("Symptoms", [name for name in said if name not in past]), ("Antecedents", past)):
        lines += [f"{heading}:", *(f"- {said[name]}" for name in names)] if names else []
    about = {"split": _SPLIT, "orig_index": f"{_SPLIT}:{patient['orig_index']}"}
    return {"task": "\n".join(lines), "label": patient["PATHOLOGY"], **about}


def _said(name: str, values: list[str], evidences: Mapping[str, Any], source: Path) -> str:
    """Write the question about an evidence and the patient's answer: yes, a number, or the meaning of each value."""
    about = evidences.get(name)
    if not isinstance(about, dict) or not isinstance(about.get("question_en"), str):
        raise InvalidInput(f"{source / _EVIDENCES} does not describe the evidence {name!r} with a question_en")
    meanings = cast("dict[str, Any]", about).get("value_meaning") or {}
    told = [str((meanings.get(value) or {}).get("en", value)) if value else "Yes" for value in values]
    return f"{about['question_en']} {', '.join(told)}"


DDXPLUS = Converter(
    get="the English files at https://figshare.com/articles/dataset/DDXPlus_Dataset_English_/22687585, unpacked",
    reads=(_EVIDENCES, f"{_PATIENTS}.csv"),
    rows=3_136,
    tried="a fixture in the layout that https://github.com/mila-iqia/ddxplus describes",
    convert=_ddxplus,
)

# A stand-in for the paper's data on faults in a log: 2,000 lines of a supercomputer's log (BGL), each with its category.
_LOG = "BGL_2k.log_structured.csv"
_OF_LINES = ("LineId", "Label", "Date", "Node", "Type", "Component", "Level", "Content", "EventId")


def _lfd(source: Path, count: int) -> Converted:
    """Take the first lines, in the order of the log; a line that is no alert (marked "-") has the label "normal"."""
    rows: list[Row] = []
    for line in table_of(source, _OF_LINES, f"BGL/{_LOG}", _LOG)[:count]:
        said = words_of(" ".join(line[name] for name in ("Date", "Node", "Type", "Component", "Level", "Content")))
        label = "normal" if line["Label"] == "-" else line["Label"]
        rows.append({"task": said, "label": label, "orig_index": line["LineId"], "event": line["EventId"]})
    return {"bgl_2k.jsonl": rows}


LFD = Converter(
    get="git clone https://github.com/logpai/loghub",
    reads=(f"BGL/{_LOG}",),
    rows=2_000,
    tried="the beginning of the file at commit 374038f, and a fixture in its layout",
    convert=_lfd,
)

# A stand-in for the paper's data on alarms: messages of network devices, each with the module that sent it.
_NETWORK_LOG = "datasets/pre-train/network log"
_OF_DEVICES = {"switch": "hw_switch_desc.json", "routers": "hw_routers_desc.json"}
_MODULES = 40  # the most frequent ones
_MESSAGE = re.compile(r"\s*(?P<module>\w+)/(?P<severity>\d+)/(?P<mnemonic>\w+)\s*:\s*(?P<text>.*)", re.DOTALL)


def _rca(source: Path, count: int) -> Converted:
    """Draw messages of the most frequent modules; a text that occurs several times is one message."""
    rows: dict[str, Row] = {}
    index = 0
    for device, file in _OF_DEVICES.items():
        name = f"{_NETWORK_LOG}/{file}" if (source / _NETWORK_LOG / file).is_file() else file
        for pair in json_of(source, name, list, "a list of pairs of a message and its description"):
            found = _MESSAGE.fullmatch(_message(pair, source / name))
            if found is not None and (text := words_of(found["text"])):
                about = {"severity": int(found["severity"]), "mnemonic": found["mnemonic"], "device": device}
                rows.setdefault(text, {"task": text, "label": found["module"], **about, "orig_index": index})
            index += 1
    if not rows:
        raise InvalidInput(f"{source} holds no messages of the form MODULE/SEVERITY/MNEMONIC: text")
    frequent = {module for module, _ in Counter(row["label"] for row in rows.values()).most_common(_MODULES)}
    return {"rca_huawei_module.jsonl": drawn([row for row in rows.values() if row["label"] in frequent], count)}


def _message(pair: Any, path: Path) -> str:
    if not isinstance(pair, list) or not pair or not isinstance(pair[0], str):
        raise InvalidInput(f"{path} has another layout: it should be a list of pairs of texts")
    return pair[0]


RCA = Converter(
    get="git clone https://github.com/LeaperOvO/KnowLog",
    reads=tuple(f"{_NETWORK_LOG}/{file}" for file in _OF_DEVICES.values()),
    rows=2_925,
    tried="the repository at commit 02eb769",
    convert=_rca,
)

# SEntFiN: headlines of financial news, and the sentiment about each entity.
_HEADLINES = "SEntFiN.csv"
# Not a Python literal: the quotes around an entity stay the same even if it has an apostrophe.
_DECISION = re.compile(
    r"""\s*(?P<quote>['"])(?P<entity>.+?)(?P=quote)\s*:\s*['"](?P<sentiment>positive|negative|neutral)['"]\s*(?:,|$)"""
)


def _sentifin(source: Path, count: int) -> Converted:
    """Draw headlines; the entities of each are in the order of the headline."""
    rows: list[Row] = []
    for index, line in enumerate(table_of(source, ("Title", "Decisions"), _HEADLINES)):
        headline = words_of(line["Title"])
        decisions = _decisions(line["Decisions"])
        if not decisions:
            raise InvalidInput(f"{source / _HEADLINES}: row {index + 1} should name entities, each with its sentiment")
        named = sorted(decisions, key=lambda entity: headline.lower().find(entity.lower()) % (len(headline) + 1))
        label = [{"entity": entity, "label": decisions[entity]} for entity in named]
        rows.append({"task": headline, "label": label, "orig_index": index})
    return {"sentifin.jsonl": drawn(rows, count)}


def _decisions(text: str) -> dict[str, str]:
    """Read the sentiment of each entity; an empty dictionary if any part of the text cannot be read.

    >>> _decisions("{'Sebi': 'neutral', 'Osian's Art Fund': 'positive'}")
    {'Sebi': 'neutral', "Osian's Art Fund": 'positive'}
    """
    inner, at, found = text.strip().removeprefix("{").removesuffix("}"), 0, dict[str, str]()
    while at < len(inner):
        one = _DECISION.match(inner, at)
        if one is None:
            return {}
        found[one["entity"]] = one["sentiment"]
        at = one.end()
    return found


SENTIFIN = Converter(
    get="git clone https://github.com/pyRis/SEntFiN",
    reads=(_HEADLINES,),
    rows=2_299,
    tried="the repository at commit eba4361",
    convert=_sentifin,
)

# Spider and BIRD: questions about SQLite databases. 2WikiMultihopQA: questions that need several passages of Wikipedia.
_DEV = "dev.json"


def _sql_converter(target: str, databases: str, *, sql: str, also: tuple[str, ...] = ()) -> Callable[[Path, int], Converted]:
    def convert(source: Path, count: int) -> Converted:
        rows: list[Row] = []
        for index, one in enumerate(json_of(source, _DEV, list, "a list of questions")):
            fields = ("question", sql, "db_id", *also)
            if not isinstance(one, dict) or not all(isinstance(one.get(name), str) for name in fields):
                raise InvalidInput(f"{source / _DEV}: question {index + 1} lacks one of {', '.join(fields)}")
            more: Row = {name: one[name] for name in ("db_id", *also)}
            rows.append({"task": one["question"], "label": one[sql], **more, "orig_index": index})
        rows = drawn(rows, count)
        names = sorted({str(row["db_id"]) for row in rows})
        return {f"{target}.jsonl": rows, f"{target}_dbs.tar.gz": _packed(source / databases, names)}

    return convert


def _packed(folder: Path, names: list[str]) -> bytes:
    """Return the bytes of an archive (tar.gz) with the databases of these names."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz", compresslevel=6) as archive:
        for name in names:
            path = folder / name / f"{name}.sqlite"
            if Path(name).name != name or not path.is_file():
                raise InvalidInput(f"there is no database {name!r} in {folder}")
            archive.add(path, f"{name}/{name}.sqlite", filter=_without_owner)
    return packed.getvalue()


def _without_owner(member: tarfile.TarInfo) -> Any:
    member.uid = member.gid = member.mtime = 0
    member.uname = member.gname = ""
    return member


_TRIED_SQL = "a fixture in the layout that its makers describe"
SPIDER = Converter(
    get="the archive that https://yale-lily.github.io/spider links to, unpacked",
    reads=(_DEV, "database/DB/DB.sqlite"),
    rows=1_034,
    tried=_TRIED_SQL,
    convert=_sql_converter("spider_dev", "database", sql="query"),
)
BIRD = Converter(
    get="https://bird-bench.oss-cn-beijing.aliyuncs.com/dev.zip, unpacked, and in it dev_databases.zip",
    reads=(_DEV, "dev_databases/DB/DB.sqlite"),
    rows=1_534,
    tried=_TRIED_SQL,
    convert=_sql_converter("bird_dev", "dev_databases", sql="SQL", also=("evidence",)),
)


def _two_wiki(source: Path, count: int) -> Converted:
    """Draw questions, and collect the passages that come with them, about ten for each question."""
    questions: list[Row] = []
    for index, one in enumerate(json_of(source, _DEV, list, "a list of questions")):
        if not isinstance(one, dict) or not all(isinstance(one.get(name), str) for name in ("question", "answer")):
            raise InvalidInput(f"{source / _DEV}: entry {index + 1} lacks a question or its answer")
        passages = one.get("context")
        kept: Row = {"task": words_of(one["question"]), "label": one["answer"], "context": passages, "orig_index": index}
        questions.append(kept)
    questions = drawn(questions, count)
    found: list[tuple[str, str]] = []
    for one in questions:
        found += _passages(one.pop("context"), f"{source / _DEV}: entry {one['orig_index'] + 1}")
    corpus = [{"id": number, "title": title, "text": text} for number, (title, text) in enumerate(dict.fromkeys(found))]
    return {"2wiki_rag.jsonl": questions, "2wiki_corpus.jsonl": corpus}


def _passages(context: Any, place: str) -> list[tuple[str, str]]:
    try:
        return [(str(title), words_of(" ".join(sentences))) for title, sentences in context]
    except (TypeError, ValueError):
        raise InvalidInput(f"{place} should have a context: a list of a title and a list of sentences each") from None


TWO_WIKI = Converter(
    get="the archive that https://github.com/Alab-NII/2wikimultihop links to under Dataset Contents, unpacked",
    reads=(_DEV,),
    rows=2_500,
    tried="a fixture in the layout that its makers describe",
    convert=_two_wiki,
)

CONVERTERS: dict[str, Converter] = {
    "banking77": BANKING77,
    "bird": BIRD,
    "ddxplus": DDXPLUS,
    "lfd": LFD,
    "rca": RCA,
    "sentifin": SENTIFIN,
    "spider": SPIDER,
    "2wiki": TWO_WIKI,
}
# Tasks that no converter makes, and where their data comes from instead.
WITHOUT = {
    **dict.fromkeys(
        ("mimic-iv-mr", "mimic-iv-msr", "mimic-iv-tlp"),
        "none: how the paper chose its patients is not published; DTLBench's file is read as it is",
    ),
    **dict.fromkeys(
        ("mud", "cmdl"),
        "none: the layout of the original could not be looked at; DTLBench's file is read as it is",
    ),
    "alfworld": "none needed: the games are read as alfworld-download gets them; bench games makes others",
    "scienceworld": "none needed: the tasks are in the package scienceworld",
    "bfcl": "none needed: the tasks are read from the installed package bfcl-eval",
    "llb-db": "none needed: the file is read as it is, under the name llb_db.json",
    "mimic-iii": "none: DTLBench's file and EHRAgent's tables are read as they are; the task hospital needs no data",
}


def convert(name: str, source: Path, out: Path, rows: int | None = None) -> dict[Path, int]:
    """Make the files of a task from its source; return what was written, with the number of rows (0: not a file of rows).

    Args:
        name: A task of the catalogue.
        source: The folder with the files that its converter reads.
        out: The folder of data, made if need be. It is an error if one of the files exists already.
        rows: How many rows to draw; by default as many as the paper plays, or all that there are.
    """
    converter = CONVERTERS.get(name)
    if converter is None:
        why = f" ({WITHOUT[name]})" if name in WITHOUT else ""
        raise InvalidInput(f"there is no converter for {name!r}{why}; there are some for {', '.join(CONVERTERS)}")
    if rows is not None and rows < 1:
        raise InvalidInput("the number of rows must be 1 or more")
    made = converter.convert(source, converter.rows if rows is None else rows)
    targets = {out / file: content for file, content in made.items()}
    if there := next((path for path in targets if path.exists()), None):
        raise InvalidInput(f"{there} is there already: delete it, or name another folder")
    try:
        out.mkdir(parents=True, exist_ok=True)
        for path, content in targets.items():
            path.write_bytes(content if isinstance(content, bytes) else lines_of(content))
    except OSError as error:
        raise InvalidInput(f"cannot write to {out}: {error}") from error
    return {path: 0 if isinstance(content, bytes) else len(content) for path, content in targets.items()}
