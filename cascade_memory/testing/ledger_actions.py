"""What ``actions`` of every ledger must do, and the audit log of all its parts."""

from __future__ import annotations

import time

from cascade_memory.domain import AuditEntry, NewAction
from cascade_memory.errors import AlreadyRewarded, UndoRefused, UnknownCase
from cascade_memory.ledger import Ledger
from cascade_memory.testing.ledger_material import LedgerMaterial


class LedgerActionsContract(LedgerMaterial):
    """Tests that a person's decision takes effect at once, is written to the audit log, and can be undone."""

    def _log(self, ledger: Ledger) -> list[AuditEntry]:
        return [entry for _, entry in ledger.actions.page(1, 100)]

    def _undo(self, ledger: Ledger, entry: AuditEntry) -> None:
        action = NewAction(kind="undo", actor="bob", takes_back=ledger.actions.taken(1, entry.id))
        ledger.actions.undo(1, action)

    def test_a_hidden_case_is_no_candidate(self) -> None:
        """``newest``, ``scan`` and ``candidates`` leave out a hidden case; ``page`` still lists it; the log has an entry."""
        ledger = self._ledger()
        hidden, _ = ledger.cases.add([self._case(query="a"), self._case(query="b")])
        key, other = self._keys(ledger)
        before = ledger.head()
        assert ledger.actions.flag(1, hidden, NewAction(kind="hide", actor="ann"))
        assert not ledger.actions.flag(1, hidden, NewAction(kind="hide"))
        assert [(change.hides_case, change.ref) for change in ledger.tail(before)] == [(True, key)]
        keys = ledger.newest(1, 10)
        assert keys.tolist() == ledger.scan(1, 0, 10).keys.tolist() == list(ledger.candidates(keys)) == [other]
        assert (ledger.cases.count(1), ledger.cases.count(1, hidden=False), len(ledger.cases.records(1))) == (2, 1, 1)
        assert ledger.cases.page(1, 10) == [key, other]
        assert ledger.cases.by_key([key])[key].hidden
        (entry,) = self._log(ledger)
        assert (entry.action, entry.actor, entry.subject, entry.can_undo) == ("hide", "ann", hidden, True)
        before = ledger.head()
        self._undo(ledger, entry)
        assert [(change.shows_case_again, change.ref) for change in ledger.tail(before)] == [(True, key)]
        assert self._keys(ledger) == [key, other]
        assert [(one.action, one.undone, one.can_undo) for one in self._log(ledger)] == [
            ("hide", True, False),
            ("undo", False, False),
        ]
        self._refused(UndoRefused, lambda: self._undo(ledger, entry))
        self._refused(UnknownCase, lambda: ledger.actions.flag(1, "nobody", NewAction(kind="hide")))
        self._refused(UnknownCase, lambda: ledger.actions.flag(2, hidden, NewAction(kind="hide")))

    def test_a_pinned_or_hidden_case_does_not_expire(self) -> None:
        """Pinned and hidden cases do not expire; a case that is neither does."""
        ledger = self._ledger()
        pinned, hidden, neither = ledger.cases.add([self._case(query=query) for query in ("a", "b", "c")])
        ledger.actions.flag(1, pinned, NewAction(kind="pin"))
        ledger.actions.flag(1, hidden, NewAction(kind="hide"))
        self.wait(1.1 * self.TTL)
        look = ledger.expiry.expire(1, self.TTL)
        assert (look.expired, [one.id for one in ledger.expiry.expired(1)]) == (1, [neither])
        assert look.look_again > 0.0
        (key,) = self._keys(ledger)
        assert ledger.cases.records(1).pinned.tolist() == [True]
        assert list(ledger.candidates(ledger.newest(1, 10), verified_after=time.time() + 1e6)) == [key]

    def test_a_case_replaces_another(self) -> None:
        """``replace`` hides the older case, and the audit log names both cases; an undo shows the older one again."""
        ledger = self._ledger()
        (old,) = ledger.cases.add([self._case()])
        made = ledger.actions.replace(old, self._case(solution="t"), NewAction(kind="correct", note="wrong"))
        (entry,) = self._log(ledger)
        assert (entry.subject, entry.hid, entry.made, entry.note) == (old, old, made, "wrong")
        assert [ledger.cases.by_key([key])[key].id for key in self._keys(ledger)] == [made]
        self._undo(ledger, entry)
        assert [ledger.cases.by_key([key])[key].id for key in self._keys(ledger)] == [old]

    def test_a_verdict_is_kept_until_it_is_taken_back(self) -> None:
        """After an undo of a person's verdict, the episode is open again, with what its run had recorded."""
        ledger = self._ledger()
        ledger.record(self._recall("e1"))
        ledger.episodes.finish("e1", 1, "ok", "s")
        waiting = ledger.episodes.one("e1")
        assert [doubt.episode_id for doubt in ledger.actions.doubts(1)] == ["e1"]
        case = self._case(episode_id="e1", solution="right")
        ledger.settle(self._settlement("e1", 0.0, case, source="human", action=NewAction(kind="correct", actor="ann")))
        assert (len(self._keys(ledger)), ledger.actions.doubts(1)) == (1, [])
        (entry,) = self._log(ledger)
        assert (entry.action, entry.subject, entry.made) == ("correct", "e1", case.id)
        again = self._settlement("e1", 1.0, source="human", action=NewAction(kind="confirm"))
        self._refused(AlreadyRewarded, lambda: ledger.settle(again))
        self._undo(ledger, entry)
        assert ledger.episodes.one("e1") == waiting
        assert self._keys(ledger) == []
        assert ledger.maintenance.faults(9) == []

    def test_every_entry_holds_numbers_and_no_text(self) -> None:
        """Adding, correcting, forgetting and purging each leave an entry in the audit log; a preview leaves none.

        The entries hold counts and no text: the note of a correction is deleted when its case is forgotten.
        """
        ledger = self._ledger()
        (case_id,) = ledger.cases.add([self._case(query="a secret")], NewAction(kind="add", actor="ann"))
        made = ledger.actions.replace(case_id, self._case(solution="t"), NewAction(kind="correct", note="a secret"))
        keys = [one.key for one in ledger.cases.by_id([case_id, made], 1)]
        would = ledger.forgetting.forget(1, keys, NewAction(kind="forget"), preview=True)
        assert ledger.cases.count(1) == 2
        assert ledger.forgetting.forget(1, keys, NewAction(kind="forget")) == would
        assert ledger.forgetting.forget_namespace(1, NewAction(kind="forget")) == dict.fromkeys(would, 0)
        ledger.forgetting.scrub(1, NewAction(kind="purge"))
        found = self._log(ledger)
        assert [entry.action for entry in found] == ["add", "correct", "forget", "purge"]
        assert [dict(entry.counts) for entry in found] == [{"cases": 1}, {"cases": 1}, {"cases": 2}, {}]
        assert "secret" not in str(found)
