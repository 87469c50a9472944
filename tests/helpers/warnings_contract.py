"""What the rows of warnings must do in each database: go with what they come from, and count the results of warnings."""

from __future__ import annotations

from typing import Any

import numpy as np
from warning_rows import rows_in

from cascade_memory.capabilities.warnings.records import Blame, Check, WarningDecision
from cascade_memory.domain import AuditEntry, NewAction, NewCase, Settlement, Wanted
from cascade_memory.domain.failure_warning import Tally
from cascade_memory.errors import EpisodeClosed, UndoRefused, UnknownEpisode, UnknownWarning
from cascade_memory.ledger import Ledger
from cascade_memory.testing.ledger_material import VECTOR, LedgerMaterial

_OTHER = np.array([1.0, 0.0], np.float32)


class _Warned(LedgerMaterial):
    """Makes failures, checks and decisions."""

    def _blame(self, **options: Any) -> Blame:
        said: dict[str, Any] = {"tool": "sql", "action": "SELECT x", "happened": "no such column: x", "words": ("x",)}
        said |= {"why": "failed", "group": "w", **options}
        return Blame(**said)

    def _settlement(self, episode: str, value: float, case: NewCase | None = None, **options: Any) -> Settlement:
        found = {name: options.pop(name) for name in ("blame", "repeats") if name in options}
        return super()._settlement(episode, value, case, found=found, **options)

    def _blamed(self, ledger: Ledger, episode: str, *, shown: tuple[int, ...] = (), **options: Any) -> None:
        """Record an episode and its failure."""
        asked = {name: options.pop(name) for name in ("query", "metadata") if name in options}
        ledger.record(self._recall(episode, candidates=shown, actor=options.pop("asker", None), **asked))
        blame = options.pop("blame", self._blame())
        ledger.settle(self._settlement(episode, 0.0, blame=blame, **options))

    def _checked(self, ledger: Ledger, episode: str, *, warned: bool = True, warning: str = "w", **options: Any) -> Check:
        """Open an episode, and note a check in it."""
        ledger.record(self._recall(episode))
        return rows_in(ledger).note_check(
            Check(episode_id=episode, warning=warning, warned=warned, propensity=0.25, at=3.0, **options)
        )

    def _decided_on(self, ledger: Ledger, kind: str, **decision: Any) -> bool:
        return rows_in(ledger).decide(1, "w", WarningDecision(**decision), NewAction(kind=kind, actor="ann", note="so"))

    def _entries(self, ledger: Ledger) -> list[AuditEntry]:
        return [entry for _, entry in ledger.actions.page(1, 100)]

    def _taken_back(self, ledger: Ledger, place: int) -> None:
        taken = ledger.actions.taken(1, self._entries(ledger)[place].id)
        ledger.actions.undo(1, NewAction(kind="undo", takes_back=taken))

    def _failures(self, ledger: Ledger) -> list[str]:
        """Return the episodes that failed, and check that the ledger is sound."""
        assert ledger.maintenance.orphans() == {}
        assert ledger.maintenance.faults(9) == []
        return [one.episode_id for one in rows_in(ledger).failures(1)]

    def _instead(self, ledger: Ledger) -> tuple[str, str | None]:
        (one,) = rows_in(ledger).failures(1)
        return one.blame.instead, one.blame.instead_case


