"""Rewards that compare with a label: right, wrong, malformed and adversarial replies."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cascade_memory.evaluation.judging.answers import answer_in, boxed, code_in, json_in
from cascade_memory.evaluation.judging.labels import every_defendant, every_entity, exact, jaccard, normal

LABELS = ["card arrival", "lost or stolen card", "Guillain-Barré syndrome", "PTP"]


@pytest.mark.parametrize(
    ("reply", "inside"),
    [
        (r"\boxed{PTP}", "PTP"),
        (r"\boxed {PTP}", "PTP"),
        (r"\\boxed{PTP}", "PTP"),
        (r"\fbox{a} and \boxed{PTP}", "PTP"),
        (r"\fbox{PTP}", "PTP"),
        (r"Thus \boxed PTP.", "PTP"),
        (r"\boxed{\textsf{\emph{PTP}}}", "PTP"),
        (r"\boxed{\(\texttt{PTP}\)}", "PTP"),
        (r"\boxed{card\ arrival}", "card arrival"),
        (r"$\boxed{\text{PTP}}$", "PTP"),
        (r"$$\boxed{\mathrm{PTP}}$$", "PTP"),
        (r"\boxed{\textbf{\text{PTP}}}", "PTP"),
        (r"\boxed{$PTP$}", "PTP"),
        ("\\boxed{\n  PTP\n}", "PTP"),
        (r"**\boxed{PTP}**", "PTP"),
        (r"\boxed{card\_arrival}", "card_arrival"),
        (r"\boxed{a {nested {b}} c}", "a {nested {b}} c"),
        (r"\boxed{an escaped \} brace}", "an escaped } brace"),
        (r"\boxed{first} then \boxed{last}", "last"),
        (r"\boxed{last} then \boxed{never closed", "last"),
        (r"\boxed{\text{a} and \text{b}}", r"\text{a} and \text{b}"),
        (r"\boxed{}", ""),
        (r"\boxed{never closed", None),
        ("boxed{PTP}", None),
        ("PTP", None),
        ("", None),
    ],
)
def test_boxes_of_every_shape(reply, inside):
    assert boxed(reply) == inside


def test_without_a_box_the_reply_is_the_answer():
    assert answer_in("  PTP \n") == "PTP"
    assert exact("PTP", "PTP") == 1.0
    assert exact("I think that it is PTP", "PTP") == 0.0


@pytest.mark.parametrize("label", LABELS)
def test_exact_rewards_the_label_in_any_dress(label):
    for dress in ("{}", "'{}'", '"{}".', "  {}\n", "*{}*"):
        assert exact(rf"So: \boxed{{{dress.format(label)}}}", label) == 1.0
        assert exact(rf"\boxed{{{dress.format(label.upper())}}}", label.replace(" ", "_")) == 1.0


@pytest.mark.parametrize(
    "reply",
    [
        "",
        r"\boxed{}",
        r"\boxed{lost or stolen card}",
        r"\boxed{card arrival, lost or stolen card}",
        r"\boxed{card arrival} \boxed{PTP}",  # the last word counts
        r"\boxed{card arrival \boxed{PTP}}",
        " ".join(LABELS),
        "card arrival" * 100_000,
        "\x00",
        "{" * 100_000,
        "\\boxed{" * 20_000,
    ],
)
def test_exact_rewards_nothing_else(reply):
    assert exact(reply, "card arrival") == 0.0


def test_nothing_is_not_right_where_the_label_is_empty():
    assert exact("", "") == 0.0
    assert every_defendant("{}", {}) == 0.0
    assert every_entity("[]", []) == 0.0
    assert jaccard("", []) == 0.0


def test_jaccard_of_medications():
    label = ["Aspirin", "Heparin", "Insulin"]
    assert jaccard(r'\boxed{["aspirin", "heparin", "insulin"]}', label) == 1.0
    assert jaccard(r"\boxed{aspirin; Heparin}", label) == 1.0
    assert jaccard("restart the spooler", "Restart the spooler") == 1.0  # one text is one item
    assert jaccard("r, e, s, t", "rest") == 0.0
    assert jaccard("- Aspirin\n- Metformin\n- Insulin", label) == 1.0
    assert jaccard(r"\boxed{aspirin, a, b}", label) == 0.0  # 1 of 5: not more than a fifth
    assert jaccard(r"\boxed{aspirin, a}", label) == 1.0  # 1 of 4
    everything = ", ".join([*label, *(f"drug {number}" for number in range(500))])
    assert jaccard(rf"\boxed{{{everything}}}", label) == 0.0
    assert jaccard(r"\boxed{aspirin, aspirin, ASPIRIN, a, b}", label) == 0.0  # said thrice is said once
    for malformed in ("", "[", '{"drugs": ["aspirin"]}', "[[1, 2], null]", "null"):
        assert jaccard(malformed, label) == 0.0


def test_charges_of_every_defendant():
    label = {"Chen": ["robbery"], "Liu": ["theft", "fraud"]}
    right = json.dumps(label)
    assert every_defendant(right, label) == 1.0
    assert every_defendant(f"Thus:\n```json\n{right}\n```", label) == 1.0
    assert every_defendant(rf"\boxed{{{right}}}", label) == 1.0
    assert every_defendant('{"liu": ["Fraud", "theft"], "CHEN": "robbery"}', label) == 1.0
    for wrong in (
        {"Chen": ["robbery"]},
        {**label, "Wang": ["theft"]},
        {"Chen": ["robbery"], "Liu": ["theft"]},
        {"Chen": ["robbery", "theft"], "Liu": ["theft", "fraud"]},
        {"Chen": ["theft", "fraud"], "Liu": ["robbery"]},
        {"Chen": {"robbery": 1}, "Liu": ["theft", "fraud"]},
    ):
        assert every_defendant(json.dumps(wrong), label) == 0.0
    for malformed in ("", "{", "Chen: robbery", "[]", "null", '"Chen"', "{" * 50_000, "[" * 50_000):
        assert every_defendant(malformed, label) == 0.0
    assert every_defendant('{"Chen": "robbery", "chen": "theft", "Liu": ["theft", "fraud"]}', label) == 0.0


def test_penalties_are_compared_as_they_are_said():
    assert every_defendant('{"Chu": "6 months"}', {"Chu": "6 months"}) == 1.0
    assert every_defendant('{"Chu": 6}', {"Chu": "6"}) == 1.0
    assert every_defendant('{"Chu": "60 months"}', {"Chu": "6 months"}) == 0.0


def test_sentiments_of_every_entity():
    label = [{"entity": "Yuan", "label": "negative"}, {"entity": "Dollar", "label": "neutral"}]
    for right in (
        label,
        label[::-1],
        {"Yuan": "Negative", "dollar": "neutral"},
        [{"entity": "yuan", "sentiment": "negative"}, {"entity": "dollar", "sentiment": "neutral"}],
    ):
        assert every_entity(json.dumps(right), label) == 1.0
    for wrong in (
        label[:1],
        [*label, {"entity": "Euro", "label": "neutral"}],
        [*label, {"entity": "Yuan", "label": "positive"}],  # both ways at once
        [*label, label[0]],
        {"Yuan": "neutral", "Dollar": "negative"},
        [{"entity": "Yuan"}],
        [["Yuan", "negative"]],
        {},
        [],
    ):
        assert every_entity(json.dumps(wrong), label) == 0.0
    assert every_entity('{"entity": "Yuan", "label": "negative"}', label[:1]) == 1.0
    for malformed in ("", "negative", "[{", '[{"entity": null}]'):
        assert every_entity(malformed, label) == 0.0


@pytest.mark.long
def test_a_runaway_reply_takes_no_time():
    deep = "\\boxed{" + "\\text{" * 10_000 + "}" * 10_001
    for reply in (
        deep,
        "```" + " " * 300_000,
        "[" * 600_000,
        "{[" * 300_000,
        "```sql\n" * 100_000,
        "\\boxed{" * 30_000,
        "\\boxed{{" + "}{" * 150_000,
    ):
        began = time.process_time()
        for reward in (lambda one: exact(one, "a"), lambda one: jaccard(one, ["a"]), lambda one: every_entity(one, [])):
            assert reward(reply) == 0.0
        code_in(reply, "sql")
        assert time.process_time() - began < 10


@pytest.mark.long
@given(st.text())
def test_whatever_is_said_there_is_a_reward(reply):
    assert exact(reply, "a label") in (0.0, 1.0)
    assert jaccard(reply, ["a label"]) in (0.0, 1.0)
    assert every_defendant(reply, {"x": "y"}) == every_entity(reply, [{"entity": "x", "label": "y"}]) == 0.0
    json_in(reply)


@pytest.mark.long
@given(st.text(min_size=1).filter(lambda text: bool(normal(text)) and not set(text) & set("{}\\$")))
def test_a_label_in_a_box_is_right(label):
    assert exact(rf"\boxed{{{label}}}", label) == 1.0
