"""Secrets in a text that was written into another one: in JSON in JSON, percent-encoded, in HTML, with escapes."""

from __future__ import annotations

import html
import json
import urllib.parse
from collections.abc import Callable

import pytest
from invented_secrets import Invented

from cascade_memory.redaction import redact_secrets

EVERY = Invented(41).every()
Encoding = Callable[[str], str]


def in_json(depth: int) -> Encoding:
    def encoded(text: str) -> str:
        for _ in range(depth):
            text = json.dumps({"said": text})
        return text

    return encoded


def in_percent(times: int) -> Encoding:
    def encoded(text: str) -> str:
        for _ in range(times):
            text = urllib.parse.quote(text, safe="")
        return text

    return encoded


def as_dotnet_writes(text: str) -> str:
    return '{"said":"' + "".join(f"\\u{ord(one):04X}" if one in "\"&+'<>`" else one for one in text) + '"}'


def as_jinja_writes(text: str) -> str:
    return "".join(f"\\u{ord(one):04x}" if one in "<>&'" else one for one in json.dumps({"said": text}))


def in_markup(text: str) -> str:
    for sign, name in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("'", "&#39;"), ('"', "&#34;")):
        text = text.replace(sign, name)
    return text


ENCODINGS: dict[str, Encoding] = {
    "JSON in JSON in JSON": in_json(3),
    "and in JSON": in_json(4),
    "percent": in_percent(1),
    "percent twice": in_percent(2),
    ".NET": as_dotnet_writes,
    "Jinja": as_jinja_writes,
    "HTML": html.escape,
    "HTML twice": lambda text: html.escape(html.escape(text)),
    "markup": in_markup,
    "&apos;": lambda text: text.replace("'", "&apos;").replace('"', "&quot;"),
    "JSON in HTML": lambda text: html.escape(json.dumps({"said": text})),
    "HTML in JSON": lambda text: json.dumps({"said": html.escape(text)}),
    "JSON in percent": lambda text: in_percent(1)(json.dumps({"said": text})),
    "log of nginx": lambda text: text.replace('"', "\\x22"),
}


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_every_kind_is_found_in_every_encoding(encoding: str):
    for one in EVERY:
        for text in (one.text, f"a {one.text} b"):
            clean = redact_secrets(ENCODINGS[encoding](text))
            assert one.secret not in clean, one.kind
            assert one.secret.rstrip("!")[-10:] not in clean, one.kind
            assert redact_secrets(clean) == clean, one.kind


# The sign is in the middle of a password: nothing behind it may be left.
@pytest.mark.parametrize("encoding", [one for one in ENCODINGS if one not in ("markup", "&apos;")])
def test_no_sign_cuts_a_password_in_quotes_short(encoding: str):
    before, after = Invented(42).of(5), Invented(43).of(6)
    for sign in "&'<+=%/`;@ ~é!":
        text = json.dumps({"user": "ann", "password": before + sign + after, "city": "Paris"}, ensure_ascii=False)
        clean = redact_secrets(ENCODINGS[encoding](text))
        assert before not in clean, sign
        assert after not in clean, sign
        assert "Paris" in clean, sign


@pytest.mark.parametrize("sign", ['"', "\\"])
@pytest.mark.parametrize("depth", [0, 1, 2, 3])
def test_nor_does_a_quotation_mark_of_its_own_in_json(sign: str, depth: int):
    before, after = Invented(42).of(5), Invented(43).of(6)
    clean = redact_secrets(in_json(depth)(json.dumps({"password": before + sign + after, "city": "Paris"})))
    assert before not in clean
    assert after not in clean
    assert "Paris" in clean


@pytest.mark.parametrize("times", [1, 2, 3])
def test_a_form_that_is_encoded_as_a_whole_ends_at_its_own_signs(times: int):
    before, after = Invented(44).of(5), Invented(45).of(6)
    form = urllib.parse.urlencode({"password": f"{before}&{after}", "city": "Paris"})
    clean = redact_secrets(in_percent(times)(form))
    assert before not in clean
    assert after not in clean
    assert "Paris" in clean


@pytest.mark.parametrize(
    "text",
    [
        "'password': b'{}'",
        'password=b"{}"',
        "password = u'{}'",
        "password\u00a0=\u00a0{}",
        "password\u2009:\u2009'{}'",
        "Password\u200b: {}",
        "password:\u200b {}",
        "password\u00a0is\u00a0{}",
        "password=&#x27;{}&#x27;",
        "\\u5bc6\\u7801\\uff1a{}",
        "contrase\\u00f1a: {}",
    ],
)
def test_what_stands_beside_the_sign_hides_nothing(text: str):
    word = Invented(46).of(12)
    assert word not in redact_secrets(text.format(word))


@pytest.mark.parametrize("times", [2, 3])
@pytest.mark.parametrize("cut", [False, True], ids=["whole", "cut"])
def test_a_private_key_is_found_however_often_it_is_encoded(times: int, cut: bool):
    one = Invented(47).private_key()
    text = one.text[: one.text.index(one.secret) + 60] if cut else one.text
    clean = redact_secrets(in_percent(times)(text))
    assert clean == "[secret:private-key#1]"


# -- cookies -----------------------------------------------------------------------------------------------------------

SESSION = Invented(48).of(32)


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (f"Cookie: sessionid={SESSION}", "Cookie: sessionid=*"),
        (f"Cookie: theme=dark; sid={SESSION}; lang=en-US", "Cookie: theme=dark; sid=*; lang=en-US"),
        (
            f"Set-Cookie: sid={SESSION}; Expires=Wed, 21 Oct 2026 07:28:00 GMT; Path=/; Max-Age=31536000",
            "Set-Cookie: sid=*; Expires=Wed, 21 Oct 2026 07:28:00 GMT; Path=/; Max-Age=31536000",
        ),
        (f"curl -H 'Cookie: a=1; sid={SESSION}' https://example.org", "curl -H 'Cookie: a=1; sid=*' https://example.org"),
        (f"curl --cookie sid={SESSION} https://example.org", "curl --cookie sid=* https://example.org"),
        (f'{{"Cookie": "sid={SESSION}", "city": "Paris"}}', '{"Cookie": "sid=*", "city": "Paris"}'),
        (f"cookies={{'sid': '{SESSION}', 'theme': 'dark'}}", "cookies={'sid': '*', 'theme': 'dark'}"),
        (f'document.cookie = "sid={SESSION}"', 'document.cookie = "sid=*"'),
    ],
)
def test_what_a_machine_has_made_in_a_cookie_is_found(text: str, left: str):
    assert redact_secrets(text) == left.replace("*", "[secret:authorization#1]")


@pytest.mark.parametrize(
    "text",
    [
        "Cookie: theme=dark; lang=en-US; consent=2026-05-01T12:00:00Z; width=1920",
        "take the cookie: it is on plate 3; the cookie id=cookie 12",
        "cookies = {'plate': 'cookie with 200g of chocolate'}",
        "cookie set for request id=9f8e7d6c5b4a3f2e1d",
        "def read(cookie: str = default_cookie_2) -> Cookie: ...",
    ],
)
def test_ordinary_cookies_stay(text: str):
    assert redact_secrets(text) == text