class WarningsKeptContract(_Warned):
    """Tests of failures, of checks, and of people's decisions about warnings.

    A failure is the step that is blamed for a failed episode; it is stored and deleted with the outcome. A check is a question
    whether an action is a known mistake.
    """

    def test_a_failure_is_read_as_it_was_written(self) -> None:
        """A failure has the vector of its episode and the actor who asked, and is trusted no more than what was shown."""
        ledger = self._ledger()
        ledger.cases.add([self._case(source="agent")])
        blame = self._blame(tool=None, why="refused", words=("no", "Zoë"))
        self._blamed(ledger, "e1", query="a task", asker="bob", actor="eve", channel="mcp", blame=blame, source="judge")
        self._blamed(ledger, "e2", shown=tuple(self._keys(ledger)), actor="ann", source="human")
        one, two = rows_in(ledger).failures(1)
        assert (one.key, two.key) == tuple(self._outcomes(ledger))
        assert (one.blame, one.query, one.at, one.source, one.trust) == (blame, "a task", 2.0, "judge", 2)
        assert (one.episode_id, one.actor, one.channel, one.reporter) == ("e1", "bob", None, "eve")
        assert (two.blame, two.trust, two.actor, two.reporter) == (self._blame(), 0, "ann", None)
        np.testing.assert_allclose(one.vector, VECTOR)
        assert [one.episode_id for one in rows_in(ledger).failures(1, one.key)] == ["e2"]
        assert [one.episode_id for one in rows_in(ledger).failures(1, limit=1)] == ["e1"]
        assert rows_in(ledger).failures(2) == []

    def test_one_warning_is_read_alone(self) -> None:
        """The failures of one warning are read page by page, without those of other warnings."""
        ledger = self._ledger()
        for number, group in enumerate("wvww"):
            self._blamed(ledger, f"e{number}", blame=self._blame(group=group))
        first, second = rows_in(ledger).failures(1, 0, 2, warning="w")
        assert [one.episode_id for one in (first, second)] == ["e0", "e2"]
        assert [one.episode_id for one in rows_in(ledger).failures(1, second.key, 2, warning="w")] == ["e3"]
        assert rows_in(ledger).failures(1, warning="unknown") == []

    def test_whom_nobody_trusts_blames_nothing(self) -> None:
        """An outcome that teaches nothing stores no failure, nor does one beyond the hourly cap of its actor (``cap``)."""
        ledger = self._ledger()
        self._blamed(ledger, "e1", source="agent", learns=False)
        self._blamed(ledger, "e2", actor="eve", cap=0)
        assert self._failures(ledger) == []

    def test_it_goes_when_its_outcome_is_replaced(self) -> None:
        """A failure is replaced or deleted with its outcome.

        A person's decision about a warning stays as long as the warning has a failure; a model's advice does not.
        """
        ledger = self._ledger()
        self._blamed(ledger, "e1")
        self._decided_on(ledger, "advise", advice="DESCRIBE first", by_model=True)
        self._decided_on(ledger, "retire")
        worse = self._blame(happened="again")
        ledger.settle(self._settlement("e1", 0.25, blame=worse, overwrite=True))
        (one,) = rows_in(ledger).failures(1)
        assert (one.key, one.blame) == (self._outcomes(ledger)[-1], worse)
        assert rows_in(ledger).decisions(1) == {"w": WarningDecision(retired=True)}
        ledger.settle(self._settlement("e1", 1.0, overwrite=True))
        assert self._failures(ledger) == []
        assert rows_in(ledger).decisions(1) == {}
        assert [entry.note for entry in self._entries(ledger)] == [None, None]
        assert not any(entry.can_undo for entry in self._entries(ledger))

    def test_a_verdict_that_is_taken_back_gives_the_failure_back(self) -> None:
        """If a person's verdict is undone and an older outcome counts again, the failure of that outcome is stored again."""
        ledger = self._ledger()
        self._blamed(ledger, "e1")
        verdict = NewAction(kind="correct", actor="ann")
        ledger.settle(self._settlement("e1", 1.0, self._case(episode_id="e1"), source="human", action=verdict))
        assert self._failures(ledger) == []
        back = NewAction(kind="undo", takes_back=ledger.actions.taken(1, self._entries(ledger)[0].id))
        ledger.settle(self._settlement("e1", 0.0, action=back, blame=self._blame()))
        (one,) = rows_in(ledger).failures(1)
        assert (one.key, one.source) == (self._outcomes(ledger)[0], "host")
        ledger.record(self._recall("e2"))
        judged = self._settlement("e2", 0.0, source="human", action=NewAction(kind="reject"), blame=self._blame())
        ledger.settle(judged)
        assert self._failures(ledger) == ["e1", "e2"]
        self._taken_back(ledger, -1)
        assert self._failures(ledger) == ["e1"]

    def test_it_is_forgotten_with_its_episode(self) -> None:
        """A failure is forgotten with its episode, and so are checks and the advice and decisions that rest on the failure.

        The counts of what was forgotten include the failures (``warnings``) if there were any.
        """
        ledger = self._ledger()
        for name, user in (("e1", "ann"), ("e2", "bob"), ("e3", "cid"), ("e4", "dan")):
            self._blamed(ledger, name, metadata={"user": user}, asker=user)
        self._checked(ledger, "open", call="c1")
        self._decided_on(ledger, "advise", advice="quote names", by_model=True)
        self._decided_on(ledger, "restore")
        would = ledger.forgetting.forget_episode("e1", preview=True)
        assert ledger.forgetting.forget_episode("e1") == would
        assert would["warnings"] == 1
        assert rows_in(ledger).decisions(1) == {"w": WarningDecision(retired=False)}
        assert ledger.forgetting.forget_where(1, {"user": "bob"})["warnings"] == 1
        undone = ledger.forgetting.forget_source(1, Wanted(actor="cid"), window=10)
        assert undone.counts["warnings"] == 1
        assert self._failures(ledger) == ["e4"]
        assert len(rows_in(ledger).checks("open")) == 1
        assert ledger.forgetting.forget_episode("e4")["warnings"] == 1
        assert (self._failures(ledger), rows_in(ledger).decisions(1), rows_in(ledger).checks("open")) == ([], {}, [])
        self._blamed(ledger, "e5")
        self._checked(ledger, "e6")
        assert "warnings" not in ledger.forgetting.forget_episode("e6")
        assert rows_in(ledger).checks("e6") == []
        self._checked(ledger, "e7")
        self._decided_on(ledger, "retire")
        assert ledger.forgetting.forget_namespace(1)["warnings"] == 1
        assert (self._failures(ledger), rows_in(ledger).decisions(1), rows_in(ledger).checks("e7")) == ([], {}, [])

    def test_what_others_reported_is_forgotten_with_them(self) -> None:
        """If an outcome is forgotten with its reporter, its failure and the results of its checks go too.

        The episode is open again, and can get another outcome.
        """
        ledger = self._ledger()
        self._blamed(ledger, "e0")
        self._checked(ledger, "e1")
        ledger.settle(self._settlement("e1", 0.0, actor="eve", blame=self._blame(), repeats={"w": True}))
        assert rows_in(ledger).tallies(1)["w"].warned_repeated == 1
        undone = ledger.forgetting.forget_source(1, Wanted(actor="eve"), window=10)
        assert undone.counts == {"cases": 0, "episodes": 0, "recalls": 0, "outcomes": 1, "warnings": 1}
        assert self._failures(ledger) == ["e0"]
        assert rows_in(ledger).tallies(1) == {}
        ledger.settle(self._settlement("e1", 1.0, repeats={"w": False}))
        assert rows_in(ledger).tallies(1) == {"w": Tally(warned=1, warned_reward=1.0)}

    def test_what_worked_goes_with_the_case_that_says_so(self) -> None:
        """What worked instead is empty while its case is hidden or once it is forgotten, but stays if the case is evicted."""
        ledger = self._ledger()
        ledger.record(self._recall("right"))
        case = self._case(episode_id="right", source="judge")
        ledger.settle(self._settlement("right", 1.0, case, source="judge"))
        (key,) = self._keys(ledger)
        self._blamed(ledger, "e1", blame=self._blame(instead="SELECT y", instead_case=case.id))
        (one,) = rows_in(ledger).failures(1)
        assert (self._instead(ledger), one.trust) == (("SELECT y", case.id), 2)
        ledger.actions.flag(1, case.id, NewAction(kind="hide"))
        assert self._instead(ledger) == ("", None)
        ledger.actions.flag(1, case.id, NewAction(kind="unhide"))
        ledger.cases.evict([key], aside=5)
        assert self._instead(ledger) == ("SELECT y", case.id)
        ledger.expiry.revive(1, [case.id])
        assert self._instead(ledger) == ("SELECT y", case.id)
        ledger.cases.evict(self._keys(ledger))
        assert self._instead(ledger) == ("SELECT y", None)
        ledger.forgetting.forget_episode("right")
        assert self._instead(ledger) == ("", None)
        assert self._failures(ledger) == ["e1"]

    def test_what_a_case_by_hand_says_goes_with_it(self) -> None:
        """What worked instead is deleted with its case if this case has no episode, even if the case is only evicted.

        Nobody could forget it by the case any more. If the named case does not exist, it is not stored at all.
        """
        ledger = self._ledger()
        case_id, other = ledger.cases.add([self._case(), self._case(query="another")])
        self._blamed(ledger, "e1", blame=self._blame(instead="SELECT y", instead_case=case_id))
        self._blamed(ledger, "e2", blame=self._blame(instead="SELECT z", instead_case=other))
        self._blamed(ledger, "e3", blame=self._blame(instead="SELECT z", instead_case="nobody"))
        self._blamed(ledger, "e4", blame=self._blame(instead="later in this run"))
        first, second = self._keys(ledger)
        ledger.forgetting.forget(1, [first])
        ledger.cases.evict([second])
        found = [(one.blame.instead, one.blame.instead_case) for one in rows_in(ledger).failures(1)]
        assert found == [("", None)] * 3 + [("later in this run", None)]

    def test_an_episode_has_one_check_of_a_warning(self) -> None:
        """Of the checks of one warning in an episode, only the first counts; a check can be noted only in an open episode."""
        ledger = self._ledger()
        self._blamed(ledger, "e1")
        first = self._checked(ledger, "e2", call="c1")
        assert (first.warned, first.propensity, first.call, first.repeated, first.reward) == (True, 0.25, "c1", None, None)
        assert self._checked(ledger, "e2", warned=False, call="c2") == first
        second = self._checked(ledger, "e2", warning="another", warned=False)
        assert rows_in(ledger).checks("e2") == [first, second]
        nobody = Check(episode_id="nobody", warning="w", warned=True, propensity=0.5, at=3.0)
        self._refused(UnknownEpisode, lambda: rows_in(ledger).note_check(nobody))
        closed = Check(episode_id="e1", warning="w", warned=True, propensity=0.5, at=3.0)
        self._refused(EpisodeClosed, lambda: rows_in(ledger).note_check(closed))
        assert self._failures(ledger) == ["e1"]

    def test_an_episode_has_no_more_warnings_than_it_may(self) -> None:
        """A warning beyond the limit ``most`` of an episode is not recorded, and its check is returned as silent (not given).

        Only warnings that were given count.
        """
        ledger = self._ledger()
        self._blamed(ledger, "e1")
        first = self._checked(ledger, "e2")
        silent = self._checked(ledger, "e2", warning="silent", warned=False)
        beyond = Check(episode_id="e2", warning="another", warned=True, propensity=0.5, at=4.0)
        assert not rows_in(ledger).note_check(beyond, most=1).warned
        assert rows_in(ledger).note_check(first, most=1) == first
        assert rows_in(ledger).checks("e2") == [first, silent]
        assert rows_in(ledger).note_check(beyond, most=2) == beyond

    def test_what_came_of_checks_is_counted_once_it_teaches(self) -> None:
        """``tallies`` counts the results of checks by warning, and by whether the warning was given.

        A later outcome replaces the reward. An agent's own report does not count.
        """
        ledger = self._ledger()
        for number, warned in enumerate((True, True, False, True, True)):
            self._checked(ledger, f"e{number}", warned=warned)
        ledger.settle(self._settlement("e0", 1.0, repeats={"w": False}))
        ledger.settle(self._settlement("e1", 0.25, repeats={"w": True}))
        ledger.settle(self._settlement("e2", 0.0, repeats={"w": True, "another": True}))
        ledger.settle(self._settlement("e3", 1.0, source="agent", learns=False, repeats={"w": False}))
        ledger.settle(self._settlement("e4", 1.0))  # nobody knows whether it was repeated
        counted = Tally(warned=2, warned_repeated=1, warned_reward=1.25, silent=1, silent_repeated=1)
        assert rows_in(ledger).tallies(1) == {"w": counted}
        assert rows_in(ledger).tallies(2) == {}
        assert [(one.repeated, one.reward) for one in rows_in(ledger).checks("e1")] == [(True, 0.25)]
        ledger.settle(self._settlement("e1", 0.75, overwrite=True))
        assert rows_in(ledger).tallies(1)["w"].warned_reward == 1.75
        ledger.settle(self._settlement("e3", 1.0))
        assert rows_in(ledger).tallies(1)["w"].warned == 3

    def test_people_decide_and_take_it_back(self) -> None:
        """Of several decisions on a warning's advice or retirement, the last one counts; each can be undone while it counts.

        The log has an entry for each decision and each undo.
        """
        ledger = self._ledger()
        self._blamed(ledger, "e1")
        before = ledger.head()
        self._refused(UnknownWarning, lambda: rows_in(ledger).decide(2, "w", WarningDecision(), NewAction(kind="retire")))
        assert self._decided_on(ledger, "retire")
        assert not self._decided_on(ledger, "retire")
        assert self._decided_on(ledger, "advise", advice="DESCRIBE first")
        assert not self._decided_on(ledger, "advise", advice="what a model says", by_model=True)
        assert self._decided_on(ledger, "restore")
        assert self._decided_on(ledger, "advise", advice="quote names")
        assert rows_in(ledger).decisions(1) == {"w": WarningDecision(retired=False, advice="quote names")}
        assert rows_in(ledger).decisions(2) == {}
        entries = self._entries(ledger)
        assert [entry.action for entry in entries] == ["retire", "advise", "restore", "advise"]
        assert {(entry.subject, entry.actor, entry.note) for entry in entries} == {("w", "ann", "so")}
        assert [entry.can_undo for entry in entries] == [False, False, True, True]
        self._refused(UndoRefused, lambda: self._taken_back(ledger, 0))
        self._taken_back(ledger, 2)
        assert rows_in(ledger).decisions(1) == {"w": WarningDecision(retired=True, advice="quote names")}
        self._taken_back(ledger, 3)
        assert rows_in(ledger).decisions(1) == {"w": WarningDecision(retired=True, advice="DESCRIBE first")}
        self._taken_back(ledger, 0)
        self._taken_back(ledger, 1)
        assert rows_in(ledger).decisions(1) == {}
        assert [change.decides for change in ledger.tail(before)] == [True] * 8
        assert "first" not in str(self._entries(ledger))
        assert ledger.maintenance.audit_log()[0]

    def test_only_the_newest_are_kept(self) -> None:
        """``keep_newest`` keeps only the newest failures, and none before ``since``; the counted results of warnings stay."""
        ledger = self._ledger()
        for number in range(5):
            self._blamed(ledger, f"e{number}", at=float(number + 2), blame=self._blame(group=f"w{number % 2}"))
        self._checked(ledger, "checked", warning="w1")
        ledger.settle(self._settlement("checked", 1.0, repeats={"w1": False}))
        assert rows_in(ledger).keep_newest(1, 5) == rows_in(ledger).keep_newest(2, 0) == 0
        before = ledger.head()
        assert rows_in(ledger).keep_newest(1, 4) == 1
        assert self._failures(ledger) == ["e1", "e2", "e3", "e4"]
        assert rows_in(ledger).keep_newest(1, 4, since=4.0) == 1
        assert [change.decides for change in ledger.tail(before)] == [True, True]
        assert rows_in(ledger).keep_newest(1, 0) == 3
        assert self._failures(ledger) == []
        assert rows_in(ledger).tallies(1)["w1"].warned == 1


