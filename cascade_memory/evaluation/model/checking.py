r"""Finds out what a model and its server can do, before a benchmark asks them thousands of times."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from cascade_memory.errors import ModelUnavailable
from cascade_memory.evaluation.judging.answers import answer_in, boxed, code_in, without_thoughts
from cascade_memory.evaluation.model.acting import thought_and_action, writes_observations
from cascade_memory.evaluation.model.chat import Chat, Message, PromptTooLong, Reply, TakesTools, Try
from cascade_memory.evaluation.model.written_calls import calls_in

# "ok": nothing to do; "mended": the benchmark reads it all the same; "fails": tasks of this kind cannot be measured so.
Verdict: TypeAlias = Literal["ok", "mended", "fails"]
Said: TypeAlias = "Callable[[str], object]"

_SUMS = ((2, 3), (4, 5), (6, 1), (7, 2), (3, 5))
_FILLER = "The next line says nothing of interest.\n"  # some nine tokens
_WORD, _PER_LINE = "heron", 9
LONGEST = 8_192  # tokens of the longest prompt that is tried: a world's conversation has as many
_LEAST = 2_000  # tokens that every task may need
_TOOL = {
    "type": "function",
    "function": {
        "name": "look_up",
        "description": "Returns the population of a city",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found out about one ability."""

    about: str
    verdict: Verdict
    said: str


def check_model(chat: Chat, *, longest: int = LONGEST, tell: Said = lambda _: None) -> Iterator[Finding]:
    """Ask a model a dozen questions, then longer and longer prompts; yield a finding for each ability.

    Before each ability is checked, ``tell`` is called with its name.

    Raises ``ModelUnavailable`` if there is no reply at all.

    >>> from cascade_memory.evaluation.model.chat import Reply
    >>> class Parrot:
    ...     name, settings = "parrot", {}
    ...     def complete(self, messages, note):
    ...         return Reply(messages[-1]["content"].splitlines()[-1])
    >>> [(one.about, one.verdict) for one in check_model(Parrot(), longest=100)][:2]
    [('answers', 'ok'), ('form of an answer', 'fails')]
    """
    tell("answers")
    try:
        yield _answers(chat)
    except PromptTooLong as error:
        shorter = "many servers count the longest reply as well: ask for a shorter one (--sampling '{\"max_tokens\": 512}')"
        yield Finding("answers", "fails", f"even a short prompt is refused; {shorter}: {error}")
        return
    checks: tuple[tuple[str, Callable[[Chat], Finding]], ...] = (
        ("form of an answer", _form),
        ("thinks aloud", _thoughts),
        ("acts", _acts),
        ("writes code", _codes),
        ("calls tools", _calls),
        ("takes a call and its result", _results),
    )
    for about, check in checks:
        tell(about)
        try:
            yield check(chat)
        except ModelUnavailable as error:
            yield Finding(about, "fails", str(error))
    tell("length of a prompt")
    yield _length(chat, longest)


def _asked(chat: Chat, text: str, system: str = "") -> Reply:
    messages: list[Message] = [{"role": "system", "content": system}] if system else []
    return chat.complete([*messages, {"role": "user", "content": text}], _silent)


def _silent(_: Try) -> None:
    """Ignore a report of an attempt: the ``note`` of requests that are not logged."""


def _answers(chat: Chat) -> Finding:
    began = time.monotonic()
    question = "Name the capital of France. Answer with one word."
    first = _asked(chat, question)
    seconds = time.monotonic() - began
    same = _asked(chat, question).text == first.text
    counted = (
        f"{first.prompt_tokens} tokens read, {first.completion_tokens} written" if first.prompt_tokens else "no tokens counted"
    )
    repeats = "the same reply when asked again" if same else "another reply when asked again: rows will differ from run to run"
    return Finding("answers", "ok", f"in {seconds:.1f} s ({counted}); {repeats}")


def _form(chat: Chat) -> Finding:
    replies = [
        without_thoughts(_asked(chat, f"What is {a} + {b}? Answer with the number alone, in this form: \\boxed{{...}}").text)
        for a, b in _SUMS
    ]
    right = sum(answer_in(reply) == str(a + b) for reply, (a, b) in zip(replies, _SUMS, strict=True))
    boxes = sum(boxed(reply) is not None for reply in replies)
    copied = sum(answer_in(reply).strip(" .") == "" for reply in replies)
    said = f"{boxes} of {len(_SUMS)} answers stand in the box that was asked for, and {right} are right"
    if copied:
        said += f"; {copied} repeat the form as it is"
    return Finding("form of an answer", "ok" if boxes == right == len(_SUMS) else "mended" if right >= 3 else "fails", said)


