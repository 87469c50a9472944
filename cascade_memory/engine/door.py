"""The one door through which texts come into a memory: they are checked here, and secrets become placeholders.

Whatever is stored passes it before it is hashed, embedded, compared or logged, so nothing behind it has ever seen a secret.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeAlias, TypeVar, cast

from cascade_memory.domain.actions import NOTE_CHARS, check_note
from cascade_memory.domain.case_text import CaseText
from cascade_memory.domain.metadata import MetadataValue, check_metadata
from cascade_memory.domain.quoting import quoted
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
from cascade_memory.redaction.fields import header_of, kind_of_value, may_name_secret
from cascade_memory.redaction.finding import find
from cascade_memory.redaction.hints import may_hold_secret
from cascade_memory.redaction.kinds import PASSWORD
from cascade_memory.redaction.marking import Marks

Redact: TypeAlias = "bool | Callable[[str], str]"
T = TypeVar("T")
_PIN = 4  # digits of a number that may be a password


def check_redact(redact: object) -> None:
    """Refuse what cannot take anything out of a text."""
    if not isinstance(redact, bool) and not callable(redact):
        raise InvalidInput(f"redact must be True, False, or a function of a text that returns a text, not {quoted(redact)}")


class Door:
    """Takes secrets out of texts, and whatever else the user's function takes out; ``redact=False`` lets everything in."""

    def __init__(self, redact: Redact = True) -> None:
        self._on = redact is not False
        self._also = None if isinstance(redact, bool) else redact

    def record(self) -> Incoming:
        """Begin a record: within it, the same secret gets the same placeholder."""
        return Incoming(self._on, self._also)

    @property
    def asks_also(self) -> bool:
        """Whether the user's function is asked as well."""
        return self._also is not None

    def said(self, error: Exception) -> str:
        """Return the kind of an error and what it says, as it may be kept and shown."""
        return f"{type(error).__name__}: {self.message(str(error))}"

    def message(self, text: str) -> str:
        """Return a text that quotes others, as it may be kept and shown."""
        if not self._on:
            return text
        try:
            return self.record().text(text)
        except RedactionFailed:
            return "(a message that redact= could not take)"


