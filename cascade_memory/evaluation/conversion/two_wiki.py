"""2WikiMultihopQA: questions that need several passages of Wikipedia."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cascade_memory.errors import InvalidInput
from cascade_memory.evaluation.conversion.converter import Converted, Converter, Row, drawn, json_of, words_of

_FILE = "dev.json"


def convert(source: Path, count: int) -> Converted:
    """Draw questions, and collect the passages that come with them, about ten for each question."""
    questions: list[Row] = []
    for index, one in enumerate(json_of(source, _FILE, list, "a list of questions")):
        if not isinstance(one, dict) or not all(isinstance(one.get(name), str) for name in ("question", "answer")):
            raise InvalidInput(f"{source / _FILE}: entry {index + 1} lacks a question or its answer")
        passages = one.get("context")
        kept: Row = {"task": words_of(one["question"]), "label": one["answer"], "context": passages, "orig_index": index}
        questions.append(kept)
    questions = drawn(questions, count)
    found: list[tuple[str, str]] = []
    for one in questions:
        found += _passages(one.pop("context"), f"{source / _FILE}: entry {one['orig_index'] + 1}")
    corpus = [{"id": number, "title": title, "text": text} for number, (title, text) in enumerate(dict.fromkeys(found))]
    return {"2wiki_rag.jsonl": questions, "2wiki_corpus.jsonl": corpus}


def _passages(context: Any, place: str) -> list[tuple[str, str]]:
    try:
        return [(str(title), words_of(" ".join(sentences))) for title, sentences in context]
    except (TypeError, ValueError):
        raise InvalidInput(f"{place} should have a context: a list of a title and a list of sentences each") from None


TWO_WIKI = Converter(
    get="the archive that https://github.com/Alab-NII/2wikimultihop links to under Dataset Contents, unpacked",
    reads=(_FILE,),
    rows=2_500,
    tried="a fixture in the layout that its makers describe",
    convert=convert,
)
