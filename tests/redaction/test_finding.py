"""What is a secret in a text, and what only looks like one."""

from __future__ import annotations

import json
import os
import urllib.parse
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from invented_secrets import Invented, Planted

import cascade_memory
from cascade_memory.redaction import KINDS, redact_secrets
from cascade_memory.redaction.finding import find

EVERY = Invented().every()
NAMES = [f"{number} {one.kind}" for number, one in enumerate(EVERY)]
TOKENS = [one for one in Invented(1).tokens() if one.kind != "private-key"]


def kinds_in(text: str) -> list[str]:
    return [one.kind for one in find(text)]


def test_there_are_at_least_thirty_kinds_and_each_is_tried_here():
    assert len(KINDS) >= 30
    assert {one.kind for one in EVERY} == set(KINDS)


@pytest.mark.parametrize("one", EVERY, ids=NAMES)
def test_every_kind_is_found_and_nothing_of_it_is_left(one: Planted):
    for text in (one.text, f"before {one.text}", f"{one.text}\nafter", f"before\n{one.text}\nafter"):
        assert one.kind in kinds_in(text)
        clean = redact_secrets(text)
        assert one.secret not in clean
        assert one.secret[-10:] not in clean
        assert f"[secret:{one.kind}#1]" in clean


@pytest.mark.parametrize("one", EVERY, ids=NAMES)
def test_it_is_found_in_json_in_json_in_json_and_in_a_percent_encoded_text(one: Planted):
    wrapped = json.dumps({"said": f"a {one.text} b"}, ensure_ascii=False)
    for text in (
        wrapped,
        json.dumps(wrapped, ensure_ascii=False),
        urllib.parse.quote(f"a {one.text} b"),
        urllib.parse.quote_plus(one.text, safe=""),
    ):
        assert one.secret not in redact_secrets(text), text
        assert one.secret.rstrip("!")[-10:] not in redact_secrets(text), text


@pytest.mark.parametrize("one", TOKENS, ids=lambda one: one.kind)
@pytest.mark.parametrize(
    "around", ["密钥{}在这里", "キー{}です", "열쇠{}입니다", "ключ {} вот", "“{}”", "\\n{}\\n", "%3D{}%26", "\\u003d{}"]
)
def test_a_token_is_found_beside_any_script_and_any_escape(one: Planted, around: str):
    if around.startswith("\\") and one.kind in ("mailchimp-key", "terraform-token", "telegram-token"):
        pytest.skip("what stands before the sign of these belongs to them: an escape cannot be told apart from it")
    assert one.secret not in redact_secrets(around.format(one.text))


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\\n", "\\r\\n", "\\\\n", "%0A"])
@pytest.mark.parametrize("kind", ["RSA ", "EC ", "OPENSSH ", "ENCRYPTED ", ""])
def test_a_private_key_is_found_however_its_lines_are_broken(newline: str, kind: str):
    one = Invented(3).private_key(newline=newline, kind=kind)
    assert redact_secrets(f"here: {one.text} and on") == "here: [secret:private-key#1] and on"
    cut = one.text[: one.text.index(one.secret) + 70]
    clean = redact_secrets(f"{cut}\n[... 900 characters cut ...]")
    assert one.secret not in clean
    assert clean.startswith("[secret:private-key#1]")


def test_the_same_key_broken_in_another_way_is_the_same_secret():
    one = Invented(4).private_key()
    clean = redact_secrets(f"{one.text} and {one.text.replace(chr(10), chr(92) + 'n')}")
    assert clean == "[secret:private-key#1] and [secret:private-key#1]"


def test_secrets_of_a_text_are_told_apart_and_the_same_one_is_the_same():
    first, second = (Invented(seed).of(36) for seed in (5, 6))
    text = f"gh{'p'}_{first} gh{'p'}_{second} gh{'p'}_{first}"
    assert redact_secrets(text) == "[secret:github-token#1] [secret:github-token#2] [secret:github-token#1]"


def test_a_password_is_found_again_where_nothing_announces_it():
    word = Invented(7).of(12)
    assert redact_secrets(f"password={word}; then type {word} into the field").count("[secret:password#1]") == 2


def test_numbers_go_on_after_those_that_a_text_has_already():
    token = "gh" + "p_" + Invented(8).of(36)
    assert redact_secrets(f"[secret:github-token#3] and {token}") == "[secret:github-token#3] and [secret:github-token#4]"


