"""Evaluations in files of OpenTelemetry."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from scored import EVENT, attributes, logs, opened, recalled, record, trace

from cascade_memory.capabilities.scores import Score, Unread, otlp
from cascade_memory.errors import InvalidInput


def spans(*events: Any) -> dict[str, Any]:
    span = {"traceId": trace(1), "spanId": f"{2:016x}", "name": "chat", "events": list(events)}
    return {"resourceSpans": [{"scopeSpans": [{"spans": [span, {"traceId": trace(2), "spanId": f"{3:016x}"}]}]}]}


def read(tmp_path: Path, *lines: Any, end: str = "\n", **options: Any) -> list[Any]:
    file = tmp_path / "evaluations.jsonl"
    file.write_text("\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines) + end)
    return list(otlp.collect(file, **options))


def test_events_in_logs_and_in_spans_are_read(tmp_path: Path):
    event = {"name": EVENT, "timeUnixNano": 17 * 10**17, "attributes": record()["attributes"]}
    other = {"name": "exception", "timeUnixNano": "1", "attributes": []}
    found = read(tmp_path, logs(record(), {"body": {"stringValue": "hello"}}), "", spans(other, event))
    assert [(one.trace_id, one.span_id, one.name, one.value, one.judge) for one in found] == [
        (trace(1), f"{2:016x}", "Relevance", 0.5, "judge")
    ] * 2
    assert [one.at for one in found] == [1700000000.5, 1.7e9]
    assert "why" not in repr(found)
    assert read(tmp_path, logs(record()), judge="human")[0].judge == "human"


def test_what_a_memorys_own_spans_say_of_its_rewards_is_no_verdict(tmp_path: Path):
    event = {"name": EVENT, "timeUnixNano": 17 * 10**17, "attributes": record()["attributes"]}
    request = spans(event)
    request["resourceSpans"][0]["scopeSpans"][0]["scope"] = {"name": "cascade_memory"}
    assert read(tmp_path, request) == []


def test_an_attribute_without_a_value_does_not_end_the_file(tmp_path: Path):
    empty = record(attributes=[*record()["attributes"], {"key": "note", "value": {}}])
    assert [one.value for one in read(tmp_path, logs(empty), logs(record()))] == [0.5, 0.5]


def test_a_request_over_many_lines_is_read(tmp_path: Path):
    (found,) = read(tmp_path, json.dumps(logs(record()), indent=2))
    assert found.value == 0.5


@pytest.mark.parametrize(
    ("said", "value"),
    [
        ({"score_value": {"intValue": "1"}}, 1.0),
        ({"score_value": {"doubleValue": 0}, "score_label": {"stringValue": "fail"}}, 0.0),
        ({"score_label": {"stringValue": "pass"}}, "pass"),
        ({}, None),
    ],
)
def test_a_number_goes_before_a_label(tmp_path: Path, said: dict[str, Any], value: Any):
    (found,) = read(tmp_path, logs(record(attributes=attributes(name={"stringValue": "x"}, **said))))
    assert (found.value, type(found.value)) == (value, type(value))


def test_the_same_name_on_the_same_span_is_the_same_evaluation(tmp_path: Path):
    later = record(timeUnixNano="1700000009000000000")
    other = record(attributes=attributes(name={"stringValue": "Tone"}, score_value={"doubleValue": 1}))
    found = read(tmp_path, logs(record(), later, other, record(2)), logs(record(), scope="another judge"))
    assert [[one.id for one in found].index(one.id) for one in found] == [0, 0, 2, 3, 4]


@pytest.mark.parametrize(
    "bad",
    [
        "{",
        "nonsense",
        "[1]",
        "7",
        "null",
        '{"resourceLogs": 7}',
        '{"resourceLogs": [7]}',
        '{"resourceLogs": [{"scopeLogs": [{"logRecords": ["x"]}]}]}',
        json.dumps(logs(record(attributes=7))),
        json.dumps(logs(record(attributes=[{"key": 1}]))),
        json.dumps(logs(record(timeUnixNano="soon"))),
        json.dumps(logs(record(timeUnixNano="9" * 400))),
        json.dumps(logs(record(attributes=attributes(name={"stringValue": "x"}, score_value={"arrayValue": {}})))),
        "[" * 50_000,
        "\udcff",
    ],
)
def test_a_line_that_cannot_be_read_is_named_and_the_others_are_read(tmp_path: Path, bad: str):
    file = tmp_path / "evaluations.jsonl"
    good = json.dumps(logs(record()))
    file.write_bytes(f"{good}\n{bad}\n{good}\n".encode(errors="surrogateescape"))
    first, why, last = otlp.collect(file)
    assert (type(first), type(last)) == (Score, Score)
    assert isinstance(why, Unread)
    assert why.why.startswith("line 2 of evaluations.jsonl ")


def test_a_last_line_that_is_cut_off_is_named(tmp_path: Path):
    whole = json.dumps(logs(record()))
    assert read(tmp_path, whole, whole[:99], end="")[1:] == [Unread("line 2 of evaluations.jsonl is cut off")]
    assert len(read(tmp_path, whole, whole, end="")) == 2


def test_a_line_without_an_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(otlp, "LONGEST", 1_000)
    with pytest.raises(InvalidInput, match=r"line 2 of evaluations.jsonl has more than 1,000 bytes"):
        read(tmp_path, logs(record()), "x" * 5_000)
    with pytest.raises(InvalidInput, match=r"line 1 of zero has more than 1,000 bytes"):
        list(otlp.collect("/dev/zero"))


@pytest.mark.parametrize("path", [".", "no-such-file", "\0", 7])
def test_a_file_that_cannot_be_read_is_refused(path: Any):
    with pytest.raises(InvalidInput):
        list(otlp.collect(path))


def test_evaluations_become_rewards(tmp_path: Path):
    with opened() as memory:
        recalled(memory, 1)
        collected = memory.scores.collect(read(tmp_path, logs(record()), "{"))
        assert memory.episodes.rewards() == [(0.5, False)]
        assert collected.why == ("line 2 of evaluations.jsonl is no OTLP JSON (AttributeError)",)
