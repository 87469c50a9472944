"""A secret that is announced anywhere in a record is found everywhere in it, whatever the order of its parts and the verb.

Records are made of a grammar: what announces x where it does x where it is repeated x which verb takes the record.
"""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from invented_secrets import Invented
from planted_secrets import nothing_is_said

from cascade_memory import CascadeMemory, Step, Trajectory
from cascade_memory.errors import CascadeError, InvalidInput

# In texts.
_SAID: dict[str, Callable[[str], str]] = {
    "assignment": lambda word: f"set password={word} first",
    "sentence": lambda word: f"the password is {word}",
    "JSON": lambda word: json.dumps({"user": {"name": "ann", "password": word}}),
    "header": lambda word: f"Authorization: Basic {word}",
    "address": lambda word: f"postgresql://ann:{word}@db.example.org/shop",
    "environment": lambda word: f"export DB_PASSWORD={word}\n",
    "command": lambda word: f"curl -u ann:{word} https://example.org",
    "XML": lambda word: f"<password>{word}</password>",
    "name and value": lambda word: json.dumps([{"name": "DB_PASSWORD", "value": word}]),
}
# In the fields of metadata and of arguments.
_FIELDS: dict[str, Callable[[str], dict[str, Any]]] = {
    "password": lambda word: {"password": word},
    "dbPassword": lambda word: {"user": "ann", "dbPassword": word},
    "list": lambda word: {"passwords": [word, "changeit"]},
    "Authorization": lambda word: {"Authorization": f"Bearer {word}"},
    "key and value": lambda word: {"key": "DB_PASSWORD", "value": word},
    "text": lambda word: {"said": f"password={word}"},
}
_IN_METADATA, _IN_STEPS = ("metadata before", "metadata after"), ("tool", "argument", "action", "result", "thought", "answer")
_PLACES = ("query", "solution", *_IN_METADATA, *_IN_STEPS)
_WORDS = Invented(91)


class _Record:
    """The parts of a record."""

    def __init__(self, announced: str, how: str, repeated: str, word: str) -> None:
        self.query, self.said, self.answer = "log in", "typed it", "done"
        self.before, self.after = dict[str, Any](), dict[str, Any]()
        self.tool, self.arguments = "browser", dict[str, Any]()
        self.action, self.result, self.thought = "look", "a page", "go on"
        said = _SAID[how](word) if how in _SAID else json.dumps(_FIELDS[how](word))
        fields = _FIELDS[how](word) if how in _FIELDS else {"note": said}
        for place, text, values in ((announced, said, fields), (repeated, f"then {word} again", {"seen": f"typed {word}"})):
            if place == "query":
                self.query += f" {text}"
            elif place == "solution":
                self.said += f" {text}"
            elif place.startswith("metadata"):
                getattr(self, place.split()[1]).update(values)
            elif place == "argument":
                self.arguments.update(values)
            elif place == "tool":
                self.tool += f" {text}"
            else:
                setattr(self, place, f"{getattr(self, place)} {text}")
        self.whole = announced in _IN_STEPS or repeated in _IN_STEPS

    @property
    def metadata(self) -> dict[str, Any]:
        return {**self.before, "city": "Paris", **self.after}

    @property
    def solution(self) -> Any:
        if not self.whole:
            return self.said
        steps = [
            Step(action=self.action, observation=self.result, thought=self.thought),
            Step(tool=self.tool, arguments=self.arguments, observation=self.said),
        ]
        return Trajectory(steps, answer=self.answer)


def _add(memory: CascadeMemory, one: _Record) -> None:
    memory.add(one.query, one.solution, metadata=one.metadata)


def _add_many(memory: CascadeMemory, one: _Record) -> None:
    memory.add([("other", "thing"), (one.query, one.solution, one.metadata)], progress=False)


def _propose(memory: CascadeMemory, one: _Record) -> None:
    memory.review.propose(one.query, one.solution, metadata=one.metadata)
    (seen,) = memory.review.reported()
    memory.review.confirm(seen.id, seen=seen.fingerprint)


def _reward(memory: CascadeMemory, one: _Record) -> None:
    recall = memory.recall(one.query, metadata=one.metadata)
    memory.reward(recall.episode_id, 1.0, solution=one.solution)


def _finish(memory: CascadeMemory, one: _Record) -> None:
    recall = memory.recall(one.query, metadata=one.metadata)
    memory.episodes.finish(recall.episode_id, solution=one.solution)
    memory.review.confirm(recall.episode_id, seen=memory.episodes.pending()[0].fingerprint)


def _session(memory: CascadeMemory, one: _Record) -> None:
    with memory.episode(one.query, metadata=one.metadata) as episode:
        episode.solution = one.solution
        episode.reward(0.0)


