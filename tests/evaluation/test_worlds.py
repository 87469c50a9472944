"""The worlds as the paper plays them: published streams, official games, prompts, and what a hostile file could try."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import tarfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from faulty_server import KEY, serving
from published_worlds import alfworld_games, alfworld_stream, scienceworld_stream

from cascade_memory.cli import main
from cascade_memory.errors import InvalidInput
from cascade_memory.evaluation.bench import household_stage, science_stage
from cascade_memory.evaluation.bench.household_stage import games_of, prepare_household
from cascade_memory.evaluation.bench.plan import Run
from cascade_memory.evaluation.bench.science_stage import experiments_of, prepare_science
from cascade_memory.evaluation.bench.stage import Folders
from cascade_memory.evaluation.environments import scienceworld_whole
from cascade_memory.evaluation.environments.household.engine import Engine, is_harmless, is_installed
from cascade_memory.evaluation.environments.household.games import GAME, Game, read_games
from cascade_memory.evaluation.environments.household.official import official_games
from cascade_memory.evaluation.environments.scienceworld import ALL_LIMITS, LIMITS
from cascade_memory.evaluation.environments.scienceworld_whole import drawn_starts, published_starts

with_games = pytest.mark.skipif(not is_installed(), reason="needs alfworld")
with_science = pytest.mark.skipif(
    importlib.util.find_spec("scienceworld") is None or shutil.which("java") is None, reason="needs scienceworld and Java"
)


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.delenv("ALFWORLD_DATA", raising=False)
    cached = (household_stage.embedded, household_stage.official_embedded, science_stage.embedded, science_stage.whole_stream)
    for one in cached:
        one.cache_clear()
    yield
    for one in cached:
        one.cache_clear()


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for the games of these tests, which are generated once."""
    return tmp_path_factory.mktemp("made")


def test_the_paper_plays_eleven_types_and_the_reuse_agent_nine():
    assert len(ALL_LIMITS) == 11
    assert set(ALL_LIMITS) - set(LIMITS) == {"grow-plant", "lifespan-longest-lived-then-shortest-lived"}
    assert set(ALL_LIMITS.values()) == {10, 12, 15, 30}


SCIENCE: Mapping[str, Any] = {"task": "Find a plant.", "taskName": "find-plant", "variationIdx": 3}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "holds no tasks"),
        ("[1]", "line 1 is not a JSON object"),
        ("{" * 50_000, "line 1 is not JSON"),
        ('{"task": "x"}', "taskName"),
        (json.dumps({**SCIENCE, "task": " "}), "line 1"),
        (json.dumps({**SCIENCE, "task": 5}), "needs 'task'"),
        (json.dumps({**SCIENCE, "variationIdx": True}), "needs 'variationIdx'"),
        (json.dumps({**SCIENCE, "variationIdx": -1}), "variation -1"),
        (json.dumps({**SCIENCE, "taskName": "../../etc/passwd"}), "there is no"),
    ],
)
def test_what_is_no_stream_of_scienceworld_is_refused(tmp_path: Path, text: str, said: str):
    file = tmp_path / "scienceworld" / "scienceworld.jsonl"
    file.parent.mkdir()
    file.write_text(text)
    with pytest.raises(InvalidInput, match=said):
        published_starts(tmp_path)


def test_a_published_stream_is_read_in_its_order(tmp_path: Path):
    assert published_starts(tmp_path) is None
    file = tmp_path / "scienceworld" / "scienceworld.jsonl"
    file.parent.mkdir()
    file.write_text("\n".join(json.dumps({**SCIENCE, "variationIdx": n}) for n in (9, 2, 5)))
    starts = published_starts(tmp_path)
    assert starts is not None
    assert [(start.place.variation, start.limit) for start in starts] == [(9, 15), (2, 15), (5, 15)]


def folder_with(data: Path, *names: str) -> Path:
    root = data / "alfworld" / "json_2.1.1"
    for name in names:
        (root / name).mkdir(parents=True)
        (root / name / GAME).write_text("{}")
    return root


