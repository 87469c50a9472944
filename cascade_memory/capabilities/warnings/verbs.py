"""``memory.warnings``: the steps at which failed runs went wrong, and what people decide about warnings of them."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import Any, cast

from cascade_memory.capabilities.warnings.engine_part import WarningDesk
from cascade_memory.capabilities.warnings.records import CheckRequest, StepsSoFar, WarningDecision
from cascade_memory.domain.actions import NewAction
from cascade_memory.domain.digests import digest
from cascade_memory.domain.failure_warning import Advice, FailureWarning
from cascade_memory.domain.trajectory import Step
from cascade_memory.domain.transcript import MAX_FIELD_CHARS, tool_step
from cascade_memory.domain.validation import check_id, check_k, clean_text
from cascade_memory.engine.door import Incoming
from cascade_memory.engine.engine import Engine
from cascade_memory.errors import InvalidInput
from cascade_memory.memory.bound import Bound
from cascade_memory.memory.explaining import explained
from cascade_memory.memory.threads import in_thread
from cascade_memory.redaction.marking import cut_short


@explained
class Warnings(Bound):
    """Warnings of known failures. A warning is made of all failures at the same step; nobody writes it by hand."""

    # -- at the action ---------------------------------------------------------------------------------------------------

    def check(
        self,
        episode_id: str,
        action: str | None = None,
        *,
        tool: str | None = None,
        arguments: Mapping[str, Any] | None = None,
        done: Sequence[Step] | StepsSoFar | None = None,
        call_id: str | None = None,
    ) -> Advice | None:
        """Ask, before an action is done, whether earlier runs failed at it; return what to show to the agent, mostly None.

        If advice is returned, do not run the tool, and show the advice to the agent instead; if it calls the tool again, run
        the tool. By default, an episode gets at most two warnings, each once. If the memory itself fails, the answer is None.

        Args:
            episode_id: As returned by ``recall``.
            action: What is about to be done, as text.
            tool: The name of the tool, if it is a tool call.
            arguments: The arguments of the call.
            done: The steps of this run so far, or a function that returns them, which is called only if they matter. They do
                for a failure whose message does not say what was wrong, because the same action may work in another situation.
                Such a failure does not count in two cases: if other steps had failed before it and none of them has failed in
                this run, or if this run has a step that shares two words with the action and that has succeeded here, but not
                in the failed run.
            call_id: The id of the call: the same call gets the same answer again, for example if a node of a graph runs twice.

        >>> from cascade_memory import CascadeMemory, Step
        >>> memory = CascadeMemory(embedder="hashing")
        >>> mistake = Step(tool="sql", arguments={"q": "SELECT nme FROM t"}, observation="no such column: nme", failed=True)
        >>> memory.recall("name all customers").reward(0.0, solution=[mistake], source="env")
        >>> memory.warnings.check(memory.recall("count the customers").episode_id, tool="sql", arguments={"q": "SELECT 1"})
        """
        request = self._check_request(episode_id, action, tool, arguments, done, call_id)
        return _desk_of(self._engine).check(request)

    async def acheck(
        self,
        episode_id: str,
        action: str | None = None,
        *,
        tool: str | None = None,
        arguments: Mapping[str, Any] | None = None,
        done: Sequence[Step] | StepsSoFar | None = None,
        call_id: str | None = None,
    ) -> Advice | None:
        """Do what ``check`` does without blocking the event loop."""
        request = self._check_request(episode_id, action, tool, arguments, done, call_id)
        warnings = _desk_of(self._engine)
        if warnings.silent(request.namespace):
            return None
        return await in_thread(functools.partial(warnings.check, request))

    def _check_request(
        self,
        episode_id: object,
        action: object,
        tool: object,
        arguments: object,
        done: Sequence[Step] | StepsSoFar | None,
        call_id: object,
    ) -> CheckRequest:
        self._open()
        return CheckRequest(
            episode_id=check_id(episode_id, "episode_id"),
            namespace=self._namespace,
            step=_step(action, tool, arguments),
            done=_done(done),
            call_id=None if call_id is None else digest(check_id(call_id, "call_id")),  # others make such ids of anything
            asker=self._actor,
            min_trust=self._min_trust,
            deadline=self._deadline,
            held=self._channel != "mcp",
        )

    # -- looking ---------------------------------------------------------------------------------------------------------

    def all(self, *, near: str | None = None, k: int | None = None) -> list[FailureWarning]:
        """Return the warnings of a namespace: the latest first, or with ``near=`` those of the most similar tasks.

        >>> from cascade_memory import CascadeMemory, Step
        >>> memory = CascadeMemory(embedder="hashing")
        >>> mistake = Step(tool="sql", arguments={"q": "SELECT nme FROM t"}, observation="no such column: nme", failed=True)
        >>> memory.recall("name all customers").reward(0.0, solution=[mistake], source="env")
        >>> [(one.tool, one.happened, one.times, one.state) for one in memory.warnings.all()]
        [('sql', 'no such column: nme', 1, 'active')]
        """
        engine, name = self._caught_up(), self._namespace
        vector = None
        if near is not None:
            vector = engine.embed([engine.parts.door.record().query(near)])[0]
        found = _desk_of(engine).all(name, near=vector)
        return found if k is None else found[: check_k(k)]

    def get(self, warning_id: str) -> FailureWarning | None:
        """Return one warning as it is now; None if none has this id: a warning is deleted with the last of its failures.

        >>> from cascade_memory import CascadeMemory, Step
        >>> memory = CascadeMemory(embedder="hashing")
        >>> mistake = Step(tool="sql", arguments={"q": "SELECT nme FROM t"}, observation="no such column: nme", failed=True)
        >>> memory.recall("name all customers").reward(0.0, solution=[mistake], source="env")
        >>> memory.warnings.get(memory.warnings.all()[0].id).happened
        'no such column: nme'
        """
        return _desk_of(self._caught_up()).one(self._namespace, check_id(warning_id, "warning_id"))

    # -- deciding --------------------------------------------------------------------------------------------------------

    def retire(self, warning_id: str, *, note: str | None = None) -> bool:
        """Never show a warning again; return whether that changed anything. ``restore`` and ``review.undo`` show it again."""
        return self._decide_warning("retire", warning_id, note, retired=True)

    def restore(self, warning_id: str, *, note: str | None = None) -> bool:
        """Show a retired warning again, whatever its record says; return whether that changed anything."""
        return self._decide_warning("restore", warning_id, note, retired=False)

    def advise(
        self,
        warning_id: str,
        advice: str,
        *,
        note: str | None = None,
    ) -> bool:
        """Say what to do instead: agents see this with the warning from now on. Return whether that changed anything.

        >>> from cascade_memory import CascadeMemory, Step
        >>> memory = CascadeMemory(embedder="hashing")
        >>> mistake = Step(tool="sql", arguments={"q": "SELECT nme FROM t"}, observation="no such column: nme", failed=True)
        >>> memory.recall("name all customers").reward(0.0, solution=[mistake], source="env")
        >>> (warning,) = memory.warnings.all()
        >>> memory.acting(actor="ann").warnings.advise(warning.id, "the column is called name")
        True
        >>> memory.warnings.all()[0].advice
        'the column is called name'
        """
        record = self._open().parts.door.record()
        came = record.take(advice=advice, note=note)
        text, note = came.advice, came.note
        return self._decide_warning("advise", warning_id, note, record, advice=text, by_model=False)

    def _decide_warning(
        self,
        kind: str,
        warning_id: str,
        note: str | None,
        record: Incoming | None = None,
        **changes: Any,
    ) -> bool:
        engine: Engine = self._caught_up()
        if record is None:  # otherwise the note has come in with it
            record = engine.parts.door.record()
            note = record.take(note=note).note
        namespace_id, warning = self._namespace_id(), check_id(warning_id, "warning_id")
        action = NewAction(kind=kind, actor=self._who(record), note=note, subject=warning)
        rows = _desk_of(engine).rows
        before = rows.decisions(namespace_id).get(warning, WarningDecision())
        done = rows.decide(namespace_id, warning, dataclasses.replace(before, **changes), action)
        engine.learn_soon()
        return done


def _done(done: Sequence[Step] | StepsSoFar | None) -> StepsSoFar | None:
    if done is None or callable(done):
        return done
    given: object = done
    if not isinstance(given, (list, tuple)) or not all(isinstance(one, Step) for one in cast("Sequence[object]", given)):
        raise InvalidInput("done must be the steps of this run so far: a list of Step(...)")
    return lambda: done


def _step(action: object, tool: object, arguments: object) -> Step:
    """Return the action or tool call that is to be checked, as a ``Step``.

    A model wrote its texts, so unsuitable characters in them are cleaned rather than refused.
    """
    given: dict[str, str | None] = {"action": None, "tool": None}
    for name, text in (("action", action), ("tool", tool)):
        if text is not None and not isinstance(text, str):
            raise InvalidInput(f"{name} must be a string, not {type(text).__name__}")
        given[name] = None if text is None else str.__str__(text)
    if arguments is not None and not isinstance(arguments, Mapping):
        raise InvalidInput(f"arguments must be a mapping, not {type(arguments).__name__}")
    said = cut_short(clean_text(given["action"] or ""), MAX_FIELD_CHARS)
    if given["tool"] is None and not said.strip():
        raise InvalidInput("check needs the action as text, or the tool and its arguments")
    if given["tool"] is None:
        return Step(action=said)
    called = tool_step(given["tool"], arguments or {}, observation="")
    return called if arguments or not said else Step(tool=called.tool, action=said)


def _desk_of(engine: Engine) -> WarningDesk:
    return next(part for part in engine.capable if isinstance(part, WarningDesk))
