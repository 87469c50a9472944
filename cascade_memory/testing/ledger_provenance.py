"""What ``provenance`` of every ledger must do, and how trust is passed on."""

from __future__ import annotations

from typing import Any

import numpy as np

from cascade_memory import Case
from cascade_memory.domain import NewAction, Wanted
from cascade_memory.ledger import Ledger
from cascade_memory.testing.ledger_material import LedgerMaterial

_ANN: dict[str, Any] = {"actor": "ann", "channel": "mcp"}
_BOB: dict[str, Any] = {"actor": "bob", "channel": "cli"}


class LedgerProvenanceContract(LedgerMaterial):
    """Actor and channel are kept with each row; a case is trusted no more than its source, nor than the cases shown for it."""

    def _only(self, ledger: Ledger, query: str = "q") -> Case:
        found = [one for one in ledger.cases.by_key(ledger.cases.page(1, 100)).values() if one.query == query]
        assert len(found) == 1
        return found[0]

    def _solved(self, ledger: Ledger, episode: str, shown: tuple[int, ...], query: str = "q", **options: Any) -> None:
        """Record an episode in which these cases were shown, and its success."""
        source = options.pop("source", "host")
        recall = self._recall(episode, candidates=shown, chosen=np.arange(len(shown)), query=query, **options.pop("asked", {}))
        ledger.record(recall)
        case = self._case(query=query, episode_id=episode, source=source)
        ledger.settle(self._settlement(episode, 1.0, case, source=source, **options))

    def test_who_wrote_what_is_kept(self) -> None:
        """The author of an episode's case is the actor who asked or, if none was named, the actor who reported the outcome."""
        ledger = self._ledger()
        ledger.cases.add([self._case(query="added", source="human", **_BOB)])
        self._solved(ledger, "e1", (), "asked", asked=_ANN, **_BOB)
        self._solved(ledger, "e2", (), "reported", **_BOB)
        self._solved(ledger, "e3", (), "neither")
        made = {one.query: (one.actor, one.channel) for one in ledger.cases.by_key(self._keys(ledger)).values()}
        assert made == {
            "added": ("bob", "cli"),
            "asked": ("ann", "mcp"),
            "reported": ("bob", "cli"),
            "neither": (None, None),
        }
        episode = ledger.episodes.one("e1")
        assert episode is not None
        assert (episode.actor, episode.channel) == ("ann", "mcp")
        assert [(one.actor, one.channel) for one in ledger.viewing.outcomes("e1")] == [("bob", "cli")]

    def test_a_case_is_trusted_like_the_least_of_what_was_shown(self) -> None:
        """However trusted its own source is, a case is trusted no more than the least trusted of the cases shown for it."""
        ledger = self._ledger()
        ledger.cases.add([self._case(query=source, source=source) for source in ("agent", "user", "judge", "human")])
        keys = self._keys(ledger)
        assert [ledger.cases.by_key([key])[key].trust for key in keys] == [0, 1, 2, 4]
        self._solved(ledger, "e1", (keys[3], keys[1]), "from a user's", source="env")
        self._solved(ledger, "e2", (keys[3],), "from a human's", source="env")
        self._solved(ledger, "e3", (), "from nothing", source="human")
        self._solved(ledger, "e4", (keys[3], 10**6), "from what is gone", source="judge")
        trust = {one.query: one.trust for one in ledger.cases.by_key(self._keys(ledger)[4:]).values()}
        assert trust == {"from a user's": 1, "from a human's": 3, "from nothing": 4, "from what is gone": 2}

    def test_a_better_verification_raises_trust_as_long_as_it_stands(self) -> None:
        """A verification for which a less trusted case was shown does not raise the trust; a withdrawn one no longer counts."""
        ledger = self._ledger()
        ledger.cases.add([self._case(query="agent's", source="agent")])
        (bad,) = self._keys(ledger)
        self._solved(ledger, "e1", (bad,), source="host")
        assert self._only(ledger).trust == 0
        self._solved(ledger, "e2", (bad,), source="human")
        assert (self._only(ledger).trust, self._only(ledger).copies) == (0, 2)
        self._solved(ledger, "e3", (), source="judge")
        assert self._only(ledger).trust == 2
        ledger.cases.add([self._case(source="human", solution="s")])
        assert self._only(ledger).trust == 4
        ledger.settle(self._settlement("e3", 0.0, source="judge", overwrite=True))
        assert (self._only(ledger).trust, self._only(ledger).copies) == (4, 3)
        ledger.forgetting.forget_episode("e1")
        assert self._only(ledger).trust == 4

    def test_trust_falls_with_the_verification_that_gave_it(self) -> None:
        """If a verification is withdrawn, those that are left decide the trust."""
        ledger = self._ledger()
        self._solved(ledger, "e1", (), source="user")
        self._solved(ledger, "e2", (), source="human")
        assert self._only(ledger).trust == 4
        ledger.settle(self._settlement("e2", 0.0, source="human", overwrite=True))
        assert (self._only(ledger).trust, self._only(ledger).copies) == (1, 1)

    def test_what_a_person_corrects_has_no_lineage(self) -> None:
        """A corrected case was written by the person, and not made from anything that was shown."""
        ledger = self._ledger()
        ledger.cases.add([self._case(query="agent's", source="agent")])
        (bad,) = self._keys(ledger)
        ledger.record(self._recall("e1", candidates=(bad,), chosen=np.arange(1), **_ANN))
        case = self._case(episode_id="e1", source="human", solution="right")
        action = NewAction(kind="correct", actor="bob")
        ledger.settle(self._settlement("e1", 0.0, case, source="human", action=action, **_BOB))
        found = self._only(ledger)
        assert (found.trust, found.actor, found.channel) == (4, "bob", "cli")

    def test_candidates_of_a_trusted_kind(self) -> None:
        """``candidates`` and ``trusted`` leave out cases below the wanted trust, as if these were deleted."""
        ledger = self._ledger()
        ledger.cases.add([self._case(query=source, source=source) for source in ("agent", "user", "judge", "human")])
        keys = ledger.newest(1, 10)
        assert sorted(ledger.candidates(keys, 0.0, 2)) == ledger.trusted(1, 2).tolist() == keys.tolist()[2:]
        assert sorted(ledger.candidates(keys)) == keys.tolist()
        ledger.actions.flag(1, ledger.cases.by_key([int(keys[3])])[int(keys[3])].id, NewAction(kind="hide"))
        assert ledger.trusted(1, 2).tolist() == [int(keys[2])]
        assert ledger.trusted(2, 0).tolist() == []

    def test_cases_and_episodes_by_source_and_time(self) -> None:
        """Cases and episodes can be read by actor, channel and time, page by page and in both directions."""
        ledger = self._ledger()
        many = [self._case(query=f"{i}", created_at=float(i), **(_ANN if i % 2 else _BOB)) for i in range(6)]
        ledger.cases.add(many)
        keys = ledger.cases.page(1, 10)
        of_ann = Wanted(actor="ann")
        assert ledger.provenance.cases(1, 2, of_ann) == [keys[1], keys[3]]
        assert ledger.provenance.cases(1, 2, of_ann, after=keys[3]) == [keys[5]]
        assert ledger.provenance.cases(1, 9, Wanted(channel="cli", since=2.0, until=4.0), newest_first=True) == [keys[2]]
        assert ledger.provenance.cases(1, 9, Wanted(trust=4)) == ledger.provenance.cases(1, 9, Wanted(actor="")) == []
        ledger.record(self._recall("e1", at=1.0, **_ANN))
        ledger.record(self._recall("e2", at=2.0))
        assert [one.id for _, one in ledger.episodes.page(1, 9, wanted=of_ann)] == ["e1"]
        assert [one.id for _, one in ledger.episodes.page(1, 9, wanted=Wanted(actor=""))] == ["e2"]
        assert [one.id for _, one in ledger.episodes.page(1, 9, status="open", wanted=Wanted(since=2.0))] == ["e2"]

    def test_a_row_for_each_source(self) -> None:
        """``sources`` has a row for each source; an outcome without a named reporter counts for the actor who asked."""
        ledger = self._ledger()
        ledger.cases.add([self._case(query="added", created_at=1.0, **_BOB)])
        (key,) = self._keys(ledger)
        self._solved(ledger, "e1", (key,), "asked", asked={**_ANN, "at": 5.0})
        ledger.record(self._recall("e2", at=9.0, **_ANN))
        ledger.settle(self._settlement("e2", 0.0, at=10.0, unkept="below"))
        rows = {one.actor: one for one in ledger.provenance.sources(1)}
        ann, bob = rows["ann"], rows["bob"]
        assert (ann.channel, ann.cases, ann.episodes, ann.outcomes, ann.mean_reward) == ("mcp", 1, 2, 2, 0.5)
        assert (bob.channel, bob.cases, bob.episodes, bob.outcomes, bob.mean_reward) == ("cli", 1, 0, 0, None)
        assert (bob.shown, bob.succeeded, bob.first_seen, ann.last_seen) == (1, 1.0, 1.0, 10.0)
        assert ledger.provenance.sources(2) == []

    def test_what_came_and_what_went(self) -> None:
        """``came`` lists the stored cases of a source, and ``went`` its expired ones, with the actor who made them."""
        ledger = self._ledger()
        ledger.cases.add([self._case(query="goes", source="user", **_ANN)])
        self.wait(1.1 * self.TTL)
        ledger.expiry.expire(1, self.TTL)
        ledger.cases.add([self._case(query="stays", created_at=7.0, **_BOB)])
        came, went = ledger.provenance.came(1, Wanted()), ledger.provenance.went(1, Wanted())
        assert [(one.query, one.actor, one.channel, one.at, one.why) for one in came] == [
            ("stays", "bob", "cli", 7.0, "stored")
        ]
        assert [(one.query, one.actor, one.source, one.trust, one.why) for one in went] == [
            ("goes", "ann", "user", 1, "expired")
        ]
        assert ledger.provenance.came(1, Wanted(actor="ann")) == ledger.provenance.went(1, Wanted(actor="bob")) == []
        assert ledger.provenance.came(1, Wanted(since=7.5)) == []
        ledger.expiry.revive(1, None)
        back = self._only(ledger, "goes")
        assert (back.actor, back.channel, back.trust) == ("ann", "mcp", 1)

    def test_an_export_carries_it(self) -> None:
        """After an import, actors, channels and trust are as exported; the chain of the audit log begins anew."""
        ledger = self._ledger()
        ledger.cases.add([self._case(query="agent's", source="agent", **_BOB)], NewAction(kind="add", actor="bob"))
        (bad,) = self._keys(ledger)
        self._solved(ledger, "e1", (bad,), asked=_ANN, **_BOB)
        other = self._ledger()
        other.archive.load(list(ledger.archive.dump()), 2, str, NewAction(kind="import", actor="eve"))
        for there in (ledger, other):
            found = self._only(there)
            assert (found.actor, found.channel, found.trust) == ("ann", "mcp", 0)
            assert [(one.actor, one.channel) for one in there.viewing.outcomes("e1")] == [("bob", "cli")]
            assert self._only(there, "agent's").actor == "bob"
            assert there.maintenance.audit_log()[0]
        assert [entry.actor for _, entry in other.actions.page(1, 9)] == ["bob", "eve"]

    def test_the_audit_log_is_a_chain(self) -> None:
        """Each entry of the audit log has a digest that fits the entry before it; deleting a note breaks no digest."""
        ledger = self._ledger()
        assert ledger.maintenance.audit_log() == (True, "no entry has a digest")
        (case_id,) = ledger.cases.add([self._case()], NewAction(kind="add", actor="ann"))
        made = ledger.actions.replace(case_id, self._case(solution="t"), NewAction(kind="correct", note="wrong"))
        keys = [one.key for one in ledger.cases.by_id([case_id, made], 1)]
        ledger.forgetting.forget(1, keys, NewAction(kind="forget"))
        ok, said = ledger.maintenance.audit_log()
        assert ok
        assert said.startswith("3 entries fit; the last digest is ")
        assert ledger.maintenance.seal_audit_log() == "every entry fits"