class WarningsTravelContract(_Warned):
    """Tests that failures, checks and decisions survive an export, an import, and a change of the embedder."""

    def _content(self, ledger: Ledger) -> list[Any]:
        found = [(one.episode_id, one.blame, one.query, one.at, one.trust) for one in rows_in(ledger).failures(1)]
        return [found, rows_in(ledger).tallies(1), rows_in(ledger).checks("e2"), rows_in(ledger).decisions(1)]

    def test_they_are_exported_and_imported(self) -> None:
        """Loading twice changes nothing; a decision can be taken back in the ledger that loaded it."""
        ledger, other = self._ledger(), self.make()
        (case_id,) = ledger.cases.add([self._case()])
        self._blamed(ledger, "e1", blame=self._blame(instead="SELECT y", instead_case=case_id))
        self._checked(ledger, "e2", call="c1")
        self._decided_on(ledger, "retire")
        self._decided_on(ledger, "advise", advice="quote names", by_model=True)
        ledger.settle(self._settlement("e2", 0.0, blame=self._blame(tool=None), repeats={"w": True}))
        self._decided_on(ledger, "advise", advice="DESCRIBE first")
        records = list(ledger.archive.dump())
        assert other.archive.load(records, len(VECTOR), str) == len(records)
        assert other.archive.load(records, len(VECTOR), str) == 0
        assert self._content(other) == self._content(ledger)
        assert list(other.archive.dump()) == records
        assert self._failures(other) == ["e1", "e2"]
        self._taken_back(other, 0)
        assert rows_in(other).decisions(1) == {"w": WarningDecision(advice="DESCRIBE first")}

    def test_they_follow_the_embedder(self) -> None:
        """The vectors of failures are replaced too, even if the episode has lost its own vector."""
        ledger = self._ledger()
        ledger.bind("one")
        self._blamed(ledger, "e1")
        ledger.lessons.compact(1, 0, 10)
        assert ledger.maintenance.query_texts() == ["q"]
        ledger.maintenance.replace_vectors(lambda texts: dict.fromkeys(texts, _OTHER), "another")
        (one,) = rows_in(ledger).failures(1)
        np.testing.assert_allclose(one.vector, _OTHER)
        assert ledger.maintenance.odd_vectors(2) == 0
        assert ledger.maintenance.odd_vectors(3) > 0


class WarningsContract(WarningsKeptContract, WarningsTravelContract):
    """All of them; a subclass returns a fresh ledger from ``make``."""
