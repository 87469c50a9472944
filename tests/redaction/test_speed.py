"""The time that looking for secrets takes grows with the text, and not faster, whatever the text is."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest
from invented_secrets import Invented

import cascade_memory
from cascade_memory.redaction import redact_secrets

_EVERY = Invented().every()
# Beginnings of secrets that never become one, and secrets, again and again.
_REPEATED = [
    *("password=", 'password="', "password: ", "password is ", "passwordpassword: x9 ", "token=", "key=api_key=", "pass"),
    *("://", "://a:", "://a:b@", "%3a%2f%2fa%3a", r":\/\/a:", "authorization: bearer ", "bearer ", "--password ", "--", "--a-"),
    *("login a password ", "login ", "AK" + "IA", "sk-", "ey" + "J", "ey" + "Jaaaaaaaaaa.", "S" + "G.", "gh" + "p_", "sig="),
    *("-----BEGIN PRIVATE KEY-----", "-----BEGIN ", "-----END ", "-----BEGIN " + "A" * 40, "0123456789abcdef" * 2 + "-us"),
    *(
        "hooks.sl" + "ack.com/services/",
        "web" + "hooks/" + "1" * 18 + "/",
        ".atlas" + "v1.",
        "a" * 20 + " ",
        "x" * 30,
        "密码：",
    ),
    *(
        "\\",
        '"',
        "=",
        ":",
        "%",
        "&quot;",
        "[secret:",
        "[secret:password#1]",
        "%22password%22%3a%22",
        "\\n",
        "é" * 20,
        "\U0001f600",
    ),
    *(
        "cookie: ",
        "cookie: a=b; ",
        "cookie a=",
        "cookies={'a': ",
        "key\\\\",
        'password\\\\"',
        "\\u0022",
        "password\\u003d\\u0022",
    ),
    *("password%253d", "%5c%22", "%25", "%253a//a%253a", "&amp;", "password=&quot;a&amp;", "\\u5bc6\\u7801\\uff1a", "\u200b"),
    *(" -p", " -u a:", "curl -u a:", "mysql -p", "openssl -passin pass:", "curl ", "mysql -p'", "pass -p"),
    *("<password>", "password>", "password></", "&lt;password&gt;", "password: |\n", 'password="""\n  ', "password: str | "),
    *('"password", "value', '{"name": "password", "value": ', "password \n", "password[", "password(", 'password"] '),
    *(
        'password" { type = string ',
        "token string = ",
        ":$6$",
        "env password ",
        "LS0tLS1CRUdJTiB",
        "ey" + "Jaaaaaaaaaa..aaaaaaaa.",
    ),
    *("thin:a/", "password" + "\\" * 50, 'password""""""""'),
    *(one.text + " " for one in _EVERY[::9]),
]


def _seconds(text: str) -> float:
    best = 9.0
    for _ in range(3):
        began = time.process_time()
        redact_secrets(text)
        best = min(best, time.process_time() - began)
    return best


def _grows(piece: str, length: int) -> float:
    """Return how much longer a text of four times the length takes, per character."""
    short, long = ((piece * (size // len(piece) + 1))[:size] for size in (length, 4 * length))
    return _seconds(long) / (4 * max(_seconds(short), 0.0005))


@pytest.mark.slow
@pytest.mark.parametrize("piece", _REPEATED, ids=lambda piece: piece[:16].encode("unicode_escape").decode())
def test_repeating_anything_costs_no_more_per_character(piece: str):
    assert min(_grows(piece, 8_000), _grows(piece, 12_000)) < 2  # quadratic would be 4


@pytest.mark.slow
def test_many_different_secrets_cost_no_more_per_character():
    """Each is also looked for where nothing announces it, up to a number of them: the texts here have more than that."""
    some = Invented(2)
    text = "".join(f"password={some.of(12)} and on\n" for _ in range(6_000))
    assert min(_seconds(text) / (4 * _seconds(text[: len(text) // 4])) for _ in range(2)) < 2


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_nor_does_any_mixture_of_them(seed: int):
    some = random.Random(seed)
    pieces = some.choices([*_REPEATED, *(one.text for one in _EVERY)], k=12)
    cut = "".join(piece[: some.randint(1, len(piece))] for piece in pieces)
    assert min(_grows(cut, 8_000), _grows(cut, 12_000)) < 2


@pytest.mark.parametrize("kind", ["source", "log", "prose"])
def test_a_megabyte_takes_a_small_part_of_a_second(kind: str):
    some = random.Random(1)
    words = "put the cup on the table and open the fridge then take an apple to the sink".split()  # noqa: SIM905
    made = {
        "source": lambda: "".join(file.read_text() for file in sorted(Path(cascade_memory.__file__).parent.rglob("*.py"))),
        "log": lambda: "".join(
            f"12:00:{i % 60:02d} INFO request {some.getrandbits(128):032x} GET /items/{i} 200\n" for i in range(20_000)
        ),
        "prose": lambda: " ".join(some.choice(words) for _ in range(250_000)),
    }[kind]()
    text = made[:1_000_000]
    assert len(text) == 1_000_000
    assert _seconds(text) < 0.25  # 5 to 50 ms on the machine where it was measured
