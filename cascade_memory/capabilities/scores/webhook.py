"""Takes scores that a platform, or a program of yours, sends by itself: an ASGI application that believes no one unsigned."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import re
import time
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from typing import Any

from cascade_memory.capabilities.scores.fields import Fields
from cascade_memory.capabilities.scores.score import Judge, Reading, Score
from cascade_memory.domain.plain_json import parsed
from cascade_memory.domain.validation import check_moment, check_text, check_whole
from cascade_memory.errors import CascadeError, InvalidInput, PlatformFailed
from cascade_memory.memory.threads import in_reward_thread
from cascade_memory.redaction.saying import log_of
from cascade_memory.serving.asgi import Receive, Scope, Send, answer
from cascade_memory.serving.crowd import VOUCH

_JUDGES: dict[str, Judge] = {"human": "human", "judge": "judge", "code": "code", "agent": "agent"}
MOST_BYTES = 2**20
TOLERANCE = 300.0  # seconds between the time in a signature and now
SIGNATURES = (b"x-cascade-signature", b"x-langfuse-signature")
SHARED = b"x-cascade-secret"
PATIENCE = 30.0  # seconds for the body of a request
_LEAST_CHARS, _MOST_CHARS = 16, 1_000
_SIGNED = re.compile(rb"t=(\d{1,15}),\s*(?:v1|s)=([0-9a-fA-F]{64})")
_log = log_of(__name__)


def scores_in(platform: str, body: object) -> list[Score]:
    """Return the scores in a body; raise ``InvalidInput`` with a sentence if it has another form.

    It is ``{"scores": [...]}`` with the fields of ``Score``, or, from LangSmith, what its rules post. A body of Langfuse that
    tells of a prompt (it has a ``type``) has no scores.

    >>> one = {"id": "7", "name": "thumb", "value": True, "judge": "human", "at": 1.7e9, "trace_id": "4bf9"}
    >>> scores_in("mine", {"scores": [one]})[0].value
    True
    """
    try:
        found = Fields("the body", body)
        if platform == "langsmith" and found.has("runs"):
            at = found.moment("end_time")
            return [one for run in found.items("runs") for one in _of_run(run, at)]
        if platform == "langfuse" and found.has("type") and not found.has("scores"):
            return []
        return [_score(platform, row) for row in found.items("scores")]
    except PlatformFailed as error:
        raise InvalidInput(str(error).removesuffix("; its API may have changed")) from None


def _score(platform: str, row: Fields) -> Score:
    return Score(
        platform=platform,
        id=row.id("id"),
        name=row.id("name"),
        value=row.value("value"),
        judge=row.one_of("judge", _JUDGES),
        at=row.moment("at") if isinstance(row.raw("at"), str) else check_moment(row.raw("at"), "at"),
        trace_id=row.id_or_none("trace_id"),
        span_id=row.id_or_none("span_id"),
        by=row.id_or_none("by"),
        correction=row.text_or_none("correction"),
        deleted=row.typed("deleted", "true or false") is True if row.has("deleted") else False,
    )


def _of_run(run: Fields, at: float) -> Iterator[Score]:
    """Yield the mean of each kind of feedback of a run, or its label if all that was given is one label.

    A mean does not say who judged: it counts as a judge's. Its id is made of the run and the kind, so that a later mean
    replaces it.
    """
    stats = run.inner("feedback_stats")
    for name in stats.names():
        one = stats.inner(name)
        labels = one.inner("values").names()
        named = Fields("the body", {"kind of feedback": name, "label": labels[0] if len(labels) == 1 else None})
        value = one.value("avg") if one.value("n") else named.value("label")
        if value is not None:
            span, kind = run.id("id"), named.id("kind of feedback")
            yield Score(
                platform="langsmith",
                id=f"{span}:{hashlib.sha256(kind.encode()).hexdigest()[:16]}",
                name=kind,
                value=value,
                judge="judge",
                at=at,
                trace_id=run.id_or_none("trace_id"),
                span_id=span,
            )


class Webhook:
    """An ASGI application to which scores are posted.

    Each request needs a signature: the header ``x-cascade-signature: t=SECONDS,v1=HEX``, where HEX is the HMAC-SHA256 of
    ``SECONDS.BODY`` under the secret. Langfuse signs in the same way, in ``x-langfuse-signature``. LangSmith signs nothing: for
    ``platform="langsmith"`` the header ``x-cascade-secret`` with the secret itself will do. A signature is valid for five
    minutes, and once.

    Args:
        memory: It takes the scores.
        secret: Shared with whoever posts; 16 characters or more.
        platform: The platform of the scores, which also says how to read what is posted.
        weights: How much the scores of each name count, as in ``memory.scores.collect``.
        labels: What labels mean, likewise.
        most_bytes: The longest body that is read.

    >>> from cascade_memory import CascadeMemory
    >>> Webhook(CascadeMemory(embedder="hashing"), secret="a-secret-of-some-length")
    Webhook(platform='webhook')
    """

    def __init__(
        self,
        memory: Any,
        *,
        secret: str,
        platform: str = "webhook",
        weights: Mapping[str, float] | None = None,
        labels: Mapping[str, float] | None = None,
        most_bytes: int = MOST_BYTES,
    ) -> None:
        Reading(weights, labels)  # refuses what cannot be used now, and not at the first score
        self._memory, self._weights, self._labels = memory, weights, labels
        self._secret = checked_secret(secret)
        self._platform = check_text(platform, "platform", 64)
        self._most = check_whole(most_bytes, "most_bytes", 1)
        self._seen: dict[bytes, float] = {}  # of what was taken in the last minutes: until when it is known

    def __repr__(self) -> str:
        """Show no secret."""
        return f"Webhook(platform={self._platform!r})"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        try:
            count = await self._taken(scope, receive)
        except _Refused as refused:
            await answer(send, refused.status, {"error": str(refused)})
        else:
            await answer(send, 200, {"scores": count})

    async def _taken(self, scope: Scope, receive: Receive) -> int:
        if scope["method"] != "POST":
            raise _Refused(405, "scores are sent with POST")
        headers = {name.lower(): value for name, value in scope["headers"]}
        length = headers.get(b"content-length", b"0")
        if not length.isdigit() or len(length) > 15 or int(length) > self._most:
            raise self._too_large()
        try:
            body = await asyncio.wait_for(self._body(receive), PATIENCE)
        except asyncio.TimeoutError:
            raise _Refused(408, f"the body did not arrive within {PATIENCE:g} seconds") from None
        mark = self._proven(headers, body)
        try:
            return await self._applied(body, scope.get(VOUCH, _always))
        except BaseException:
            self._seen.pop(mark, None)  # it was not taken, so the sender may try again
            raise

    async def _applied(self, body: bytes, vouch: Callable[[], bool]) -> int:
        # Only now: a connection that is vouched for is known, and while it is answered, it is not closed for another one.
        if not vouch():
            raise _Refused(503, "too many requests are being answered; try again in a moment")
        try:
            scores = scores_in(self._platform, parsed(body.decode()))
            await in_reward_thread(lambda: self._memory.scores.collect(scores, weights=self._weights, labels=self._labels))
        except UnicodeDecodeError:
            raise _Refused(422, "the body must be JSON in UTF-8") from None
        except InvalidInput as error:
            raise _Refused(422, str(error)) from None
        except CascadeError as error:
            _log.warning("scores that were posted could not be stored: %s", error)
            raise _Refused(503, "the scores could not be stored; try again later") from None
        except Exception as error:
            _log.exception("scores that were posted could not be stored")
            raise _Refused(500, "the scores could not be stored") from error
        return len(scores)

    def _proven(self, headers: MutableMapping[bytes, bytes], body: bytes) -> bytes:
        """Raise ``_Refused`` unless the request is signed, fresh and new; return the mark by which it is known from now on."""
        now = time.time()
        signature = next((headers[name] for name in SIGNATURES if name in headers), None)
        if signature is not None:
            found = _SIGNED.fullmatch(signature.strip())
            if found is None:
                raise _Refused(401, "the signature must look like t=SECONDS,v1=HEX")
            mark = hmac.new(self._secret, found[1] + b"." + body, hashlib.sha256).hexdigest().encode()
            if not hmac.compare_digest(mark, found[2].lower()):
                raise _Refused(401, "the signature is wrong: it must be the HMAC-SHA256 of the time, a dot and the body")
            if abs(now - int(found[1])) > TOLERANCE:
                raise _Refused(403, f"the signature is older than {TOLERANCE:g} seconds, or the clocks differ")
        elif self._platform == "langsmith" and SHARED in headers:
            if not hmac.compare_digest(headers[SHARED], self._secret):
                raise _Refused(401, "the secret is wrong")
            mark = hashlib.sha256(body).hexdigest().encode()
        else:
            raise _Refused(401, "the request is not signed: send the header x-cascade-signature: t=SECONDS,v1=HEX")
        self._seen = {known: until for known, until in self._seen.items() if until > now}
        if mark in self._seen:
            raise _Refused(403, "this request was taken before")
        self._seen[mark] = now + 2 * TOLERANCE
        return mark

    async def _body(self, receive: Receive) -> bytes:
        body, more = bytearray(), True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise _Refused(422, "the body did not arrive whole")
            body += message.get("body", b"")
            if len(body) > self._most:
                raise self._too_large()
            more = bool(message.get("more_body", False))
        return bytes(body)

    def _too_large(self) -> _Refused:
        return _Refused(413, f"a body may have at most {self._most:,} bytes")


class _Refused(Exception):
    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


def checked_secret(secret: str) -> bytes:
    """Check the secret of a webhook.

    >>> checked_secret("a-secret-of-some-length")
    b'a-secret-of-some-length'
    """
    text = check_text(secret, "secret", _MOST_CHARS)
    if len(text) < _LEAST_CHARS:
        raise InvalidInput(f"the secret of a webhook needs {_LEAST_CHARS} characters or more")
    return text.encode()


def signature(secret: str, body: bytes, at: float | None = None) -> str:
    """Return what to send in ``x-cascade-signature`` with a body.

    >>> signature("a-secret-of-some-length", b"{}", at=1.7e9)[:20]
    't=1700000000,v1=ecdd'
    """
    seconds = str(int(time.time() if at is None else at)).encode()
    return f"t={seconds.decode()},v1={hmac.new(secret.encode(), seconds + b'.' + body, hashlib.sha256).hexdigest()}"


def _always() -> bool:
    return True
