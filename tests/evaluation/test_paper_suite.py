"""``bench run --suite paper``: all sixteen tasks from the published layout, with every method of the paper, by one command."""

from __future__ import annotations

import importlib.util
import json
import re
import shlex
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("langchain_core")

from dtlbench import ASKED, published, right_replies
from langchain_core.messages import AIMessage, BaseMessage
from openai_server import serving
from published_worlds import alfworld_games, alfworld_stream, scienceworld_stream
from tiny_language_models import make_language_model
from tiny_models import make_embedder, make_reranker, sentence_layout

from cascade_memory.cli import main
from cascade_memory.evaluation.bench import household_stage, science_stage, search_stage
from cascade_memory.evaluation.bench.authors import sampling_of
from cascade_memory.evaluation.bench.paper_suite import ACTED_WITH, ANSWERED_WITH
from cascade_memory.evaluation.bench.plan import PAPER
from cascade_memory.evaluation.bench.stage import catalogued
from cascade_memory.evaluation.environments.hospital.questions import hospital_questions
from cascade_memory.evaluation.environments.hospital.synthetic import build_hospital
from cascade_memory.evaluation.environments.household.engine import is_installed
from cascade_memory.evaluation.model.model_solver import truths_of
from cascade_memory.evaluation.report import paper
from cascade_memory.evaluation.tasks.catalogue import task_named