class Incoming:
    """One record on its way in. Every method checks what it is given, and returns what may be stored."""

    def __init__(self, on: bool, also: Callable[[str], str] | None) -> None:
        self._on, self._also = on, also
        self._made: Marks | None = None  # once a text may hold a secret

    @property
    def _marks(self) -> Marks:
        if self._made is None:
            self._made = Marks()
        return self._made

    @property
    def found(self) -> Counter[str]:
        """How many different secrets of each kind have come so far."""
        return self._marks.found

    def text(self, text: str) -> str:
        """Return a text that was checked already."""
        if not self._on:
            return text
        if self._made is None and self._also is None and not may_hold_secret(text):
            return text
        clean = self._marks.mark(text)
        return clean if self._also is None else _asked(self._also, clean)

    def query(self, query: object) -> str:
        """Return the text of a task."""
        return self._checked(check_query(query), MAX_QUERY_CHARS, "query")

    def solution(self, solution: object) -> Solution:
        """Return a text or a trajectory; a secret is looked for in all steps, also where nothing beside it announces it."""
        given = check_solution(solution)
        if isinstance(given, str):
            return self._checked(given, MAX_SOLUTION_CHARS, "solution")
        if not self._on or (self._also is None and self._made is None and not may_hold_secret("\n".join(_texts_in(given)))):
            return given
        clean = self._trajectory(given, self.text)
        return check_solution(self._trajectory(clean, self._marks.again) if self._marks.any else clean)

    def metadata(self, metadata: object) -> dict[str, MetadataValue]:
        """Return metadata, with keys and values that may be stored."""
        given = {} if metadata is None else check_metadata(metadata)
        if not given or not self._on or (self._also is None and self._made is None and _is_plain(given)):
            return given
        clean = {self.text(name): cast("MetadataValue", self._named(name, value)) for name, value in given.items()}
        if len(clean) < len(given):
            raise InvalidInput("two metadata keys are the same once redact= has changed them; rename one")
        return clean if clean == given else check_metadata(clean)

    def plain(self, name: str, value: Any) -> Any:
        """Return a value of an imported record, whatever it is, with clean texts."""
        return self._named(name, value) if self._on else value

    def case_text(self, case_text: CaseText) -> CaseText:
        """Return the user's function for the text of a case, as one whose result may be stored.

        The task itself was checked as it came in. An older version, or ``redact=False``, may have let a secret in with it.
        """

        def clean(query: str, solution: Solution) -> str:
            text = case_text(query, solution)
            return self._checked(text, MAX_QUERY_CHARS, "query") if text is query else self.query(text)

        return clean

    def note(self, note: object) -> str | None:
        """Return the note on an action."""
        given = check_note(note)
        return None if given is None else check_note(self.text(given)[:NOTE_CHARS])

    def advice(self, advice: object) -> str:
        """Return what to do instead of a mistake, as a person or a model wrote it."""
        return self._checked(check_text(advice, "advice", ADVICE_CHARS), ADVICE_CHARS, "advice")

    def name(self, name: T, what: str) -> T:
        """Return an id or a name as it is: with a placeholder, two of them could become one. A secret in it is refused."""
        if self._on and isinstance(name, str) and (found := find(name[:MAX_ID_CHARS])):
            raise InvalidInput(
                f"{what} looks as if it holds a secret ({found[0].kind}), and is stored and logged as it is: pass another one, "
                "or open the memory with redact=False"
            )
        return name

    def namespace(self, name: str, look_up: Callable[[str], object]) -> str:
        """Return the name of a namespace as it is. A secret in it is refused, unless the namespace exists already."""
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

    def _trajectory(self, given: Trajectory, clean: Callable[[str], str]) -> Trajectory:
        def cleaned(text: str) -> str:
            return clean(text) if text else text

        return Trajectory([self._step(step, cleaned) for step in given.steps], answer=cleaned(given.answer))

    def _step(self, step: Step, clean: Callable[[str], str]) -> Step:
        try:
            arguments = {clean(name): self._named(name, value, clean) for name, value in step.arguments.items()}
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

    def _named(self, name: str, value: Any, clean: Callable[[str], str] | None = None) -> Any:
        """Return a value of a mapping or a list: texts are clean, and what a name announces as a secret is one as a whole."""
        if isinstance(value, str):
            kind = kind_of_value(name, value)
            if kind is not None:
                return self._marks.whole(value, kind)
            if header := header_of(name, value):  # its value is read as in a text, where the name stands before it
                value = self._marks.mark(header + value)[len(header) :]
            return (clean or self.text)(value)
        if isinstance(value, Mapping):
            inner = cast("Mapping[str, Any]", value)
            within = f"{name}: " if header_of(name) else ""
            return {(clean or self.text)(str(key)): self._named(f"{within}{key}", one, clean) for key, one in inner.items()}
        if isinstance(value, (list, tuple)):
            return [self._named(name, one, clean) for one in cast("list[Any]", value)]
        # A number that is called "pass" may count what has passed, or be a date.
        if (
            isinstance(value, int)
            and not name.lower().endswith("pass")
            and len(digits := str(value)) >= _PIN
            and kind_of_value(name, digits) is not None
        ):
            return self._marks.whole(digits, PASSWORD)
        return value


def _is_plain(metadata: Mapping[str, MetadataValue]) -> bool:
    """Say whether there is no secret in metadata; keys are mostly the same ones, so what they say is remembered."""
    return all(
        not may_name_secret(name) and (isinstance(value, (int, float)) or not may_hold_secret(_joined(value)))
        for name, value in metadata.items()
    )


def _joined(value: MetadataValue) -> str:
    return value if isinstance(value, str) else "\n".join(map(str, cast("list[Any]", value)))


def _texts_in(trajectory: Trajectory) -> list[str]:
    parts = [trajectory.answer]
    for step in trajectory.steps:
        parts += [step.thought, step.action, step.observation, step.tool or ""]
        if step.arguments:
            parts.append(repr(step.arguments))
    return parts


def _asked(redact: Callable[[str], str], text: str) -> str:
    """Return what the user's function makes of a text. Its own message may quote the text, so it is not passed on."""
    try:
        clean = redact(text)
    except Exception as error:  # noqa: BLE001 - a function of the user may raise anything
        failed = type(error).__name__
        raise RedactionFailed(f"redact= raised {failed}; nothing was stored, and its message is not shown") from None
    if not isinstance(clean, str):  # pyright: ignore[reportUnnecessaryIsInstance] - users are not type-checked
        raise RedactionFailed(f"redact= returned a {type(clean).__name__} instead of a text; nothing was stored")
    return clean
