"""What ``forgetting`` and ``expiry`` of every ledger must do."""

from __future__ import annotations

from cascade_memory.domain import NewAction
from cascade_memory.errors import NamespaceForgotten
from cascade_memory.testing.ledger_material import LedgerMaterial

_NOTHING = {"cases": 0, "episodes": 0, "recalls": 0, "outcomes": 0}
_ONE = dict.fromkeys(_NOTHING, 1)


class LedgerForgettingContract(LedgerMaterial):
    """Everything that is named is forgotten completely, and nothing else is."""

    def test_forgetting_a_case_forgets_the_episode_that_made_it(self) -> None:
        """To forget a case also forgets the episode that it came from, since the episode's query has the same content."""
        ledger = self._ledger()
        ledger.record(self._recall("e1"))
        ledger.settle(self._settlement("e1", 1.0, self._case(episode_id="e1")))
        assert ledger.forgetting.forget(1, self._keys(ledger)) == _ONE
        assert ledger.episodes.one("e1") is None
        assert ledger.lessons.history(1, 10) == []

    def test_no_recall_names_a_case_that_is_forgotten(self) -> None:
        """A forgotten case is removed from each recall that had it as a candidate, and the recall is marked.

        The mark says that the probabilities of the recall are no longer complete.
        """
        ledger = self._ledger()
        ledger.cases.add([self._case(query="a"), self._case(query="b")])
        gone, stays = self._keys(ledger)
        recall = ledger.record(self._recall("e1", candidates=(gone, stays)))
        ledger.settle(self._settlement("e1", 1.0))
        ledger.forgetting.forget(1, [gone])
        asked = ledger.lessons.asked(recall)
        assert asked is not None
        assert asked[1].tolist() == [stays]
        assert [one.forgot for one in ledger.insight.judged(1)] == [True]

    def test_what_was_said_with_metadata_goes_and_others_keep_the_case(self) -> None:
        """A case that others have verified stays, with the oldest of these verifications as its source."""
        ledger = self._ledger()
        for episode, user in (("e1", "ann"), ("e2", "bob")):
            ledger.record(self._recall(episode, metadata={"user": user}))
            ledger.settle(self._settlement(episode, 1.0, self._case(episode_id=episode)))
        assert ledger.forgetting.forget_where(1, {"user": "carl"}) == _NOTHING
        assert ledger.forgetting.forget_where(1, {"user": "ann"}) == {**_ONE, "cases": 0}
        ((case, _),) = ledger.cases.after(0, 10)
        assert (dict(case.metadata), case.episode_id, case.copies) == ({"user": "bob"}, "e2", 1)
        assert ledger.forgetting.forget_where(1, {"user": "bob"}) == _ONE
        assert ledger.cases.count(None) == 0

    def test_an_episode_goes_with_its_case_unless_others_vouch_for_it(self) -> None:
        """The outcomes of a forgotten episode no longer count, and the log has an entry that says so."""
        ledger = self._ledger()
        ledger.cases.add([self._case(query="shown")])
        (shown,) = self._keys(ledger)
        for episode in ("e1", "e2"):
            ledger.record(self._recall(episode, candidates=(shown,)))
            ledger.settle(self._settlement(episode, 1.0, self._case(episode_id=episode)))
        before = ledger.head()
        assert ledger.forgetting.forget_episode("nobody") == _NOTHING
        assert ledger.head() == before
        assert ledger.forgetting.forget_episode("e1") == {**_ONE, "cases": 0}
        assert any(change.takes_outcomes_back for change in ledger.tail(before))
        assert ledger.cases.by_key([shown])[shown].shown == 1
        assert ledger.forgetting.forget_episode("e2") == _ONE
        assert self._keys(ledger) == [shown]

    def test_a_namespace_goes_as_a_whole_and_keeps_its_number(self) -> None:
        """``forget_namespace`` empties a namespace and keeps its number; other namespaces stay as they are."""
        ledger = self._filled()
        other = ledger.namespace("other", create=True)
        assert other is not None
        ledger.cases.add([self._case(other)])
        assert ledger.forgetting.forget_namespace(1) == {"cases": 3, "episodes": 3, "recalls": 3, "outcomes": 2}
        assert ledger.tail(ledger.head() - 1)[0].empties_namespace
        assert not any(ledger.insight.counts(1).values())
        assert ledger.namespaces() == {"default": 1, "other": other}
        assert ledger.cases.count(None) == ledger.cases.count(other) == 1

    def test_a_name_goes_with_the_last_of_its_namespace_and_its_number_is_never_given_again(self) -> None:
        """A process that still has the number of a forgotten namespace can store nothing under this number.

        If the name of the namespace is used again, it gets another number.
        """
        ledger = self._filled()
        number = ledger.namespace("ann", create=True)
        assert number is not None
        ledger.cases.add([self._case(number)])
        assert not ledger.forgetting.forget_name(number)
        ledger.forgetting.forget_namespace(number, NewAction(kind="forget", actor="bob"))
        assert ledger.forgetting.names(number) == ledger.forgetting.names(number, "bob") == 1
        assert ledger.forgetting.names(number, "ann") == ledger.forgetting.names(1) == 0
        ledger.record(self._recall(None, number, kind="search"))
        assert ledger.forgetting.forget_name(number)
        assert ledger.namespaces() == {"default": 1}
        self._refused(NamespaceForgotten, lambda: ledger.cases.add([self._case(number)]))
        self._refused(NamespaceForgotten, lambda: ledger.record(self._recall("e9", number)))
        for name in ("bob", "ann"):
            again = ledger.namespace(name, create=True)
            assert again is not None
            assert again > number
            assert ledger.insight.recalls(again) == 0
            assert list(ledger.actions.page(again, 10)) == []
        assert ledger.cases.count(1) == 3

    def test_no_byte_stays_of_what_is_scrubbed(self) -> None:
        """After ``scrub``, no file has a byte of what was forgotten, nor the query of a search; the log has an entry."""
        ledger = self._ledger()
        ledger.cases.add([self._case(query="a secret"), self._case(query="no harm")])
        secret, harmless = self._keys(ledger)
        ledger.record(self._recall(None, kind="search", query="where is a secret?"))
        ledger.record(self._recall("e1", candidates=(harmless,)))
        ledger.forgetting.forget(1, [secret])
        line, left = ledger.forgetting.scrub(1)
        assert left == ""
        assert ledger.head() == line
        assert ledger.tail(line - 1)[0].purges
        assert ledger.insight.recalls(1) == 1
        assert self._keys(ledger) == [harmless]
        if ledger.path is not None:
            files = ledger.path.parent.glob(f"{ledger.path.name}*")
            assert not any(b"a secret" in file.read_bytes() for file in files)


