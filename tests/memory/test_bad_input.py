"""Bad input: each a clear error, and an unchanged memory."""

from __future__ import annotations

import math
import uuid
from typing import Any

import numpy as np
import pytest

from cascade_memory import CascadeMemory, Ranking, Step, Tickets, Trajectory, clean_text
from cascade_memory.encoders.hashing import HashingEmbedder
from cascade_memory.errors import (
    AlreadyRewarded,
    EmbedderFailed,
    EncoderMismatch,
    EpisodeClosed,
    InvalidInput,
    MemoryClosed,
    MissingExtra,
    UnknownCase,
    UnknownEpisode,
)


def _state(memory: CascadeMemory) -> tuple[object, ...]:
    stats = memory.stats(everywhere=True)
    return (stats.cases, stats.copies, stats.episodes, stats.rewards, stats.recalls)


@pytest.mark.parametrize(
    ("query", "word"),
    [
        ("", "empty"),
        (" \n\t", "empty"),
        (None, "string"),
        (b"heat", "string"),
        (7, "string"),
        ("x" * 1_000_000, "shorten"),
        ("a\x00b", "control character"),
        ("red \x1b[31m", "control character"),
        ("lone \ud800", "surrogate"),
    ],
)
def test_a_query_that_cannot_be_one_is_refused(ram: CascadeMemory, query: object, word: str):
    before = _state(ram)
    for verb in (ram.recall, ram.cases.search, lambda query: ram.episode(query).recall):
        with pytest.raises(InvalidInput, match=word):
            verb(query)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput):
        ram.add(query, "solution")  # type: ignore[call-overload]
    assert _state(ram) == before


@pytest.mark.parametrize("k", [0, -1, 1.5, "3", True, None.__class__])
def test_k_below_one_or_no_number_is_refused(ram: CascadeMemory, k: object):
    with pytest.raises(InvalidInput, match="k must be"):
        ram.recall("task", k=k)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="k must be"):
        CascadeMemory(embedder="hashing", k=k)  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [-0.1, 1.1, math.nan, math.inf, "1", None, np.array([1.0, 0.0]), [1]])
def test_a_reward_outside_the_unit_interval_is_refused_and_the_episode_stays_open(ram: CascadeMemory, value: object):
    episode = ram.recall("task").episode_id
    with pytest.raises(InvalidInput, match="reward must"):
        ram.reward(episode, value, solution="s")  # type: ignore[arg-type]
    assert [one.id for one in ram.episodes.pending()] == [episode]
    assert ram.stats().cases == 0


@pytest.mark.parametrize("value", [True, 1, 1.0, np.float32(1.0), np.int64(1), np.bool_(True)])
def test_every_honest_number_is_a_reward(ram: CascadeMemory, value: float):
    assert ram.reward(ram.recall("task").episode_id, value, solution="s") is not None


def test_unknown_foreign_settled_and_discarded_episodes_are_refused(ram: CascadeMemory):
    with pytest.raises(UnknownEpisode, match="nobody"):
        ram.reward("nobody", 1.0)
    foreign = ram.acting(namespace="other").recall("task").episode_id
    with pytest.raises(UnknownEpisode, match="there is no episode"):
        ram.reward(foreign, 1.0, solution="s")
    settled = ram.recall("task").episode_id
    case_id = ram.reward(settled, 1.0, solution="s")
    assert ram.reward(settled, 1.0) == case_id  # the same again is no contradiction
    with pytest.raises(AlreadyRewarded, match="overwrite=True"):
        ram.reward(settled, 0.0)
    with pytest.raises(EpisodeClosed, match="settled"):
        ram.recall("once more", episode_id=settled)
    discarded = ram.recall("task").episode_id
    assert ram.episodes.discard(discarded)
    assert not ram.episodes.discard(discarded)
    with pytest.raises(EpisodeClosed, match="censored"):
        ram.reward(discarded, 1.0)
    with pytest.raises(UnknownEpisode):
        ram.episodes.discard("nobody")
    assert ram.stats().cases == 1
    assert ram.acting(namespace="other").stats().cases == 0