def _thoughts(chat: Chat) -> Finding:
    reply = _asked(chat, "Is 91 a prime number? Answer with yes or no.").text
    if without_thoughts(reply) == reply:
        return Finding("thinks aloud", "ok", "no thoughts in the reply")
    if not without_thoughts(reply):
        return Finding(
            "thinks aloud", "fails", "it thinks until its tokens are used up: allow more (max_tokens), or switch thinking off"
        )
    return Finding(
        "thinks aloud", "mended", "its thoughts stand in the reply, and are left out of the answer; they cost tokens"
    )


def _acts(chat: Chat) -> Finding:
    system = 'You act in a world of text, with one action at a time. Answer with one line, "Action: ...", and nothing else.'
    told = "The door is closed.\n\nPossible actions now:\nopen door\nwait"
    reply = without_thoughts(_asked(chat, told, system).text)
    action = thought_and_action(reply)[1]
    if action not in ("open door", "wait"):
        return Finding("acts", "fails", f"asked for one of two actions, it wrote {reply[:100]!r}")
    if writes_observations(reply):
        return Finding("acts", "mended", "it goes on with observations of its own, which are cut off; they cost tokens")
    return Finding("acts", "ok" if reply.strip() == f"Action: {action}" else "mended", f"it wrote {reply[:100]!r}")


def _codes(chat: Chat) -> Finding:
    reply = without_thoughts(
        _asked(chat, "Write Python code that stores 6 * 7 in the variable answer. Reply with a code block.").text
    )
    code = code_in(reply, "python")
    try:
        compile(code, "reply", "exec")
    except (SyntaxError, ValueError):
        return Finding("writes code", "fails", f"what it wrote is no Python: {code[:100]!r}")
    return Finding("writes code", "ok" if "answer" in code else "fails", f"it wrote {code[:100]!r}")


def _calls(chat: Chat) -> Finding:
    about = "calls tools"
    if not isinstance(chat, TakesTools):
        return Finding(about, "fails", "this client offers no tools")
    reply = _asked(
        chat.with_tools([_TOOL]), "Look up the population of Oslo with the tool, and tell me how many people live there."
    )
    if reply.calls:
        return Finding(about, "ok", f"it called {reply.calls[0].name}({reply.calls[0].arguments[:80]})")
    if written := calls_in(without_thoughts(reply.text), ["look_up"]):
        return Finding(
            about, "mended", f"the server passes its call on as text, which is read as one: {written[0].arguments[:80]}"
        )
    return Finding(about, "fails", f"it called nothing, and wrote {reply.text[:100]!r}")


def _results(chat: Chat) -> Finding:
    about = "takes a call and its result"
    call = {"id": "call_0", "type": "function", "function": {"name": "look_up", "arguments": json.dumps({"city": "Oslo"})}}
    messages: list[Message] = [
        {"role": "user", "content": "Look up the population of Oslo with the tool, and tell me how many people live there."},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_0", "content": "723,000"},
    ]
    asked: Any = chat.with_tools([_TOOL]) if isinstance(chat, TakesTools) else chat
    text = without_thoughts(asked.complete(messages, _silent).text)
    used = "723" in text.replace(",", "").replace(" ", "")
    return Finding(
        about, "ok" if used else "fails", f"it {'wrote' if used else 'did not use the result, but wrote'} {text[:100]!r}"
    )


def _length(chat: Chat, longest: int) -> Finding:
    """Send longer and longer prompts, up to ``longest`` tokens, until one is refused, fails, or is not read in full."""
    about, tokens, read = "length of a prompt", 500, 0
    while tokens <= longest:
        lines = max(1, tokens // _PER_LINE)
        prompt = f"The password is {_WORD}.\n{_FILLER * lines}\nWhat is the password? Answer with one word."
        try:
            reply = _asked(_brief(chat), prompt)
        except PromptTooLong as error:
            return Finding(
                about, "ok" if read >= _LEAST else "fails", f"{read:,} tokens are read, {tokens:,} are refused: {error}"
            )
        except ModelUnavailable as error:
            return Finding(about, "fails", f"{read:,} tokens are read; with {tokens:,} the request failed: {error}")
        if 0 < reply.prompt_tokens < 0.7 * lines * _PER_LINE:
            told = f"of a prompt of {tokens:,} tokens the server read {reply.prompt_tokens:,}, and did not say so"
            return Finding(about, "fails", f"{told}: let it read longer ones")
        read, tokens = reply.prompt_tokens or tokens, 2 * tokens
    return Finding(about, "ok", f"at least {read:,} tokens are read")


def _brief(chat: Chat) -> Chat:
    """Return the model with a small ``max_tokens``, if it has this setting, since only the prompt's length is tested."""
    if getattr(chat, "max_tokens", None) is None:
        return chat
    return replace(chat, max_tokens=8)  # type: ignore[type-var]


def summary(findings: Sequence[Finding]) -> str:
    """Say in a sentence what the findings mean for a benchmark."""
    failed = [one.about for one in findings if one.verdict == "fails"]
    if not failed:
        return "This model can play every kind of task."
    return f"Tasks that need this cannot be measured with this model and server as they are: {', '.join(failed)}."
