"""Decides what a message in a conversation is: a task, a follow-up to the task before it, or small talk.

No model is asked. The words decide, in the language that most of them belong to; see ``cascade_memory.conversation.words``.
"""

from __future__ import annotations

import functools
import itertools
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from typing import Literal, TypeAlias, TypeVar

from cascade_memory.conversation.words import LANGUAGES, Words

Kind: TypeAlias = Literal["task", "follow-up", "small talk"]
T = TypeVar("T")
_Question: TypeAlias = Literal["none", "asks", "proposes", "closes"]

_LONGEST = 300  # characters: whoever writes more has a task
_MOST_AFTER_OPENER = 6  # words with a topic of their own, in "but the lamp is still red"
_MOST_AFTER_THANKS = 2  # in "great, the order arrived today"
_MOST_WITH_REFERENCE = 2  # in "can you send it to Ann?"
_LONGEST_REFERENCE = 8  # words of any kind
_MOST_IN_ANSWER = 5  # in "Number 12, from last March."
_SHORTEST_TASK = 4  # words, unless two of them have a topic: "why?" and "in red" are no tasks
_LETTERS_PER_WORD = 3.0  # where no spaces show the words
_MOST_BEFORE_DONE = 1.5  # words with a topic of their own, in "Great, the lamp works now"
_NAMED = 1  # words that are unknown in small talk, with a capital letter: "Thanks, Anna!"
_LOOKED_AT = 50  # messages of the user
_SENTENCE = (".", "!", "?", "…")
_QUESTION = ("?", "？", "؟", ";")


def kind_of(text: str, *, answer: str | None = None) -> Kind:
    """Say what a message of the user is. ``answer`` is what the agent said before it, if the conversation already has a task.

    >>> kind_of("Where is my tent?")
    'task'
    >>> kind_of("Thanks a lot!", answer="It arrives on Monday."), kind_of("Vielen Dank!")
    ('small talk', 'small talk')
    >>> kind_of("and the stove?", answer="It arrives on Monday.")
    'follow-up'
    >>> kind_of("It is 4711.", answer="Which number has your order?")
    'follow-up'
    >>> kind_of("How do I return a pair of boots?", answer="It arrives on Monday.")
    'task'
    """
    return _Said(text).kind(answer)


def is_small_talk(text: str) -> bool:
    """Say whether a message is a greeting, thanks, a goodbye or the like, and nothing else.

    >>> [is_small_talk(text) for text in ("thanks a lot!", "Merci beaucoup", "谢谢！", "👍", "thanks, and where is my tent?")]
    [True, True, True, True, False]
    """
    return _Said(text).is_small_talk


def task_in(
    turns: Sequence[tuple[bool, T]], text_of: Callable[[T], str] = str, skip: Callable[[str], bool] | None = None
) -> tuple[Kind, int | None]:
    """Return what the user's last message is, and the position of the turn with the task it belongs to (None: no task yet).

    If the message is a task itself, this is its own position. A turn is a pair: whether the user wrote it, and its content. The
    content is a text, or something from which ``text_of`` reads a text. It is read for the last turns only.

    A message of the user for which ``skip`` returns True counts as small talk, and as no task that a later one goes on with.

    >>> task_in([(True, "hello"), (False, "Hi!"), (True, "Where is my tent?"), (False, "On its way."), (True, "since when?")])
    ('follow-up', 2)
    """
    last: Kind = "small talk"
    first: int | None = None  # the first message that is more than small talk
    of_user = [place for place, (by_user, _) in enumerate(turns) if by_user]
    for place in reversed(of_user[-_LOOKED_AT:]):
        text = text_of(turns[place][1])
        if skip is not None and skip(text):
            if place == of_user[-1]:
                return "small talk", None
            continue
        said = _Said(text)
        kind = said.kind(next((text_of(one) for by_user, one in reversed(turns[:place]) if not by_user), ""))
        if place == of_user[-1]:
            last = kind
        if kind == "task":
            return last, place
        if not said.is_small_talk:
            first = place
    if first is None:
        return "small talk", None
    return ("task" if first == of_user[-1] else last), first  # whatever it sounds like: nothing came before it


