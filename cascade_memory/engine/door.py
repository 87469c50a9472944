"""The door through which all texts come into a memory: it checks them and replaces secrets by placeholders.

A text passes it before it is hashed, embedded, compared, logged or stored, so no other part of the memory sees its secrets.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias, TypeVar, cast

from cascade_memory.domain.actions import NOTE_CHARS, check_note
from cascade_memory.domain.case import CaseText
from cascade_memory.domain.display import quoted
from cascade_memory.domain.metadata import MetadataValue, check_metadata
from cascade_memory.domain.trajectory import Solution, Step, Trajectory, check_solution
from cascade_memory.domain.validation import (
    ADVICE_CHARS,
    MAX_ID_CHARS,
    MAX_QUERY_CHARS,
    MAX_SOLUTION_CHARS,
    check_query,
    check_text,
)
from cascade_memory.errors import InvalidInput, RedactionFailed, StoreError
from cascade_memory.redaction.finding import find
from cascade_memory.redaction.hints import may_hold_secret
from cascade_memory.redaction.kinds import PASSWORD
from cascade_memory.redaction.marking import Marks, OpenSecrets

Redact: TypeAlias = "bool | Callable[[str], str]"
T = TypeVar("T")
_PIN = 4  # digits of a number that may be a password
_ROUNDS = 4  # in which a secret that was found in one part leads to another one in some other part
_COMPARED = frozenset(("$eq", "$ne", "$in", "$nin", "$contains", "$not_contains"))  # what a filter compares a field with
_ABSENT = object()


@dataclass(frozen=True, slots=True)
class Texts:
    """The texts and the metadata of one record; a part that the record does not have is empty or None."""

    query: str = ""
    solution: Solution | None = None
    metadata: dict[str, MetadataValue] = field(default_factory=dict[str, MetadataValue])
    note: str | None = None
    advice: str = ""

    @property
    def solved(self) -> Solution:
        """The solution; only for a record that has one."""
        assert self.solution is not None
        return self.solution


def check_redact(redact: object) -> None:
    """Raise ``InvalidInput`` if ``redact`` is neither a bool nor a function."""
    if not isinstance(redact, bool) and not callable(redact):
        raise InvalidInput(f"redact must be True, False, or a function of a text that returns a text, not {quoted(redact)}")


class Door:
    """Replaces secrets in texts, and applies the user's function, if there is one; ``redact=False`` changes nothing."""

    def __init__(self, redact: Redact = True) -> None:
        self._on = redact is not False
        self._also = None if isinstance(redact, bool) else redact
        self.kept = OpenSecrets()  # what was announced in episodes

    def record(self, episode_id: object = None, kept: OpenSecrets | None = None) -> Incoming:
        """Begin a record, or go on with that of an episode. Within it, the same secret gets the same placeholder."""
        episode = episode_id if isinstance(episode_id, str) and self._on else None
        return Incoming(self._on, self._also, kept or self.kept, episode)

    def settled(self, record: T, episode_id: str | None, kept: OpenSecrets, pass_in: Callable[[T, Incoming], T]) -> T:
        """Call ``pass_in`` with a record again and again, until the record no longer changes; return the record.

        Once is not enough, since one field may announce a secret that another contains. ``kept`` holds the secrets that are
        known of the episode. The user's function is called last, when all secrets are gone.
        """
        incoming = Incoming(self._on, None, kept, episode_id)
        for _ in range(_ROUNDS):
            before, record = record, pass_in(record, incoming)
            if not incoming.knows_any or record == before:
                break
        if episode_id is not None:
            incoming.keep_for(episode_id)
        if self._also is None:
            return record
        asking = Incoming(self._on, self._also, kept)
        asking.made = incoming.made
        return pass_in(record, asking)

    def said(self, error: Exception) -> str:
        """Return the type and the message of an error, without secrets, so that they may be stored and shown."""
        with contextlib.suppress(Exception):  # it may be of anybody's class, and have no message
            return f"{type(error).__name__}: {self.message(str(error))}"
        return type(error).__name__

    def message(self, text: str) -> str:
        """Return a message that may quote other texts, without secrets, so that it may be stored and shown."""
        if not self._on:
            return text
        try:
            return self.record().text(self.kept.again(text))
        except RedactionFailed:
            return "(a message that redact= could not take)"


