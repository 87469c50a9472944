"""What the rows of actors must do in each database: who made what, who reported it, and whose cases are in quarantine."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from cascade_memory.capabilities.sources.rows import ActorRows
from cascade_memory.domain import NewAction
from cascade_memory.ledger import Ledger
from cascade_memory.testing.ledger_material import LedgerMaterial


def rows_in(ledger: Ledger) -> ActorRows:
    """Return the rows of a ledger."""
    return ActorRows(ledger.connections)


class ActorsContract(LedgerMaterial):
    """Tests that authors and reporters can be read, and that every process learns of a quarantine."""

    def _decide(self, ledger: Ledger, kind: str, actor: str) -> int | None:
        decide = rows_in(ledger).quarantine if kind == "quarantine" else rows_in(ledger).release
        return decide(1, actor, NewAction(kind=kind, actor="ann"))

    def test_authors_are_known_but_for_cases_of_persons(self) -> None:
        """``authors`` leaves out cases that a person added or pinned, since no actor's record affects them."""
        ledger = self._ledger()
        assert not rows_in(ledger).any(1)
        ids = ledger.cases.add(
            [
                self._case(query="a", actor="bob"),
                self._case(query="b", actor="bob", source="human"),
                self._case(query="c", actor="bob"),
                self._case(query="d"),
            ]
        )
        ledger.actions.flag(1, ids[2], NewAction(kind="pin"))
        keys = self._keys(ledger)
        assert rows_in(ledger).any(1)
        assert not rows_in(ledger).any(2)
        assert rows_in(ledger).authors(keys) == {keys[0]: "bob"}
        found = ledger.candidates(np.array(keys, np.int64))
        assert [found[key][4] for key in keys] == ["bob", None, None, None]

    def test_the_authors_of_cases_that_have_made_room_are_known(self) -> None:
        """Evicted cases keep their authors, since their outcomes count whenever all outcomes are read again."""
        ledger = self._ledger()
        told: list[tuple[str, dict[str, Any]]] = [("bob", {}), ("joe", {}), ("eve", {"source": "human"})]
        for number, (actor, options) in enumerate(told):
            ledger.record(self._recall(f"e{number}", actor=actor))
            case = self._case(query=f"a{number}", actor=actor, episode_id=f"e{number}", **options)
            ledger.settle(self._settlement(f"e{number}", 1.0, case, **options))
        ledger.cases.add([self._case(query="by hand", actor="sue"), self._case(query="nobody's")])
        keys = self._keys(ledger)
        known = rows_in(ledger).authors(keys)
        assert known == {keys[0]: "bob", keys[1]: "joe", keys[3]: "sue"}
        ledger.cases.evict(keys[1:], aside=10)
        assert rows_in(ledger).authors(keys) == known
        ledger.cases.evict(keys[:1])
        assert rows_in(ledger).authors(keys) == known

    def test_testimonies_are_the_outcomes_that_are_learned_from(self) -> None:
        """``testimonies`` returns the newest outcomes that are learned from, oldest first; it names no person as reporter."""
        ledger = self._ledger()
        ledger.cases.add([self._case(query="a", actor="bob")])
        key = self._keys(ledger)[0]
        told: list[dict[str, Any]] = [{"actor": "eve"}, {"source": "human", "actor": "ann"}, {"learns": False}, {}]
        for number, options in enumerate(told):
            ledger.record(self._recall(f"e{number}", candidates=(key,), actor="joe"))
            ledger.settle(self._settlement(f"e{number}", 0.5, **options))
        outcomes = self._outcomes(ledger)
        found = rows_in(ledger).testimonies(1, 10)
        assert [(one.outcome, one.reporter, one.reward, one.shown) for one in found] == [
            (outcomes[0], "eve", 0.5, True),
            (outcomes[1], None, 0.5, True),
            (outcomes[3], "joe", 0.5, True),
        ]
        assert all(one.cases.tolist() == [key] and one.chosen.tolist() == [0] and one.predicted == 1.0 for one in found)
        assert [one.outcome for one in rows_in(ledger).testimonies(1, 1)] == [outcomes[3]]
        assert [one.outcome for one in rows_in(ledger).testimonies(1, 10, until=outcomes[1])] == outcomes[:2]
        assert [one.outcome for one in rows_in(ledger).testimony(outcomes[1])] == [outcomes[1]]
        assert rows_in(ledger).testimony(outcomes[2]) == rows_in(ledger).testimonies(2, 10) == []

    def test_without_candidates_nothing_was_expected(self) -> None:
        """The outcome of an episode without candidates has its reporter, but no predicted reward."""
        ledger = self._ledger()
        ledger.record(self._recall("e", actor="joe"))
        ledger.settle(self._settlement("e", 1.0))
        (one,) = rows_in(ledger).testimonies(1, 10)
        assert (one.reporter, one.shown, len(one.cases), math.isnan(one.predicted)) == ("joe", False, 0, True)

    def test_a_quarantine_hides_cases_and_a_release_shows_them(self) -> None:
        """A quarantine hides the cases of an actor, and a release shows them again.

        The log tells every process of a quarantine, even if the actor has no case yet; the audit log says who decided.
        """
        ledger = self._ledger()
        ledger.cases.add([self._case(query="a", actor="bob"), self._case(query="b", actor="joe")])
        first, second = self._keys(ledger)
        before = ledger.head()
        assert self._decide(ledger, "quarantine", "bob") == 1
        assert self._decide(ledger, "quarantine", "bob") is None
        assert [(change.hides_case, change.ref) for change in ledger.tail(before)][:1] == [(True, first)]
        assert self._keys(ledger) == [second]
        assert ledger.cases.by_key([first])[first].hidden
        assert self._decide(ledger, "quarantine", "eve") == 0
        assert ledger.tail(before)[-1].hides_case
        assert dict(rows_in(ledger).decided(1)) == {"bob": True, "eve": True}
        assert dict(rows_in(ledger).decided(2)) == {}
        assert self._decide(ledger, "release", "bob") == 1
        assert self._keys(ledger) == [first, second]
        assert dict(rows_in(ledger).decided(1)) == {"bob": False, "eve": True}
        entries = [entry for _, entry in ledger.actions.page(1, 10)]
        assert [(one.action, one.subject, one.actor, one.can_undo) for one in entries] == [
            ("quarantine", "bob", "ann", False),
            ("quarantine", "eve", "ann", True),
            ("release", "bob", "ann", True),
        ]

    def test_to_take_a_quarantine_back_is_to_release(self) -> None:
        """To undo a quarantine is a decision to release the actor, so the actor's record cannot quarantine it again."""
        ledger = self._ledger()
        ledger.cases.add([self._case(query="a", actor="bob")])
        (key,) = self._keys(ledger)
        self._decide(ledger, "quarantine", "bob")
        ((_, entry),) = ledger.actions.page(1, 10)
        ledger.actions.undo(1, NewAction(kind="undo", takes_back=ledger.actions.taken(1, entry.id)))
        assert self._keys(ledger) == [key]
        assert dict(rows_in(ledger).decided(1)) == {"bob": False}

    def test_a_new_case_of_who_is_in_quarantine_is_kept_and_not_shown(self) -> None:
        """A new case of an actor in quarantine is stored, but hidden until the release.

        A case that a person added is shown, even if it names this actor.
        """
        ledger = self._ledger()
        ledger.record(self._recall("e", actor="bob"))
        self._decide(ledger, "quarantine", "bob")
        ledger.settle(self._settlement("e", 1.0, self._case(query="a", episode_id="e"), actor="joe"))
        ledger.cases.add([self._case(query="b", actor="bob"), self._case(query="c", actor="bob", source="human")])
        ledger.cases.add([self._case(query="d", actor="joe")])
        found = ledger.cases.by_key(self._keys(ledger))
        assert {case.query for case in found.values()} == {"c", "d"}
        assert self._decide(ledger, "release", "bob") == 2
        assert len(self._keys(ledger)) == 4

    def test_a_case_that_comes_back_follows_what_was_decided_meanwhile(self) -> None:
        """A case that comes back after expiry or eviction is hidden if its actor is in quarantine by then, otherwise shown."""
        ledger = self._ledger()
        ids = ledger.cases.add([self._case(query=query, actor="bob") for query in "ab"])
        ledger.cases.evict(self._keys(ledger)[:1], aside=5)
        self.wait(self.TTL * 1.1)
        assert ledger.expiry.expire(1, self.TTL).expired == 1
        self._decide(ledger, "quarantine", "bob")
        assert ledger.expiry.revive(1, ids) == ids
        assert self._keys(ledger) == []
        assert self._decide(ledger, "release", "bob") == 2
        back = self._keys(ledger)
        self._decide(ledger, "quarantine", "bob")
        ledger.cases.evict(back, aside=5)
        self._decide(ledger, "release", "bob")
        ledger.expiry.revive(1, ids)
        assert len(self._keys(ledger)) == 2

    def test_a_record_decides_nothing_about_which_anybody_has_decided(self) -> None:
        """An actor's record does not quarantine the actor if there is already a decision about the actor.

        This holds even if the process that asks does not know of the decision (``unless_decided``).
        """
        ledger = self._ledger()
        ledger.cases.add([self._case(query="a", actor="bob"), self._case(query="b", actor="joe")])
        bob, joe = self._keys(ledger)
        self._decide(ledger, "release", "bob")
        by_record = NewAction(kind="quarantine", note="its record")
        assert rows_in(ledger).quarantine(1, "bob", by_record, unless_decided=True) is None
        assert rows_in(ledger).quarantine(1, "joe", by_record, unless_decided=True) == 1
        assert self._keys(ledger) == [bob]
        self._decide(ledger, "release", "joe")
        assert rows_in(ledger).quarantine(1, "joe", by_record, unless_decided=True) is None
        assert self._keys(ledger) == [bob, joe]
        assert dict(rows_in(ledger).decided(1)) == {"bob": False, "joe": False}

    def test_a_person_and_a_quarantine_hide_a_case_each_for_itself(self) -> None:
        """A case that a person and a quarantine hide is shown again when both have ended, in either order.

        The log has a line only when the case becomes hidden or shown.
        """
        for hides_first in (True, False):
            for shows_first in (True, False):
                ledger = self._ledger()
                (case_id,) = ledger.cases.add([self._case(query="a", actor="bob")])
                (key,) = self._keys(ledger)
                before = ledger.head()
                self._both(ledger, case_id, ("hide", "quarantine"), person_first=hides_first)
                assert ledger.cases.by_key([key])[key].hidden
                self._both(ledger, case_id, ("unhide", "release"), person_first=shows_first)
                assert self._keys(ledger) == [key]
                lines = [change for change in ledger.tail(before) if change.ref == key]
                assert [change.hides_case for change in lines] == [True, False]

    def _both(self, ledger: Ledger, case_id: str, kinds: tuple[str, str], *, person_first: bool) -> None:
        for of_case in (person_first, not person_first):
            if of_case:
                assert ledger.actions.flag(1, case_id, NewAction(kind=kinds[0], actor="ann"))
            else:
                assert self._decide(ledger, kinds[1], "bob") is not None
            if of_case == person_first:
                assert self._keys(ledger) == []
