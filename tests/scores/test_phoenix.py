"""The annotations of Phoenix, from a server that answers as its documentation says."""

from __future__ import annotations

import re
from typing import Any

import pytest
from score_platform import Odd, Query, page_of, playing

from cascade_memory.capabilities.scores import Unread, phoenix
from cascade_memory.errors import PlatformFailed


def trace_id(number: int) -> str:
    return f"{number + 1:032x}"


def span_id(number: int) -> str:
    return f"{number + 1:016x}"


def annotation(number: int = 0, **fields: Any) -> dict[str, Any]:
    return {
        "id": f"U3BhbkFubm90YXRpb246{number}",
        "created_at": "2026-01-02T03:04:05+00:00",
        "updated_at": "2026-01-02T03:04:05.123456+00:00",
        "source": "APP",
        "user_id": None,
        "name": "correct",
        "annotator_kind": "HUMAN",
        "result": {"label": "yes", "score": 1.0, "explanation": "as I would"},
        "metadata": {},
        "identifier": "",
        "span_id": span_id(0),
        **fields,
    }


def of_trace(number: int = 0, **fields: Any) -> dict[str, Any]:
    made = annotation(number, **{"id": f"VHJhY2VBbm5vdGF0aW9u{number}", "trace_id": trace_id(0), **fields})
    return {name: value for name, value in made.items() if name != "span_id"}


def server(items: list[Any], *, traces: int = 1, size: int = 1_000) -> Any:
    listed = [
        {"id": f"t{one}", "trace_id": trace_id(one), "start_time": "2026-01-02T03:00:00Z", "spans": [{"span_id": span_id(one)}]}
        for one in range(traces)
    ]

    def answer(path: str, query: Query) -> Any:
        what = path.rpartition("/")[2]
        if what == "traces":
            found, limit = listed, int(query["limit"][0])
        else:
            name = what.replace("annotations", "id")
            ids = query[f"{name}s"]
            assert len(ids) <= 150
            found, limit = [one for one in items if one.get(name) in ids], size
        page, cursor = page_of(found, query, limit)
        return {"data": page, "next_cursor": cursor}

    return answer


def read(items: list[Any], **options: Any) -> list[Any]:
    with playing(server(items, **options)) as platform:
        return list(phoenix.collect(url=platform.url))


def test_every_field_of_an_annotation_has_its_place():
    (one,) = read([annotation(user_id="VXNlcjox")])
    assert (one.platform, one.id, one.name, one.value) == ("phoenix", annotation()["id"], "correct", 1.0)
    assert (one.trace_id, one.span_id, one.by, one.judge) == (trace_id(0), span_id(0), "VXNlcjox", "human")
    assert one.at == 1767323045.123456


def test_annotations_of_whole_traces_are_read_too():
    assert [(one.trace_id, one.span_id) for one in read([of_trace()])] == [(trace_id(0), None)]


@pytest.mark.parametrize(("kind", "judge"), [("HUMAN", "human"), ("LLM", "judge"), ("CODE", "code"), ("AGENT", "agent")])
def test_the_annotator_says_who_judged(kind, judge):
    assert [one.judge for one in read([annotation(annotator_kind=kind)])] == [judge]


@pytest.mark.parametrize(
    ("result", "values"),
    [
        ({"label": "no", "score": 0, "explanation": None}, [0.0]),
        ({"label": "no", "score": None}, ["no"]),
        ({"explanation": "a note"}, []),
        (None, []),
    ],
)
def test_a_number_goes_before_a_label_and_a_note_is_no_score(result, values):
    assert [one.value for one in read([annotation(result=result)])] == values


def test_all_pages_of_traces_and_annotations_are_read():
    spans = [annotation(number, span_id=span_id(number)) for number in range(250)]
    whole = [of_trace(number, trace_id=trace_id(number)) for number in range(250)]
    with playing(server([*spans, *whole], traces=250, size=40)) as platform:
        found = list(phoenix.collect(since=1_700_000_000.0, url=platform.url))
    assert {one.id for one in found} == {one["id"] for one in (*spans, *whole)}
    assert len(found) == 500
    assert {query["start_time"][0] for query in platform.queries("/traces")} == {"2023-11-13T22:13:20.000Z"}
    assert len(platform.queries("/span_annotations")) == 7  # of 150 and of 100 spans, with 40 annotations on a page
    assert (
        max(len(one.path) + sum(len(text) for texts in one.query.values() for text in texts) for one in platform.asked) < 6_600
    )


def test_a_revised_annotation_has_its_new_value_and_a_deleted_one_is_marked():
    items = [annotation(1), annotation(2), of_trace(3), of_trace(4)]
    known = read(items)
    now = [annotation(1, result={"score": 0.0}, updated_at="2026-01-03T00:00:00Z"), of_trace(3)]
    with playing(server(now)) as platform:
        found = {one.id: one for one in phoenix.check(known, url=platform.url)}
    assert [found[one["id"]].deleted for one in items] == [False, True, False, True]
    assert found[items[0]["id"]].value == 0.0
    assert not platform.queries("/traces")


def test_the_project_and_the_address_come_from_the_environment(monkeypatch):
    monkeypatch.setenv("PHOENIX_PROJECT_NAME", "my agents")
    monkeypatch.delenv("PHOENIX_API_KEY")
    with playing(server([])) as platform:
        monkeypatch.setenv("PHOENIX_COLLECTOR_ENDPOINT", f"{platform.url}/v1/traces")
        assert list(phoenix.collect()) == []
    assert platform.asked[0].path == "/v1/projects/my%20agents/traces"
    assert "authorization" not in platform.asked[0].headers


def test_the_key_is_sent_as_a_bearer_token():
    with playing(server([])) as platform:
        list(phoenix.collect(url=platform.url))
    assert platform.asked[0].headers["authorization"].startswith("Bearer lsv2_")


def test_an_unknown_project_is_said():
    with (
        playing(lambda _path, _query: Odd(404)) as platform,
        pytest.raises(PlatformFailed, match="/v1/projects/default/traces"),
    ):
        list(phoenix.collect(url=platform.url))


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"result": {"score": "1"}}, r"Phoenix: data\[0\]\.result\.score should be a number, and is not '1'"),
        ({"annotator_kind": "ORACLE"}, r"data\[0\]\.annotator_kind should be one of HUMAN, .*, and is not 'ORACLE'"),
        ({"updated_at": 7}, r"data\[0\]\.updated_at should be a text, and is not 7"),
        ({"result": [1]}, r"data\[0\]\.result should be an object, and is not a list"),
    ],
)
def test_a_score_with_other_types_than_documented_is_told_of_and_the_others_are_read(fields, said):
    one, unread = sorted(read([annotation(1, **fields), annotation(2)]), key=lambda found: isinstance(found, Unread))
    assert re.search(said, unread.why)
    assert one.id == annotation(2)["id"]
