"""The report: one page that loads nothing, keeps solvers apart, and says in words what its intervals say."""

from __future__ import annotations

import json
import re
import statistics
import sys
import warnings
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from made_once import made_once

from cascade_memory.cli import main
from cascade_memory.evaluation.bench.plan import Run
from cascade_memory.evaluation.bench.rows import read_rows
from cascade_memory.evaluation.bench.runner import run
from cascade_memory.evaluation.bench.summary import interval
from cascade_memory.evaluation.report import charts, differences, paper, regret, tables, words
from cascade_memory.evaluation.report.page import answer, write_report
from cascade_memory.evaluation.report.page import page as render
from cascade_memory.evaluation.report.section import bits, sections, solved, solved_of_the_rest
from cascade_memory.evaluation.synthetic import tickets
from cascade_memory.looks import palette

METHODS = ("zero-shot", "random", "similarity", "CASCADE")
LOADING = {"src", "href", "data", "action", "poster", "srcset", "xlink:href"}
VOID = {"meta", "link", "br", "img"}


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_once(tmp_path_factory, "rows-of-reports", _play) / "rows.jsonl"


def _play(folder: Path) -> None:
    lines = [json.dumps({"task": task.query, "label": task.solution}) for task in tickets(90, 0)]
    (folder / "banking77.jsonl").write_text("\n".join(lines))
    target, runs = folder / "rows.jsonl", [Run("banking77", method, seed) for method in METHODS for seed in range(3)]
    played = run(runs, folder, target, progress=False)
    twice = ({**row, "task": task} for task in ("banking77", "sentifin") for row in played)
    target.write_text("".join(json.dumps(row) + "\n" for row in twice))


@pytest.fixture(scope="module")
def page(rows) -> Page:
    return read(drawn(rows))


