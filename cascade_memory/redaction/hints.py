"""Finds out quickly that most texts hold no secret: they have no long run of characters, and no word that announces one."""

from __future__ import annotations

import re

RUN = 20  # every token that is known by its form has an unbroken run of so many letters, digits, _ and -
_IN_RUN = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-")
RUNS = bytes(120 if code in _IN_RUN else 32 for code in range(256))  # "x" or a space
LONG = b"x" * RUN
PERCENT = "%(?:25){0,3}"  # a percent sign, which may be encoded itself, as in %2522
LEAST = 8  # characters of a text that can hold a secret and its sign
_FEW, _BEFORE = 16, 40  # signs of assignment, and the characters before each that may name what is assigned
_WITH_RUN = (("begin", b"-----begin"), ("bearer", b"bearer"))
# In lowercase. The first letters of a word are enough, since only what is found here is looked at closely.
_BEFORE_SIGNS = tuple((word, word.encode()) for word in ("pwd", "kennwort", "contrase", "secret", "token", "key", "cookie"))
# These are not ASCII, so their bytes are looked for as they are; none of these scripts but Cyrillic has capital letters.
FOREIGN = ("密码", "密碼", "口令", "パスワード", "비밀번호", "пароль", "Пароль")
# Patterns of the other names of secrets: what stands before "key", and the words that begin like "password".
BEFORE_KEY = (
    r"(?:api|access|secret|private|account|auth|encryption|signing|master|client|app|application|consumer|shared|storage|"
    r"license|service|admin|session|webhook|deploy|write|read)[_\-. ]?"
)
# No compass. It begins with letters, so that a text is searched for them at the speed of a plain search.
_NOT_AFTER = "".join(f"(?<!{one}pass)" for one in ("com", "by", "tres", "sur", "over", "under"))
PASS = f"pass(?:w(?:or[dt]|d)|phrase|code|{_NOT_AFTER})[0-9]?"
_FOREIGN_BYTES = tuple(word.encode() for word in FOREIGN)
_ESCAPED_BYTES = tuple(sorted({f"\\u{ord(word[0]):04x}".encode() for word in FOREIGN}))  # JSON is mostly written in ASCII
_OPTION = re.compile(rb" -(?:[uawk][ \t=\"'\\a-z]|p[^a-z]|p[a-z]|storep|keyp|-user|-proxy-u|-auth)")
BACK = 300  # characters between a program and its option
# Programs with an option for a password; each is enough to look closely.
_PROGRAMS = (
    *(b"curl", b"mysql", b"mariadb", b"redis-cli", b"ldap", b"openssl", b"keytool", b"jarsigner", b"mongo", b"sqlcmd"),
    *(b"sshpass", b" login", b"zip ", b"7z", b"bcp ", b"http "),
)
_ASCII = bytes(range(128))
_WIDE_COLON = "：".encode()


def may_hold_secret(text: str) -> bool:
    """Say whether a text has anything that must be looked at closely; most texts have nothing."""
    if len(text) < LEAST:
        return False
    raw = text.encode("utf-8", "replace")  # a lone surrogate becomes one character
    has_run = LONG in raw.translate(RUNS)
    return has_run or bool(words_in(raw.lower(), has_run=False))


def words_in(low: bytes, *, has_run: bool) -> list[str]:
    """Return the words of a lowercased text that may announce a secret; none in most texts. It searches as little as it can."""
    words = ["pass"] if b"pass" in low else []
    if has_run:  # a private key and a bearer's token have one
        words += [word for word, raw in _WITH_RUN if raw in low]
    if b"-" in low and _has_command(low):
        words.append("command")
    if (has_run or words) and b"--" in low:
        words.append("--")
    percent, foreign = b"%" in low and (b"%3" in low or b"%25" in low), not low.isascii()
    escaped = b"\\" in low and (b"u003" in low or b"\\x3" in low)
    in_ascii = b"\\u" in low and any(word in low for word in _ESCAPED_BYTES)
    if b":" not in low and b"=" not in low and not (percent or escaped or in_ascii) and not (foreign and _WIDE_COLON in low):
        if b"<" in low and b"</" in low:
            words += [word for word, raw in _BEFORE_SIGNS if raw in low]  # in a tag
        return words  # all else needs a sign of assignment, or is an address
    near = low if percent or escaped or foreign else _before_signs(low)
    words += [word for word, raw in _BEFORE_SIGNS if raw in near]
    if b"uthorization" in near:
        words.append("authorization")
    if (b"$" in low and b":$" in low) or (percent and b"24" in low):
        words.append("hash")
    if b"@" in low or (percent and b"40" in low):
        words.append("@")
    if in_ascii or (foreign and _has_foreign(low)):
        words.append("foreign")
    return words


def _has_foreign(low: bytes) -> bool:
    """Say whether a word for a password may occur in another script. ASCII, nearly all of most texts, is left out first."""
    rest = low.translate(None, _ASCII)
    return any(word in rest for word in _FOREIGN_BYTES)


def _has_command(low: bytes) -> bool:
    """Say whether a program stands before an option that may be one for a password."""
    for option in _OPTION.finditer(low):
        before = low[max(0, option.start() - BACK) : option.start() + 1]
        if any(program in before for program in _PROGRAMS):
            return True
    return False


def _before_signs(low: bytes) -> bytes:
    """Return only what stands before the signs of assignment, to search less; if there are many, return the whole text."""
    parts: list[bytes] = []
    for sign in b":=":
        at = low.find(sign)
        while at >= 0:
            if len(parts) == _FEW:
                return low
            parts.append(low[max(0, at - _BEFORE) : at])
            at = low.find(sign, at + 1)
    return b" ".join(parts)