class LedgerExpiryContract(LedgerMaterial):
    """Tests of cases that were not verified for a long time: they expire, and can be brought back for a while."""

    def test_what_is_set_aside_comes_back_or_goes(self) -> None:
        """An expired case can be brought back for a while, with its id and a new key, as if it had just been verified."""
        ledger = self._ledger()
        old, older = ledger.cases.add([self._case(query="old"), self._case(query="older")])
        keys = dict(zip((old, older), self._keys(ledger), strict=True))
        assert ledger.expiry.expire(1, 100 * self.TTL).expired == 0
        self.wait(1.1 * self.TTL)
        ledger.cases.add([self._case(query="young")])
        before = ledger.head()
        look = ledger.expiry.expire(1, self.TTL)
        assert (look.expired, look.deleted) == (2, 0)
        assert 0.0 <= look.look_again <= self.TTL + 1e-6  # a sum and its difference are rounded
        assert all(change.makes_room for change in ledger.tail(before))
        aside = ledger.expiry.expired(1)
        assert [(case.id, case.query, case.solution) for case in aside] == [(old, "old", "s"), (older, "older", "s")]
        assert all(0.0 <= case.seconds_left <= self.TTL + 1e-6 for case in aside)
        assert ledger.expiry.expired(2) == []
        assert ledger.expiry.keys_of(1, [older, old, "nobody"]) == {older: keys[older], old: keys[old]}
        assert ledger.expiry.revive(1, [old, "nobody"]) == [old]
        ((young, _), (back, _)) = ledger.cases.after(0, 10)
        assert (young.query, back.id, back.query) == ("young", old, "old")
        assert back.key > keys[older]
        self.wait(1.1 * self.TTL)
        assert ledger.expiry.revive(1, None) == []
        assert ledger.expiry.expire(1, None).deleted == 1
        assert ledger.expiry.keys_of(1, [older]) == {}
        assert ledger.cases.count(1) == 2

    def test_what_is_set_aside_can_be_forgotten(self) -> None:
        """An expired case that is kept for a while can be forgotten like any other case."""
        ledger = self._ledger()
        (case_id,) = ledger.cases.add([self._case(metadata={"user": "ann"})])
        self.wait(1.1 * self.TTL)
        assert ledger.expiry.expire(1, self.TTL).expired == 1
        assert ledger.forgetting.forget_where(1, {"user": "ann"})["cases"] == 1
        assert ledger.expiry.keys_of(1, [case_id]) == {}
        assert ledger.expiry.revive(1, None) == []