class Page(HTMLParser):
    """Headings with the text below them, what is loaded, and whether every element is closed."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.loads: list[str] = []
        self.ids: list[str] = []
        self.tags: set[str] = set()
        self.levels: list[int] = []
        self.text = ""
        self.parts: dict[str, str] = {}
        self.language = ""
        self.unnamed = 0
        self._heading: str | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.tags.add(tag)
        self.loads += [value for name, value in given.items() if name in LOADING and not value.startswith(("#", "data:"))]
        self.ids += [given["id"]] if "id" in given else []
        self.language = given.get("lang", self.language)
        self.unnamed += given.get("role") == "img" and not given.get("aria-label")
        assert not [name for name in given if name.startswith("on")]
        if re.fullmatch("h[1-6]", tag):
            self.levels.append(int(tag[1]))
            self._heading = "" if tag == "h2" else None
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag
        if tag == "h2" and self._heading is not None:
            self.parts[self._heading], self._heading = "", None

    def handle_data(self, data: str) -> None:
        if "style" in self.open:
            return
        self.text += data
        if self._heading is not None:
            self._heading += data
        elif self.parts:
            self.parts[list(self.parts)[-1]] += data


def drawn(rows: Path) -> str:
    """The page alone, without the pictures beside it, which take as long again."""
    return render(sections(read_rows(rows)), [])


def read(text: str) -> Page:
    found = Page()
    found.feed(text)
    found.close()
    return found


def changed(rows: Path, target: Path, **values: Any) -> Path:
    """Real rows of one task, as if of something else."""
    lines = [one for line in rows.read_text().splitlines() if (one := json.loads(line))["task"] == "banking77"]
    target.write_text("".join(json.dumps({**line, **values}) + "\n" for line in lines))
    return target


@pytest.mark.long
def test_one_page_that_loads_nothing_and_can_be_read_aloud(page, rows, tmp_path):
    assert page.open == []
    assert page.loads == []
    assert "script" not in page.tags
    assert page.language == "en"
    assert page.unnamed == 0
    assert len(set(page.ids)) == len(page.ids)
    assert page.levels[0] == 1
    assert all(after <= before + 1 for before, after in zip(page.levels, page.levels[1:], strict=False))
    target = write_report(rows, tmp_path)
    assert target.stat().st_size < 2_000_000
    assert not re.search(r"url\((?!#)", target.read_text())
    assert "@import" not in target.read_text()
    pictures = list(tmp_path.glob("*.png"))
    assert len(pictures) == 4
    assert all(picture.read_bytes().startswith(b"\x89PNG") for picture in pictures)


@pytest.mark.slow
def test_the_same_rows_give_the_same_page_without_a_note_of_a_human_where_none_was_asked(rows, tmp_path):
    same = changed(rows, tmp_path / "same.jsonl")
    page = drawn(same)
    assert page == drawn(same)
    assert "human answered are left out" not in read(page).text


@pytest.mark.slow
def test_words_agree_with_the_numbers(page, rows):
    (section,) = sections(json.loads(line) for line in rows.read_text().splitlines())
    sentences = words.where_memory_does_not_help(section)
    said = {
        (task, method): verdict
        for verdict, text in sentences
        for task in section.tasks
        for method in METHODS[1:]
        if text.startswith(f"On {task}: ") and re.search(rf"(: |; ){re.escape(method)} \(", text)
    }
    expected = {}
    for task in section.tasks:
        for method in METHODS[1:]:
            pairs = [
                100 * (mine["rate"] - its["rate"])
                for mine, its in zip(section.of(task, method), section.of(task, "zero-shot"), strict=True)
            ]
            mean, half = interval(pairs)
            if mean - half <= 0:
                expected[task, method] = "fewer" if mean + half < 0 else "open"
    assert said == expected
    assert "fewer" in expected.values()
    assert all(text in page.text for _, text in sentences)
    figures = differences.on_task(section, "sentifin", "random", "zero-shot")
    assert figures is not None
    assert str(figures) in page.text


def test_two_seeds_are_no_verdict_and_one_has_no_interval(rows):
    lines = [json.loads(line) for line in rows.read_text().splitlines()]
    for seeds in (1, 2):
        (section,) = sections(line for line in lines if line["seed"] < seeds)
        assert {verdict for verdict, _ in words.where_memory_does_not_help(section)} == {"open"}
        assert "<strong>Too few seeds to tell.</strong>" in answer(section)
    (section,) = sections(line for line in lines if line["method"] != "zero-shot")
    verdict, text = words.where_memory_does_not_help(section)[-1]
    assert verdict == "open"
    assert "not known" in text


@pytest.mark.long
def test_solvers_are_never_in_one_part(rows, tmp_path):
    other = changed(rows, tmp_path / "other.jsonl", solver="reuse", task="alfworld", method="CASCADE")
    model = changed(rows, tmp_path / "model.jsonl", solver="some-model", limit=50)
    both = tmp_path / "both.jsonl"
    both.write_text(changed(rows, tmp_path / "same.jsonl").read_text() + other.read_text() + model.read_text())
    found = read(drawn(both))
    simulated, reuse, real = found.parts
    assert simulated == "SIMULATED solver, no language model"
    assert reuse == "REUSE agent, no language model"
    assert real == "model some-model; the first 50 tasks of each stream"
    assert "alfworld" not in found.parts[simulated] + found.parts[real]
    assert "banking77" not in found.parts[reuse]
    assert "SIMULATED" not in found.parts[reuse] + found.parts[real]
    assert found.parts[simulated].count("SIMULATED") == 1
    assert "67.43" in found.parts[reuse]


@pytest.mark.slow
def test_hostile_names_are_text(rows, tmp_path):
    evil = "<img src=x onerror=alert(1)> $x_{$ </style><script>alert(2)</script> \"'&amp;"
    hostile = changed(
        rows, tmp_path / "evil.jsonl", task=evil, solver=evil, machine=evil, embedder=evil, kinds={evil: [9, 0.5, None]}
    )
    found = read(drawn(hostile))
    assert evil in found.text
    assert not found.tags & {"script", "img"}
    assert found.loads == []


@pytest.mark.long
def test_letters_that_the_pictures_lack_are_no_warning(rows, tmp_path):
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="Glyph")
        target = write_report(changed(rows, tmp_path / "rows.jsonl", task="打印机"), tmp_path / "r")
    assert "打印机" in target.read_text()


@pytest.mark.slow
def test_rows_of_other_times_are_read(rows, tmp_path):
    kept = {"task", "method", "solver", "seed", "n", "rate", "success"}
    lines = changed(rows, tmp_path / "same.jsonl").read_text().splitlines()
    bare = [{name: value for name, value in json.loads(line).items() if name in kept} for line in lines]
    (tmp_path / "bare.jsonl").write_text("".join(json.dumps(row) + "\n" for row in bare) + '{"task": "cut o')
    found = read(drawn(tmp_path / "bare.jsonl"))
    assert "retrieval regret" not in found.text
    assert (tmp_path / "bare.jsonl").read_text().endswith('{"task": "cut o'), "somebody may be writing it"


@pytest.mark.slow
def test_what_rows_tell_more_is_shown(rows, tmp_path):
    alone = "01" * 45
    more = changed(
        rows, tmp_path / "more.jsonl", alone=alone, declared={"zero_shot": 0.5}, steps_per_task=7.25, cases=44,
        kinds={"heat": [30, 0.5, 0.25], "cool": [60, 0.75, None]},
    )  # fmt: skip
    (section,) = sections(json.loads(line) for line in more.read_text().splitlines())
    row = section.of("banking77", "CASCADE")[0]
    assert solved_of_the_rest(row) == pytest.approx(100 * row["success"][::2].count("1") / 45)
    found = read(drawn(more))
    for said in ("zero_shot 0.5", "7.25", "cases kept", "50.0 ± 0.0 (25.0)", "does not solve alone"):
        assert said in found.text


@pytest.mark.slow
def test_steps_are_shown_over_the_stream(rows, tmp_path):
    page = drawn(changed(rows, tmp_path / "steps.jsonl", steps=[2, 4] * 45))
    assert "Steps over the stream" in read(page).text
    assert "tool calls or actions per task after 90 tasks: " in page


@pytest.mark.parametrize(
    "wrong", [None, [2] * 89, [2.5] * 90, ["2"] * 90, [-1] * 90, [True] * 90, "2" * 90, {"a": 1}, [10**400] * 90]
)
def test_steps_of_another_form_are_not_shown(wrong):
    assert charts.steps_so_far({"n": 90, "steps": wrong}) is None


def test_the_regret_parts_every_loss(rows):
    for line in rows.read_text().splitlines():
        row = json.loads(line)
        parts = regret.split(row)
        success, covered, fitting = (bits(row, name) for name in ("success", "covered", "fitting"))
        assert parts is not None
        assert success is not None
        assert covered is not None
        assert fitting is not None
        whole = (0.97 - success)[~(covered & fitting)].sum()
        assert parts[0][-1] + parts[1][-1] == pytest.approx(whole)
        if row["method"] == "zero-shot":
            assert parts[1][-1] == 0


def test_the_papers_averages_come_out():
    from cascade_memory.evaluation.tasks.catalogue import CATALOGUE

    averages = {"zero-shot": 48.33, "ICRL": 52.48, "ICRLPlus": 54.33, "NP-CBR": 63.76, "CASCADE": 66.68}
    averages |= {"CASCADE without exploration": 66.37, "LinLogUCB": 63.95, "NeuralLogUCB": 65.39, "Neural-LinUCB": 65.49}
    single = [name for name, entry in CATALOGUE.items() if entry.max_steps == 1 and entry.paper_name]
    assert len(single) == 12
    for method, average in averages.items():
        found = [paper.reported(task, method) for task in single]
        figures = [float(one[2].split(" ")[0]) for one in found if one is not None]
        assert sum(figures) / 12 == pytest.approx(average, abs=0.006), method
    assert paper.reported("my own", "CASCADE") is None
    assert paper.reported("scienceworld", "ICRL") is None


def test_every_method_has_a_look_and_known_ones_keep_theirs():
    many = [f"method {i}" for i in range(9)]
    assert palette.looks([*many, "CASCADE"])["CASCADE"] == palette.looks(["CASCADE"])["CASCADE"]
    assert len(palette.strong([*many, "CASCADE"])) == 5
    assert "others, see the tables" in palette.legend(many)
    known = ["CASCADE", "similarity", "zero-shot"]
    assert len({(look.colour, look.dash, look.mark) for look in palette.looks([*known, *many[:4]]).values()}) == 7
    assert not {look.colour for look in palette.looks(known).values()} & {look.colour for look in palette.looks(many).values()}


def test_intervals_of_many_seeds_are_students():
    for seeds, point in ((11, 2.228), (12, 2.201), (16, 2.131), (31, 2.042), (121, 1.980)):
        values = [0.0, 1.0] * (seeds // 2) + [0.5] * (seeds % 2)
        _, half = interval(values)
        assert half == pytest.approx(point * statistics.stdev(values) / seeds**0.5, rel=0.003)


def test_averages_need_every_task(rows):
    lines = [json.loads(line) for line in rows.read_text().splitlines()]
    (section,) = sections(line for line in lines if (line["method"], line["task"]) != ("random", "sentifin"))
    line = next(line for line in tables.success(section).lines if line[0] == "random")
    assert line[2:] == ["", ""]
    assert differences.comparable(section, "CASCADE", "random") == ["banking77"]


@pytest.mark.long
def test_a_humans_answers_are_no_methods_success(rows, tmp_path):
    target = tmp_path / "helped.jsonl"
    helped, revised = "CASCADE + discovery by Random", "similarity + revision"
    wanted = [Run("banking77", one, seed) for one in ("zero-shot", "similarity", helped, revised) for seed in range(3)]
    run(wanted, rows.parent, target, progress=False)
    (section,) = sections(json.loads(line) for line in target.read_text().splitlines())
    expected, gains, asked_of = [], [], 0
    for row, base in zip(section.of("banking77", helped), section.of("banking77", "zero-shot"), strict=True):
        left = [place for place, asked in enumerate(row["asked"]) if asked == "0"]
        expected.append(100 * sum(row["success"][place] == "1" for place in left) / len(left))
        gains.append(expected[-1] - 100 * sum(base["success"][place] == "1" for place in left) / len(left))
        asked_of += len(row["asked"]) - len(left)
        lost = [0.97 - (row["success"][i] == "1") for i in left if "0" in (row["covered"][i], row["fitting"][i])]
        parts = regret.split(row)
        assert parts is not None
        assert parts[0][-1] + parts[1][-1] == pytest.approx(sum(lost))
    assert asked_of > 0
    assert list(section.by_seed("banking77", helped, solved).values()) == pytest.approx(expected)
    gain = differences.on_task(section, "banking77", helped, "zero-shot")
    assert gain is not None
    assert (gain.mean, gain.half) == pytest.approx(interval(gains))
    ends = [charts.success_so_far(row)[-1] for row in section.of("banking77", helped)]
    assert ends == pytest.approx(expected)
    assert words.subject(section) == "similarity"
    said = [*words.where_memory_does_not_help(section), words.against_the_best_rival(section)]
    assert not [text for _, text in said if helped in text or revised in text]
    found = read(drawn(target))
    assert "those that the human answered are left out" in found.text


def test_rivals_that_did_not_play_every_task_are_not_the_best(rows):
    lines = [json.loads(line) for line in rows.read_text().splitlines()]
    strongest = [{**line, "method": "strong", "rate": 1.0} for line in lines if line["method"] == "similarity"]
    (section,) = sections([*lines, *strongest])
    _, text = words.against_the_best_rival(section)
    assert "strong: " in text
    (section,) = sections([*lines, *(line for line in strongest if line["task"] == "banking77")])
    _, text = words.against_the_best_rival(section)
    assert "strong" not in text
    assert "the mean over 2 tasks" in text


def test_what_cascade_does_not_gain_over_a_static_memory_is_named(rows):
    lines = [json.loads(line) for line in rows.read_text().splitlines()]
    better = [{**line, "rate": 1.0} if (line["method"], line["task"]) == ("similarity", "sentifin") else line for line in lines]
    (section,) = sections(better)
    said = words.where_memory_does_not_help(section)
    fewer = [text for verdict, text in said if verdict == "fewer"]
    assert [text for text in fewer if text.startswith("CASCADE solves FEWER than similarity on sentifin")]
    assert not [text for verdict, text in said if verdict == "more" and text.startswith("CASCADE")]


@pytest.mark.long
def test_commands(rows, tmp_path, capsys, monkeypatch):
    assert main(["bench", "report", str(rows), "--json"]) == 0
    assert Path(json.loads(capsys.readouterr().out)["report"]) == rows.with_name("rows-report") / "index.html"
    assert main(["bench", "report", str(tmp_path / "none.jsonl")]) == 2
    assert "there is no file of rows" in capsys.readouterr().err
    assert not (tmp_path / "none.jsonl").exists()
    for text, said in (("[1]\n", "must be a JSON object"), ("notes\n", "something other")):
        (tmp_path / "other.jsonl").write_text(text)
        assert main(["bench", "report", str(tmp_path / "other.jsonl")]) == 2
        assert said in capsys.readouterr().err
    assert main(["bench", "report", str(rows), "--tuning", str(rows), "--out", str(tmp_path / "r")]) == 2
    assert "not rows that bench tune wrote" in capsys.readouterr().err
    (tmp_path / "other.jsonl").write_text('{"task": 7, "method": "x"}\n')
    assert main(["bench", "report", str(tmp_path / "other.jsonl")]) == 2
    assert "row 1 has no usable 'task'" in capsys.readouterr().err
    where = ["--data", str(rows.parent), "--jobs", "1", "--limit", "20", "--seeds", "1", "--tasks", "banking77"]
    assert main(["bench", "run", *where, "--out", str(tmp_path / "run.jsonl")]) == 0
    assert (tmp_path / "run-report" / "index.html").is_file()
    assert "run-report" in capsys.readouterr().out
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert main(["bench", "run", *where, "--out", str(tmp_path / "run.jsonl"), "--report", str(tmp_path / "r")]) == 0
    assert "cascade-memory[plot]" in capsys.readouterr().out
    assert not (tmp_path / "r").exists()
    assert main(["bench", "report", str(rows)]) == 1