def _import(memory: CascadeMemory, one: _Record) -> None:
    lines = list[str]()
    for verb in (_add, _finish, _session):
        with CascadeMemory(embedder="hashing", redact=False, learn="inline") as outside:
            verb(outside, one)
            exported = Path(str(memory.data.place)).parent.parent / "outside.jsonl"
            outside.data.export(exported, progress=False)
        lines = exported.read_text(encoding="utf-8").splitlines()
        exported.unlink()
        memory.data.import_(lines, progress=False)


_WHOLE: Mapping[str, Callable[[CascadeMemory, _Record], None]] = {
    "add": _add,
    "add many": _add_many,
    "propose": _propose,
    "reward": _reward,
    "finish": _finish,
    "session": _session,
    "import": _import,
}
_LATER = {"reward", "finish", "session"}  # the task is stored by an earlier call than the solution
_EARLY = ("query", *_IN_METADATA)


def _every() -> list[tuple[str, str, str, str]]:
    """Return (verb, place that announces, how, place that repeats) for all that a memory can know."""
    made = list[tuple[str, str, str, str]]()
    for verb, announced, repeated in itertools.product(_WHOLE, _PLACES, _PLACES):
        if announced == repeated or (verb in _LATER and announced not in _EARLY and repeated in _EARLY):
            continue
        fields = announced.startswith("metadata") or announced == "argument"
        made += [(verb, announced, how, repeated) for how in (_FIELDS if fields else _SAID)]
    return made


def _left(folder: Path, word: str) -> list[str]:
    raw = word.encode()
    return [str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file() and raw in file.read_bytes()]


def _tried(folder: Path, several: list[tuple[str, str, str, str]], caplog: pytest.LogCaptureFixture) -> None:
    words = [f"Xk4{_WORDS.of(12)}z9" for _ in several]
    with nothing_is_said(caplog):
        with CascadeMemory(folder / "memory", embedder="hashing", learn="inline") as memory:
            for number, (one, word) in enumerate(zip(several, words, strict=True)):
                record = _Record(one[1], one[2], one[3], word)
                record.query += f" in place {number}"
                _WHOLE[one[0]](memory, record)
                for episode in [*memory.episodes.pending(), *memory.review.reported()]:
                    memory.episodes.discard(episode.id) if episode.status == "open" else None
            memory.sync()
            memory.data.backup(folder / "backup")
            memory.data.export(folder / "export.jsonl", progress=False)
            assert memory.recall("log in somewhere").error is None
            assert memory.data.find_secrets() == []
        left = {one: _left(folder, word) for one, word in zip(several, words, strict=True)}
    assert {one: files for one, files in left.items() if files} == {}
    assert not any(word in caplog.text for word in words)