def test_games_are_found_where_alfworld_puts_them_and_unseen_ones_come_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    assert official_games(tmp_path) is None
    seen = [f"train/pick_and_place_simple-Mug-None-Desk-{n}/trial_{n}" for n in range(5)]
    unseen = [f"valid_unseen/pick_two_obj_and_place-Pen-None-Bed-{n}/trial_{n}" for n in range(2)]
    left_out = [
        "train/pick_and_place_with_movable_recep-A-B-C-1/trial",
        "train/look_at_obj_in_light-AppleSliced-None-Lamp-1/trial",
    ]
    also = ["valid_seen/pick_and_place_simple-Mug-None-Desk-9/trial"]
    root = folder_with(tmp_path, *seen, *unseen, *left_out, *also)
    games = official_games(tmp_path)
    assert games is not None
    assert [game.unseen for game in games] == [False] * 5 + [True] * 2
    assert {game.kind for game in games} == {"pick_and_place_simple", "pick_two_obj_and_place"}
    rows = [
        {"task": f"room {n}", "game_file": f"{name}/{GAME}"}
        for n, name in enumerate([*unseen, f"json_2.1.1/{seen[3]}", seen[0]])
    ]
    stream = tmp_path / "alfworld" / "alfworld.jsonl"
    stream.write_text("\n".join(map(json.dumps, rows)))
    named = official_games(tmp_path)
    assert named is not None
    assert [game.query for game in named] == ["room 2", "room 3", "room 0", "room 1"]
    shutil.move(root, tmp_path / "elsewhere" / "json_2.1.1")
    with pytest.raises(InvalidInput, match="alfworld-download"):
        official_games(tmp_path)
    monkeypatch.setenv("ALFWORLD_DATA", str(tmp_path / "elsewhere"))
    assert len(official_games(tmp_path) or ()) == 4


@pytest.mark.parametrize(
    "name", ["../../secret/game.tw-pddl", "/etc/game.tw-pddl", "train/../../game.tw-pddl", "train/x/passwd", "game.tw-pddl",
             "train\\..\\game.tw-pddl", "train/out/trial/game.tw-pddl", ""],
)  # fmt: skip
def test_a_path_out_of_the_folder_is_refused(tmp_path: Path, name: str):
    root = folder_with(tmp_path, "train/pick_and_place_simple-A-None-B-1/trial")
    (tmp_path / "secret" / "trial").mkdir(parents=True)
    (tmp_path / "secret" / "trial" / GAME).write_text("{}")
    (root / "train" / "out").symlink_to(tmp_path / "secret")
    (tmp_path / "alfworld" / "alfworld.jsonl").write_text(json.dumps({"task": "room", "game_file": name}))
    with pytest.raises(InvalidInput, match=r"not the path of a game|leads out"):
        official_games(tmp_path)


@pytest.mark.parametrize(
    "code",
    [
        "__import__('os').system('touch hacked')", "open('/etc/passwd').read()", "o.__class__", "o.name.__class__.__mro__",
        "[o for o in ()]", "(lambda: 1)()", "o.name.format(o)", "f'{o}'", "o['name']", "exec('1')", "o.name * 9999999999", "1",
        "o.name if o else o", "(o := 1)", "self.context", "o.entity_infos", "9 ** 9 ** 9", "o.name + __builtins__['eval']('1')",
        "o.name, open('x', 'w')", "yield", "b'x'", "a b", "o.name + " * 500 + "o.name", "-o", "not o.name",
    ],
)  # fmt: skip
def test_code_in_a_games_texts_is_told_from_names(code: str):
    assert not is_harmless(code)


@with_games
def test_a_game_that_holds_code_is_refused_and_runs_none(tmp_path: Path, made: Path):
    game = alfworld_games(tmp_path, made, seen=1, unseen=0)[0].file
    content = json.loads(game.read_text())
    trap = tmp_path / "hacked"
    code = f"open('{trap}', 'w')"
    broken = {
        "code": {**content, "grammar": content["grammar"].replace('"rhs": "Your task is', f'"rhs": "{{{code}}}Your task is')},
        "no rules": {"pddl_problem": content["pddl_problem"]},
        "no text": {**content, "grammar": 7},
        "no grammar": {**content, "grammar": "something else"},
        "no problem": {**content, "pddl_problem": "(define"},
    }
    with Engine() as engine:
        for name, changed in broken.items():
            file = tmp_path / f"{name}.tw-pddl"
            file.write_text(json.dumps(changed))
            with pytest.raises(InvalidInput, match="holds code" if name == "code" else "not a game of ALFWorld"):
                engine.start(file)
        for raw in (b"\xff\xfe", b"[]", b"[" * 100_000):
            (tmp_path / "raw.tw-pddl").write_bytes(raw)
            with pytest.raises(InvalidInput, match="not a game of ALFWorld"):
                engine.start(tmp_path / "raw.tw-pddl")
        assert "Your task is" in engine.start(game)  # it still plays what is in order
    assert not trap.exists()


