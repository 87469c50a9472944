"""Finds the arguments of a call in which a mistake lies, and its place: the values of the other arguments."""

from __future__ import annotations

import json
import string
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, cast

from cascade_memory.capabilities.warnings.action_words import (
    NUMBER,
    PLACEHOLDER,
    WordsBefore,
    may_be_tables,
    said_in,
    tables_in,
    texts_in,
    words_before,
    words_in,
)
from cascade_memory.capabilities.warnings.records import Blame
from cascade_memory.domain.trajectory import Step

_NAMING = f"{string.ascii_letters}{string.digits}_.-"  # the characters of a name to which a secret is assigned
_NOTHING: tuple[Any, ...] = (None, {}, [])
_NESTED = 200  # brackets
_OF_NO_TABLE = frozenset(["aggregate", "function", "operator", "supported", "syntax"])  # in a message: true of any table
FIELD = 600  # characters of an action, of what happened and of what worked instead that are stored
CLEARLY = 0.1  # by how much the cosine of a task must be greater for what worked there to count more than a failure


class Call:
    """An action and its words; they are computed only once, since it is compared with many mistakes."""

    def __init__(self, step: Step) -> None:
        self.step = step

    @cached_property
    def words(self) -> frozenset[str]:
        """All words of the action, without numbers: the union of ``wordings``."""
        return frozenset[str]().union(*self.wordings)

    @cached_property
    def wordings(self) -> Sequence[frozenset[str]]:
        """The words of its arguments, without numbers; if the call is given only as text, also the words of its text."""
        step = self.step
        return [_words_of(said_in(step.arguments))] if step.arguments else _wordings(step.tool, step.action)

    @cached_property
    def before(self) -> WordsBefore:
        """For each word of the action, the words that it follows."""
        return _before(self.step.tool, self.step.action, self._arguments)

    @cached_property
    def by_argument(self) -> Mapping[str, frozenset[str]]:
        """The words of each argument."""
        return _by_argument(self._arguments)

    @cached_property
    def where(self) -> Mapping[str, Any]:
        """Its arguments, as far as they can say where it acts; see ``place_in``."""
        return _without_nothing(self._arguments)

    @cached_property
    def _arguments(self) -> Mapping[str, Any]:
        """The arguments; if the call is given only as text, they are read from its text."""
        return self.step.arguments or _arguments_in(self.step.tool, self.step.action)