@pytest.mark.slow
def test_a_sample_of_all_records_leaves_no_byte(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    _tried(tmp_path, random.Random(46).sample(_every(), 24), caplog)


@pytest.mark.long
@pytest.mark.parametrize("part", range(16))
def test_no_record_leaves_a_byte(part: int, tmp_path: Path, caplog: pytest.LogCaptureFixture):
    _tried(tmp_path, _every()[part::16], caplog)


# -- what is beside the parts of a record ------------------------------------------------------------------------------

WORD = "Xk4" + Invented(92).of(12) + "z9"
SAID = {"password": WORD}
_NAMES: dict[str, Callable[[CascadeMemory], object]] = {
    "actor": lambda memory: memory.acting(actor=WORD).recall("a task", metadata=SAID),
    "thread": lambda memory: memory.recall("a task", thread_id=WORD, metadata=SAID),
    "episode": lambda memory: memory.recall("a task", episode_id=WORD, metadata=SAID),
    "namespace": lambda memory: memory.acting(namespace=WORD).recall("a task", metadata=SAID),
    "namespace of add": lambda memory: memory.acting(namespace=WORD).add("a task", "done", metadata=SAID),
    "actor of add": lambda memory: memory.acting(actor=WORD).add("a task", "done", metadata=SAID),
    "actor of many": lambda memory: memory.acting(actor=WORD).add([("a task", "done", SAID)]),
    "actor of propose": lambda memory: memory.acting(actor=WORD).review.propose("a task", "done", metadata=SAID),
    "actor of quarantine": lambda memory: memory.sources.quarantine(WORD, note=f"password={WORD}"),
    "by": lambda memory: memory.acting(actor=WORD).sources.quarantine("eve", note=f"password={WORD}"),
    "actor of reward": lambda memory: memory.acting(actor=WORD).reward(memory.recall("a").episode_id, 1.0, metadata=SAID),
    "actor of correct": lambda memory: memory.acting(actor=WORD).review.correct(
        memory.add("a", "b"), "c", note=f"password={WORD}"
    ),
}


@pytest.mark.parametrize("name", _NAMES)
def test_a_name_that_is_announced_as_a_secret_is_refused(name: str, tmp_path: Path):
    with CascadeMemory(tmp_path, embedder="hashing", learn="inline") as memory:
        with pytest.raises(InvalidInput, match="secret") as refused:
            _NAMES[name](memory)
        assert WORD not in str(refused.value)
        memory.sync()
    assert _left(tmp_path, WORD) == []


def test_notes_advice_filters_and_numbers_belong_to_their_record(tmp_path: Path):
    with CascadeMemory(tmp_path, embedder="hashing", learn="inline") as memory:
        memory.review.correct(memory.add("a task", "wrong"), f"type {WORD}", note=f"password={WORD}")
        mistake = Step(tool="sql", arguments={"q": "SELECT nme FROM t"}, observation="no such column: nme", failed=True)
        memory.recall("name all customers").reward(0.0, solution=[mistake], source="env")
        (warning,) = memory.warnings.all()
        memory.warnings.advise(warning.id, f"type {WORD}", note=f"password={WORD}")
        memory.warnings.retire(warning.id, note=f"password={WORD}, and {WORD}")
        assert WORD not in memory.recall(f"type {WORD}", where={"password": {"$eq": WORD}}).query
        pin = memory.cases.get(memory.add("call", "done", metadata={"number": 1234567890, "password": "1234567890"}))
        assert pin.metadata == {"number": "[secret:password#1]", "password": "[secret:password#1]"}
        memory.sync()
    assert _left(tmp_path, WORD) == []


def test_an_error_that_quotes_what_was_announced_says_nothing_of_it(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    def judge(episode: Any) -> float:
        raise ValueError(f"what is {WORD}?")

    with CascadeMemory(tmp_path, embedder="hashing", learn="inline", reward_fn=judge) as memory:
        recall = memory.recall("log in", metadata=SAID)
        with pytest.raises(ValueError, match="what is"):
            memory.end(recall.episode_id, solution=f"typed {WORD}")
        memory.data.note_failure("reward", ValueError(f"what is {WORD}?"))
        assert WORD not in str(memory.health())
    assert WORD not in caplog.text
    assert _left(tmp_path, WORD) == []


def test_a_purge_forgets_what_was_announced_and_another_process_never_knew_it(tmp_path: Path):
    with CascadeMemory(tmp_path, embedder="hashing", learn="inline") as memory:
        recall = memory.recall("log in", metadata=SAID)
        memory.forget(everything=True, purge=True)
        later = memory.recall("log in", episode_id=recall.episode_id)
        assert later.error is None
        assert WORD in str(memory.cases.get(str(memory.reward(later.episode_id, 1.0, solution=f"typed {WORD}"))).solution)


def test_the_process_that_knows_it_finds_what_a_later_call_has_announced(tmp_path: Path):
    """The task was stored before anybody knew that it holds a secret; its case has a placeholder."""
    with CascadeMemory(tmp_path, embedder="hashing", learn="inline") as memory:
        recall = memory.recall(f"log in with {WORD}", metadata={"seen": f"typed {WORD}"})
        case = memory.cases.get(str(memory.reward(recall.episode_id, 1.0, solution=f"password={WORD}")))
        assert WORD not in f"{case.query} {case.solution} {case.metadata}"
        places = {(one.where, one.id) for one in memory.data.find_secrets()}
    assert {("episode task", recall.episode_id), ("episode metadata", recall.episode_id)} <= places


def test_two_secrets_of_an_episode_never_share_a_number():
    one, two = Invented(93).of(12), Invented(94).of(12)
    with CascadeMemory(embedder="hashing", learn="inline") as memory:
        recall = memory.recall("log in", metadata={"password": one})
        case = memory.cases.get(str(memory.reward(recall.episode_id, 1.0, solution=f"password={two}, not {one}")))
        assert case.solution == "password=[secret:password#2], not [secret:password#1]"
        written = memory.cases.get(memory.add("see [secret:password#1]", f"password={two}"))
        assert written.solution == "password=[secret:password#2]"


def test_a_record_that_cannot_come_in_leaves_nothing(tmp_path: Path):
    with CascadeMemory(tmp_path, embedder="hashing", learn="inline") as memory:
        with pytest.raises(CascadeError) as refused:
            memory.add("log in", f"typed {WORD}", metadata={**SAID, "odd": [WORD, 1]})
        assert WORD not in str(refused.value)
        assert memory.stats().cases == 0
    assert _left(tmp_path, WORD) == []