class Incoming:
    """One record on its way in. The methods check their arguments and return what may be stored.

    One part of a record may announce a secret (``password: x``) that another part contains (``x``). So all parts of a record
    are passed in together.
    """

    def __init__(self, on: bool, also: Callable[[str], str] | None, kept: OpenSecrets, episode_id: str | None = None) -> None:
        self._on, self._also, self._kept, self._episode = on, also, kept, episode_id
        # None until a text may hold a secret.
        self.made: Marks | None = kept.of(episode_id) if kept.held and episode_id is not None else None

    @property
    def _marks(self) -> Marks:
        if self.made is None:
            self.made = Marks()
        return self.made

    @property
    def found(self) -> Counter[str]:
        """How many different secrets of each kind were found so far."""
        return self._marks.found

    @property
    def knows_any(self) -> bool:
        """Whether a secret was found so far."""
        return self.made is not None and self.made.any

    def count_on_after(self, text: str) -> None:
        """Give new placeholders higher numbers than the placeholders in a text that was stored earlier."""
        if "[secret:" in text:
            self._marks.note_used(text)

    def keep_for(self, episode_id: str) -> None:
        """Remember the announced secrets for later texts of this episode."""
        if self.made is not None and self.made.any:
            self._kept.keep(episode_id, self.made)

    def text(self, text: str) -> str:
        """Return a text without its secrets; its type and length were checked before."""
        if not self._on:
            return text
        if self.made is None and self._also is None and not may_hold_secret(text):
            return text
        return self._asked(self._marks.mark(text))

    def take(
        self,
        *,
        query: object = _ABSENT,
        solution: object = _ABSENT,
        metadata: object = None,
        note: object = None,
        advice: object = _ABSENT,
    ) -> Texts:
        """Return the parts of a record; a secret that one of them announces is looked for in all of them."""
        given = Texts(
            query="" if query is _ABSENT else check_query(query),
            solution=None if solution is _ABSENT else check_solution(solution),
            metadata={} if metadata is None else check_metadata(metadata),
            note=None if note is None else check_note(note),
            advice="" if advice is _ABSENT else check_text(advice, "advice", ADVICE_CHARS),
        )
        if not self._on or (self._also is None and self.made is None and not _may_hold(given)):
            return given
        for text in _texts_in(given):
            self._marks.note_used(text)
        clean = self._each(given, self._marks.mark)
        if self._marks.any:
            for _ in range(_ROUNDS):
                before, clean = clean, self._each(clean, self._marks.marked_again)
                if clean == before:
                    break
            if self._episode is not None:
                self.keep_for(self._episode)
        if self._also is not None:
            clean = self._each(clean, self._asked)
        return given if clean == given else _fitting(given, clean)

    def query(self, query: object) -> str:
        """Return the text of a task."""
        return self.take(query=query).query

    def solution(self, solution: object) -> Solution:
        """Return a text or a trajectory."""
        return self.take(solution=solution).solved

    def metadata(self, metadata: object) -> dict[str, MetadataValue]:
        """Return metadata, with keys and values that may be stored."""
        return self.take(metadata=metadata).metadata

    def listen(self, values: object) -> None:
        """Note the secrets in values that are not stored, so that they are found in the rest of the record."""
        if not self._on or not isinstance(values, Mapping):
            return
        with contextlib.suppress(RecursionError):  # whoever uses them will say what is wrong with them
            if may_hold_secret(repr(cast("object", values))):
                self._named("", cast("Mapping[str, Any]", values), self._marks.mark)

    def plain(self, name: str, value: Any) -> Any:
        """Return a value of an imported record, of whatever type, without the secrets in its texts."""
        return self._named(name, value, self.text) if self._on else value

    def case_text(self, case_text: CaseText) -> CaseText:
        """Wrap the user's function for the text of a case, so that its result is checked and may be stored.

        The task itself was checked when it came in. But an older version, or ``redact=False``, may have let in a secret.
        """

        def clean(query: str, solution: Solution) -> str:
            text = case_text(query, solution)
            return self._checked(text, MAX_QUERY_CHARS, "query") if text is query else self.query(text)

        return clean

    def name(self, name: T, what: str) -> T:
        """Return an id or a name unchanged; refuse one with a secret, since placeholders could make two names the same."""
        if not self._on or not isinstance(name, str):
            return name
        found = find(name[:MAX_ID_CHARS])
        if found or (self.made is not None and self.made.again(name) != name):
            kind = found[0].kind if found else "announced beside it"
            raise InvalidInput(
                f"{what} looks as if it holds a secret ({kind}), and is stored and logged as it is: pass another one, "
                "or open the memory with redact=False"
            )
        return name

    def namespace(self, name: str, look_up: Callable[[str], object]) -> str:
        """Return the name of a namespace; refuse one that seems to contain a secret, unless ``look_up`` finds the namespace."""
        try:
            return self.name(name, "namespace")
        except InvalidInput:
            try:
                if look_up(name):
                    return name
            except StoreError:  # whoever uses the namespace now says better what is wrong
                return name
            raise

    def _checked(self, text: str, limit: int, name: str) -> str:
        clean = self.text(text)
        return text if clean == text else check_text(clean[:limit], name, limit)  # a placeholder may be longer than its secret

    def _asked(self, text: str) -> str:
        return text if self._also is None else _asked(self._also, text)

    # -- part by part, each text by a function -----------------------------------------------------------------------

    def _each(self, texts: Texts, clean: Callable[[str], str]) -> Texts:
        def cleaned(text: str) -> str:
            return clean(text) if text else text

        query, solution = cleaned(texts.query), texts.solution
        if isinstance(solution, Trajectory):
            steps = [self._step(step, cleaned) for step in solution.steps]
            solution = Trajectory(steps, answer=cleaned(solution.answer))
        elif solution is not None:
            solution = clean(solution)
        metadata = cast("dict[str, MetadataValue]", self._fields("", texts.metadata, clean) if texts.metadata else {})
        if len(metadata) < len(texts.metadata):
            raise InvalidInput("two metadata keys are the same once redact= has changed them; rename one")
        return Texts(
            query=query,
            solution=solution,
            metadata=metadata,
            note=None if texts.note is None else clean(texts.note),
            advice=cleaned(texts.advice),
        )

    def _step(self, step: Step, clean: Callable[[str], str]) -> Step:
        try:
            arguments = self._fields("", step.arguments, clean) if step.arguments else {}
            action = step.action
            if step.tool is not None and action == Step(tool=step.tool, arguments=step.arguments).action:
                # It repeats the arguments. In a text less is known for a secret than in a field, so they are written anew.
                action = Step(tool=step.tool, arguments=arguments).action
        except RecursionError as error:
            raise InvalidInput("step.arguments are nested too deeply") from error
        return replace(
            step,
            action=clean(action),
            observation=clean(step.observation),
            thought=clean(step.thought),
            tool=None if step.tool is None else clean(step.tool),
            arguments=arguments,
        )

    def _named(self, name: str, value: Any, clean: Callable[[str], str]) -> Any:
        """Return a value with clean texts; a value whose name announces a secret gets one placeholder for all of it."""
        from cascade_memory.redaction.fields import header_of, kind_of_value

        if isinstance(value, str):
            kind = kind_of_value(name, value)
            if kind is not None:
                return self._marks.whole(value, kind)
            if header := header_of(name, value):  # its value is read as in a text, where the name stands before it
                value = self._marks.mark(header + value)[len(header) :]
            return clean(value)
        if isinstance(value, Mapping):
            return self._fields(name, cast("Mapping[str, Any]", value), clean)
        if isinstance(value, (list, tuple)):
            return [self._named(name, one, clean) for one in cast("list[Any]", value)]
        if isinstance(value, int) and not isinstance(value, bool) and len(digits := str(value)) >= _PIN:
            # A number that is called "pass" may count what has passed, or be a date.
            if not name.lower().endswith("pass") and kind_of_value(name, digits) is not None:
                return self._marks.whole(digits, PASSWORD)
            if (mark := self._marks.of(digits)) is not None:
                return mark
        return value

    def _fields(self, name: str, fields: Mapping[str, Any], clean: Callable[[str], str]) -> dict[str, Any]:
        from cascade_memory.redaction.fields import header_of, named_beside

        within = f"{name}: " if header_of(name) else ""
        beside = named_beside(fields)  # {"name": "DB_PASSWORD", "value": ...} says the same as {"DB_PASSWORD": ...}
        return {
            clean(str(key)): self._named(name if key in _COMPARED else f"{within}{beside.get(key, key)}", one, clean)
            for key, one in fields.items()
        }


