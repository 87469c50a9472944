"""A chat model that answers from a table of outcomes, and asks another model for the answers that the table lacks."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cascade_memory import RecalledCase
from cascade_memory.assembly import OwnerLock
from cascade_memory.cycle import Show
from cascade_memory.domain import check_one_name, solution_text
from cascade_memory.errors import InvalidInput, ModelUnavailable
from cascade_memory.evaluation.model.chat import Chat, Message, Note, PromptTooLong, Reply, TakesTools, Try
from cascade_memory.evaluation.outcomes.table import Head, Outcome, OutcomeFile, worth
from cascade_memory.evaluation.stream import Attempt, Solver

# Asked before anything else: another model, another template or other weights rarely answer all of them in the same way.
_PROBES: tuple[list[Message], ...] = (
    [{"role": "user", "content": "Repeat exactly: blue harbour 42"}],
    [{"role": "system", "content": "Answer with one word."}, {"role": "user", "content": "What is the capital of France?"}],
    [
        {"role": "user", "content": "2 + 2"},
        {"role": "assistant", "content": "4"},
        {"role": "user", "content": "3 + 4"},
    ],
)


class Outcomes:
    """A table with the answers of one model: ``Model(chat=Outcomes("banking77.outcomes"))`` plays without that model.

    With ``chat``, a prompt that the table lacks is sent to this model, and the answer is kept. Without ``chat``, a prompt that
    the table lacks is an error. A prompt that differs in one character is another prompt. The model must answer the same each
    time, so its temperature must be 0. Many threads may ask at once: a prompt whose answer is under way is not sent twice.

    >>> import tempfile
    >>> class Parrot:
    ...     name, settings = "parrot", {"temperature": 0}
    ...     def complete(self, messages, note):
    ...         print("asked")
    ...         return Reply(messages[-1]["content"])
    >>> path = Path(tempfile.mkdtemp()) / "parrot.outcomes"
    >>> with Outcomes(path, Parrot()) as outcomes:  # doctest: +ELLIPSIS
    ...     outcomes.complete([{"role": "user", "content": "hello"}]).text
    asked...
    'hello'
    >>> Outcomes(path).complete([{"role": "user", "content": "hello"}]).text
    'hello'
    """

    def __init__(self, path: Path | str, chat: Chat | None = None, *, about: Mapping[str, Any] | None = None) -> None:
        path = Path(path)
        if chat is not None and path.suffix == ".gz":
            raise InvalidInput(f"{path} is packed, so nothing can be added: name one that is not, or unpack it first (gunzip)")
        if chat is None and not path.is_file():
            raise InvalidInput(f"there is no table of outcomes at {path}: cascade-memory bench outcomes --out {path} makes one")
        self._chat, self._tools = chat, ""
        self._lock = None if chat is None else _alone(path)
        try:
            self._shared = _Shared(OutcomeFile(path))
            self._head = self._checked(path, chat, about or {})
        except BaseException:
            self._release()
            raise

    def _checked(self, path: Path, chat: Chat | None, about: Mapping[str, Any]) -> Head:
        file = self._shared.file
        if chat is None:
            if file.head is None:
                raise InvalidInput(f"{path} is empty: cascade-memory bench outcomes --out {path} fills it")
            return file.head
        if chat.settings.get("temperature") != 0:
            raise InvalidInput(
                "a table keeps one answer to each prompt, so the model must not draw it by chance: set its temperature to 0"
            )
        settings = json.loads(json.dumps(dict(chat.settings), default=repr))
        if file.head is not None and (file.head.model, file.head.settings) != (chat.name, settings):
            raise InvalidInput(
                f"{path} has the answers of {file.head.model} with {dict(file.head.settings)}, not of {chat.name} with "
                f"{settings}: name another file"
            )
        probe = _probe(chat)
        if file.head is None:
            file.begin(Head(model=chat.name, settings=settings, about=dict(about), probe=probe))
        elif file.head.probe != probe:
            raise InvalidInput(
                f"{chat.name} answers three short prompts otherwise than when {path} was begun: the weights, the chat template "
                "or the server have changed. Name another file"
            )
        assert file.head is not None
        return file.head

    @property
    def name(self) -> str:
        """The model's name."""
        return self._head.model

    @property
    def settings(self) -> Mapping[str, Any]:
        """The sampling settings."""
        return self._head.settings

    @property
    def about(self) -> Mapping[str, Any]:
        """What is known of the weights, the template and the server."""
        return self._head.about

    def with_tools(self, tools: Sequence[Mapping[str, Any]]) -> Outcomes:
        """Return a view of this table for the model with these tools; its answers are kept in the same table."""
        if self._chat is not None and not isinstance(self._chat, TakesTools):
            raise InvalidInput(f"{self._chat.name} takes no tools")
        view = object.__new__(Outcomes)
        view.__dict__ = {**self.__dict__, "_lock": None, "_tools": json.dumps(list(tools), sort_keys=True)}
        if isinstance(self._chat, TakesTools):
            view._chat = self._chat.with_tools(tools)
        return view

    def complete(self, messages: Sequence[Message], note: Note = lambda _: None) -> Reply:
        """Return the reply in the table, or else the model's."""
        key = hashlib.blake2b(
            json.dumps([self._tools, list(messages)], sort_keys=True, default=repr).encode(), digest_size=8
        ).hexdigest()
        found, mine = self._shared.claim(key)
        if mine:
            try:
                found.set_result(self._asked(key, messages))
            except BaseException as error:
                self._shared.drop(key)
                found.set_exception(error)
                raise
        reply = found.result()
        if isinstance(reply, PromptTooLong):
            note(Try(number=1, seconds=0.0, error=str(reply), too_long=True))
            raise PromptTooLong(str(reply))
        note(Try(number=1, seconds=0.0, reply=reply))
        return reply

    def _asked(self, key: str, messages: Sequence[Message]) -> Reply | PromptTooLong:
        if self._chat is None:
            raise ModelUnavailable(
                f"{self._shared.file.path} has no answer to this prompt, which begins with "
                f"{str(messages[-1].get('content'))[:60]!r}: cascade-memory bench outcomes asks for what is missing, with the "
                "same tasks, methods, seeds and limit"
            )
        try:
            reply = self._chat.complete(messages, lambda _: None)
        except PromptTooLong as error:
            reply = error
        self._shared.keep(key, reply)
        return reply

    def watched(self, solver: Solver, task: str, queries: Sequence[str], show: Show) -> Solver:
        """Return a solver that also stores the outcome of each attempt in this table.

        If the table was opened without ``chat``, return the given solver itself.
        """
        return solver if self._chat is None else _Watched(solver, self._shared, task, queries, show)

    def worth(self) -> list[tuple[str, str, int, int, int, float]]:
        """Return the success rate for each benchmark task, way to show cases and number of cases; see ``table.worth``."""
        return worth(self._shared.file.outcomes.values())

    def __len__(self) -> int:
        """Return the number of prompts with an answer."""
        return len(self._shared.file.replies)

    def close(self) -> None:
        """Close the table: a request is an error from now on, and another ``Outcomes`` may write to the file.

        On an object that ``with_tools`` returned, only its copy of the model is closed: the table may still be in use.
        """
        if not self._tools:
            self._shared.close()
            self._release()
        elif callable(ended := getattr(self._chat, "close", None)):
            ended()

    def _release(self) -> None:
        if self._lock is not None:
            self._lock.release()

    def __enter__(self) -> Outcomes:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the table."""
        self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the path; another process opens the table again, and only reads it."""
        if self._chat is not None:
            raise TypeError("a table that is being written belongs to one process")
        return _opened, (self._shared.file.path, self._tools)


