"""What every ledger must do with evicted cases, and when a source is undone."""

from __future__ import annotations

from typing import Any

import numpy as np

from cascade_memory import Case
from cascade_memory.domain import NewAction, Wanted
from cascade_memory.ledger import Ledger
from cascade_memory.testing.ledger_material import LedgerMaterial

_NOTHING = {"cases": 0, "episodes": 0, "recalls": 0, "outcomes": 0}
_ANN: dict[str, Any] = {"actor": "ann", "channel": "python"}
_MALLORY: dict[str, Any] = {"actor": "mallory", "channel": "mcp"}
_OF_MALLORY = Wanted(actor="mallory")


class LedgerEvictionContract(LedgerMaterial):
    """Evicted cases can be brought back for a while, but only a limited number of them."""

    def _evicted(self, ledger: Ledger) -> list[str]:
        return [one.query for one in ledger.expiry.expired(1, "evicted")]

    def test_what_had_to_make_room_is_kept_if_it_is_asked_for(self) -> None:
        """With ``aside``, an evicted case is kept, apart from expired cases; without it, the case is deleted."""
        ledger = self._ledger()
        kept, gone, _ = ledger.cases.add([self._case(query=query) for query in ("kept", "gone", "stays")])
        keys = self._keys(ledger)
        assert not ledger.expiry.keeps_any(1)
        before = ledger.head()
        ledger.cases.evict([keys[0]], aside=5)
        ledger.cases.evict([keys[1]])
        assert [(change.ref, change.makes_room) for change in ledger.tail(before)] == [(keys[0], True), (keys[1], True)]
        assert ledger.expiry.keeps_any(1)
        assert not ledger.expiry.keeps_any(2)
        (aside,) = ledger.expiry.expired(1, "evicted")
        assert (aside.id, aside.why, aside.solution) == (kept, "evicted", "s")
        assert ledger.expiry.expired(1) == ledger.expiry.expired(2, "evicted") == []
        assert ledger.expiry.revive(1, None) == ledger.expiry.revive(1, [gone]) == []
        assert ledger.expiry.revive(1, [kept]) == [kept]
        assert ledger.cases.count(1) == 2

    def test_the_last_ones_are_kept_for_a_while(self) -> None:
        """Above the limit, the actor with the most cases, stored or evicted, loses the case that was evicted first."""
        ledger = self._ledger()
        ledger.cases.add([self._case(query=f"ann {i}", **_ANN) for i in range(3)])
        ledger.cases.add([self._case(query=f"mallory {i}", **_MALLORY) for i in range(4)])
        for key in self._keys(ledger):
            ledger.cases.evict([key], aside=4, ttl=self.TTL)
        assert self._evicted(ledger) == ["ann 1", "ann 2", "mallory 2", "mallory 3"]
        self.wait(1.1 * self.TTL)
        assert self._evicted(ledger) == []
        assert ledger.expiry.expire(1, None).deleted == 4
        assert not ledger.expiry.keeps_any(1)

    def test_it_can_be_forgotten_and_stays_if_others_vouch_for_it(self) -> None:
        """If one verification of an evicted case is forgotten, the case stays, with the oldest of the others as its source.

        If the last verification is forgotten, so is the case.
        """
        ledger = self._ledger()
        for user in ("ann", "bob"):
            ledger.record(self._recall(user, metadata={"user": user}))
            ledger.settle(self._settlement(user, 1.0, self._case(episode_id=user)))
        ledger.cases.evict(self._keys(ledger), aside=5)
        assert ledger.forgetting.forget_where(1, {"user": "ann"})["cases"] == 0
        (aside,) = ledger.expiry.expired(1, "evicted")
        assert ledger.expiry.revive(1, [aside.id]) == [aside.id]
        ((case, _),) = ledger.cases.after(0, 10)
        assert (dict(case.metadata), case.episode_id, case.copies) == ({"user": "bob"}, "bob", 1)
        ledger.cases.evict([case.key], aside=5)
        assert ledger.forgetting.forget_where(1, {"user": "bob"})["cases"] == 1
        assert not ledger.expiry.keeps_any(1)
        assert ledger.maintenance.orphans() == {}

    def test_the_same_pair_again_takes_its_place(self) -> None:
        """If the query and solution of an evicted case are added again, the evicted case is deleted: no case exists twice."""
        ledger = self._ledger()
        ledger.cases.add([self._case()])
        ledger.cases.evict(self._keys(ledger), aside=5)
        ledger.cases.add([self._case()])
        assert self._evicted(ledger) == []


