"""DDXPlus: what invented patients say, and their diagnosis. The wording is ours."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from cascade_memory.errors import InvalidInput
from cascade_memory.evaluation.conversion.converter import Converted, Converter, Row, drawn, json_of, table_of
from cascade_memory.evaluation.judging.literals import read_literal

_PATIENTS, _EVIDENCES, _SPLIT = "release_validate_patients", "release_evidences.json", "validate"
_SEX = {"M": "Male", "F": "Female"}
_COLUMNS = ("AGE", "SEX", "PATHOLOGY", "EVIDENCES", "INITIAL_EVIDENCE")


def convert(source: Path, count: int) -> Converted:
    """Draw patients, and write down what is known of each."""
    evidences = json_of(source, _EVIDENCES, dict, "an object that describes each evidence")
    patients = table_of(source, _COLUMNS, f"{_PATIENTS}.csv", _PATIENTS)
    kept = drawn([{"split": _SPLIT, "orig_index": index, **line} for index, line in enumerate(patients)], count)
    return {"ddxplus.jsonl": [_row(patient, evidences, source) for patient in kept]}


def _row(patient: Row, evidences: Mapping[str, Any], source: Path) -> Row:
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
    convert=convert,
)