def _opened(path: Path, tools: str) -> Outcomes:
    outcomes = Outcomes(path)
    return outcomes.with_tools(json.loads(tools)) if tools else outcomes


class _Shared:
    """What an ``Outcomes`` and its copies with tools share: the file, and the prompts whose answers are under way."""

    def __init__(self, file: OutcomeFile) -> None:
        self.file, self.closed = file, False
        self._guard = threading.Lock()
        self._under_way: dict[str, Future[Reply | PromptTooLong]] = {}

    def claim(self, key: str) -> tuple[Future[Reply | PromptTooLong], bool]:
        """Return the future of an answer, and whether it is new; if it is new, the caller has to get the answer."""
        with self._guard:
            self._check_open()
            known = self.file.replies.get(key)
            if known is not None:
                done: Future[Reply | PromptTooLong] = Future()
                done.set_result(known)
                return done, False
            if key in self._under_way:
                return self._under_way[key], False
            new = self._under_way[key] = Future()
            return new, True

    def keep(self, key: str, reply: Reply | PromptTooLong) -> None:
        """Write the reply to a prompt to the file; the prompt is no longer under way."""
        with self._guard:
            self._check_open()
            self.file.add_reply(key, reply)
            self._under_way.pop(key, None)

    def drop(self, key: str) -> None:
        """Forget a prompt that could not be answered; the next caller that needs the answer tries again."""
        with self._guard:
            self._under_way.pop(key, None)

    def keep_outcome(self, outcome: Outcome) -> None:
        """Write the outcome of an attempt to the file."""
        with self._guard:
            self._check_open()
            self.file.add_outcome(outcome)

    def close(self) -> None:
        """Refuse all further requests and writing, so that another ``Outcomes`` may go on with the file."""
        with self._guard:
            self.closed = True

    def _check_open(self) -> None:
        if self.closed:
            raise ModelUnavailable("the table of outcomes is closed")


@dataclass(frozen=True, slots=True)
class _Watched:
    """A solver that also stores the outcome of each attempt in a table."""

    inner: Solver
    shared: _Shared
    task: str
    queries: Sequence[str]
    show: Show

    def attempt(self, place: int, cases: Sequence[RecalledCase]) -> Attempt:
        """Attempt the task, and store its outcome."""
        attempt = self.inner.attempt(place, cases)
        shown = tuple(_digest(f"{case.query}\n{solution_text(case.solution)}") for case in cases)
        self.shared.keep_outcome(Outcome(self.task, _digest(self.queries[place]), shown, attempt.success, self.show))
        return attempt


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=6).hexdigest()


def _probe(chat: Chat) -> str:
    replies = [chat.complete(messages, lambda _: None) for messages in _PROBES]
    told = [(reply.prompt_tokens, reply.text.strip()) for reply in replies]
    return hashlib.blake2b(json.dumps(told).encode(), digest_size=8).hexdigest()


def _alone(path: Path) -> OwnerLock:
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        check_one_name(path)
    except OSError as error:
        raise InvalidInput(f"{error}: name another file for the table") from error
    lock = OwnerLock(path.with_name(f"{path.name}.lock"))
    if not lock.try_acquire():
        raise InvalidInput(f"another process is writing to {path}: wait until it has finished, or name another file")
    return lock
