"""Texts that no honest browser sends: the extreme values as text, and what only the text of a request can be."""

from __future__ import annotations

import contextlib
import json
from datetime import datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

from extreme_values import EXTREME

_PLAIN = (str, bool, int, float, complex, Decimal, Fraction, datetime, timedelta)


def _as_text(value: Any) -> bytes | None:
    """Write a value as somebody would who types it into a form; None if it has no text."""
    if type(value) in _PLAIN:
        with contextlib.suppress(ValueError):  # more digits than Python writes
            return str(value).encode("utf-8", "surrogatepass")
        return b"1" + b"0" * 5_000
    if type(value) in (dict, list):
        with contextlib.suppress(TypeError, RuntimeError, ValueError):  # what JSON does not hold, or not so deep
            return json.dumps(value).encode()
    return None


TEXTS: dict[str, bytes] = {
    **{label: text for label, value in EXTREME.items() if (text := _as_text(value)) is not None},
    **{text: text.encode() for text in ("1e999", "-1e999", "+1", "0x10", "1_000", "1e5", "1.", "٣", "³", "９", "00", "-0")},
    **{text: text.encode() for text in ("Infinity", "NaN", "null", "true", "yes", "on", "None", "undefined", "everything")},
    **{
        text: text.encode()
        for text in ("1e308:5", "0.0:0", "0.0:999999999999999999", "-1e308:1", "1:9" + "9" * 18, ":", "1:1\n")
    },
    **{"many digits": b"9" * 5_000, "a fraction": b"0." + b"1" * 5_000, "a place": b"1e400:1", "deep JSON": b"[" * 3_900},
    **{"deep filter": b'{"a":' * 700 + b"1" + b"}" * 700, "deep $and": b'{"$and":[' * 300 + b'{"a":1}' + b"]}" * 300},
    **{"a huge number": b'{"a": 1' + b"0" * 5_000 + b"}", "1e999 in JSON": b'{"a": 1e999}', "NaN in JSON": b'{"a": NaN}'},
    **{
        "a surrogate in JSON": rb'{"a": "\ud800"}',
        "a surrogate as a key": rb'{"\ud800": 1}',
        "NUL in JSON": rb'{"a\u0000": "\u0000"}',
    },
    **{
        "an operator": b'{"a": {"$x": 1}}',
        "none of": b'{"a": {"$nin": []}}',
        "between": b'{"a": {"$gt": 1e308, "$lt": -1e308}}',
    },
    **{
        "another type": b'{"a": {"$in": [1, "1", 1.5, true]}}',
        "the same key": b'{"a": 1, "a": 2}',
        "BOM": b'\xef\xbb\xbf{"a": 1}',
    },
    **{
        "no UTF-8": b"a\xff\xfeb",
        "half a letter": b"\xf0\x9f\x98",
        "too long UTF-8": b"\xc0\xaf",
        "two surrogates": b"\xed\xa0\xbd\xed\xb8\x80",
    },
    **{
        "beyond Unicode": b"\xf4\x90\x80\x80",
        "noncharacter": b"\xef\xbf\xbf",
        "lines": b"a\r\nb\rc\n",
        "header": b"x\r\nSet-Cookie: a=b\r\n\r\n<b>",
    },
    **{
        "separators": "a\u2028b\u2029c\x85d".encode(),
        "controls": bytes(range(32)) + b"\x7f",
        "spaces": "\u00a0\u2003\u3000\u200b".encode(),
    },
    **{
        "right to left": "\u202e\u2066مرحبا\u2069".encode(),
        "tags": "\U000e0041\U000e007f\u00ad\ufeff".encode(),
        "marks": ("Z" + "\u0301" * 2_000).encode(),
    },
    **{
        "markup": b"<script>alert(1)</script><img src=x onerror=alert(1)>",
        "an attribute": b"\" autofocus onfocus=alert(1) x='",
        "an entity": b"&lt;&#x3c;&amp",
    },
    **{
        "a template": b"{{ 7 * 7 }}{% raw %}${7}",
        "formats": b"%s%n%d{0}{a.b}%(x)s",
        "SQL": b"'; DROP TABLE cases; --%_!",
        "words": b"a " * 3_000,
    },
    **{
        "up": b"../../../../etc/passwd",
        "up, encoded": b"..%2f..%2fetc%2fpasswd",
        "elsewhere": b"//evil.example/",
        "scheme": b"javascript:alert(1)",
    },
    **{
        "Windows": b"C:\\..\\con",
        "a slash": b"/",
        "dots": b"..",
        "a dot": b".",
        "slashes": b"/" * 3_000,
        "percent": b"%",
        "encoded": b"%00%ff%u0041",
    },
    **{
        "short of MB": b"x" * 1_000_000,
        "letters": ("\u00e9" * 600_000).encode(),
        "4 kB and 1": b"y" * 4_001,
        "2 kB and 1": b"z" * 2_001,
        "3 MB": b"w" * 3_000_000,
    },
}
