"""Reads the response of an OpenAI-compatible server: a reply, a temporary failure, or an error that the user must fix."""

from __future__ import annotations

import email.utils
import json
import re
import time
from typing import Any, cast

from cascade_memory.errors import ModelUnavailable
from cascade_memory.evaluation.model.asking import Passing
from cascade_memory.evaluation.model.chat import PromptTooLong, Reply, ToolCall

_REMEDIES = {
    400: "the server refuses the request: leave out a setting that it does not support, or show fewer or shorter cases",
    401: "set OPENAI_API_KEY to a key that this server accepts",
    402: "the account has no credit left",
    403: "the key may not use this model",
    404: "check the base URL, which often ends in /v1, and the name of the model",
    422: "the server refuses the request: leave out a setting that it does not know",
}
_PASSING = {408, 409, 425, 429}
# What servers say: OpenAI and vLLM of a "maximum context length" or "model length", llama.cpp of a "context size" or "window",
# TGI of tokens that "must be <=", SGLang of an input that is "longer than", others of a prompt that is "too long".
_TOO_LONG = re.compile(
    r"context[ _]?(?:length|size|window)|exceed_context|max(?:imum)? (?:model|sequence|input|prompt)[ _]len(?:gth)?"
    r"|(?:prompt|input|request)[^.]{0,60}(?:too long|too large|longer than)|too many tokens"
    r"|tokens?`?[^.]{0,80}(?:must be <=|exceeds? )",
    re.IGNORECASE,
)
_MOST_CALLS, _MOST_ARGUMENTS = 32, 20_000  # tool calls of a reply that are read, and characters of the arguments of each


def reply_from(status: int, body: bytes, *, retry_after: str | None = None, location: str | None = None) -> Reply:
    """Read the reply in a response; raise ``Passing`` for a temporary failure, ``ModelUnavailable`` for other errors.

    >>> body = b'{"choices": [{"message": {"content": "42"}}], "usage": {"prompt_tokens": 7, "completion_tokens": 1}}'
    >>> reply_from(200, body)
    Reply(text='42', prompt_tokens=7, completion_tokens=1, calls=())
    """
    if status == 200:
        return _read(body)
    complaint = _complaint(body)
    if is_too_long(status, complaint):
        raise PromptTooLong(f"HTTP {status}: {complaint}")
    if status in _PASSING or status >= 500:
        if "insufficient_quota" in complaint:
            raise ModelUnavailable(f"HTTP {status}: the account has no quota left: {complaint}")
        raise Passing(f"HTTP {status}: {complaint}", _seconds(retry_after))
    if 300 <= status < 400:
        raise ModelUnavailable(
            f"HTTP {status}: the server redirects to {location}; if you trust that address, use it as the base URL"
        )
    raise ModelUnavailable(f"HTTP {status}: {complaint}; {_REMEDIES.get(status, 'see what the server says')}")


def is_too_long(status: int, complaint: str) -> bool:
    """Say whether a server refused a prompt because of its length; some servers count the tokens of the reply as well.

    >>> is_too_long(400, "This model's maximum context length is 2048 tokens. However, you requested 2113 tokens")
    True
    >>> is_too_long(400, "unknown setting: top_k"), is_too_long(429, "tokens per minute: your limit exceeds ...")
    (False, False)
    """
    return status == 413 or (status in (400, 422, 500) and _TOO_LONG.search(complaint) is not None)


def _read(body: bytes) -> Reply:
    try:
        answer = json.loads(body)
        choice = answer["choices"][0]
        # A thinking model may have used up its tokens before it answered; then its answer is empty.
        cut_off = choice["message"].get("content") is None and choice.get("finish_reason") == "length"
        calls = _calls(choice["message"])
        no_text = cut_off or (calls and choice["message"].get("content") is None)
        content = "" if no_text else _text(choice["message"])
    except (ValueError, RecursionError) as error:
        raise Passing(f"the server did not send JSON: {body[:200]!r}") from error
    except (LookupError, TypeError, AttributeError) as error:
        raise Passing(f"the server sent no reply, but {_complaint(body)}") from error
    usage = answer.get("usage")
    counts = cast("dict[str, Any]", usage) if isinstance(usage, dict) else {}
    return Reply(content, _count(counts, "prompt_tokens"), _count(counts, "completion_tokens"), calls)


def _text(message: dict[str, Any]) -> str:
    content = message["content"]
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        parts = cast("list[Any]", content)
        return "".join(str(part["text"]) for part in parts if isinstance(part, dict) and part.get("type") == "text")
    if isinstance(message.get("refusal"), str):
        return ""  # the model refused to answer: that is an answer
    raise TypeError(content)


def _calls(message: dict[str, Any]) -> tuple[ToolCall, ...]:
    """Read the tool calls of a message. Those without a name are left out; a missing id is replaced."""
    given = message.get("tool_calls")
    found: list[ToolCall] = []
    for number, one in enumerate(cast("list[Any]", given)[:_MOST_CALLS] if isinstance(given, list) else []):
        fields = cast("dict[str, Any]", one) if isinstance(one, dict) else {}
        function = fields.get("function")
        about = cast("dict[str, Any]", function) if isinstance(function, dict) else {}
        name, arguments, id_ = about.get("name"), about.get("arguments"), fields.get("id")
        if isinstance(name, str) and name:
            text = arguments if isinstance(arguments, str) else json.dumps(arguments)
            named = id_ if isinstance(id_, str) and id_ else f"call_{number}"
            found.append(ToolCall(named[:200], name[:200], text[:_MOST_ARGUMENTS]))
    return tuple(found)


def _count(usage: dict[str, Any], name: str) -> int:
    found = usage.get(name)
    return found if isinstance(found, int) and found > 0 else 0


def _complaint(body: bytes) -> str:
    """Extract the error message from a response; the text of the response if it has an unusual form."""
    text = body[:2_000].decode("utf-8", "replace").strip()
    try:
        error = json.loads(body)["error"]
        found = cast("dict[str, Any]", error) if isinstance(error, dict) else {"message": error}
        return " ".join(str(found[name]) for name in ("message", "code") if found.get(name))[:500]
    except (ValueError, RecursionError, LookupError, TypeError):
        return text[:500] or "no explanation"


def _seconds(retry_after: str | None) -> float | None:
    """Parse the header Retry-After, which has seconds or a date; return the seconds to wait."""
    if not retry_after:
        return None
    try:
        return max(0.0, float(retry_after)) if float(retry_after) < float("inf") else None
    except ValueError:
        pass
    try:
        return max(0.0, email.utils.parsedate_to_datetime(retry_after).timestamp() - time.time())
    except (TypeError, ValueError):
        return None