ORDINARY = [
    "My password: I forgot it. Please reset my password",
    "password: required, 8-20 characters",
    "Enter your password=your_password and token=YOUR_TOKEN",
    "def login(user: str, password: str, token: str | None = None) -> None: ...",
    "connect(user=user, password=password, api_key=settings.api_key)",
    'api_key = os.environ["API_KEY"]; token = get_token(request)',
    "SELECT password, token FROM users WHERE password = password2",
    "the token: 'the', next token: 'of'; max_tokens=1000; tokenizer=AutoTokenizer.from_pretrained",
    "The secret: practise every day. The key: patience. Bearer of good news: none",
    "scikit-learn sk-learn-compatible-estimators-with-long-names task-force risk-assessment-of-something-big",
    "https://example.org:8080/path/to/a/page@2x.png and mailto:ann@example.org",
    "http://user:password@localhost:5432/db, postgres://user:${PASSWORD}@host/db, redis://:<password>@host",
    "commit 9fceb02d0ae598e95dc970b74767f19372d61af8 sha256:" + "0123456789abcdef" * 4,
    "550e8400-e29b-41d4-a716-446655440000 and ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789",
    "-----BEGIN PUBLIC KEY-----\nMIIBIjANBgkq\n-----END PUBLIC KEY-----",
    "-----BEGIN CERTIFICATE-----\nMIIBIjANBgkq\n-----END CERTIFICATE-----",
    "PWD=/home/ann/project; pwd: /srv/data1; keyword=value1234567890; monkey=chimpanzee2000000",
    "primary_key=True, foreign_key='users.id12345678', sort_key: last_name_2",
    '{"type": "password", "name": "password", "password": "string", "token": null, "secret": true}',
    "pass: 12 of 14 tests, passengers: 210, compass=north, bypass=true, overpass: 'highway1', compass=\"northwest\"",
    "take the key: red key 1 from the drawer 2",
    "%3D%26%2F percent encoded",
    "密码：忘记了 口令：请输入",
]


@pytest.mark.parametrize("text", ORDINARY)
def test_ordinary_texts_stay_as_they_are(text: str):
    assert redact_secrets(text) == text


ENCODED = [
    "\\u0022",
    '\\"',
    "&quot;",
    "&#x27;",
    "%22",
    "%2522",
    "%253a",
    "Cookie: sid=",
    "cookies={'a': '",
    "b'",
    "\u200b",
    "key",
    "'",
]


@pytest.mark.slow
@given(
    st.lists(
        st.sampled_from(
            [*(one.text for one in EVERY), *ORDINARY, "密码", "\\n", '"', "=", ":", " ", "[secret:password#1]", *ENCODED]
        )
    )
)
@settings(max_examples=300, deadline=None)
def test_what_is_clean_stays_as_it_is(parts: list[str]):
    clean = redact_secrets("".join(parts))
    assert redact_secrets(clean) == clean


@given(st.text())
@settings(max_examples=200, deadline=None)
@pytest.mark.long
def test_any_text_can_be_looked_at(text: str):
    assert isinstance(redact_secrets(text), str)
    assert isinstance(redact_secrets(f"password={text}"), str)


def test_a_lone_surrogate_does_not_move_what_follows():
    token = "gh" + "p_" + Invented(9).of(36)
    assert redact_secrets(f"\ud800é {token} \ud800") == "\ud800é [secret:github-token#1] \ud800"


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for one in value.values():
            yield from _texts(one)
    elif isinstance(value, list):
        for one in value:
            yield from _texts(one)


def _of_streams(folder: Path) -> list[str]:
    files = sorted(folder.glob("*.jsonl"))
    return [
        text for file in files for line in file.read_text(encoding="utf-8").splitlines() for text in _texts(json.loads(line))
    ]


def test_no_text_of_the_stream_in_the_package_is_changed():
    texts = _of_streams(Path(cascade_memory.__file__).parent / "evaluation" / "bundled")
    assert len(texts) > 4_000
    assert [text for text in texts if find(text)] == []


@pytest.mark.data
@pytest.mark.skipif("CASCADE_DATA" not in os.environ, reason="CASCADE_DATA names no folder")
def test_false_alarms_are_rare_on_the_texts_of_all_streams():
    texts = _of_streams(Path(os.environ["CASCADE_DATA"]))
    hit = [text for text in texts if find(text)]
    assert len(texts) > 10_000
    assert len(hit) <= 0.001 * len(texts), hit


@pytest.mark.parametrize(
    ("text", "found"),
    [('pass = "correcthorse"', True), ("pass=correcthorse", False), ("pass=correct7horse", True)],
)
def test_a_word_that_may_mean_a_password_needs_quotes_or_a_digit(text: str, found: bool):
    assert ("password" in kinds_in(text)) is found
