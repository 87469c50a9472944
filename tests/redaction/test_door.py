"""What redaction changes, and what it leaves: records, duplicates, fingerprints, replays, the user's own function."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import json
import sqlite3
import warnings
from pathlib import Path

import numpy as np
import pytest
from inside import verb_of
from inside import verbs as every_verb
from invented_secrets import Invented

from cascade_memory import CascadeMemory, Step, Trajectory
from cascade_memory.errors import CascadeError, ContentChanged, InvalidInput, RedactionFailed
from cascade_memory.ledger import rules
from cascade_memory.redaction import redact_secrets
from cascade_memory.redaction.marking import Marks, OpenSecrets

ONE, TWO = ("gh" + "p_" + Invented(seed).of(36) for seed in (21, 22))
MARK = "[secret:github-token#1]"


def opened(path: Path | None = None, **options: object) -> CascadeMemory:
    return CascadeMemory(path, **{"embedder": "hashing", "learn": "inline", **options})  # type: ignore[arg-type]


# -- one record --------------------------------------------------------------------------------------------------------


def test_the_same_secret_has_the_same_number_throughout_a_record():
    with opened() as memory:
        case = memory.cases.get(
            memory.add(f"use {ONE}", f"not {TWO}, but {ONE}", metadata={"other": TWO, "list": [ONE, TWO], ONE: "key"})
        )
    assert case.query == f"use {MARK}"
    assert case.solution == f"not [secret:github-token#2], but {MARK}"
    assert case.metadata == {"other": "[secret:github-token#2]", "list": [MARK, "[secret:github-token#2]"], MARK: "key"}


def test_in_a_trajectory_a_password_is_known_again_in_every_step():
    word = Invented(23).of(14)
    steps = [
        Step(action=f"type {word}", observation="denied"),
        Step(
            tool="login", arguments={"user": "ann", "credentials": {"password": word}}, observation=f"password={word} is right"
        ),
    ]
    with opened() as memory:
        case = memory.cases.get(memory.add("log in", Trajectory(steps, answer=f"use {word}")))
    assert isinstance(case.solution, Trajectory)
    first, second = case.solution.steps
    assert first.action == "type [secret:password#1]"
    assert second.arguments == {"user": "ann", "credentials": {"password": "[secret:password#1]"}}
    assert second.observation == "password=[secret:password#1] is right"
    assert case.solution.answer == "use [secret:password#1]"
    assert word not in case.solution.to_json()


def test_a_field_for_a_password_holds_one_whatever_it_looks_like():
    steps = [Step(tool="log_in", arguments={"passphrase": "correct horse battery staple", "compass": "northwest"})]
    metadata = {
        "db_password": "blue",
        "password": 12345678,
        "password2": True,
        "passwd": "/run/secrets/db",
        "pwd": "<your own>",
    }
    with opened() as memory:
        case = memory.cases.get(memory.add("log in", Trajectory(steps, answer="in"), metadata=metadata))
    assert isinstance(case.solution, Trajectory)
    assert case.solution.steps[0].arguments == {"passphrase": "[secret:password#1]", "compass": "northwest"}
    assert case.metadata == {
        "db_password": "[secret:password#2]",
        "password": "[secret:password#3]",
        "password2": True,
        "passwd": "/run/secrets/db",
        "pwd": "<your own>",
    }


@pytest.mark.parametrize("word", ["blue", "correct horse battery staple", 'a"b\\c9', "päss wörd", "x\ny", 12345])
def test_the_action_of_a_tool_call_holds_no_more_than_its_arguments(word: object):
    for arguments in ({"password": word}, {"deep": [{"password": [word]}], "user": "ann"}):
        with opened() as memory:
            case = memory.cases.get(memory.add("log in", Trajectory([Step(tool="login", arguments=arguments)])))
        assert isinstance(case.solution, Trajectory)
        step = case.solution.steps[0]
        assert "[secret:password#1]" in step.action
        assert step.action == Step(tool="login", arguments=step.arguments).action
        assert json.dumps(word, ensure_ascii=False).strip('"') not in case.solution.to_json()


def test_an_action_of_ones_own_stays():
    step = Step(action="log in as ann", tool="login", arguments={"password": "blue"}, observation="in")
    with opened() as memory:
        case = memory.cases.get(memory.add("log in", Trajectory([step])))
    assert isinstance(case.solution, Trajectory)
    assert case.solution.steps[0].action == "log in as ann"
    assert case.solution.steps[0].arguments == {"password": "[secret:password#1]"}


def test_what_stays_is_exactly_what_came():
    steps = [
        Step(action="look", observation="a key 密码 lies here"),
        Step(tool="open", arguments={"n": 1, "deep": [None, {"x": True}]}),
    ]
    given = Trajectory(steps, answer="the token: 'of'")
    with opened() as memory:
        case = memory.cases.get(memory.add("find the key", given, metadata={"pass": "ok", "n": 2}))
    assert case.solution == given
    assert case.metadata == {"pass": "ok", "n": 2}


# -- what must go on working -------------------------------------------------------------------------------------------


def test_a_query_with_a_secret_finds_the_case_with_another_one():
    with opened() as memory:
        case_id = memory.add(f"deploy with the token {ONE}", "run the script")
        recall = memory.recall(f"deploy with the token {TWO}")
        assert recall.query == f"deploy with the token {MARK}"
        assert [(one.id, round(one.similarity, 6)) for one in recall.cases] == [(case_id, 1.0)]
        assert MARK in recall.render()


def test_the_vectors_are_those_of_the_placeholders():
    with opened() as memory, opened(redact=False) as plain:
        cases = [memory.cases.get(memory.add(f"use {ONE}", "s")), plain.cases.get(plain.add(f"use {MARK}", "s"))]
        found = [one.cases.search("use something").cases[0].similarity for one in (memory, plain)]
    assert cases[0].query == cases[1].query
    assert np.isclose(*found, atol=1e-6)


def test_pairs_that_differ_in_their_secrets_alone_are_one_case():
    with opened() as memory:
        ids = {memory.add(f"use {secret}", f"send {secret}") for secret in (ONE, TWO, ONE)}
        (case,) = memory.cases.all()
        assert ids == {case.id}
        assert case.copies == 3


def test_a_replay_changes_nothing_and_a_fingerprint_fits_what_is_stored():
    with opened() as memory:
        recall = memory.recall(f"use {ONE}", episode_id="run")
        assert memory.episodes.finish("run", solution=f"sent {ONE}")
        (seen,) = memory.episodes.pending()
        assert memory.episodes.finish("run", solution=f"sent {ONE}")
        assert memory.episodes.get("run").fingerprint == seen.fingerprint  # type: ignore[union-attr]
        case_id = memory.review.confirm("run", seen=seen.fingerprint)
        assert memory.reward(recall.episode_id, 1.0, solution=f"sent {ONE}") == case_id
        assert memory.cases.get(str(case_id)).solution == f"sent {MARK}"


def test_a_confirmation_still_fails_if_the_content_has_changed():
    with opened() as memory:
        episode_id = memory.review.propose(f"use {ONE}", f"send {ONE}")
        (seen,) = memory.review.reported()
        memory.reward(episode_id, 0.5, solution=f"send {TWO} twice", source="agent", overwrite=True)
        with pytest.raises(ContentChanged):
            memory.review.confirm(episode_id, seen=seen.fingerprint)


def test_a_correction_with_the_very_same_text_is_still_refused():
    with opened() as memory:
        case_id = memory.add("a task", f"send {ONE}")
        with pytest.raises(InvalidInput, match="this very solution"):
            memory.review.correct(case_id, f"send {ONE}")


def test_reward_fn_judges_what_the_agent_really_answered():
    with opened(reward_fn=lambda episode: episode.answer == ONE) as memory:
        with memory.episode("what is the token?") as episode:
            episode.solution = ONE
        (case,) = memory.cases.all()
        assert case.solution == MARK


def test_a_text_of_the_greatest_length_stays_one():
    text = "x" * (100_000 - 20) + " password=Abcd3fg9x"
    with opened() as memory:
        assert len(memory.cases.get(memory.add(text, "s")).query) <= 100_000


def test_an_import_gives_a_changed_task_the_vector_of_its_placeholder(tmp_path: Path):
    with opened(redact=False) as memory:
        memory.add(f"use {ONE}", f"send {ONE}")
        memory.data.export(tmp_path / "export.jsonl")
    with opened() as memory:
        memory.data.import_(tmp_path / "export.jsonl")
        case_id = memory.add(f"use {TWO}", f"send {TWO}")
        (case,) = memory.cases.all()
        assert (case.id, case.copies, case.query) == (case_id, 2, f"use {MARK}")
        assert memory.cases.search(f"use {MARK}").cases[0].similarity == pytest.approx(1.0)


# -- what an older version has stored ----------------------------------------------------------------------------------


def test_a_secret_that_was_stored_before_is_not_stored_once_more(tmp_path: Path):
    with opened(tmp_path, redact=False) as memory:
        memory.recall(f"use {ONE}", episode_id="run")
        memory.episodes.finish("run", solution=f"sent {ONE}")
        case_id = memory.add(f"other {ONE}", "wrong", metadata={"by": ONE})
    with opened(tmp_path) as memory:
        confirmed = memory.cases.get(str(memory.review.confirm("run", seen=memory.episodes.pending()[0].fingerprint)))
        assert (confirmed.query, confirmed.solution) == (f"use {MARK}", f"sent {MARK}")
        corrected = memory.cases.get(memory.review.correct(case_id, "right"))
        assert (corrected.query, corrected.metadata) == (f"other {MARK}", {"by": MARK})
        assert memory.cases.search(f"other {MARK}").cases[0].similarity == pytest.approx(1.0)


def test_a_namespace_of_before_that_looks_like_a_secret_goes_on_and_no_new_one_begins(tmp_path: Path):
    with opened(tmp_path, redact=False) as memory:
        memory.acting(namespace=ONE).add("a task", "a solution")
    with opened(tmp_path) as memory:
        assert memory.acting(namespace=ONE).recall("a task").cases
        assert memory.acting(namespace=ONE).forget(everything=True).cases == 1
        assert memory.acting(namespace=ONE).sources.quarantine("eve") == 0
        new = memory.acting(namespace=TWO)
        for verb in (new.warm, new.data.refit, lambda: new.recall("a task")):
            with pytest.raises(InvalidInput, match="namespace looks as if it holds a secret"):
                verb()
    assert TWO.encode() not in (tmp_path / "ledger.sqlite3").read_bytes()


_ARGUMENTS = {
    **{"query": "a task", "solution": "a solution", "actor": "eve", "value": 1.0, "episode_id": "e", "thread_id": "t"},
    **{"case_id": "c", "id": "c", "seen": "f", "entry_id": "e", "warning_id": "w", "advice": "do", "since": 0.0},
    **{"older_than": 1e9, "sort": "use", "source": "user", "purpose": "forget", "about": [], "code": "c", "lasts": 1.0},
    **{"scores": [], "platform": "p", "name": "a model", "trace_id": "0" * 32},
}


_ELSEWHERE = {
    *("acting", "close", "inspect", "episodes.conclude", "episodes.end_run", "episodes.aend_run", "review.counting_again"),
    *(f"data.{name}" for name in ("backup", "export", "import_", "note_failure", "shares_engine_with")),
}


def test_no_verb_makes_a_namespace_whose_name_looks_like_a_secret():
    """Whoever decides about an actor before the first task comes makes the namespace as well."""
    verbs = {name: verb for name, verb in every_verb().items() if name not in _ELSEWHERE}
    assert {"sources.quarantine", "sources.release", "recall", "add", "forget", "warnings.check", "warm"} <= set(verbs)
    with opened() as memory:
        for name, verb in verbs.items():
            needed = [
                one.name
                for one in inspect.signature(verb).parameters.values()
                if one.default is one.empty and one.kind is not one.VAR_KEYWORD
            ]
            given = {one: _ARGUMENTS[one] for one in needed if one != "self"} | (
                {"by_actor": "eve"} if name == "forget" else {}
            )
            with contextlib.suppress(CascadeError):  # most find nothing there
                found = verb_of(memory.acting(namespace=TWO), name)(**given)
                if inspect.iscoroutine(found):
                    asyncio.run(found)
                elif inspect.isgenerator(found):
                    list(found)
            assert TWO not in memory.data.namespaces(), name


# -- the option --------------------------------------------------------------------------------------------------------


def test_without_redaction_everything_is_stored_as_it_is(tmp_path: Path):
    with opened(tmp_path, redact=False) as memory:
        case = memory.acting(namespace=ONE).cases.get(
            memory.acting(namespace=ONE).add(f"use {ONE}", f"send {ONE}", metadata={ONE: ONE})
        )
        assert (case.query, case.solution, case.metadata) == (f"use {ONE}", f"send {ONE}", {ONE: ONE})
        memory.recall("task", episode_id=ONE, thread_id=TWO)
        assert memory.episodes.latest(TWO).id == ONE  # type: ignore[union-attr]


def without_names(text: str) -> str:
    return text.replace("Ann Miller", "<name>")


def test_a_function_is_asked_about_every_text_and_after_secrets_are_gone(tmp_path: Path):
    seen: list[str] = []

    def redact(text: str) -> str:
        seen.append(text)
        return without_names(text)

    with opened(tmp_path, redact=redact, reward_fn=lambda episode: 1.0) as memory:
        memory.add("Ann Miller asks", "tell Ann Miller", metadata={"for": "Ann Miller", "Ann Miller": 1})
        with memory.episode(f"what has Ann Miller done with {ONE}?", metadata={"who": ["Ann Miller"]}) as episode:
            episode.solution = Trajectory(
                [Step(tool="ask", arguments={"Ann Miller": {"n": ["Ann Miller"]}})], answer="Ann Miller"
            )
        memory.cases.search("Ann Miller again")
        memory.review.propose("Ann Miller proposes", "so Ann Miller")
        case_id = memory.add("another task", "wrong")
        memory.review.correct(case_id, "ask Ann Miller", note="Ann Miller said so")
        memory.data.note_failure("reward", ValueError("Ann Miller"))
        assert memory.health().last_error == "reward: ValueError: <name>"
        memory.sync()
    assert not any(b"Ann Miller" in file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())
    assert ONE not in " ".join(seen)


def _raises(text: str) -> str:
    raise KeyError(text)


@pytest.mark.parametrize("redact", [_raises, lambda text: None], ids=["raises", "returns nothing"])
def test_a_function_that_fails_lets_nothing_in_and_does_not_stop_the_agent(redact: object, tmp_path: Path):
    with opened(tmp_path, redact=redact) as memory:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            recall = memory.recall("task of Ann Miller", metadata={"who": "Ann Miller"})
        assert recall.cases == ()
        assert "RedactionFailed" in str(recall.error)
        assert "Ann Miller" not in f"{recall} {memory.health()} {[str(one.message) for one in caught]}"
        assert memory.reward(recall.episode_id, 1.0) is None  # there is no episode
        with pytest.raises(RedactionFailed):
            memory.add("task of Ann Miller", "solution")
        assert memory.stats().episodes == memory.stats().cases == 0
        assert dict(memory.health().failures) == {"recall": 1}
    assert not any(b"Ann Miller" in file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())


def test_a_function_that_leaves_nothing_of_a_text_is_told_so():
    with opened(redact=lambda text: "") as memory, pytest.raises(InvalidInput, match="query is empty"):
        memory.add("task", "solution")


def test_two_keys_that_become_one_are_refused():
    with (
        opened(redact=lambda text: text.replace("ann", "x").replace("bob", "x")) as memory,
        pytest.raises(InvalidInput, match="same"),
    ):
        memory.add("task", "solution", metadata={"ann": 1, "bob": 2})


@pytest.mark.parametrize("wrong", [None, "yes", 1])
def test_anything_else_is_refused(wrong: object):
    with pytest.raises(InvalidInput, match="redact must be"):
        opened(redact=wrong)


def test_handles_on_one_place_must_agree(tmp_path: Path):
    with opened(tmp_path, redact=without_names), pytest.raises(InvalidInput, match="redact="):
        opened(tmp_path)


def test_no_hash_of_a_secret_is_kept(tmp_path: Path):
    """A short secret could be found out from any hash of it; so equal texts have equal hashes whatever their secrets were."""
    for name, secret in (("first", ONE), ("second", TWO)):
        with opened(tmp_path / name) as memory:
            memory.add(f"use {secret}", secret)
    tables = ("SELECT pair, head FROM cases", "SELECT digest FROM solution")
    rows: list[list[object]] = []
    for name in ("first", "second"):
        with contextlib.closing(sqlite3.connect(tmp_path / name / "ledger.sqlite3")) as ledger:
            rows.append([ledger.execute(query).fetchall() for query in tables])
    assert rows[0] == rows[1]


def test_the_function_for_one_text_is_public():
    assert redact_secrets(f"use {ONE}") == f"use {MARK}"


@pytest.mark.parametrize("before", range(20, 100, 4))
def test_a_message_that_is_cut_short_shows_no_half_of_a_secret(before: int):
    """Nobody would recognise a token that was cut through, so it goes before the text is cut."""
    text = f"{'a word ' * 20}"[:before] + f" {ONE} {'and more ' * 5}"
    with opened() as memory, pytest.raises(InvalidInput) as moment:
        memory.cases.all(since=text)
    with pytest.raises(InvalidInput) as row:
        rules.hex_of(text, "digest")
    for said in (str(moment.value), str(row.value)):
        assert not any(ONE[at : at + 6] in said for at in range(4, len(ONE) - 6)), said


def test_as_many_episodes_with_secrets_as_are_allowed_are_remembered():
    held = OpenSecrets(most=2)
    for name in ("first", "second", "third"):
        held.keep(name, Marks())
    assert [held.of(name) is not None for name in ("first", "second", "third")] == [False, True, True]