def _may_hold(texts: Texts) -> bool:
    solution = "\n".join(_texts_of(texts.solution)) if isinstance(texts.solution, Trajectory) else texts.solution
    said = (texts.query, solution, texts.note, texts.advice)
    return any(text and may_hold_secret(text) for text in said) or not _is_plain(texts.metadata)


def _texts_in(texts: Texts) -> list[str]:
    parts = [texts.query, texts.note or "", texts.advice, repr(texts.metadata)]
    return parts if texts.solution is None else [*parts, *_texts_of(texts.solution)]


def _fitting(given: Texts, clean: Texts) -> Texts:
    """Return the clean parts; check again those that were changed, since a placeholder may be longer than its secret."""

    def fits(text: str, before: str, name: str, limit: int) -> str:
        return before if text == before else check_text(text[:limit], name, limit)

    query, solution = fits(clean.query, given.query, "query", MAX_QUERY_CHARS), clean.solution
    if isinstance(solution, str):
        solution = fits(solution, str(given.solution), "solution", MAX_SOLUTION_CHARS)
    elif solution is not None and solution != given.solution:
        solution = check_solution(solution)
    return Texts(
        query=query,
        solution=solution,
        metadata=given.metadata if clean.metadata == given.metadata else check_metadata(clean.metadata),
        note=None if clean.note is None else check_note(clean.note[:NOTE_CHARS]),
        advice=fits(clean.advice, given.advice, "advice", ADVICE_CHARS),
    )


