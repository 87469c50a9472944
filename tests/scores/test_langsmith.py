"""The feedback of LangSmith, from a server that answers as its documentation says."""

from __future__ import annotations

import re
from typing import Any

import pytest
from score_platform import RUN, TRACE, Query, feedback, page_of, playing

from cascade_memory.capabilities.scores import collecting, langsmith
from cascade_memory.errors import PlatformFailed


def server(items: list[Any]) -> Any:
    def answer(_path: str, query: Query) -> Any:
        start = int(query["offset"][0])
        runs = query.get("run")
        found = [one for one in items if runs is None or one["run_id"] in runs]
        return found[start : start + int(query["limit"][0])]

    return answer


def read(items: list[Any]) -> list[Any]:
    with playing(server(items)) as platform:
        return list(langsmith.collect(url=platform.url))


def test_every_field_of_a_feedback_has_its_place():
    (one,) = read([feedback(score=1, correction={"output": "fridge"})])
    assert (one.platform, one.id, one.name, one.value) == ("langsmith", feedback()["id"], "correctness", 1.0)
    assert (one.trace_id, one.span_id, one.by, one.judge) == (TRACE, RUN, "u-1", "human")
    assert (one.correction, one.deleted) == ("fridge", False)
    assert one.at == 1767323045.5  # a time without a zone is one of UTC


@pytest.mark.parametrize(
    ("source", "judge"),
    [
        ("app", "human"),
        ("model", "judge"),
        ("auto_eval", "judge"),
        ("api", "judge"),
        ("a kind of 2030", "agent"),
        (None, "judge"),
    ],
)
def test_the_source_says_who_judged(source, judge):
    assert [one.judge for one in read([feedback(feedback_source={"type": source})])] == [judge]


@pytest.mark.parametrize(
    ("fields", "value", "correction"),
    [
        ({"score": True}, True, None),
        ({"score": None, "value": "good"}, "good", None),
        ({"score": None, "value": {"a": 1}, "correction": "yes"}, None, "yes"),
        ({"score": 0, "value": "bad"}, 0.0, None),
        ({"score": None, "correction": {"a": "x", "b": 2}}, None, '{"a": "x", "b": 2}'),
    ],
)
def test_a_score_goes_before_a_value_and_a_correction_may_be_an_object(fields, value, correction):
    assert [(one.value, one.correction) for one in read([feedback(**fields)])] == [(value, correction)]


def test_feedback_without_a_run_or_without_a_verdict_teaches_nothing():
    nothing = [
        feedback(1, run_id=None, trace_id=None),
        feedback(2, score=None, comment="hm"),
        feedback(3, correction={}, score=None),
    ]
    assert read(nothing) == []


def test_all_pages_are_read_and_what_comes_twice_is_yielded_once():
    items = [feedback(number) for number in range(205)]
    with playing(server([*items[:150], *items[140:]])) as platform:
        found = list(langsmith.collect(url=platform.url))
    assert [one.id for one in found] == [one["id"] for one in items]
    assert [query["offset"] for query in platform.queries("/feedback")] == [["0"], ["100"], ["200"]]


def test_a_server_that_ignores_the_offset_is_asked_no_third_time():
    with playing(lambda _path, _query: [feedback(number) for number in range(120)]) as platform:
        assert len(list(langsmith.collect(url=platform.url))) == 120
    assert len(platform.asked) == 2


def test_a_read_begins_a_quarter_of_an_hour_early_and_ends_where_it_began():
    with playing(server([])) as platform:
        assert list(langsmith.collect(since=1_700_000_000.0, url=platform.url)) == []
    (query,) = platform.queries()
    assert query["min_created_at"] == ["2023-11-14T21:58:20.000Z"]
    assert query["max_created_at"][0] > "2026"
    assert platform.asked[0].headers["x-api-key"]


