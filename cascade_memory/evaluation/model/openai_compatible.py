"""Chat models on any server with OpenAI's chat API: vLLM, Ollama, llama.cpp, and commercial ones."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from cascade_memory.errors import InvalidInput, ModelUnavailable
from cascade_memory.evaluation.model.asking import Passing, Patience
from cascade_memory.evaluation.model.chat import Message, Note, Reply
from cascade_memory.evaluation.model.responses import reply_from

if TYPE_CHECKING:
    import httpx

_MOST_BYTES = 16 * 1024 * 1024  # limit for a response


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        known = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
    return known and not any(one in url for one in "?#@")


@dataclass(kw_only=True)
class OpenAICompatible:
    """A chat model behind ``base_url + "/chat/completions"``.

    For a setting that is None, the server's default is used. ``extra`` is added to the request. The paper's settings are the
    defaults here together with ``{"top_k": 20, "presence_penalty": 1.5}``. But some servers apply the penalty to words of the
    prompt as well, and so to words of the cases. Without ``api_key``, the environment variable ``OPENAI_API_KEY`` is used. The
    key is sent only to this address, and not to the target of a redirect. After a temporary failure (a rate limit, a server
    error, a broken reply, a timeout) the request is sent again.

    >>> model = OpenAICompatible(base_url="http://localhost:8000/v1", model="Qwen3-32B", extra={"top_k": 20})
    >>> model.settings
    {'temperature': 0.1, 'top_p': 0.8, 'max_tokens': 2048, 'top_k': 20}
    """

    base_url: str
    model: str
    api_key: str | None = field(default=None, repr=False)
    temperature: float | None = 0.1
    top_p: float | None = 0.8
    presence_penalty: float | None = None
    max_tokens: int | None = 2048
    extra: Mapping[str, Any] = field(default_factory=dict[str, Any])
    timeout: float = 120.0  # seconds for one attempt
    retries: int = 6
    patience: float = 600.0  # seconds for all attempts of one request and the pauses between them
    _client: httpx.Client | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not _is_address(self.base_url):
            # The message does not repeat the URL, since it may contain a password.
            raise InvalidInput("a base URL looks like http://localhost:8000/v1; it must not contain keys or passwords")
        if not self.model:
            raise InvalidInput("set the name of the model")
        if self.timeout <= 0 or self.patience <= 0 or self.retries < 0:
            raise InvalidInput("timeout and patience must be above 0 seconds, and retries must be at least 0")

    @property
    def name(self) -> str:
        """The model's name."""
        return self.model

    @property
    def settings(self) -> dict[str, Any]:
        """The sampling settings."""
        names = ("temperature", "top_p", "presence_penalty", "max_tokens")
        every = {**{name: getattr(self, name) for name in names}, **self.extra}
        return {name: value for name, value in every.items() if value is not None}

    def with_tools(self, tools: Sequence[Mapping[str, Any]]) -> OpenAICompatible:
        """Return a model that offers these tools with every request, described as in OpenAI's chat API."""
        return replace(self, extra={"tool_choice": "auto", **self.extra, "tools": list(tools)})

    def complete(self, messages: Sequence[Message], note: Note = lambda _: None) -> Reply:
        """Return the reply; raise ``ModelUnavailable``, with advice, if all attempts fail."""
        body = {"model": self.model, "messages": list(messages), **self.settings}
        key = (self.api_key or os.environ.get("OPENAI_API_KEY", "")).strip()
        if not (key.isascii() and key.isprintable()):
            raise InvalidInput("the API key has characters that no key has; check OPENAI_API_KEY")

        def once(left: float) -> Reply:
            try:
                return self._once(body, key, min(left, self.timeout))
            except (Passing, ModelUnavailable) as error:
                message = f"{self.model} at {self.base_url}: {error}"
                if key:  # drop the cause: some servers repeat the refused key in their message
                    message = message.replace(key, "(the key)")
                if isinstance(error, Passing):
                    raise Passing(message, error.pause) from None
                raise type(error)(message) from None

        return Patience(retries=self.retries, seconds=self.patience).ask(once, note)

    def _once(self, body: Mapping[str, Any], key: str, seconds: float) -> Reply:
        import httpx  # takes a tenth of a second, so it is not imported at the start of every command

        if self._client is None:
            # A proxy from the environment could read requests to http://, including the key; for https:// it only sees a
            # tunnel.
            self._client = httpx.Client(follow_redirects=False, trust_env=self.base_url.startswith("https:"))
        until = time.monotonic() + seconds
        headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {key}"} if key else {})}
        url, content = f"{self.base_url.rstrip('/')}/chat/completions", json.dumps(body)
        try:
            with self._client.stream("POST", url, content=content, headers=headers, timeout=seconds) as response:
                parts: list[bytes] = []
                size = 0
                for part in response.iter_bytes():
                    parts.append(part)
                    size += len(part)
                    if time.monotonic() > until:
                        raise Passing(f"no complete reply within {seconds:g} s")
                    if size > _MOST_BYTES:
                        raise Passing("the reply is too long")
        except httpx.TimeoutException as error:
            raise Passing(f"no reply within {seconds:g} s") from error
        except httpx.TransportError as error:
            raise Passing(f"the server cannot be reached, or closed the connection: {error}; is it running?") from error
        except httpx.DecodingError as error:
            raise Passing(f"the reply cannot be decompressed: {error}") from error
        headers = response.headers
        return reply_from(
            response.status_code, b"".join(parts), retry_after=headers.get("Retry-After"), location=headers.get("Location")
        )

    def close(self) -> None:
        """Close the connections; the next request opens new ones."""
        if self._client is not None:
            self._client.close()
            self._client = None

    def __getstate__(self) -> dict[str, Any]:
        """Pickle the settings for another process, without the connections."""
        return {**self.__dict__, "_client": None}