def test_an_unknown_source_is_refused(ram: CascadeMemory):
    with pytest.raises(InvalidInput, match="host, human, env, judge, user, agent"):
        ram.reward(ram.recall("task").episode_id, 1.0, source="me")


class _Bad(HashingEmbedder):
    def __init__(self, vectors: object) -> None:
        super().__init__(4)
        self._vectors = vectors

    def embed(self, texts):
        return self._vectors


@pytest.mark.parametrize(
    ("vectors", "word"),
    [
        (np.ones((1, 5)), "shape"),
        (np.ones(4), "shape"),
        (np.ones((2, 4)), "shape"),
        (np.full((1, 4), np.nan), "nan"),
        (np.array([[1.0, np.inf, 0, 0]]), "nan or infinity"),
        (np.zeros((1, 4)), "zero vector"),
        (np.ones((1, 4), complex), "expected numbers"),
        (np.full((1, 4), "1"), "expected numbers"),
        (None, "shape"),
        ([[1.0, 2.0], [3.0]], "ValueError"),
    ],
)
def test_vectors_that_cannot_be_compared_are_the_embedders_failure(vectors: object, word: str):
    with CascadeMemory(embedder=_Bad(vectors)) as memory:
        with pytest.warns(RuntimeWarning, match="without cases"):
            assert word in str(memory.recall("task").error)
        with pytest.raises(EmbedderFailed, match=word):
            memory.add("task", "solution")
        assert _state(memory) == (0, 0, 0, 0, 0)


def test_vectors_too_large_to_be_squared_are_vectors_all_the_same():
    with CascadeMemory(embedder=_Bad(np.full((1, 4), 1e30))) as memory:
        memory.add("task", "solution")
        assert memory.recall("task").cases[0].similarity == pytest.approx(1.0)


def test_another_embedder_than_the_one_that_wrote_the_folder_is_refused(on_disk):
    memory = on_disk()
    memory.add("task", "solution")
    memory.close()
    with pytest.raises(EncoderMismatch, match="reindex"):
        on_disk(embedder=HashingEmbedder(64))
    assert on_disk(embedder="auto").stats().cases == 1  # auto is what wrote the folder


@pytest.mark.parametrize(
    ("metadata", "word"),
    [
        ({"a": {"b": 1}}, "dict"),
        ({"a": None}, "NoneType"),
        ({"a": math.nan}, "nan"),
        ({"a": math.inf}, "inf"),
        ({"a": 2**64}, "64 bits"),
        ({"a": []}, "empty list"),
        ({"a": [1, "x"]}, "mixes types"),
        ({"a": np.float32(1)}, "float32"),
        ({"": 1}, "empty"),
        ({1: 1}, "string"),
        ({"#a": 1}, "reserved"),
        ({"$a": 1}, "reserved"),
        ({"cascade_x": 1}, "reserved"),
        ({"a": "\x00"}, "control"),
        ([("a", 1)], "mapping"),
    ],
)
def test_metadata_that_chroma_cannot_hold_is_refused(ram: CascadeMemory, metadata: object, word: str):
    with pytest.raises(InvalidInput, match=word):
        ram.add("task", "solution", metadata=metadata)  # type: ignore[call-overload]
    episode = ram.recall("task").episode_id
    with pytest.raises(InvalidInput, match=word):
        ram.reward(episode, 1.0, solution="s", metadata=metadata)  # type: ignore[arg-type]
    assert ram.stats().cases == 0
    assert len(ram.episodes.pending()) == 1


@pytest.mark.parametrize("solution", ["", "x\x00", "\udfff", 42, {"a": 1}, [], ["look"], "x" * 1_000_001])
def test_a_solution_that_cannot_be_stored_is_refused(ram: CascadeMemory, solution: object):
    episode = ram.recall("task").episode_id
    with pytest.raises(InvalidInput):
        ram.reward(episode, 1.0, solution=solution)  # type: ignore[arg-type]
    assert len(ram.episodes.pending()) == 1


