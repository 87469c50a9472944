"""What the name of a field says of its value, in metadata and in the arguments of tools."""

from __future__ import annotations

import json
from typing import Any

import pytest
from invented_secrets import Invented

from cascade_memory import CascadeMemory, Step, Trajectory
from cascade_memory.redaction.fields import kind_of_value, may_name_secret

WORD = "Zq7w" + Invented(51).of(12)
BEGINNINGS = [
    "$",
    "{",
    "[",
    "<",
    "%(",
    "your",
    "my ",
    "~/",
    "/",
    "@",
    "C:\\",
    "\\\\",
    "http://",
    "***",
    "\u200b",
    "{{",
    "${",
    "#",
]


def opened() -> CascadeMemory:
    return CascadeMemory(embedder="hashing", learn="inline")


@pytest.mark.parametrize("name", ["password", "dbPassword", "DB_PASSWD", "passphrase", "pwd", "Password:", "passwords", "密码"])
@pytest.mark.parametrize("beginning", BEGINNINGS)
def test_a_password_may_begin_and_end_like_a_placeholder(name: str, beginning: str):
    for end in ("", "}", ">", ")s", "]", "}}", "(", "é"):
        assert kind_of_value(name, f"{beginning}{WORD}{end}") == "password", end


@pytest.mark.parametrize(
    "value",
    [
        "$ecret!",
        "<3 you",
        "{hello",
        "[x",
        "your dog is nice",
        "$",
        "https://ann:pw@example.org",
        "text me",
        "/blue",
        "nonesuch",
    ],
)
def test_a_password_need_not_look_like_one(value: str):
    assert kind_of_value("password", value) == "password"


@pytest.mark.parametrize(
    "value",
    [
        *("${NAME}", "${db_password}", "$NAME", "$DB2_PASSWORD", "$env:PGPASSWORD", "${{ secrets.DB_PASSWORD }}", "$password"),
        *(
            "<name>",
            "<your own>",
            "<пароль>",
            "{x}",
            "{user_password1}",
            "{{x}}",
            "{{ vault.db_password }}",
            "%(password)s",
            "%s",
        ),
        *("***", "•••", "xxxx", "...", "None", "null", "required", "your_password", "YOUR_PASSWORD_HERE", "your password here"),
        *("[REDACTED]", "(hidden)", "[secret:password#1]", " [secret:password#12] ", "", "   ", "password", "changeit"),
        *("~/.pgpass", "/run/secrets/db", "./key.pem", "C:\\keys\\db.txt", "/var/run/secrets/example.org/service/token"),
        *("https://vault.example.org/v1/db", "postgresql://ann@db.example.org/cases", "op://vault/item/field"),
        "arn:aws:secretsmanager:eu-west-1:123456789012:secret:db-AbCdEf",
    ],
)
def test_complete_placeholders_and_places_are_no_passwords(value: str):
    assert kind_of_value("password", value) is None


@pytest.mark.parametrize(
    "name", ["token", "access_token", "api_key", "apiKey", "x-api-key", "secret", "client_secret", "api_keys"]
)
@pytest.mark.parametrize(
    "value",
    [
        *("{}", "{}é", "é{}", "\u200b{}", "{}\ufeff", "@{}", "/{}", "~/{}", "${}", "<{}>", "[{}]", "{{{}}}", "your{}", "{}("),
        *("Bearer {}", "Token {}", "  {}\n", "%({})s", "a" * 70 + "{}"),
    ],
)
def test_a_key_may_have_what_keys_seldom_have(name: str, value: str):
    assert kind_of_value(name, value.format(WORD)) in ("token", "api-key", "secret-value")


@pytest.mark.parametrize("name", ["token", "secret", "api_key"])
@pytest.mark.parametrize(
    "value",
    [
        *(
            "mug",
            "the garden key",
            "it is in drawer 12 of the old desk",
            "<eos>",
            "@john_smith",
            "@scope/package-name",
            "##ing",
        ),
        *("/usr/lib/python3.11/site-packages", "2026-05-01", "covid19", "antidisestablishment", "1234567890123456"),
        *("https://example.org/a/b/c1", "钥匙在花园里面埋着2026年五月", "ünïcödë-wörds-2026", "room 12b at the hotel"),
        *("Bearer [secret:token#1]", "[secret:token#1]", "${API_KEY}", "", "C:\\Users\\ann\\key2.txt"),
    ],
)
def test_ordinary_values_stay(name: str, value: str):
    assert kind_of_value(name, value) is None


@pytest.mark.parametrize("name", ["compass", "key", "tokens", "max_tokens", "tokenizer", "passport", "cookie_jar", "monkey"])
def test_other_names_announce_nothing(name: str):
    assert kind_of_value(name, WORD) is None


def test_pass_may_say_that_something_has_passed():
    assert kind_of_value("pass", "ok") is None
    assert kind_of_value("pass", f"${WORD}") == "password"


def headers(session: str) -> list[dict[str, Any]]:
    return [
        {"Cookie": f"sessionid={session}; theme=dark"},
        {"Set-Cookie": f"sid={session}; Path=/"},
        {"session_cookie": session},
        {"cookies": {"sid": session, "theme": "dark"}},
        {"cookies": [{"name": "sid", "value": session}]},
        {"headers": {"Authorization": session}},
        {"headers": {"authorization": f"Token {session}"}},
        {"Proxy-Authorization": f"Basic {session}"},
    ]


@pytest.mark.parametrize("given", headers(Invented(52).of(16)), ids=lambda one: json.dumps(one)[:24])
def test_the_value_of_a_header_is_read_as_in_a_text(given: dict[str, Any]):
    session = Invented(52).of(16)
    with opened() as memory:
        case = memory.cases.get(memory.add("call", Trajectory([Step(tool="get", arguments=given)])))
        assert isinstance(case.solution, Trajectory)
        assert session not in case.solution.to_json()
        assert "[secret:authorization#1]" in case.solution.to_json()
        assert case.solution.to_json().count("dark") == json.dumps(given).count("dark") * 2  # arguments, and the action
        flat = {name: value for name, value in given.items() if isinstance(value, str)}
        assert session not in json.dumps(memory.cases.get(memory.add("call", "done", metadata=flat)).metadata)
    assert all(may_name_secret(name) for name in flat)


def test_what_is_clean_stays_as_it_is():
    metadata = {"password": f"${WORD}", "token": f"@{WORD}", "Cookie": f"sid={WORD}; a=b", "secret": f"see {WORD}"}
    steps = [Step(tool="go", arguments={"metadata": metadata, "password": f"<{WORD}"})]
    with opened() as memory:
        case = memory.cases.get(memory.add("go", Trajectory(steps), metadata=metadata))
        again = memory.cases.get(memory.add(case.query, case.solution, metadata=case.metadata))
    assert (again.solution, again.metadata) == (case.solution, case.metadata)