def test_an_archive_or_a_listing_that_is_no_set_of_games_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(household_stage, "MOST_BYTES", 100)
    (tmp_path / "alfworld_gen.jsonl").write_text("{}")
    big = tmp_path / "big"
    big.write_bytes(b"x" * 101)
    with tarfile.open(tmp_path / "alfworld_gen_seed100.tar.gz", "w:gz") as packed:
        packed.add(big, f"a/{GAME}")
    with pytest.raises(InvalidInput, match="more than games"):
        household_stage.unpack(tmp_path, tmp_path / "out")
    for row in ({"game_file": f"../{GAME}"}, {"game_file": "/x"}, {}, {"game_file": f"a/{GAME}", "label": "walk"}):
        (tmp_path / "games.jsonl").write_text(json.dumps({"task": "room", "label": ["look"], "task_type": "x", **row}))
        with pytest.raises(InvalidInput, match=r"not the path|list of actions"):
            read_games(tmp_path)


def play(data: Path, task: str, say: Callable[[Sequence[dict[str, str]]], str], *more: str) -> tuple[Any, list[Any]]:
    """Play a task with ``bench run --model`` against a local server; return the rows and the requests."""
    with serving(lambda _: say(server.asked[-1]["messages"])) as server:
        arguments = [
            "--base-url",
            server.url,
            "--tasks",
            task,
            "--data",
            str(data),
            "--out",
            str(data / "rows.jsonl"),
            "--json",
        ]
        assert main(["bench", "run", "--model", "scripted", "--seeds", "1", *arguments, *more]) == 0
        asked = [one["messages"] for one in server.asked]
    return [json.loads(line) for line in (data / "rows.jsonl").read_text().splitlines()], asked


def task_in(message: str) -> str:
    """Return the text of the task in the first message to a model."""
    return message.split("\n\nPossible actions now:")[0].split("--- memory")[-1].split("The task to do now:\n\n")[-1]


@with_games
@pytest.mark.parametrize("named", [True, False])
def test_official_games_are_played_to_the_end_with_unseen_ones_last(
    tmp_path: Path, made: Path, named: bool, capsys: pytest.CaptureFixture[str]
):
    games = alfworld_games(tmp_path, made, seen=2, unseen=1)
    if named:
        alfworld_stream(tmp_path, games)
    solutions = {game.query: game.solution for game in games}

    def say(messages: Sequence[dict[str, str]]) -> str:
        done = [one["content"] for one in messages if one["role"] == "assistant"]
        if not done:
            return "Action: fly to the moon"
        known = next(
            solution for query, solution in solutions.items() if query in messages[1]["content"].split("--- memory")[-1]
        )
        return f"Action: {known[len(done) - 1]}"

    (row,), asked = play(tmp_path, "alfworld", say, "--methods", "similarity", "--act-only")
    capsys.readouterr()
    assert (row["task"], row["n"], row["rate"], row["success"]) == ("alfworld", 3, 1.0, "111")
    assert row["differs"] == ""
    assert row["steps_per_task"] == sum(len(game.solution) + 1 for game in games) / 3  # what was refused is a step as well
    firsts = [messages for messages in asked if len(messages) == 2]
    assert [any(game.query in task_in(one[1]["content"]) for game in games[2:]) for one in firsts] == [False, False, True]
    assert all("Possible actions now:\n" in messages[-1]["content"] for messages in asked)
    assert not any("Possible actions" in one["content"] for messages in asked for one in messages[:-1])
    assert "This is none of the possible actions" in asked[1][-1]["content"]
    assert any("earlier tasks" in first and "Action: take " in first for first in (one[1]["content"] for one in firsts))
    assert not any("fly to the moon" in messages[1]["content"] for messages in firsts)  # without what was refused


@with_games
def test_a_limit_keeps_the_share_of_unseen_games_and_reads_no_other_text(tmp_path: Path, made: Path):
    games = alfworld_games(tmp_path, made, seen=3, unseen=2)
    run, folders = Run("alfworld", "similarity", 0, 3, "some-model"), Folders(tmp_path, tmp_path / "work")
    prepare_household(run, folders)
    texts = tmp_path / "work" / "alfworld-texts.jsonl"
    assert len(texts.read_text().splitlines()) == 3
    texts.write_text(texts.read_text()[:-20])  # a kill in the middle of a line
    played = games_of(run, folders)[0]
    unseen = {game.query for game in games[3:]}
    assert [game.query in unseen for game in played] == [False, False, True]
    assert len(texts.read_text().splitlines()) == 3
    content = json.loads(games[0].file.read_text())
    for game in games:
        game.file.write_text(json.dumps({**content, "solvable": False}))
    texts.unlink()
    household_stage.official_embedded.cache_clear()
    assert household_stage.official_stream(None, folders).games == []