SCIENCE = importlib.util.find_spec("scienceworld") is not None and shutil.which("java") is not None
NOWHERE = ["--model", "tiny", "--base-url", "http://127.0.0.1:9/v1"]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every task of the paper in the layout of DTLBench, as far as its world is installed here."""
    folder = published(tmp_path_factory.mktemp("dtlbench"))
    source = folder / "ehr" / "source"
    source.mkdir(parents=True)
    questions = hospital_questions(build_hospital(source / "mimic_iii.db"))[::90]
    (folder / "ehr" / "ehr.jsonl").write_text(
        "\n".join(json.dumps({"task": one.text, "label": one.label}) for one in questions)
    )
    if is_installed():
        alfworld_stream(folder, alfworld_games(folder, tmp_path_factory.mktemp("made"), seen=1, unseen=1))
    if SCIENCE:
        scienceworld_stream(folder, [("find-plant", 0), ("find-animal", 1)])
    return folder


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv("ALFWORLD_DATA", raising=False)
    cached = (household_stage.official_embedded, science_stage.whole_stream, search_stage.passages_of, search_stage.embedder_in)
    for one in cached:
        one.cache_clear()
    yield
    for one in cached:
        one.cache_clear()
    for name in ("spider", "bird"):  # a benchmark keeps them open until its process ends; this one goes on
        catalogued(name).close()  # pyright: ignore[reportAttributeAccessIssue]


class Scripted:
    """Knows every second answer; the others only if a case is shown. In worlds it looks around, and it writes useless code."""

    def __init__(self, folder: Path) -> None:
        self._replies = right_replies(folder)
        self._order = {question: number for number, question in enumerate(self._replies)}

    def __call__(self, messages: Sequence[BaseMessage]) -> AIMessage:
        asked = next(str(one.content) for one in messages if one.type == "human")
        question = re.split(r"--- memory-\w+ end\n", asked)[-1]
        if question in self._replies:
            knows = self._order[question] % 2 == 0 or question != asked
            return AIMessage(self._replies[question] if knows else "I cannot tell.")
        if question.startswith("Question: "):  # deep search
            return AIMessage("unknown")
        return AIMessage("Action: look around\n```python\nanswer = 'unknown'\n```")


@pytest.mark.long
def test_one_command_plays_every_task_and_every_method_and_ends_in_the_report(data: Path, tmp_path: Path, capsys: Any):
    reranker = make_reranker(tmp_path / "reranker")
    embedder = make_embedder(tmp_path / "embedder", seed=1, files=sentence_layout({"pooling_mode_cls_token": True}))
    out = tmp_path / "rows.jsonl"
    with serving(Scripted(data)) as (url, received):
        asked = [
            "bench",
            "run",
            "--suite",
            "paper",
            "--model",
            "tiny",
            "--base-url",
            url,
            "--data",
            str(data),
            "--out",
            str(out),
        ]
        asked += ["--ranker", str(reranker), "--embedder", str(embedder), "--seeds", "1", "--limit", "4", "--jobs", "1"]
        assert main([*asked, "--dry-run"]) == 0
        planned = capsys.readouterr().out
        assert not received
        assert not out.exists()
        assert main(asked) == 0
        sent, told = len(received), capsys.readouterr().out
        assert main(asked) == 0  # everything is there already
        assert len(received) == sent
        assert "runs have rows already" in capsys.readouterr().out
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    played = [name for name in PAPER if (name != "alfworld" or is_installed()) and (name != "scienceworld" or SCIENCE)]
    assert {row["task"] for row in rows} == set(played)
    for name in played:
        methods = {row["method"] for row in rows if row["task"] == name}
        assert methods == set(ANSWERED_WITH if name in ASKED else ACTED_WITH), name
    assert {row["order"] for row in rows} == {"file"}
    assert all("embedder@" in row["models"] for row in rows if row["method"] != "zero-shot")
    answered = {row["method"]: row["rate"] for row in rows if row["task"] == "banking77"}
    assert answered["zero-shot"] < answered["Neural-LinLogUCB"]
    assert sent <= sum(int(one.replace(",", "")) for one in re.findall(r"at most ([\d,]+) requests", planned))
    assert "report:" in told
    page = (tmp_path / "rows-report" / "index.html").read_text()
    assert "Beside the paper" in page
    assert "what differs" in page
    assert "reranker reranker" in page


@pytest.mark.long
def test_a_model_in_this_process_plays_it_with_gradients(data: Path, tmp_path: Path, capsys: Any):
    pytest.importorskip("peft")
    model, out = make_language_model(tmp_path / "model", longest=8_192), tmp_path / "rows.jsonl"
    asked = ["bench", "run", "--suite", "paper", "--gradient", str(model), "--data", str(data), "--out", str(out)]
    asked += ["--tasks", "banking77", "rca", "--seeds", "1", "--limit", "4", "--sampling", '{"max_tokens": 4}', "--json"]
    assert main([*asked, "--training", '{"batch": 2}']) == 0
    rows = json.loads(capsys.readouterr().out)
    assert {(row["task"], row["method"]) for row in rows} == {
        (task, method) for task in ("banking77", "rca") for method in ("zero-shot", "REINFORCE + LoRA")
    }
    assert {row["optimiser_steps"] for row in rows if row["method"] != "zero-shot"} == {2}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ([], "is played by a language model"),
        (NOWHERE, "name it with --ranker"),
        ([*NOWHERE, "--tasks", "hospital"], "the paper has no task 'hospital'"),
        ([*NOWHERE, "--rewards", "late"], "cannot be used with --suite paper"),
        ([*NOWHERE, "--methods", "random"], "the paper has no method 'random'"),
    ],
)
def test_what_is_missing_is_said_before_anything_is_sent(
    options: list[str], said: str, data: Path, tmp_path: Path, capsys: Any
):
    where = ["--data", str(data), "--out", str(tmp_path / "rows.jsonl")]
    assert main(["bench", "run", "--suite", "paper", *options, *where]) == 2
    assert said in capsys.readouterr().err


def test_a_dry_run_is_for_the_papers_suite(tmp_path: Path, capsys: Any):
    assert main(["bench", "run", "--suite", "quick", "--dry-run", "--data", str(tmp_path)]) == 2
    assert "--dry-run can only be used with --suite paper" in capsys.readouterr().err


PAGE = Path(__file__).parents[2] / "docs" / "reproducing.md"
WEB = Path(__file__).parents[1] / "helpers" / "web_search_server.py"
OWN = {
    "--model",
    "--base-url",
    "--judge-base-url",
    "--data",
    "--ranker",
    "--embedder",
    "--gradient",
    "--jobs",
}  # what the reader has, and we replace


def commands() -> list[list[str]]:
    """Return the commands of the page, without what they say of the reader's own models and data."""
    page = PAGE.read_text()
    lines = re.findall(r"^cascade-memory (bench run .*)$", page, re.MULTILINE) + re.findall(
        r"`(bench (?:run --suite|tune --task) [^`]*)`", page
    )
    found: list[list[str]] = []
    for line in lines:
        words = shlex.split(line)
        own = {place for place, word in enumerate(words) if word in OWN}
        kept = [word for place, word in enumerate(words) if place not in own and place - 1 not in own]
        if len(asked := [word for word in kept if word in ASKED]) > 2:
            kept = [word for word in kept if word not in asked[2:]]  # two of nine tasks show what all of them do
        found.append([*kept, *(["--gradient"] if "--gradient" in words else [])])
    return found