def _is_plain(metadata: Mapping[str, MetadataValue]) -> bool:
    """Say whether metadata cannot hold a secret; the results for keys are cached, since the same keys come often."""
    if not metadata:
        return True
    from cascade_memory.redaction.fields import may_name_secret  # at its first use: its patterns take long to compile

    return all(
        not may_name_secret(name) and (isinstance(value, (int, float)) or not may_hold_secret(_joined(value)))
        for name, value in metadata.items()
    )


def _joined(value: MetadataValue) -> str:
    return value if isinstance(value, str) else "\n".join(map(str, cast("list[Any]", value)))


def _texts_of(solution: Solution) -> list[str]:
    if isinstance(solution, str):
        return [solution]
    parts = [solution.answer]
    for step in solution.steps:
        arguments = repr(step.arguments) if step.arguments else ""
        parts += [step.thought, step.action, step.observation, step.tool or "", arguments]
    return parts


def _asked(redact: Callable[[str], str], text: str) -> str:
    """Return the result of the user's function for a text; its error messages are withheld, since they may quote the text."""
    try:
        clean = redact(text)
    except Exception as error:  # noqa: BLE001 - a function of the user may raise anything
        failed = type(error).__name__
        raise RedactionFailed(f"redact= raised {failed}; nothing was stored, and its message is not shown") from None
    if not isinstance(clean, str):  # pyright: ignore[reportUnnecessaryIsInstance] - users are not type-checked
        raise RedactionFailed(f"redact= returned a {type(clean).__name__} instead of a text; nothing was stored")
    return clean
