"""``memory.review``: what people decide about episodes, the audit log, and undo."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from cascade_memory.cycle.retain import new_case
from cascade_memory.domain.actions import AuditEntry, Before, NewAction, check_different
from cascade_memory.domain.case import Case
from cascade_memory.domain.digests import digest
from cascade_memory.domain.episode import Episode
from cascade_memory.domain.metadata import MetadataValue
from cascade_memory.domain.provenance import Wanted
from cascade_memory.domain.records import Settlement
from cascade_memory.domain.trajectory import Solution, Step
from cascade_memory.domain.trust import ByWhom
from cascade_memory.domain.validation import check_id, check_k, check_reward
from cascade_memory.domain.viewed import Page
from cascade_memory.engine.door import Incoming
from cascade_memory.engine.engine import Engine
from cascade_memory.engine.request import Judgement
from cascade_memory.engine.settling import settlement
from cascade_memory.errors import ContentChanged, UnknownCase
from cascade_memory.insight.doubt import informative, is_asked_about
from cascade_memory.memory import curation
from cascade_memory.memory.bound import Bound
from cascade_memory.memory.explaining import explained
from cascade_memory.memory.rows import AT_ONCE, page_of, place_of, through_pages


@explained
class Review(Bound):
    """What people can do with episodes and cases. A change is on disk when its method returns, with its audit log entry.

    ``memory.acting(actor="ann")`` says who acts; nothing that an agent writes can decide that.
    """

    # -- verdicts --------------------------------------------------------------------------------------------------------

    def to_judge(self, *, rate: float = 1.0) -> Iterator[Episode]:
        """Iterate over the episodes that wait for a person's verdict, beginning with those whose verdict teaches most.

        An episode waits if only its agent has judged it, or if its run has ended and nobody has judged it. A verdict teaches
        most where the predicted success of what was shown is near 1/2, and where the nearest cases have different solutions.

        Args:
            rate: The share of all episodes about which people are asked (the paper's revision rate). The id of an episode
                decides, so that all processes agree, and a greater rate asks about the same episodes and more.
        """
        share = check_reward(rate, "rate")
        doubts = self._caught_up().parts.ledger.actions.doubts(self._namespace_id())
        asked = [one for one in doubts if is_asked_about(one.episode_id, share)]
        asked.sort(key=informative, reverse=True)  # equal ones stay in order of age
        return self._waiting([one.episode_id for one in asked])

    def _waiting(self, ids: Sequence[str]) -> Iterator[Episode]:
        for episode_id in ids:
            found = self._episode(episode_id)
            if found is not None and found.waits_for_a_verdict:
                yield found

    def reported(self) -> list[Episode]:
        """Return the episodes judged only by the agent itself, oldest first: nothing is learned from them.

        ``reward(episode.id, 1.0, source="human", confirms=episode.fingerprint)`` confirms one: the agent's solution is stored,
        unless the agent has reported a different one since.
        """
        ledger = self._open().parts.ledger
        return ledger.episodes.listed(self._namespace_id(), status="settled", source="agent")

    def confirm(
        self,
        episode_id: str,
        *,
        seen: str,
        value: float | None = None,
    ) -> str | None:
        """Say that what an agent reported is true, or that the answer of a pending episode is right; return the case's id.

        Args:
            episode_id: An episode that waits for a verdict; see ``to_judge``.
            seen: The ``fingerprint`` of the episode as you saw it. If it has changed, ``ContentChanged`` is raised; if somebody
                else has judged the episode, ``AlreadyRewarded``: of several people, exactly one decides.
            value: How well it went, if that is not what the agent reported: 1.0 for an answer that it took for a failure.

        >>> from cascade_memory import CascadeMemory
        >>> memory = CascadeMemory(embedder="hashing")
        >>> episode_id = memory.review.propose("cool some mug", "put it into the fridge")
        >>> (waiting,) = memory.review.to_judge()
        >>> case_id = memory.acting(actor="ann").review.confirm(waiting.id, seen=waiting.fingerprint)
        >>> memory.recall("cool some mug").cases[0].id == case_id
        True
        """
        found = self._known(episode_id)
        reported = found.reward if found.has_only_agents_word else None
        worth = (1.0 if reported is None else reported) if value is None else check_reward(value)
        return self._judged(found, worth, seen, "confirm", self._by())

    def reject(
        self,
        episode_id: str,
        *,
        seen: str,
    ) -> None:
        """Say that the answer of an episode that waits for a verdict is wrong; the arguments are those of ``confirm``."""
        self._judged(self._known(episode_id), 0.0, seen, "reject", self._by())

    def correct(
        self,
        id: str,
        solution: Solution | Sequence[Any],
        *,
        seen: str | None = None,
        note: str | None = None,
    ) -> str:
        """Say what the right solution would have been; return the id of the case that holds it and is shown from now on.

        The episode gets a new outcome by a human. Its reward is 0, because the old answer was wrong. The right solution becomes
        a case, and says in hindsight which candidates had it. What was learned from the older outcome is taken back;
        the outcome itself is kept, so that ``undo`` can bring it back. If the wrong solution had become a case, that case is
        deleted, or hidden if others verify it. A case that belongs to no episode is hidden, and a new one takes its place.

        Args:
            id: The id of an episode or of a case.
            solution: The right solution.
            seen: The ``fingerprint`` of the episode or of the case as you saw it. If it has changed, for example since somebody
                else has corrected it, ``ContentChanged`` is raised. Without it, the last correction counts.
            note: Why, in a few words: kept in the audit log until the episode or the case is forgotten.

        >>> from cascade_memory import CascadeMemory
        >>> memory = CascadeMemory(embedder="hashing", learn="inline")
        >>> recall = memory.recall("cool some mug")
        >>> wrong = memory.reward(recall.episode_id, 1.0, solution="put it into the oven")
        >>> right = memory.acting(actor="ann").review.correct(recall.episode_id, "put it into the fridge")
        >>> memory.recall("cool some mug").cases[0].solution
        'put it into the fridge'
        >>> memory.acting(actor="ann").review.undo(next(memory.review.audit()).id)
        >>> memory.recall("cool some mug").cases[0].solution
        'put it into the oven'
        """
        engine, name = self._open(), self._namespace
        seen, id = None if seen is None else check_id(seen, "seen"), check_id(id, "id")
        record = engine.parts.door.record(id)
        came = record.take(solution=solution, note=note)
        checked = came.solved
        case: Case | None = None
        found = self._episode(id)
        if found is None:
            stored = engine.parts.ledger.cases.by_id([id], engine.namespace_id(name))
            if not stored and seen is not None:
                raise ContentChanged.of_case(id, seen)
            if not stored:
                raise UnknownCase(f"there is neither an episode nor a case {id!r} in namespace {name!r}")
            case = stored[0]
            _check_as_seen(case, seen)
            check_different(checked, case.solution, f"case {id!r}")
            found = None if case.episode_id is None else self._episode(case.episode_id)
        by = self._by(record)
        action = NewAction(
            kind="correct",
            actor=by.actor,
            note=came.note,
            replaces=None if case is None else case.id,
            seen=None if case is None else seen,
        )
        if found is None:
            assert case is not None
            return self._replaced(engine, case, checked, action, by, record)
        if case is None:
            _check_as_seen(found, seen)
        if found.solution is not None:
            check_different(checked, found.solution, f"episode {found.id!r}")
        made = self._settle(
            engine,
            episode_id=found.id,
            namespace=name,
            value=0.0,
            source="human",
            solution=checked,
            confirms=seen if case is None else None,
            action=action,
            by=by,
            record=record,
        )
        assert made is not None
        return made

    def _replaced(self, engine: Engine, case: Case, solution: Solution, action: NewAction, by: ByWhom, record: Incoming) -> str:
        ((_, vector),) = engine.parts.ledger.cases.after(case.key - 1, 1)  # of the same query
        fields = {name: one for name, one in case.metadata.items() if (name, one) != ("solved", False)}
        came = record.take(query=case.query, solution=solution, metadata=fields)
        query, solution = came.query, came.solved
        if query != case.query:  # an older version has stored a secret
            vector = engine.embed([query])[0]
        made = engine.parts.ledger.actions.replace(
            case.id,
            new_case(
                query,
                vector,
                solution,
                solution_key=digest(engine.matcher.key(solution)),
                namespace=engine.namespace_id(case.namespace),
                source="human",
                metadata=came.metadata,
                by=by,
            ),
            action,
        )
        engine.learn_soon()
        return made

    def _judged(self, episode: Episode, value: float, seen: str, kind: str, by: ByWhom) -> str | None:
        return self._settle(
            self._open(),
            episode_id=episode.id,
            namespace=episode.namespace,
            value=value,
            source="human",
            solution=None,
            confirms=check_id(seen, "seen"),
            action=NewAction(kind=kind, actor=by.actor),
            by=by,
            record=self._open().parts.door.record(episode.id),
        )

    def propose(
        self,
        query: str,
        solution: Solution | Sequence[Step],
        *,
        metadata: Mapping[str, MetadataValue] | None = None,
    ) -> str:
        """Record a task that an agent solved without a recall; it becomes a case once somebody confirms it.

        Returns the id of its episode, which ``reported()`` lists. A namespace holds at most 1,000 such episodes, or 32 MiB of
        their text.

        >>> from cascade_memory import CascadeMemory
        >>> memory = CascadeMemory(embedder="hashing")
        >>> episode_id = memory.review.propose("cool some mug", "put it into the fridge")
        >>> (seen,) = memory.review.reported()
        >>> case_id = memory.reward(seen.id, 1.0, source="human", confirms=seen.fingerprint)
        >>> memory.cases.get(case_id).solution
        'put it into the fridge'
        """
        engine = self._open()
        record = engine.parts.door.record()
        came = record.take(query=query, solution=solution, metadata=metadata)
        name, by, checked = self._new_in(record), self._by(record), came.solved

        def write(number: int) -> str:
            opens = curation.proposal(engine, number, came.query, checked, metadata=came.metadata, by=by)
            record.keep_for(str(opens.episode_id))
            self._settle(
                engine,
                episode_id=(episode_id := str(opens.episode_id)),
                namespace=name,
                value=1.0,
                source="agent",
                solution=checked,
                by=by,
                record=record,
                opens=opens,
            )
            return episode_id

        return curation.in_namespace(engine, name, write)

    # -- the audit log ---------------------------------------------------------------------------------------------------

    def audit(self, *, newest_first: bool = True) -> Iterator[AuditEntry]:
        """Iterate over what people did, newest first by default: who did what to which case or episode.

        Each entry also says whether it can be undone. The log has every action of this class, and what was added by hand,
        forgotten, purged, brought back, imported, and rewarded anew by a human. An entry is written in the same transaction as
        its action. It holds ids, numbers and people's notes, never the text of a case; the note on a correction is deleted with
        the episode or case that it is about.
        """
        namespace_id = self._namespace_id()

        def read(after: int | None) -> Sequence[tuple[int, AuditEntry]]:
            return self._open().parts.ledger.actions.page(namespace_id, AT_ONCE, after=after, newest_first=newest_first)

        return through_pages(read)

    def page(self, *, after: str | None = None, limit: int = 50) -> Page[AuditEntry]:
        """Return a page of the audit log, newest first, and where the next one begins."""
        limit, start = check_k(limit, "limit"), None if after is None else place_of(after)[1]
        found = self._open().parts.ledger.actions.page(self._namespace_id(), limit + 1, after=start, newest_first=True)
        return page_of(found, limit)

    def undo(self, entry_id: str) -> None:
        """Take an action back: a verdict, ``pin``, ``unpin``, ``hide``, ``unhide``, ``quarantine`` or ``release``.

        If a verdict (``confirm``, ``reject``, ``correct``) is undone, the older outcome comes back and is learned from again,
        or the episode waits again for a verdict. If a quarantine is undone, the actor is released. The undo is an entry of its
        own in the audit log. If an action cannot be undone, ``UndoRefused`` is raised and says why: the action was undone
        before, something later was built on it, or what it changed is deleted.
        """
        engine, name = self._open(), self._namespace
        ledger, namespace_id = engine.parts.ledger, self._namespace_id()
        taken = ledger.actions.taken(namespace_id, check_id(entry_id, "entry_id"))
        action = NewAction(kind="undo", actor=self._who(), takes_back=taken)
        if taken.before is None:
            ledger.actions.undo(namespace_id, action)
            engine.learn_soon()
        else:
            engine.reward(self._as_before(taken.before, action, taken.subject, name))

    def _as_before(self, before: Before, action: NewAction, episode_id: str, namespace: str) -> Judgement:
        record, text = self._open().parts.door.record(episode_id), self._case_text
        of = {"episode_id": episode_id, "namespace": namespace}
        return Judgement.again(before, action, case_text=text, record=record, retain_from=self._retain_from, **of)

    def counting_again(self, wanted: Wanted, namespace: str) -> list[Settlement]:
        """Prepare the outcomes that a source's own outcomes replaced: they count again when the source is forgotten.

        ``wanted`` names the source: the actor, the channel and the time.
        """
        engine = self._open()
        namespace_id = engine.namespace_id(namespace)
        found = engine.parts.ledger.forgetting.coming_back(namespace_id, wanted) if namespace_id else []
        prepared = list[Settlement]()
        for one in found:
            if one.before is None:
                continue
            action = NewAction(kind="undo", takes_back=one)
            try:
                prepared.append(settlement(engine, self._as_before(one.before, action, one.subject, namespace)))
            except Exception as error:  # noqa: BLE001 - its value counts again; an odd row must not keep a source from being undone
                engine.note_failure("undo", error)
        return prepared


def _check_as_seen(found: Episode | Case, seen: str | None) -> None:
    """Raise ``ContentChanged`` if an episode or case has changed since it was seen.

    This check is early; the ledger checks again as it records the change. ``seen`` is the fingerprint, or None for no check.
    """
    if seen is not None and found.fingerprint != seen:
        changed = ContentChanged.of_case if isinstance(found, Case) else ContentChanged.of
        raise changed(found.id, seen)