def test_a_workspace_is_named_if_the_environment_names_one(monkeypatch):
    monkeypatch.setenv("LANGSMITH_WORKSPACE_ID", "w-1")
    with playing(server([])) as platform:
        monkeypatch.setenv("LANGSMITH_ENDPOINT", f"{platform.url}/api/v1/")
        list(langsmith.collect())
    assert platform.asked[0].path == "/api/v1/feedback"
    assert platform.asked[0].headers["x-tenant-id"] == "w-1"


def test_a_revised_score_has_its_new_value_and_a_deleted_one_is_marked():
    items = [feedback(1), feedback(2), feedback(3)]
    known = read(items)
    now = [feedback(1), feedback(2, score=1.0, modified_at="2026-01-03T00:00:00+00:00")]
    with playing(server(now)) as platform:
        found = {one.id: one for one in langsmith.check(known, url=platform.url)}
    assert [found[one.id].value for one in known] == [0.5, 1.0, 0.5]
    assert [found[one.id].deleted for one in known] == [False, False, True]
    assert found[known[2].id].at > known[2].at
    assert platform.queries()[0]["run"] == [RUN]


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"key": None}, r"LangSmith: feedback\[0\]\.key should be a text, and is missing"),
        ({"score": [1]}, r"feedback\[0\]\.score should be a number, true or false, or a text, and is not a list"),
        ({"score": float("nan")}, r"feedback\[0\]\.score should be a finite number, and is not nan"),
        ({"modified_at": "yesterday"}, r"feedback\[0\]\.modified_at should be a time, and is not 'yesterday'"),
        ({"feedback_source": "app"}, r"feedback\[0\]\.feedback_source should be an object, and is not 'app'"),
    ],
)
def test_a_score_with_other_types_than_documented_is_told_of_and_the_others_are_read(fields, said):
    unread, one = read([feedback(1, **fields), feedback(2)])
    assert re.search(said, unread.why)
    assert one.id == feedback(2)["id"]


@pytest.mark.parametrize("fields", [{"id": 7}, {"id": None, "score": [1]}])
def test_an_item_without_an_id_ends_a_read_since_all_scores_would_seem_to_be_deleted(fields):
    with pytest.raises(PlatformFailed, match=r"LangSmith: feedback\[0\]\..* should be"):
        read([feedback(**fields)])


def only_first_page(items: list[Any]) -> Any:
    """Asked for runs, this server gives as many as are wanted, and ignores where to begin."""

    def answer(_path: str, query: Query) -> Any:
        return [one for one in items if one["run_id"] in query["run"]][: int(query["limit"][0])]

    return answer


def test_a_check_asks_for_fewer_runs_if_a_page_repeats():
    items = [feedback(number, run_id=f"{number // 3:032x}") for number in range(150)]
    known = read(items)
    with playing(only_first_page(items)) as platform:
        found = list(langsmith.check(known, url=platform.url))
    assert {one.id for one in found} == {one.id for one in known}
    assert not any(one.deleted for one in found)


def test_a_full_page_that_repeats_is_never_taken_for_all_there_is():
    items = [feedback(number) for number in range(101)]
    known = read(items)
    found: list[Any] = []
    with (
        playing(only_first_page(items)) as platform,
        pytest.raises(PlatformFailed, match="one page of /feedback again and again"),
    ):
        found.extend(langsmith.check(known, url=platform.url))
    assert found == []


def test_pages_without_an_end_are_left(monkeypatch):
    monkeypatch.setattr(collecting, "PAGES", 7)
    with (
        playing(lambda _path, query: [feedback(int(query["offset"][0]) + number) for number in range(100)]) as platform,
        pytest.raises(PlatformFailed, match="/feedback has more than 7 pages"),
    ):
        list(langsmith.collect(url=platform.url))
    assert len(platform.asked) == 7


def test_pages_are_lists():
    with (
        playing(lambda _path, _query: {"data": []}) as platform,
        pytest.raises(PlatformFailed, match="feedback should be a list"),
    ):
        list(langsmith.collect(url=platform.url))


def test_the_helper_pages_as_it_says():
    assert page_of([1, 2, 3], {}, 2) == ([1, 2], "2")
    assert page_of([1, 2, 3], {"cursor": ["2"]}, 2) == ([3], None)