def test_steps_and_trajectories_without_content_are_refused():
    for make in (
        lambda: Step(),
        lambda: Trajectory([]),
        lambda: Step(action="a\x00"),
        lambda: Step(tool="t", arguments={"x": {1}}),
    ):
        with pytest.raises(InvalidInput):
            make()


def test_clean_text_makes_refused_text_acceptable(ram: CascadeMemory):
    text = clean_text("\x1b[1;31mError\x1b[0m\x07 in line 3\udc80\n")
    assert text == "Error in line 3\n"
    assert ram.reward(ram.recall("task").episode_id, 1.0, solution=text)


@pytest.mark.parametrize(
    "where", [{}, [], "a", {"$and": []}, {"a": {}}, {"a": {"$near": 1}}, {"a": {"$in": []}}, {"$x": [{"a": 1}]}]
)
def test_a_filter_that_says_nothing_is_refused(ram: CascadeMemory, where: object):
    with pytest.raises(InvalidInput):
        ram.recall("task", where=where)  # type: ignore[arg-type]


def test_a_filter_nested_without_end_is_refused(ram: CascadeMemory):
    where: dict[str, object] = {"a": 1}
    for _ in range(500):
        where = {"$and": [where]}
    with pytest.raises(InvalidInput, match="deep"):
        ram.recall("task", where=where)


@pytest.mark.parametrize("namespace", ["", "  ", "x" * 300, "a\x00", "\ud800", 5, None.__class__])
def test_a_namespace_without_text_is_refused(namespace: object):
    with pytest.raises(InvalidInput, match="namespace"):
        CascadeMemory(embedder="hashing", namespace=namespace)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "namespace", ["a/b:c", "..", "Zoë 長い", "'; DROP TABLE cases; --", "a" * 256, "ns-x", "192.168.1.1", "*"]
)
def test_any_other_namespace_works_and_is_isolated(on_disk, namespace: str):
    memory = on_disk()
    memory.acting(namespace=namespace).add("task", "mine")
    memory.add("task", "theirs")
    memory.sync()
    assert [case.solution for case in memory.acting(namespace=namespace).recall("task", k=5).cases] == ["mine"]


@pytest.mark.parametrize(
    "option",
    [{"learn": "later"}, {"ranker": "best"}, {"embedder": "word2vec"}, {"ranking": Ranking(matcher=3)}, {"trust": "all"}],
)
def test_an_unknown_choice_is_refused_with_the_known_ones(option: dict[str, object]):
    with pytest.raises(InvalidInput, match="must"):
        CascadeMemory(**{"embedder": "hashing", **option})  # type: ignore[arg-type]


def test_a_misspelt_keyword_is_refused():
    with pytest.raises(TypeError):
        CascadeMemory(embeder="hashing")  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("option", "call"),
    [
        ("holdout", r"ranking=Ranking\(holdout=...\)"),
        ("max_case", r"retention=Retention\(max_cases=...\)"),
        ("ticket", r"trust=Trust\(tickets=...\)"),
        ("actor", r"CascadeMemory\(...\).acting\(actor=...\)"),
    ],
)
def test_an_option_of_a_group_is_told_where_it_belongs(option: str, call: str):
    with pytest.raises(TypeError, match=f"takes no option '{option}'; (did you mean|write) {call}"):
        CascadeMemory(embedder="hashing", **{option: 1})


@pytest.mark.parametrize("group", ["ranking", "retention", "trust"])
@pytest.mark.parametrize("given", [{"abstain": False}, None, True, Tickets])
def test_what_is_no_group_of_options_is_refused_with_the_right_call(group: str, given: object):
    with pytest.raises(InvalidInput, match=rf"{group} must be a {group.title()}, such as {group.title()}\("):
        CascadeMemory(embedder="hashing", **{group: given})