@pytest.mark.long
def test_every_command_of_the_page_is_played_on_a_small_scale(data: Path, tmp_path: Path, capsys: Any):
    reranker, embedder = make_reranker(tmp_path / "reranker"), make_embedder(tmp_path / "embedder", seed=1)
    server = shlex.join([sys.executable, str(WEB), str(data / "2wiki" / "corpus.jsonl")])
    assert len(commands()) >= 12
    with serving(Scripted(data)) as (url, _):
        own = ["--model", "tiny", "--base-url", url, "--ranker", str(reranker), "--embedder", str(embedder), "--jobs", "1"]
        for words in commands():
            if "--gradient" in words or ("alfworld" in words and not (is_installed() and SCIENCE)):
                continue  # the first has a test of its own
            out = Path(words.pop(words.index("--out") + 1)).name if "--out" in words else "rows.jsonl"
            words = [word for word in words if word != "--out"]
            small = ["--data", str(data), "--out", str(tmp_path / out), "--limit", "2", "--seeds", "1"]
            if words[1] == "tune":
                out = "tuning.jsonl"
                tuned = [*words, *own, *small[:2], "--out", str(tmp_path / out), "--limit", "2", "--json"]
                assert main(tuned) == 0
                assert {one["runs"] for one in json.loads(capsys.readouterr().out)} == {14}
                continue
            small += [] if "--tasks" in words else ["--tasks", "banking77"]
            words = [server if word == "SERVER" else word for word in words]
            assert main([*words, *own, *small, "--json"]) == 0, words
            rows = json.loads(capsys.readouterr().out)
            assert {row["n"] for row in rows} == {2}, words


@pytest.mark.long
def test_the_plan_knows_which_rows_stand_for_its_runs(data: Path, tmp_path: Path, capsys: Any):
    reranker, other = make_reranker(tmp_path / "reranker"), make_reranker(tmp_path / "other", seed=4)
    out = tmp_path / "rows.jsonl"
    with serving(Scripted(data)) as (url, received):
        asked = ["bench", "run", "--suite", "paper", "--base-url", url, "--data", str(data), "--out", str(out), "--jobs", "1"]
        asked += ["--tasks", "banking77", "--methods", "zero-shot", "Neural-LinLogUCB", "--seeds", "1", "--limit", "2"]
        assert main([*asked, "--model", "tiny", "--ranker", str(reranker)]) == 0
        sent = len(received)
        capsys.readouterr()

        def runs_left(*options: str) -> str:
            assert main([*asked, *options, "--dry-run"]) == 0
            return re.search(r"(\d+) runs?:", capsys.readouterr().out)[1]  # type: ignore[index]

        assert runs_left("--model", "tiny", "--ranker", str(reranker)) == "0"
        assert runs_left("--model", "tiny", "--ranker", str(reranker), "--alpha", "0.3") == "1"
        assert runs_left("--model", "tiny", "--ranker", str(other)) == "1"
        assert runs_left("--model", "another", "--ranker", str(reranker)) == "2"
        assert len(received) == sent


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--methods", "Neural-LinLogUCB + revision"], "name it with --ranker"),
        (["--methods", "zero-shot", "NPCBR"], "the paper has no method 'NPCBR'"),
        (["--gradient", "nowhere", "--tasks", "2wiki"], "--gradient plays tasks with one answer each"),
    ],
)
def test_what_cannot_be_played_fairly_is_refused(options: list[str], said: str, data: Path, tmp_path: Path, capsys: Any):
    asked = ["bench", "run", "--suite", "paper", "--data", str(data), "--out", str(tmp_path / "rows.jsonl"), *options]
    assert main([*asked, *([] if "--gradient" in options else NOWHERE)]) == 2
    assert said in capsys.readouterr().err


def test_a_human_gives_one_of_several_right_answers(data: Path):
    task: Any = task_named("mimic-iv-msr")
    items = task.items(data)
    assert any(isinstance(item.label, list) for item in items)
    assert all(task.reward(task.example(truth), item) == 1.0 for item, truth in zip(items, truths_of(task, items), strict=True))


def test_the_figure_beside_a_row_is_that_of_the_same_experiment():
    row = {"task": "alfworld", "method": "Neural-LinLogUCB", "solver": "Qwen3-32B", "declared": {}}
    assert paper.reported("alfworld", "Neural-LinLogUCB", row) == ("Qwen3-32B", "CASCADE", "81.74")
    assert paper.reported("alfworld", "Neural-LinLogUCB", {**row, "declared": {"thinks": False}}) == (
        "Qwen3-32B",
        "CASCADE",
        "67.43",
    )
    searched = {**row, "task": "2wiki", "search": "https://search.example.org"}
    assert paper.reported("2wiki", "Neural-LinLogUCB (ranker one@1)", searched) == ("Qwen3-30B-A3B", "CASCADE", "66.51")
    assert paper.reported("2wiki", "NP-CBR", {**searched, "search": "passages here, dense"}) == (
        "Qwen3-30B-A3B",
        "NP-CBR",
        "45.94",
    )
    settings = {**sampling_of("Qwen3-32B"), "prompt": "authors"}
    like = {"task": "mud", "method": "zero-shot", "solver": "Qwen3-32B", "n": 1740, "order": "file", "declared": settings}
    assert paper.unlike({**like, "differs": ""}) == []
    assert paper.unlike({**like, "differs": "", "declared": {**settings, "temperature": 1.0}}) == ["temperature 1.0"]
    assert "judged by labels" in paper.unlike({**like, "task": "2wiki", "judged_by": "labels"})