class LedgerUndoContract(LedgerMaterial):
    """Tests of undoing a source: what came from the source is deleted; cases that it displaced come back.

    A source is an actor, a channel, a span of time, or several of these together.
    """

    def _done(self, ledger: Ledger, episode: str, query: str, asked: dict[str, Any], **options: Any) -> None:
        """Record an episode that an actor asked for, and its success."""
        ledger.record(self._recall(episode, query=query, candidates=options.pop("shown", ()), **asked))
        ledger.settle(self._settlement(episode, 1.0, self._case(query=query, episode_id=episode), **options))

    def _source_undone(self, ledger: Ledger, wanted: Wanted = _OF_MALLORY, **options: Any) -> Any:
        """Delete what a source (such as an actor) asked, reported and added, and return the result.

        Check that the preview gives the same result and changes nothing.
        """
        before = ledger.head()
        would = ledger.forgetting.forget_source(1, wanted, NewAction(kind="forget"), window=10, preview=True, **options)
        assert ledger.head() == before
        assert ledger.forgetting.forget_source(1, wanted, NewAction(kind="forget"), window=10, **options) == would
        assert ledger.maintenance.orphans() == {}
        assert ledger.maintenance.audit_log()[0]
        return would

    def _case_of(self, ledger: Ledger, query: str) -> Case:
        (found,) = (one for one in ledger.cases.by_key(self._keys(ledger)).values() if one.query == query)
        return found

    def test_what_a_source_asked_reported_and_added_goes(self) -> None:
        """To undo a source deletes what the source asked, reported and added.

        A case that another actor has verified as well stays, as a case of that actor.
        """
        ledger = self._ledger()
        self._done(ledger, "m1", "both", _MALLORY)
        self._done(ledger, "a1", "both", _ANN)
        self._done(ledger, "m2", "mallory's", _MALLORY)
        self._done(ledger, "n1", "reported", {}, **_MALLORY)
        self._done(ledger, "a2", "ann's", _ANN)
        ledger.cases.add([self._case(query="added", **_MALLORY), self._case(query="added by ann", **_ANN)])
        ledger.record(self._recall("m3", **_MALLORY))
        undone = self._source_undone(ledger)
        assert dict(undone.counts) == {"cases": 3, "episodes": 3, "recalls": 3, "outcomes": 3}
        assert [self._case_of(ledger, query).actor for query in ("both", "ann's", "added by ann")] == ["ann"] * 3
        assert self._case_of(ledger, "both").copies == 1
        assert len(self._keys(ledger)) == 3
        assert dict(self._source_undone(ledger).counts) == _NOTHING
        episode = ledger.episodes.one("n1")
        assert episode is not None
        assert (episode.status, episode.reward) == ("open", None)
        assert [entry.counts for _, entry in ledger.actions.page(1, 9)] == [{**undone.counts}]

    def test_a_span_of_time_and_a_door(self) -> None:
        """A source can be a span of time, a channel, or both; the moment ``until`` is not part of the span."""
        ledger = self._ledger()
        for i in range(6):
            ledger.cases.add([self._case(query=f"{i}", created_at=float(i), **(_MALLORY if i % 2 else _ANN))])
        assert self._source_undone(ledger, Wanted(since=1.0, until=3.0)).counts["cases"] == 2
        assert self._source_undone(ledger, Wanted(channel="mcp", since=4.0)).counts["cases"] == 1
        assert self._source_undone(ledger, Wanted(actor="")).counts["cases"] == 0
        assert sorted(one.query for one in ledger.cases.by_key(self._keys(ledger)).values()) == ["0", "3", "4"]

    def test_the_outcome_that_it_replaced_counts_again(self) -> None:
        """An outcome that the source had replaced counts again, and the shown case is counted as before."""
        ledger = self._ledger()
        ledger.cases.add([self._case(query="shown", **_ANN)])
        (shown,) = self._keys(ledger)
        self._done(ledger, "a1", "asked", _ANN, shown=(shown,))
        ledger.settle(self._settlement("a1", 0.0, at=3.0, overwrite=True, **_MALLORY))
        assert ledger.cases.by_key([shown])[shown].succeeded == 0.0
        assert self._source_undone(ledger).counts["outcomes"] == 1
        episode = ledger.episodes.one("a1")
        assert episode is not None
        assert (episode.status, episode.reward) == ("settled", 1.0)
        case = ledger.cases.by_key([shown])[shown]
        assert (case.shown, case.succeeded) == (1, 1.0)
        assert [one.reward for one in ledger.lessons.history(1, 10)] == [1.0]

    def test_what_a_named_person_judged_stays(self) -> None:
        """The verdict of a named person stays, even on an episode that the undone source asked for."""
        ledger = self._ledger()
        for episode in ("kept", "gone"):
            ledger.record(self._recall(episode, query=episode, **_MALLORY))
        case = self._case(query="kept", episode_id="kept", source="human")
        action = NewAction(kind="correct", actor="ann")
        ledger.settle(self._settlement("kept", 0.0, case, source="human", action=action, **_ANN))
        ledger.settle(self._settlement("gone", 1.0, self._case(query="gone", episode_id="gone"), source="human"))
        assert self._source_undone(ledger).counts["episodes"] == 1
        assert self._case_of(ledger, "kept").actor == "ann"
        assert ledger.episodes.one("gone") is None

    def test_what_it_replaced_counts_again_as_it_was_prepared(self) -> None:
        """An outcome that the undone source replaced returns with its case, prepared as ``again``, in the same transaction.

        This holds however often the source has reported since.
        """
        ledger = self._ledger()
        ledger.record(self._recall("a1", query="ann's", **_ANN))
        case = self._case(query="ann's", episode_id="a1")
        ledger.settle(self._settlement("a1", 0.9, case, at=2.0, **_ANN))
        for value, at in ((0.0, 3.0), (0.1, 4.0)):
            ledger.settle(self._settlement("a1", value, at=at, overwrite=True, **_MALLORY))
        assert self._keys(ledger) == []
        (taken,) = ledger.forgetting.coming_back(1, _OF_MALLORY)
        assert taken.before is not None
        assert (taken.subject, taken.before.value, taken.before.solution) == ("a1", 0.9, case.solution)
        back = NewAction(kind="undo", takes_back=taken)
        again = self._settlement("a1", 0.9, self._case(query="ann's", episode_id="a1"), action=back, overwrite=True, **_ANN)
        assert self._source_undone(ledger, again=[again]).counts["outcomes"] == 2
        episode = ledger.episodes.one("a1")
        assert episode is not None
        assert (episode.status, episode.reward) == ("settled", 0.9)
        assert (self._case_of(ledger, "ann's").actor, self._case_of(ledger, "ann's").copies) == ("ann", 1)
        assert ledger.forgetting.coming_back(1, _OF_MALLORY) == []

    def test_what_it_decided_is_taken_back(self) -> None:
        """A decision of the source is taken back, unless somebody has decided anew since."""
        ledger = self._ledger()
        ledger.cases.add([self._case(query=query, **_ANN) for query in ("hidden", "hidden again")])
        first, second = (case.id for case in ledger.cases.by_key(self._keys(ledger)).values())
        for case_id, kind, actor in (
            *((one, "hide", "mallory") for one in (first, second)),
            *((second, kind, "carl") for kind in ("unhide", "hide")),
        ):
            assert ledger.actions.flag(1, case_id, NewAction(kind=kind, actor=actor))
        assert self._source_undone(ledger).counts["decisions"] == 1
        assert [case.query for case in ledger.cases.by_key(self._keys(ledger)).values()] == ["hidden"]

    def test_what_made_room_comes_back(self) -> None:
        """When a source is undone, the most valuable of the cases that it displaced come back as they were.

        Before their value is compared, what the source did to their record is taken back.
        """
        ledger = self._ledger()
        queries = [("early", 1.0), ("dull", 0.1), ("bright", 0.9), ("good", 0.8)]
        ledger.cases.add([self._case(query=query, novelty=novelty, created_at=7.0, **_ANN) for query, novelty in queries])
        early, dull, bright, good = self._keys(ledger)
        ledger.cases.evict([early], aside=9)
        self.wait(0.01)
        self._done(ledger, "m1", "poison", _MALLORY, at=self.now())
        shown = self._recall("m2", candidates=(bright,), **_MALLORY)
        ledger.record(shown)
        ledger.settle(self._settlement("m2", 0.0, at=self.now()))
        ledger.cases.evict([dull, bright, good], aside=9)
        undone = self._source_undone(ledger, max_cases=2)
        back = dict(sorted(ledger.cases.by_key(self._keys(ledger)).items()))
        assert [one.query for one in back.values()] == ["bright", "good"]
        assert sorted(undone.brought_back) == sorted(one.id for one in back.values())
        assert [(one.shown, one.created_at, one.actor) for one in back.values()] == [(0, 7.0, "ann")] * 2
        assert [one.query for one in ledger.expiry.expired(1, "evicted")] == ["early", "dull"]
        assert list(back) == [bright, good]  # with their keys: what is logged of them counts again

    def test_without_a_limit_as_many_come_back_as_were_deleted(self) -> None:
        """Without ``max_cases``, as many evicted cases come back as cases of the undone source were deleted."""
        ledger = self._ledger()
        ledger.cases.add([self._case(query=f"{i}", **_ANN) for i in range(4)])
        self.wait(0.01)
        self._done(ledger, "m1", "poison", _MALLORY, at=self.now())
        ledger.cases.evict(self._keys(ledger)[:4], aside=9)
        assert len(self._source_undone(ledger).brought_back) == 1
        assert [one.query for one in ledger.cases.by_key(self._keys(ledger)).values()] == ["3"]

    def test_what_was_made_after_seeing_its_cases_is_named(self) -> None:
        """``made_after`` names the cases made after seeing the undone source's cases, directly or through another case.

        The case of a person's correction is not named.
        """
        ledger = self._ledger()
        self._done(ledger, "m1", "poison", _MALLORY)
        (poison,) = self._keys(ledger)
        self._done(ledger, "a1", "copy", _ANN, shown=(poison,))
        copy = self._case_of(ledger, "copy")
        self._done(ledger, "a2", "copy of the copy", _ANN, shown=(copy.key,))
        self._done(ledger, "a3", "own", _ANN)
        ledger.record(self._recall("a4", candidates=(poison,), chosen=np.arange(1), **_ANN))
        case = self._case(query="corrected", episode_id="a4", source="human")
        action = NewAction(kind="correct", actor="bob")
        ledger.settle(self._settlement("a4", 0.0, case, source="human", action=action))
        undone = self._source_undone(ledger)
        assert undone.made_after == (copy.id, self._case_of(ledger, "copy of the copy").id)
        assert len(self._keys(ledger)) == 4
