"""Brings the outcome of an episode to what its scores ask for, one step at a time. Each step is a transaction."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import cast

from cascade_memory.capabilities.scores.score import Reading
from cascade_memory.capabilities.scores.standing import Outcome, Standing, standing
from cascade_memory.domain.actions import NewAction, Taken
from cascade_memory.domain.trust import REVISED, ByWhom
from cascade_memory.engine.engine import Engine
from cascade_memory.engine.request import Judgement
from cascade_memory.errors import AlreadyRewarded, ContentChanged, EpisodeClosed, InvalidInput, UndoRefused, UnknownEpisode
from cascade_memory.ledger import Connection, episode_states
from cascade_memory.ledger.actions import replaced_outcome
from cascade_memory.ledger.reports import withdraw
from cascade_memory.ledger.schema import ATTEMPT
from cascade_memory.memory import Capable

_MOST = 12  # steps for one episode: others may change it meanwhile
_BY_OTHERS = (AlreadyRewarded, ContentChanged, UndoRefused)  # somebody was faster: look again
# What the run recorded, or else the solution of the outcome: an outcome of an agent's own words has none to give back.
_FROM_RUN = f"""INSERT INTO attempt ({ATTEMPT.listed}) SELECT {ATTEMPT.listed} FROM judged_attempt
  WHERE episode = ? AND NOT EXISTS (SELECT 1 FROM attempt WHERE attempt.episode = judged_attempt.episode)"""
_FROM_OUTCOME = """INSERT INTO attempt (episode, status, solution_kind, solution, at)
  SELECT episode, 'ok', solution_kind, solution, at FROM outcome WHERE key = ? AND agents_words = 0 AND solution IS NOT NULL
  AND NOT EXISTS (SELECT 1 FROM attempt WHERE attempt.episode = outcome.episode)
  AND NOT EXISTS (SELECT 1 FROM judged_attempt WHERE judged_attempt.episode = outcome.episode)"""


class Acting(Capable):
    """What ``memory.scores`` does to an episode. No cap limits it: whoever runs a collector answers for what it collects."""

    @classmethod
    def of(cls, memory: Capable) -> Acting:
        """Return an object that acts in a memory."""
        bound = cls._of(memory)
        bound._caps = {}
        return bound

    def bring_about(self, episode_id: str, reading: Reading, texts: Mapping[str, str]) -> tuple[str, ...]:
        """Do what the scores of an episode ask for; return what was done. ``texts`` are corrections by their notes.

        Raise if they ask for something that cannot be done. Whatever happens at the same time, the last one who changes the
        scores or the outcome of an episode looks once more and finds it done.
        """
        done, failed = list[str](), None
        for _ in range(_MOST):
            seen = self._episode(episode_id)
            with self._database().snapshot() as tx:
                now = standing(tx, self._namespace_id(), episode_id, reading, self._actor)
            if now is None or seen is None or now.is_done:
                return tuple(done)
            step = self._step(now, episode_id, texts, seen.fingerprint)
            if step is None:
                return tuple(done)
            try:
                done.append(step())
            except _BY_OTHERS as error:
                failed = error
            except UnknownEpisode:
                return tuple(done)
        raise failed or InvalidInput(f"episode {episode_id!r} does not become what its scores ask for")

    def _step(self, now: Standing, episode_id: str, texts: Mapping[str, str], seen: str) -> Callable[[], str] | None:
        """Return what is to be done next; None if that needs the text of a correction that is not at hand.

        Then a correction that no score asks for any more is at least taken back.
        """
        engine, current, asked = self._open(), now.current, now.wish
        if current is not None and current.is_ours and now.gives_way:
            if now.entry is not None:
                return lambda: self._take_back(engine, episode_id, str(now.entry), str(now.note))
            if now.direct is None:
                return lambda: self._reopen(engine, now.key, current)
            return lambda: self._as_reported(engine, episode_id, current, cast("Outcome", now.direct))
        assert asked is not None
        if current is None and now.status != "open":
            raise EpisodeClosed(f"episode {episode_id!r} is {now.status} and can no longer be rewarded")
        if asked.corrects is None:
            return lambda: self._rewarded(
                engine, episode_id, asked.value, asked.source, asked.actor, overwrite=current is not None
            )
        text = texts.get(asked.corrects.note)
        if text is None and current is not None and current.is_ours and now.entry is not None:
            return lambda: self._take_back(engine, episode_id, str(now.entry), str(now.note))
        if text is None:
            return None
        note = asked.corrects.note
        return lambda: self._corrected(engine, episode_id, text, note, asked.actor, seen)

    def _rewarded(
        self, engine: Engine, episode_id: str, value: float, source: str, actor: str | None, *, overwrite: bool
    ) -> str:
        record = engine.parts.door.record(episode_id)
        self._settle(
            engine,
            episode_id=episode_id,
            namespace=self._namespace,
            value=value,
            source=source,
            solution=None,
            overwrite=overwrite,
            by=ByWhom(actor, REVISED[0]),
            record=record,
        )
        return "rewarded"

    def _corrected(self, engine: Engine, episode_id: str, text: str, note: str, actor: str | None, seen: str) -> str:
        record = engine.parts.door.record(episode_id)
        self._settle(
            engine,
            episode_id=episode_id,
            namespace=self._namespace,
            value=0.0,
            source="human",
            solution=record.take(solution=text).solved,
            confirms=seen,
            action=NewAction(kind="correct", actor=actor, note=note),
            by=ByWhom(actor, REVISED[0]),
            record=record,
        )
        return "corrected"

    def _take_back(self, engine: Engine, episode_id: str, entry: str, note: str) -> str:
        """Undo a correction, as a person would."""
        ledger, number = engine.parts.ledger, self._namespace_id()
        taken = ledger.actions.taken(number, entry)
        action = NewAction(kind="undo", actor=self._actor, note=f"{note}: withdrawn or changed", takes_back=taken)
        if taken.before is None:
            ledger.actions.undo(number, action)
            engine.learn_soon()
        else:
            self._count_again(engine, episode_id, action, taken)
        return "withdrawn"

    def _as_reported(self, engine: Engine, episode_id: str, current: Outcome, direct: Outcome) -> str:
        """Let the outcome that somebody reported directly count again."""
        with self._reading() as tx:
            before = replaced_outcome(tx, direct.key)
        taken = Taken(key=0, id="", kind="reward", subject=episode_id, outcome=current.key, replaced=direct.key, before=before)
        self._count_again(engine, episode_id, NewAction(kind="undo", actor=self._actor, takes_back=taken), taken)
        return "withdrawn"

    def _count_again(self, engine: Engine, episode_id: str, action: NewAction, taken: Taken) -> None:
        assert taken.before is not None
        again = Judgement.again(
            taken.before,
            action,
            episode_id=episode_id,
            namespace=self._namespace,
            case_text=self._case_text,
            record=engine.parts.door.record(episode_id),
            retain_from=self._retain_from,
        )
        engine.reward(again)

    def _reopen(self, engine: Engine, episode: int, current: Outcome) -> str:
        """Withdraw an outcome with what it taught; the episode waits for another one, with what its run recorded."""
        with self._writing() as tx:
            if not _is_current(tx, episode, current.key):
                raise UndoRefused("somebody has judged the episode again")
            tx.execute(_FROM_OUTCOME, (current.key,))
            withdraw(tx, self._namespace_id(), time.time(), current.key)
            episode_states.reopen(tx, episode)
            tx.execute(_FROM_RUN, (episode,))
            tx.execute("DELETE FROM judged_attempt WHERE episode = ?", (episode,))
        engine.learn_soon()
        return "withdrawn"


def _is_current(tx: Connection, episode: int, outcome: int) -> bool:
    found = tx.execute("SELECT key FROM outcome WHERE episode = ? AND withdrawn_at IS NULL", (episode,)).fetchone()
    return found is not None and found[0] == outcome