class Mistake:
    """What a step is blamed for, with the arguments in which the mistake lies; these are found only once.

    >>> said = {"action": 'sql({"db": "shop", "q": "SELECT nme FROM t"})', "happened": "no such column: nme"}
    >>> found = Mistake(Blame(why="failed", tool="sql", group="g", words=("nme",), **said))
    >>> found.place, found.place_in({"db": "farm", "q": "SELECT nme FROM fields"})
    ({'db': 'shop'}, {'db': 'farm'})
    >>> found.is_repeated(Call(Step(tool="sql", arguments={"db": "farm", "q": "SELECT nme FROM fields"})))
    True
    >>> found.is_repeated(Call(Step(tool="sql", arguments={"db": "nme", "q": "SELECT size FROM fields"})))
    False
    """

    def __init__(self, blame: Blame) -> None:
        self.blame, self._words = blame, frozenset(blame.words)

    def is_repeated(self, call: Call) -> bool:
        """Say whether a call repeats the mistake: the same tool, and all words of the mistake in the same arguments.

        A word that named a table in the mistake must be one that may name a table in the call. If the error message named no
        word, the mistake is the whole action: then the call must have no other words.
        """
        if call.step.tool != self.blame.tool or not self._words <= call.words:
            return False
        if self.is_whole:
            return self._words in call.wordings
        if self._missing_tables and not may_be_tables(self._missing_tables, call.before):
            return False
        names = self._lies_in & call.by_argument.keys()
        return not names or self._words <= frozenset[str]().union(*(call.by_argument[name] for name in names))

    def place_in(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the place of a call: its arguments without those in which the mistake lies.

        Empty values and placeholders of secrets are left out, since they say nothing about a place.
        """
        return self._but_the_mistake(_without_nothing(arguments)) if self._lies_in else {}

    def place_of(self, call: Call) -> Mapping[str, Any]:
        """Return the place of a call, as ``place_in`` does; faster for a call that is compared with many mistakes."""
        return self._but_the_mistake(call.where) if self._lies_in else {}

    def _but_the_mistake(self, where: Mapping[str, Any]) -> Mapping[str, Any]:
        return {name: value for name, value in where.items() if name not in self._lies_in}

    @property
    def place(self) -> Mapping[str, Any]:
        """The place in which the mistake was made; empty if its call was too long to be stored whole."""
        return self.place_in(self._arguments)

    @cached_property
    def is_whole(self) -> bool:
        """Whether the mistake is a whole action, not only words that the error message named; False if that is unknown."""
        blame = self.blame
        named = bool(self._words) and self._words <= {*words_in(blame.happened)}
        if blame.why != "failed" or named or len(blame.happened) >= FIELD:  # if it was cut short, who knows what it has named
            return False
        return self._words in _wordings(blame.tool, blame.action)

    def is_at_other_tables(self, call: Call) -> bool:
        """Say whether the mistake lies in tables that a call does not name; False for a wrong function or a syntax error."""
        happened = frozenset(words_in(self.blame.happened))
        if not self._tables or self._missing_tables or not self._words <= happened or (happened - self._words) & _OF_NO_TABLE:
            return False
        return not self._tables & call.before.keys()

    @cached_property
    def _missing_tables(self) -> frozenset[str]:
        """The words of the mistake that name a table in its action; none if the error message is about a column."""
        return frozenset() if "column" in words_in(self.blame.happened) else self._words & self._tables

    @cached_property
    def _tables(self) -> frozenset[str]:
        """The tables that the action of the mistake names."""
        try:
            return tables_in(_before(self.blame.tool, self.blame.action, self._arguments))
        except RecursionError:  # as below
            return frozenset()

    @cached_property
    def _lies_in(self) -> frozenset[str]:
        """The names of the arguments in which all words of the mistake stood; none if that is not known."""
        try:
            found = _by_argument(self._arguments)
        except RecursionError:  # as below
            return frozenset()
        return frozenset(name for name, words in found.items() if self._words <= words)

    @cached_property
    def _arguments(self) -> Mapping[str, Any]:
        """The arguments of the call, read from its text; none if it is no call, or was cut short."""
        return _arguments_in(self.blame.tool, self.blame.action)


def _arguments_in(tool: str | None, action: str) -> Mapping[str, Any]:
    """Return the arguments of a call that is given as text; none if it is no call, or may be nested too deep to read."""
    nested = action.count("[") + action.count("{")  # at most so deep
    if tool is None or not (action.startswith(f"{tool}(") and action.endswith(")")) or nested > _NESTED:
        return {}
    try:
        found: object = json.loads(action[len(tool) + 1 : -1])
    except (ValueError, RecursionError):  # an imported one may be nested as deep as somebody likes
        return {}
    return cast("Mapping[str, Any]", found) if isinstance(found, dict) else {}


def _wordings(tool: str | None, action: str) -> Sequence[frozenset[str]]:
    """Return sets of words of an action that is given as text.

    One is of the whole text. If the text is a call such as ``sql({...})``, another one is of the call's arguments alone.
    """
    text = _words_of(_text_of(tool, action))
    try:
        return [text, *(_words_of(said_in(found)) for found in [_arguments_in(tool, action)] if found)]
    except RecursionError:  # an imported one may be nested as deep as somebody likes
        return [text]


def _before(tool: str | None, action: str, arguments: Mapping[str, Any]) -> WordsBefore:
    return words_before(texts_in(arguments) or [_text_of(tool, action)])


def _text_of(tool: str | None, action: str) -> str:
    return action[len(tool) :] if tool is not None and action.startswith(f"{tool}(") else action


def _words_of(text: str) -> frozenset[str]:
    return frozenset(words_in(text)) - {NUMBER}


def stands(mistake: Mistake, cosine: float, now: Call, calls: Sequence[tuple[float, Call]]) -> bool:
    """Say whether a mistake, made on a task with this cosine to the present one, is a mistake in the call ``now`` as well.

    ``calls`` are the calls of the same tool on similar solved tasks, with the cosines of these tasks. The failure is compared
    with those of them that did the same and succeeded. If only the failure was in the place of ``now``, the answer is yes; if
    only a success was, it is no. If both or neither were there, it is yes, unless the same call has worked on a clearly more
    similar task. But a success in another place says nothing if the calls name places that recur. A call that names no place is
    never in the same place as another call. Moreover, the answer is no for a failure in another place that lies in tables that
    ``now`` does not name.
    """
    why = mistake.blame.why
    if why == "refused" or not mistake.is_repeated(now):
        return why == "refused"
    here = mistake.place_of(now)
    failed_here = bool(here) and mistake.place == here
    if here and not failed_here and mistake.is_at_other_tables(now):
        return False
    worked = [
        (bool(here) and mistake.place_of(one) == here, alike)
        for alike, one in calls
        if not one.step.failed and mistake.is_repeated(one)
    ]
    if not worked:
        return True
    worked_here, alike = max(worked)
    if failed_here != worked_here:
        return failed_here
    return alike < cosine + CLEARLY or (bool(here) and not worked_here and _come_again(mistake, calls))


def _come_again(mistake: Mistake, calls: Sequence[tuple[float, Call]]) -> bool:
    """Say whether any two of these calls have the same place.

    If so, their arguments name places, since the places in which agents work recur, and free texts do not.
    """
    found = [json.dumps(place, sort_keys=True, default=repr) for _, one in calls if (place := mistake.place_of(one))]
    return len({*found}) < len(found)


def _without_nothing(value: Any) -> Any:
    """Return a value without what is empty in it, and without placeholders of secrets.

    >>> _without_nothing({"db": "shop", "options": {}, "note": None, "key": "password=[secret:password#1]", "size": 0})
    {'db': 'shop', 'size': 0}
    >>> _without_nothing("postgres://ann:[secret:password#1]@host/shop")
    'postgres://@host/shop'
    """
    if isinstance(value, str):
        return (_without_secrets(value) if "[secret:" in value else value).strip() or None
    if isinstance(value, Mapping):
        pairs = cast("Mapping[str, Any]", value).items()
        return {name: said for name, one in pairs if (said := _without_nothing(one)) not in _NOTHING}
    if isinstance(value, (list, tuple)):
        return [said for one in cast("Sequence[Any]", value) if (said := _without_nothing(one)) not in _NOTHING]
    return value


def _without_secrets(text: str) -> str:
    """Return a text without the placeholders of secrets and the names to which they were assigned."""
    *before, last = PLACEHOLDER.split(text)
    return "".join([*(_without_name(one) for one in before), last])


def _without_name(text: str) -> str:
    said = text.rstrip("\"' ").removesuffix("Bearer").removesuffix("Basic").rstrip()
    return said[:-1].rstrip("\"' ").rstrip(_NAMING) if said.endswith(("=", ":")) else said


def _by_argument(arguments: Mapping[str, Any]) -> Mapping[str, frozenset[str]]:
    return {name: frozenset(words_in(said_in(value))) for name, value in arguments.items()}