@with_games
def test_without_alfworlds_own_games_generated_ones_are_played_and_it_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    (row,), asked = play(tmp_path, "alfworld", lambda messages: "Action: think: hm", "--limit", "2", "--methods", "zero-shot")
    assert (row["n"], row["rate"], row["steps_per_task"]) == (2, 0.0, 35.0)  # thoughts are steps, of which there are five more
    assert row["differs"].startswith("generated games, not ALFWorld's own")
    assert asked[3][-1]["content"].startswith("OK.")
    assert len(read_games(tmp_path / "rows.work" / "games")) == 2  # no more than are played
    capsys.readouterr()


@with_games
def test_a_stream_of_other_games_is_refused(tmp_path: Path, made: Path, capsys: pytest.CaptureFixture[str]):
    games = alfworld_games(tmp_path, made, seen=2, unseen=0)
    alfworld_stream(tmp_path, [Game("You are somewhere else.", game.file, (), game.kind) for game in games])
    with serving(lambda _: "Action: look") as server:
        arguments = [
            "--base-url",
            server.url,
            "--tasks",
            "alfworld",
            "--data",
            str(tmp_path),
            "--out",
            str(tmp_path / "r.jsonl"),
        ]
        assert main(["bench", "run", "--model", "scripted", "--seeds", "1", "--methods", "zero-shot", *arguments]) == 2
    assert "another text than the stream says" in capsys.readouterr().err


@pytest.mark.long
@with_science
def test_published_experiments_of_every_type_are_played(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    scienceworld_stream(tmp_path, [(kind, 1) for kind in ALL_LIMITS])
    said = ["Action: look around", "Action: jump over the moon", "Action: think: What now?", "[Action] teleport to kitchen"]

    def say(messages: Sequence[dict[str, str]]) -> str:
        return said[(len(messages) // 2 - 1) % 4]

    (row,), asked = play(tmp_path, "scienceworld", say, "--methods", "similarity")
    capsys.readouterr()
    assert (row["n"], row["rate"], len(row["kinds"])) == (11, 0.0, 11)
    assert row["differs"] == ""
    assert row["steps_per_task"] == pytest.approx(sum(ALL_LIMITS.values()) / 11 + 5)
    answers = [messages[-1]["content"] for messages in asked]
    assert any(answer.startswith("No known action") for answer in answers)
    assert "OK." in answers
    assert any(answer.startswith("You teleport to the kitchen") for answer in answers)


@with_science
def test_a_drawn_stream_has_every_type_and_only_what_is_played_is_prepared(tmp_path: Path, monkeypatch: Any):
    run, folders = Run("scienceworld", "similarity", 0, 2, "some-model"), Folders(tmp_path, tmp_path / "work")
    prepare_science(run, folders)
    texts = tmp_path / "work" / "scienceworld-whole.jsonl"
    assert len(texts.read_text().splitlines()) == 2
    drawn = json.loads(texts.with_suffix(".places.json").read_text())
    assert (len(drawn), len({kind for kind, _ in drawn}), len(set(map(tuple, drawn)))) == (1857, 11, 1857)
    played = experiments_of(run, folders)[0]
    assert all(start.text.startswith("Your task is to") for start in played)
    assert {(start.place.kind, start.place.variation) for start in played} == set(map(tuple, drawn[:2]))
    monkeypatch.setattr(scienceworld_whole, "ScienceWorld", None)
    assert len(drawn_starts(texts, limit=2)) == 2  # nothing is read again


@with_science
def test_the_reuse_agents_stream_is_prepared_only_as_far_as_it_is_played(tmp_path: Path):
    folders = Folders(tmp_path, tmp_path / "work")
    prepare_science(Run("scienceworld", "similarity", 0, 2, "reuse"), folders)
    lines = [json.loads(line) for line in (tmp_path / "work" / "scienceworld.jsonl").read_text().splitlines()]
    assert sum("solution" in line for line in lines) == 2
    assert len(lines) < 30
    before = os.stat(tmp_path / "work" / "scienceworld.jsonl").st_mtime_ns
    prepare_science(Run("scienceworld", "similarity", 1, 2, "reuse"), folders)
    assert os.stat(tmp_path / "work" / "scienceworld.jsonl").st_mtime_ns == before
