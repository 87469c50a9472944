"""The scores of Langfuse, from a server that answers as its documentation says."""

from __future__ import annotations

import base64
import re
from typing import Any

import pytest
from score_platform import SECRET, Odd, Query, in_turn, page_of, playing

from cascade_memory.capabilities.scores import Unread, collecting, langfuse
from cascade_memory.errors import PlatformFailed

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


def score(number: int = 0, **fields: Any) -> dict[str, Any]:
    return {
        "id": f"score-{number}",
        "projectId": "p",
        "name": "helpful",
        "value": 0.5,
        "dataType": "NUMERIC",
        "source": "ANNOTATION",
        "timestamp": "2026-01-02T03:04:05.000Z",
        "environment": "default",
        "createdAt": "2026-01-02T03:04:05.000Z",
        "updatedAt": "2026-01-02T03:04:05.250Z",
        "subject": {"kind": "trace", "id": TRACE},
        "authorUserId": "u-1",
        "queueId": None,
        **fields,
    }


def server(items: list[Any], size: int = 100) -> Any:
    def answer(_path: str, query: Query) -> Any:
        ids = query["id"][0].split(",") if "id" in query else None
        since = query.get("fromTimestamp", [""])[0]
        found = [one for one in items if (ids is None or one["id"] in ids) and one["timestamp"] >= since]
        page, cursor = page_of(found, query, size)
        return {"data": page, "meta": {"limit": size, **({"cursor": cursor} if cursor else {})}}

    return answer


def read(items: list[Any], size: int = 100) -> list[Any]:
    with playing(server(items, size)) as platform:
        return list(langfuse.collect(url=platform.url))


def test_every_field_of_a_score_has_its_place():
    (one,) = read([score(subject={"kind": "observation", "id": SPAN, "traceId": TRACE})])
    assert (one.platform, one.id, one.name, one.value) == ("langfuse", "score-0", "helpful", 0.5)
    assert (one.trace_id, one.span_id, one.by, one.judge) == (TRACE, SPAN, "u-1", "human")
    assert (one.at, one.correction) == (1767323045.25, None)


@pytest.mark.parametrize(
    ("kind", "value", "wanted"),
    [("NUMERIC", 1, 1.0), ("BOOLEAN", False, False), ("CATEGORICAL", "good", "good"), ("TEXT", "well done", "well done")],
)
def test_the_type_of_a_value_is_that_of_the_score(kind, value, wanted):
    assert [one.value for one in read([score(dataType=kind, value=value)])] == [wanted]


def test_a_correction_is_no_value_and_an_empty_one_is_none():
    items = [score(1, dataType="CORRECTION", value="fridge"), score(2, dataType="CORRECTION", value="")]
    assert [(one.value, one.correction) for one in read(items)] == [(None, "fridge")]


@pytest.mark.parametrize(("source", "judge"), [("ANNOTATION", "human"), ("EVAL", "judge"), ("API", "judge")])
def test_the_source_says_who_judged(source, judge):
    assert [one.judge for one in read([score(source=source)])] == [judge]


def test_scores_of_sessions_and_experiments_are_left_out():
    items = [score(number, subject={"kind": kind, "id": "s"}) for number, kind in enumerate(("session", "experiment"))]
    assert read(items) == []


def test_all_pages_are_read_with_the_same_filters():
    items = [score(number) for number in range(7)]
    with playing(server(items, 3)) as platform:
        assert [one.id for one in langfuse.collect(since=1_700_000_000.0, url=platform.url)] == [one["id"] for one in items]
    assert [query.get("cursor") for query in platform.queries()] == [None, ["3"], ["6"]]
    assert {query["fromTimestamp"][0] for query in platform.queries()} == {"2023-11-14T21:58:20.000Z"}
    assert {query["fields"][0] for query in platform.queries()} == {"subject,annotation"}


def test_both_keys_are_sent_as_basic_authentication():
    with playing(server([])) as platform:
        list(langfuse.collect(url=platform.url))
    kind, _, given = platform.asked[0].headers["authorization"].partition(" ")
    assert (kind, base64.b64decode(given).decode()) == ("Basic", f"pk-lf-of-a-test:{SECRET}")


def test_a_score_that_shows_ten_minutes_late_is_found_by_the_next_read():
    given, shown = 1_767_323_045.0, score(timestamp="2026-01-02T03:04:05.000Z")
    items: list[Any] = []
    with playing(server(items)) as platform:
        assert list(langfuse.collect(since=given - 60, url=platform.url)) == []
        items.append(shown)
        assert [one.id for one in langfuse.collect(since=given + 600, url=platform.url)] == ["score-0"]


def test_a_revised_score_has_its_new_value_and_a_deleted_one_is_marked():
    known = read([score(1), score(2), score(3)])
    now = [score(1), score(2, value=1.0, updatedAt="2026-01-03T00:00:00Z")]
    with playing(server(now)) as platform:
        found = {one.id: one for one in langfuse.check(known, url=platform.url)}
    assert [(found[one.id].value, found[one.id].deleted) for one in known] == [(0.5, False), (1.0, False), (0.5, True)]
    assert platform.queries()[0]["id"] == ["score-1,score-2,score-3"]