class _Said:
    """A message as words of the language that it is most likely written in."""

    def __init__(self, text: str) -> None:
        self._is_long = len(text) > _LONGEST
        self._plain = plain = "" if self._is_long else _plain(text)
        self._asks = text.rstrip().endswith(_QUESTION)
        words = text.split()
        within = itertools.pairwise(words)  # not at the beginning of a sentence
        self._named = {_plain(one) for before, one in within if one[:1].isupper() and not before.endswith(_SENTENCE)}
        self._language = _language_of(plain)

    def kind(self, answer: str | None) -> Kind:
        if self._is_long:
            return "task"
        question = _question_in(answer or "")
        if self.is_small_talk:
            return "follow-up" if self._answers(question) else "small talk"
        if answer is None:
            return "task"
        return "follow-up" if self._goes_on(asked=question == "asks") else "task"

    @functools.cached_property
    def is_small_talk(self) -> bool:
        if self._is_long:
            return False
        return not self._plain or any(map(self._is_small_talk_in, _languages())) or self._is_pleased()

    def _is_pleased(self) -> bool:
        """Say whether the message begins with thanks or the like, then says that something has helped, and then ends."""
        known = self._language
        if self._asks or not known.pleasant.begins(self._plain):
            return False
        before, found, after = known.done.around(self._plain)
        before, after = (known.fillers.without(part)[0] for part in (before, after))
        return found and self._topic(before) <= _MOST_BEFORE_DONE and self._topic(after) == 0

    def _is_small_talk_in(self, known: _Language) -> bool:
        rest, found = known.pleasant.without(self._plain)
        rest, answered = known.answers.without(rest)
        rest, _ = known.fillers.without(rest)
        others = [one for one in rest.split() if one not in self._named]
        said_something = found or (answered and len(self._plain.split()) == 1)
        return said_something and not others and len(rest.split()) <= _NAMED

    def _answers(self, question: _Question) -> bool:
        """Say whether the message lets the agent go on: yes to a proposal, or yes or no to a question about the task."""
        known = self._language
        if question in ("none", "closes") or not known.answers.begins(self._plain):
            return False
        return question == "asks" or not known.refusals.begins(self._plain)

    def _goes_on(self, *, asked: bool) -> bool:
        """Say whether the message makes no sense without what came before; ``asked``: the agent had just asked a question."""
        known = self._language
        topic = self._topic(self._plain)
        if known.openers.begins(self._plain) and topic <= _MOST_AFTER_OPENER:
            return True
        if known.pleasant.begins(self._plain) and not self._asks:
            told = known.fillers.without(self._plain)[0]
            if self._topic(told) <= _MOST_AFTER_THANKS:
                return True
        length = len(self._plain.split())
        refers = known.back.without(known.whole.without(self._plain)[0])[1]
        if refers and topic <= _MOST_WITH_REFERENCE and length <= _LONGEST_REFERENCE:
            return True
        if topic <= 1 and length < _SHORTEST_TASK:
            return True
        return asked and not self._asks and topic <= _MOST_IN_ANSWER

    def _topic(self, rest: str) -> float:
        """Count the words in a part of the message that have a topic of their own."""
        known = self._language
        for kind in (known.pleasant, known.answers, known.openers, known.back, known.bare):
            rest, _ = kind.without(rest)
        return len(rest.split()) if known.spaced else len(rest.replace(" ", "")) / _LETTERS_PER_WORD


class _Phrases:
    """Some words and phrases of a language, the longest first."""

    def __init__(self, phrases: Iterable[str], *, spaced: bool) -> None:
        self.phrases = sorted({plain for one in phrases if (plain := _plain(one))}, key=len, reverse=True)
        self._space = " " if spaced else ""

    def without(self, plain: str) -> tuple[str, bool]:
        """Return a text without these phrases, and whether it had any."""
        space = self._space
        rest = f"{space}{plain}{space}"
        for phrase in self.phrases:
            while (phrase := f"{space}{phrase.strip()}{space}") in rest:
                rest = rest.replace(phrase, " ")
        rest = " ".join(rest.split())
        return rest, rest != plain

    def around(self, plain: str) -> tuple[str, bool, str]:
        """Return the text before the last of these phrases, less others of them; whether there is one; the text after it."""
        space = self._space
        text = f"{space}{plain}{space}"
        places = ((text.rfind(f"{space}{phrase}{space}"), len(phrase)) for phrase in self.phrases)
        end = max((at + length for at, length in places if at >= 0), default=-1)
        if end < 0:
            return plain, False, ""
        end += len(space)
        return self.without(text[:end].strip())[0], True, text[end:].strip()

    def begins(self, plain: str) -> bool:
        """Say whether a text begins with one of these phrases, or is one of them."""
        return any(plain.startswith(f"{phrase}{self._space}") or plain == phrase for phrase in self.phrases)


class _Language:
    """The words of one language, ready to be looked up."""

    def __init__(self, words: Words) -> None:
        self.spaced = words.spaced
        self.pleasant, self.answers, self.openers, self.refusals, self.proposals, self.closing, self.done, self.whole = (
            _Phrases(one.split(","), spaced=words.spaced)
            for one in (
                words.pleasant,
                words.answers,
                words.openers,
                words.refusals,
                words.proposals,
                words.closing,
                words.done,
                words.whole,
            )
        )
        self.fillers, self.back, self.bare = (
            _Phrases(one.split(), spaced=words.spaced) for one in (words.fillers, words.back, words.bare)
        )
        self._all = (self.pleasant, self.answers, self.openers, self.fillers, self.back, self.bare, self.done)
        self._words = {word for kind in self._all for phrase in kind.phrases for word in phrase.split()}

    def share(self, plain: str) -> int:
        """Count the letters of a text that belong to words of this language."""
        if self.spaced:
            return sum(len(word) for word in plain.split() if word in self._words)
        rest = plain
        for kind in self._all:
            rest, _ = kind.without(rest)
        return len(plain.replace(" ", "")) - len(rest.replace(" ", ""))


@functools.cache
def _languages() -> list[_Language]:
    return [_Language(words) for words in LANGUAGES.values()]


def _language_of(plain: str) -> _Language:
    """Return the language whose words make up most of a text; if several make up as much, the first in the list."""
    return max(_languages(), key=lambda one: one.share(plain))


def _question_in(answer: str) -> _Question:
    """Return the kind of question at the end of an answer of the agent (see ``proposals`` and ``closing`` in ``words``)."""
    lines = [one.strip() for one in answer.splitlines() if one.strip()]
    last = lines[-1] if lines else ""
    if not last.endswith(_QUESTION):
        return "none"
    for mark in (".", "!", "。", "！", *_QUESTION):
        last = last[:-1].rpartition(mark)[2] + last[-1]
    plain = _plain(last)
    if any(one.closing.without(plain)[1] for one in _languages()):
        return "closes"
    return "proposes" if any(one.proposals.without(plain)[1] for one in _languages()) else "asks"


def _plain(text: str) -> str:
    """Return the words of a text, in small letters, with one space between them."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    kept = "".join(c if unicodedata.category(c)[0] in "LMN" else " " for c in folded)
    return " ".join(word for word in kept.split() if any(unicodedata.category(c)[0] in "LN" for c in word))
