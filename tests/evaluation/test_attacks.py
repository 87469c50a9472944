"""The benchmark of attacks: the actors do what they are said to do, and the rows say what came of it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cascade_memory.cli import main
from cascade_memory.errors import InvalidInput
from cascade_memory.evaluation.attacks.play import KINDS, LAYERS, play, runs
from cascade_memory.evaluation.attacks.streams import Attacked, Attackers, attacked
from cascade_memory.evaluation.attacks.table import measured, table
from cascade_memory.evaluation.bench.plan import Run
from cascade_memory.evaluation.bench.stage import Folders
from cascade_memory.evaluation.synthetic import tickets

N = 240
RECURRING = Run("banking77", "CASCADE", 0, 120, attack="clean=0.05", layers="all")
PROCEDURES = replace(RECURRING, task="rca, procedures")


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Folders:
    folder = tmp_path_factory.mktemp("streams")
    lines = [json.dumps({"task": task.query, "label": task.solution}) for task in tickets(N, 0)]
    for file in ("banking77.jsonl", "rca_huawei_module.jsonl"):
        (folder / file).write_text("\n".join(lines))
    return Folders(folder, folder / "work")


@pytest.fixture(scope="module")
def stream(folders: Folders) -> Attacked:
    return attacked(RECURRING, folders)


@pytest.mark.slow
def test_attackers_take_texts_that_nobody_plays(stream: Attacked):
    assert not {query for query, _ in stream.aside} & set(stream.queries)
    for kind in KINDS:
        attackers = Attackers(kind, 0.1, stream, seed=1)
        assert all(made.query in dict(stream.aside) for made in attackers.injected(3))


def test_each_attack_does_what_it_says(stream: Attacked):
    one = {kind: [Attackers(kind, 0.1, stream, 0).injected(turn) for turn in range(30)] for kind in KINDS}
    said = {kind: {made.solution for turn in turns for made in turn} for kind, turns in one.items()}
    assert len(said["unique"]) == 30
    assert len(said["recurring"]) == len(said["many"]) == 1
    assert 1 < len(said["popular"]) <= 5
    assert {len(turn) for turn in one["flooding"]} == {11}
    attackers = Attackers("sleeping", 0.1, stream, 0)
    assert attackers.is_honest_yet(10)
    assert not attackers.is_honest_yet(len(stream.queries) - 1)


def test_the_same_actor_takes_a_turn_whoever_attacks_and_many_are_new(stream: Attacked):
    plain, many = (Attackers(kind, 0.2, stream, 0) for kind in ("unique", "many"))
    honest = [turn for turn in range(len(stream.queries)) if not plain.is_malicious(turn)]
    assert [plain.actor(turn) for turn in honest] == [many.actor(turn) for turn in honest]
    bad = [turn for turn in range(len(stream.queries)) if plain.is_malicious(turn)]
    assert len({plain.actor(turn) for turn in bad}) <= 8 < len({many.actor(turn) for turn in bad})
    assert not {plain.actor(turn) for turn in bad} & {plain.actor(turn) for turn in honest}


@pytest.mark.slow
def test_procedures_never_recur_and_help_where_the_label_is_right(folders: Folders):
    stream = attacked(PROCEDURES, folders)
    assert len(set(stream.solutions)) == len(stream.queries)
    place = next(i for i in range(len(stream.labels)) if not stream.attempt(i, None).success)
    same = next(i for i, label in enumerate(stream.labels) if label == stream.labels[place] and i != place)
    assert stream.attempt(place, stream.solutions[same]).fitting
    assert not stream.attempt(place, "made up").success
    assert stream.attempt(place, "made up").answer == "made up"


@pytest.mark.long
@pytest.mark.parametrize("kind", list(KINDS))
def test_an_attack_is_played_and_its_row_is_the_same_again(folders: Folders, kind: str):
    run = replace(RECURRING, attack=f"{kind}=0.1")
    first, again = (play(run, folders) for _ in range(2))
    assert {**first, "seconds": 0} == {**again, "seconds": 0}
    assert first["n"] == 120
    assert 90 < len(first["success"]) < 120
    assert len({len(first[name]) for name in ("success", "shown", "bad", "aimed", "followed")}) == 1


@pytest.mark.slow
def test_where_nobody_attacks_nothing_malicious_is_stored_or_shown(folders: Folders):
    row = play(PROCEDURES, folders)
    assert row["malicious_cases"] == row["stopped"] == row["stopped_by_mistake"] == 0
    assert measured(row)["malicious"] == 0.0


@pytest.mark.long
def test_with_the_measures_less_that_is_malicious_is_shown(folders: Folders):
    shown = {
        layers: measured(play(replace(RECURRING, attack="flooding=0.1", layers=layers), folders))["malicious"]
        for layers in ("all", "none")
    }
    assert shown["all"] < shown["none"]


def test_what_does_not_exist_is_refused_by_name(folders: Folders):
    with pytest.raises(InvalidInput, match=r"there is no attack 'nonsense=0\.1'"):
        play(replace(RECURRING, attack="nonsense=0.1"), folders)
    with pytest.raises(InvalidInput, match="there is no attack 'many'"):
        play(replace(RECURRING, attack="many"), folders)
    with pytest.raises(InvalidInput, match="has no memory to attack"):
        play(replace(RECURRING, method="zero-shot"), folders)


def test_the_plan_has_every_attack_with_every_measure_on_and_off():
    planned = list(runs(seeds=1))
    assert len(planned) == len(set(planned))
    for kind in KINDS:
        assert {run.layers for run in planned if run.attack == f"{kind}=0.05"} == set(LAYERS)


def test_the_table_compares_with_the_clean_run_of_the_same_seed():
    def row(attack: str, success: str, seed: int) -> dict[str, Any]:
        marks = dict.fromkeys(("shown", "bad", "aimed", "followed"), "1111")
        return {"method": "CASCADE", "layers": "all", "attack": attack, "seed": seed, "success": success, **marks}

    rows = [row("clean=0.1", "1111", 0), row("clean=0.1", "1100", 1), row("many=0.1", "1110", 0), row("many=0.1", "1110", 1)]
    clean, many = table(rows)
    assert clean[:6] == ["clean", "10 %", "CASCADE", "all", "75.0", "–"]
    assert many[:6] == ["many", "10 %", "CASCADE", "all", "75.0", "+0.0 ± 317.6"]
    assert table(rows[::2])[1][5] == "-25.0"  # one order has no interval


def test_the_table_has_a_line_for_all_attacks_and_compares_what_was_aimed_at_with_similarity():
    def row(attack: str, method: str, success: str, seed: int) -> dict[str, Any]:
        marks = {"shown": "1111", "bad": "0000", "aimed": "1100", "followed": "0000"}
        layers = "all" if method == "CASCADE" else "none"
        return {"method": method, "layers": layers, "attack": attack, "seed": seed, "success": success, **marks}

    rows = [
        row(attack, method, success, seed)
        for seed in range(2)
        for attack in ("clean=0.1", "many=0.1", "unique=0.1", "unique=0.05")
        for method, success in (("CASCADE", "1110"), ("similarity", "1011" if attack[0] == "m" else "0011"))
    ]
    lines = {(line[0], line[1], line[2]): line for line in table(rows)}
    assert lines["many", "10 %", "CASCADE"][7] == "+50.0 ± 0.0"
    assert lines["all attacks", "10 %", "CASCADE"][4:8] == ["75.0", "+0.0 ± 0.0", "100.0", "+75.0 ± 0.0"]
    assert lines["all attacks", "10 %", "similarity"][7] == "–"
    assert ("all attacks", "5 %", "CASCADE") not in lines


def test_the_lines_for_all_attacks_are_means_of_the_same_attacks_and_orders():
    def row(attack: str, layers: str, success: str, seed: int = 0) -> dict[str, Any]:
        marks = dict.fromkeys(("shown", "bad", "aimed", "followed"), "1111")
        return {"method": "CASCADE", "layers": layers, "attack": f"{attack}=0.05", "seed": seed, "success": success, **marks}

    rows = [
        row(attack, layers, "0000" if attack == "flooding" else "1111")
        for attack in ("many", "unique", "flooding")
        for layers in ("all", "none", "without trust")
        if (attack, layers) != ("flooding", "without trust")
    ]
    rows += [row(attack, "all", "0000", seed=1) for attack in ("many", "unique")]
    means = {line[3]: line for line in table(rows) if "attacks" in line[0]}
    assert {layers: line[4] for layers, line in means.items()} == dict.fromkeys(("all", "none", "without trust"), "100.0")
    assert {line[0] for line in means.values()} == {"2 of 3 attacks"}
    assert {line[0] for line in table(rows[:2]) if "attacks" in line[0]} == set(), "one attack is no mean"


def test_the_suite_refuses_a_stream_that_it_does_not_have(folders: Folders, capsys: pytest.CaptureFixture[str]):
    options = ["--data", str(folders.data), "--out", str(Path(folders.work) / "rows.jsonl")]
    assert main(["bench", "run", "--suite", "attacks", "--tasks", "nonsense", *options]) == 2
    assert "has no 'nonsense'" in capsys.readouterr().err