def test_an_id_with_a_comma_cannot_be_asked_for_and_is_never_taken_for_deleted():
    known = read([score(1), score(2, id="a,b")])
    with playing(server([score(1)])) as platform:
        assert [(one.id, one.deleted) for one in langfuse.check(known, url=platform.url)] == [("score-1", False)]


def test_a_score_that_was_given_just_now_is_not_taken_for_deleted(monkeypatch):
    known = read([score(1), score(2)])
    monkeypatch.setattr("time.time", lambda: known[1].at + 600.0)
    with playing(server([score(1)])) as platform:
        assert [one.id for one in langfuse.check(known, url=platform.url)] == ["score-1"]


def test_nothing_is_withdrawn_if_the_key_is_one_of_another_project():
    known = read([score(number) for number in range(5)])
    with playing(server([])) as platform, pytest.raises(PlatformFailed, match=r"5 of 5 scores .* nothing was withdrawn"):
        list(langfuse.check(known, url=platform.url))


def test_two_projects_that_feed_one_memory_do_not_delete_each_others_scores():
    known = read([score(number) for number in range(8)])
    with (
        playing(server([score(number) for number in range(3)])) as platform,
        pytest.raises(PlatformFailed, match=r"5 of 8 scores .* another project"),
    ):
        list(langfuse.check(known, url=platform.url))
    with playing(server([score(number) for number in range(4)])) as platform:
        assert sum(one.deleted for one in langfuse.check(known, url=platform.url)) == 4
    with playing(server([])) as platform:
        assert sum(one.deleted for one in langfuse.check(known[:3], url=platform.url)) == 3


def test_a_score_that_is_there_again_beats_the_deletion_that_was_inferred():
    (one,) = read([score(1)])
    with playing(server([])) as platform:
        (gone,) = langfuse.check([one], url=platform.url)
    assert gone.deleted
    with playing(server([score(1)])) as platform:
        (back,) = langfuse.check([gone], url=platform.url)
        assert (back.deleted, back.value) == (False, 0.5)
        assert gone.at < back.at < gone.at + 1
        assert list(langfuse.check([back], url=platform.url)) == [one]  # an older version than the one that is known
    with playing(server([])) as platform:
        assert list(langfuse.check([gone], url=platform.url)) == []


def test_nothing_is_withdrawn_if_reading_fails(pauses):
    known = read([score(number) for number in range(60)])
    found = []
    first = {"data": [score(0)], "meta": {"limit": 100}}
    with playing(in_turn(first, Odd(500))) as platform, pytest.raises(PlatformFailed, match="status 500, 5 times"):
        found += [one.id for one in langfuse.check(known, url=platform.url) if one.deleted]
    assert found == []


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"value": "0.5"}, r"Langfuse: data\[0\]\.value should be a number, and is not '0.5'"),
        ({"value": True}, r"data\[0\]\.value should be a number, and is not True"),
        ({"dataType": "BOOLEAN", "value": 1}, r"data\[0\]\.value should be true or false, and is not 1"),
        ({"dataType": "VECTOR"}, r"data\[0\]\.dataType should be one of NUMERIC, .*, and is not 'VECTOR'"),
        ({"source": None}, r"data\[0\]\.source should be a text, and is missing"),
        ({"subject": {"kind": "observation", "id": "o"}}, r"data\[0\]\.subject\.traceId should be a text, and is missing"),
        ({"subject": None}, r"data\[0\]\.subject\.kind should be a text, and is missing"),
    ],
)
def test_a_score_with_other_types_than_documented_is_told_of_and_the_others_are_read(fields, said):
    one, unread = sorted(read([score(1, **fields), score(2)]), key=lambda found: isinstance(found, Unread))
    assert re.search(said, unread.why)
    assert one.id == score(2)["id"]


def test_cursors_that_lead_in_a_circle_are_no_end():
    page = {"data": [score(1)], "meta": {"limit": 100, "cursor": "again"}}
    with playing(in_turn(page)) as platform, pytest.raises(PlatformFailed, match="the same cursor for two pages"):
        list(langfuse.collect(url=platform.url))
    assert len(platform.asked) == 2


def test_cursors_without_an_end_are_left(monkeypatch):
    def answer(_path: str, query: Query) -> Any:
        number = int(query.get("cursor", ["0"])[0]) + 1
        return {"data": [score(number)] if full else [], "meta": {"cursor": str(number)}}

    full = False
    with playing(answer) as platform, pytest.raises(PlatformFailed, match="100 empty pages"):
        list(langfuse.collect(url=platform.url))
    assert len(platform.asked) == 100
    full = True
    monkeypatch.setattr(collecting, "PAGES", 120)
    with playing(answer) as platform, pytest.raises(PlatformFailed, match="more than 120 pages"):
        list(langfuse.collect(url=platform.url))
    assert len(platform.asked) == 120


def test_a_version_without_this_api_says_so():
    with playing(in_turn(Odd(404))) as platform, pytest.raises(PlatformFailed, match=r"/v3/scores \(status 404\).*new enough"):
        list(langfuse.collect(url=platform.url))
