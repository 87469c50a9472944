"""A solver for household games without a language model: it solves a declared share alone, the rest by adapting a case."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

from cascade_memory import RecalledCase, Trajectory
from cascade_memory.errors import InvalidInput
from cascade_memory.evaluation.environments.household.engine import Engine
from cascade_memory.evaluation.environments.household.games import Game
from cascade_memory.evaluation.reuse.household_plan import Operation, adapted, operations, read_query
from cascade_memory.evaluation.reuse.household_player import LONGEST, Played, carry_out, replay
from cascade_memory.evaluation.reuse.outcomes import Outcome, Outcomes
from cascade_memory.evaluation.solver import Attempt

_VERSION = "household-1"  # version of the agent: cached outcomes of other versions are not used


class HouseholdAgent:
    """REUSE agent, no language model: it carries out the plan of the best recalled case, with the nouns replaced.

    It looks for the object where the case found it, and then everywhere else. ``alone`` says which games it wins without a
    case, as an LLM wins some without memory. A game must be won within ``limit`` steps.
    """

    def __init__(self, games: Sequence[Game], *, alone: Sequence[bool], outcomes: Path, limit: int) -> None:
        if not 1 <= limit <= LONGEST:
            raise InvalidInput(f"limit must be between 1 and {LONGEST} steps, not {limit}")
        self._games, self._alone, self._limit = games, alone, limit
        self._outcomes = Outcomes(outcomes)
        self._engine: Engine | None = None  # started when the first outcome is unknown

    def attempt(self, place: int, cases: Sequence[RecalledCase]) -> Attempt:
        """Attempt a game with the first of the cases."""
        game = self._games[place]
        if self._alone[place]:
            return self._judged(self._known(game, "solution", lambda engine: replay(engine, game.file, game.solution)))
        if not cases or not isinstance(cases[0].solution, Trajectory):
            return Attempt(False, None, steps=0)
        plan = adapted(operations(cases[0].solution), read_query(cases[0].query), read_query(game.query))
        return self._judged(self.carried_out(game, plan))

    def carried_out(self, game: Game, plan: Sequence[Operation]) -> Outcome:
        """Return the outcome of a plan in a game.

        The plan is played once, with at most ``LONGEST`` steps; for a smaller limit, the caller cuts the outcome.
        """
        key = json.dumps([asdict(operation) for operation in plan])
        return self._known(game, key, lambda engine: carry_out(engine, game.file, plan))

    def _known(self, game: Game, what: str, play: Callable[[Engine], Played]) -> Outcome:
        depends_on = [_VERSION, hashlib.sha256(game.file.read_bytes()).hexdigest(), what]
        known = self._outcomes.known(depends_on)
        if known is None:
            if self._engine is None:
                self._engine = Engine()
            played = play(self._engine)
            known = Outcome(played.won, Trajectory(played.steps) if played.steps else None)
            self._outcomes.keep(depends_on, known)
        return known

    def _judged(self, outcome: Outcome) -> Attempt:
        if outcome.done is None:
            return Attempt(False, None, steps=0)
        steps = outcome.done.steps
        done = outcome.done if len(steps) <= self._limit else Trajectory(steps[: self._limit])
        return Attempt(outcome.success and len(steps) <= self._limit, done, steps=len(done.steps))

    def close(self) -> None:
        """Close the engine."""
        self._outcomes.close()
        if self._engine is not None:
            self._engine.close()