def test_forget_and_get_refuse_what_is_not_there(ram: CascadeMemory):
    ram.add("task", "solution")
    with pytest.raises(UnknownCase):
        ram.cases.get("nobody")
    with pytest.raises(UnknownCase, match="nothing was forgotten"):
        ram.forget(["nobody"])
    with pytest.raises(InvalidInput, match="in one way only"):
        ram.forget()
    with pytest.raises(InvalidInput, match="in one way only"):
        ram.forget("x", everything=True)
    with pytest.raises(UnknownEpisode):
        ram.forget(episode_id="nobody")
    with pytest.raises(InvalidInput):
        ram.forget(where={})
    assert ram.stats().cases == 1


@pytest.mark.parametrize(
    "cases",
    [[("q",)], [("q", "s", {}, 4)], [{"query": "q"}], [{"query": "q", "solution": "s", "extra": 1}], ["q"], [("q", "")]],
)
def test_one_bad_case_of_many_stores_none(ram: CascadeMemory, cases: list[object]):
    with pytest.raises(InvalidInput):
        ram.add([("good", "case"), *cases])  # type: ignore[list-item]
    assert ram.stats().cases == 0


@pytest.mark.parametrize("age", [-1, "1", math.nan, math.inf, None, True])
def test_expire_needs_a_duration(ram: CascadeMemory, age: object):
    with pytest.raises(InvalidInput, match="older_than"):
        ram.episodes.expire(age)  # type: ignore[arg-type]


def test_a_closed_memory_says_so(ram: CascadeMemory):
    ram.close()
    ram.close()
    for use in (
        lambda: ram.recall("task"),
        lambda: ram.reward("x", 1.0),
        lambda: ram.stats(),
        lambda: ram.add("q", "s"),
        ram.sync,
    ):
        with pytest.raises(MemoryClosed, match="open it again"):
            use()
    assert "closed" in repr(ram)
    assert "closed" in ram._repr_html_()


def test_without_the_extra_the_error_names_it(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("cascade_memory.encoders.minilm.PACKAGE", "no_such_package_here")
    with pytest.raises(MissingExtra, match=r"cascade-memory\[local\]"):
        CascadeMemory()


@pytest.mark.parametrize(
    "where",
    [{"a": 2**70}, {"a": "\ud800"}, {"a": float("nan")}, {"a": {"$in": list(range(10_001))}}, {"a": {"$gt": 2**70}}],
    ids=["huge", "surrogate", "nan", "many", "huge bound"],
)
def test_a_filter_that_cannot_match_is_refused_and_not_ignored(ram: CascadeMemory, where: dict[str, object]):
    ram.add("task", "s", metadata={"a": 1})
    with pytest.raises(InvalidInput):
        ram.cases.search("task", where=where)
    assert ram.health().ok


@pytest.mark.parametrize("options", [{"ranker": []}, {"template": "x"}, {"reward_fn": 5}])
def test_an_option_of_the_wrong_kind_is_refused(options: dict[str, Any]):
    with pytest.raises(InvalidInput):
        CascadeMemory(embedder="hashing", **options)


@pytest.mark.parametrize("cases", [None, 5])
def test_only_cases_can_be_added(ram: CascadeMemory, cases: Any):
    with pytest.raises(InvalidInput, match="iterable of cases"):
        ram.add(cases)


@pytest.mark.parametrize(
    "step",
    [
        {"tool": 5},
        {"tool": "t", "arguments": {"a": object()}},
        {"action": "a", "arguments": {"a": "\ud800"}},
        {"tool": "a\x00"},
    ],
)
def test_a_step_that_cannot_be_stored_is_refused_whole(step: dict[str, Any]):
    with pytest.raises(InvalidInput):
        Step(**step)


def test_an_episode_id_is_text_or_a_uuid(ram: CascadeMemory):
    for wrong in (b"abc", 0.5):
        with pytest.raises(InvalidInput):
            ram.recall("task", episode_id=wrong)  # type: ignore[arg-type]
    own = uuid.uuid4()
    assert ram.recall("task", episode_id=own).episode_id == str(own)  # type: ignore[arg-type]
