"""Finds passwords after options of well-known programs: ``curl -u ann:...``, ``mysql -p...``, ``sshpass -p ...``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from cascade_memory.redaction import values
from cascade_memory.redaction.hints import BACK
from cascade_memory.redaction.kinds import PASSWORD

_OPTION = re.compile(
    r" -(?:(?P<option>passin|passout|pass|storepass|keypass|u|p|a|w|k)|-(?P<long>user|proxy-user|auth))"
    r"(?P<between>[ \t=]{0,4})(?P<quote>\\{0,7}[\"'])?"
)
_TO_QUOTE, _TO_SPACE = re.compile(r"[^\"'\\\n]{4,256}"), re.compile(r"[^\s\"'\\`;|&<>()]{4,256}")
_ENDS = re.compile(r"[\n|;&`]")  # of a command
_NO_VALUE = re.compile(r"-|assw|ort\b|rotocol|[0-9]{1,5}\b")  # after -p: it is another option, or a port
_USER, _PASS, _NOTHING = re.compile(r"[^\s:\"'\\]{1,64}:"), re.compile("pass:"), re.compile("")


class _Use(NamedTuple):
    """An option for a password: its programs, whether a space precedes its value, what precedes the password in the value."""

    programs: re.Pattern[str]
    spaced: bool | None = None  # None: both are possible
    after: re.Pattern[str] = _NOTHING


_CURL = _Use(re.compile(r"\bcurl[ \t]"), after=_USER)
_HTTPIE = _Use(re.compile(r"\bhttps?[ \t]"), spaced=True, after=_USER)
_KEYTOOL, _OPENSSL = _Use(re.compile(r"(?:keytool|jarsigner)[ \t]"), spaced=True), re.compile(r"openssl[ \t]")
_USES: dict[str, tuple[_Use, ...]] = {
    **dict.fromkeys(("u", "user", "proxy-user"), (_CURL,)),
    **dict.fromkeys(("passin", "passout", "pass"), (_Use(_OPENSSL, spaced=True, after=_PASS),)),
    **dict.fromkeys(("storepass", "keypass"), (_KEYTOOL,)),
    "k": (_Use(_OPENSSL, spaced=True),),
    "auth": (_HTTPIE,),
    "a": (_Use(re.compile(r"redis-cli[ \t]"), spaced=True), _HTTPIE),
    "w": (_Use(re.compile(r"ldap(?:search|add|modify|delete|whoami|passwd|modrdn|compare)[ \t]"), spaced=True),),
    "p": (
        _Use(re.compile(r"(?:mysql(?:dump|admin|import|show|check)?|mariadb(?:-dump)?|\b7za?|sshpass)[ \t]"), spaced=False),
        _Use(
            re.compile(
                r"sshpass[ \t]|\b(?:(?:docker|podman|buildah|skopeo|helm registry|az|oc|cf|nerdctl|oras)[ \t]login"
                r"|mongo(?:sh|dump|restore|import|export)?[ \t]|sqlcmd[ \t]|bcp[ \t]|(?:un)?zip[ \t])"
            ),
            spaced=True,
        ),
    ),
}


def find(text: str, low: str) -> Iterator[tuple[int, int, str]]:
    """Yield (start, end, kind) of the passwords after options."""
    for found in _OPTION.finditer(low):
        start = _value_at(text, low, found)
        if start is not None:
            value = (_TO_SPACE if found["quote"] is None else _TO_QUOTE).match(text, start)
            if value is not None and values.is_free(value.group()) and _NO_VALUE.match(value.group()) is None:
                yield start, value.end(), PASSWORD


def _value_at(text: str, low: str, found: re.Match[str]) -> int | None:
    """Return where the password begins; None if the option is not one for a password of the program before it."""
    option, spaced = found["option"] or found["long"], bool(found["between"])
    uses = _USES.get(option, ())
    begin = max(0, found.start() - BACK)
    if uses:
        for end in _ENDS.finditer(low, begin, found.start()):
            begin = end.end()
    for use in uses:
        if use.spaced is not None and use.spaced != spaced:
            continue
        if option == "p" and not spaced and text[found.start("option")] == "P":  # the port of a database
            continue
        if (before := use.after.match(low, found.end())) is not None and use.programs.search(low, begin, found.start() + 1):
            return before.end()
    return None
