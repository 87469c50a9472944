"""What every ``Ledger`` must do: its core."""

from __future__ import annotations

import numpy as np

from cascade_memory.domain import CASE_ADDED, CASE_REMOVED, CLOSED, SETTLED
from cascade_memory.errors import EncoderMismatch, EpisodeClosed, StoreError, StoreUnwritable, UnknownEpisode
from cascade_memory.testing.ledger_filters import LedgerFilters
from cascade_memory.testing.ledger_material import VECTOR
from cascade_memory.testing.ledger_rewards import LedgerRewards


class LedgerCoreContract(LedgerRewards, LedgerFilters):
    """The ledger as a whole, its log, recalls and rewards."""

    # -- the ledger as a whole ---------------------------------------------------------------------------------------

    def test_a_namespace_keeps_its_number(self) -> None:
        """An unknown namespace has no number until it is created."""
        ledger = self._ledger()
        assert ledger.namespace("default", create=True) == 1
        assert ledger.namespace("other", create=False) is None
        assert ledger.namespaces() == {"default": 1}
        number = ledger.namespace("other", create=True)
        assert ledger.namespaces() == {"default": 1, "other": number}

    def test_the_first_write_notes_the_embedder_and_others_are_refused(self) -> None:
        """After the first write, a process with another embedder gets an error, since their vectors must not be mixed."""
        ledger = self._ledger()
        ledger.bind("one")
        assert ledger.facts.get("embedder") is None
        ledger.cases.add([self._case()])
        assert ledger.facts.get("embedder") == "one"
        ledger.bind("another")
        self._refused(EncoderMismatch, lambda: ledger.cases.add([self._case(query="more")]))
        self._refused(EncoderMismatch, lambda: ledger.record(self._recall("e1")))
        self._refused(EncoderMismatch, ledger.check)
        assert ledger.cases.count(None) == 1
        assert ledger.facts.get("embedder") == "one"

    def test_a_ledger_that_is_gone_takes_nothing_more(self) -> None:
        """If the file was moved, deleted or replaced, a write raises ``StoreError``, since it would be lost.

        A ledger without a file skips this test.
        """
        ledger = self._ledger()
        ledger.check()
        ledger.check(log=False)
        assert ledger.read_only is None
        if ledger.path is not None:
            ledger.path.rename(ledger.path.with_name("elsewhere"))
            self._refused(StoreError, ledger.check)
            self._refused(StoreError, lambda: ledger.check(log=False))
            self._refused(StoreError, lambda: ledger.cases.add([self._case()]))

    def test_a_ledger_that_cannot_be_written_is_read(self) -> None:
        """A ledger that cannot be written can be read, and ``read_only`` says why it cannot be written.

        The test is skipped if the subclass cannot make such a ledger.
        """
        ledger = self.unwritable()
        if ledger is not None:
            assert ledger.read_only
            assert len(ledger.namespaces()) == 1
            self._refused(StoreUnwritable, lambda: ledger.cases.add([self._case()]))
            assert ledger.cases.count(None) == 0

    def test_a_closed_ledger_says_so(self) -> None:
        """Every call after ``close`` raises, except ``close`` itself."""
        ledger = self._ledger()
        ledger.close()
        ledger.close()
        self._refused(StoreError, ledger.namespaces)
        self._refused(StoreError, lambda: ledger.cases.add([self._case()]))
        self._refused(StoreError, lambda: ledger.facts.note_event("trained", None, {}))

    # -- the log -----------------------------------------------------------------------------------------------------

    def test_the_log_tells_what_happened_in_order(self) -> None:
        """``tail`` returns the entries of the log after a line, in the order in which the changes happened."""
        ledger = self._ledger()
        start = ledger.head()
        ledger.cases.add([self._case()])
        ledger.record(self._recall("e1"))
        ledger.settle(self._settlement("e1", 0.0))
        ledger.record(self._recall("e2"))
        ledger.episodes.close(["e2"], "expired")
        ledger.forgetting.forget(1, self._keys(ledger))
        changes = ledger.tail(start)
        assert [change.kind for change in changes] == [CASE_ADDED, SETTLED, CLOSED, CASE_REMOVED]
        assert [change.seq for change in changes] == sorted(change.seq for change in changes)
        assert ledger.tail(start, 2) == changes[:2]
        assert ledger.tail(changes[-1].seq) == []
        assert ledger.tail(start, 1, namespace=1) == changes[:1]
        assert ledger.tail(start, namespace=2) == []
        assert ledger.head() == changes[-1].seq

    # -- recall ------------------------------------------------------------------------------------------------------

    def test_the_newest_cases_come_in_order_of_age(self) -> None:
        """``newest`` returns the keys of the newest cases of one namespace, oldest first."""
        ledger = self._ledger()
        ledger.cases.add([self._case(query=name, solution=name) for name in "abc"])
        assert ledger.newest(1, 2).tolist() == ledger.scan(1, 0, 10).keys[1:].tolist()
        assert ledger.newest(7, 2).tolist() == []

    def test_cases_are_scanned_page_by_page(self) -> None:
        """``scan`` returns each case once, page by page, and none with a key above ``until``."""
        ledger = self._ledger()
        ledger.cases.add([self._case(query=name) for name in "abcde"])
        first = ledger.scan(1, 0, 2)
        rest = ledger.scan(1, int(first.keys[-1]), 10)
        assert [*first.texts, *rest.texts] == list("abcde")
        assert rest.vectors.shape == (3, len(VECTOR))
        assert list(ledger.scan(1, 0, 10, until=int(first.keys[-1])).texts) == ["a", "b"]
        assert len(ledger.scan(1, int(rest.keys[-1]), 10)) == len(ledger.scan(2, 0, 10)) == 0

    def test_candidates_say_what_choosing_needs(self) -> None:
        """``candidates`` leaves out removed cases and, with ``verified_after``, cases last verified before that time."""
        ledger = self._ledger()
        first, _, _ = ledger.cases.add(
            [
                self._case(query="a", created_at=100.0),
                self._case(query="b", solution="t", created_at=200.0),
                self._case(query="c", created_at=200.0),
            ]
        )
        keys = ledger.newest(1, 10)
        found = ledger.candidates(np.append(keys, 10_000))
        assert sorted(found) == keys.tolist()
        a, b, c = (found[int(key)] for key in keys)
        assert (a[0], a[1], a[3], b[1]) == ("a", "s", first, "t")
        assert a[2] == c[2] != b[2]
        assert sorted(ledger.candidates(keys, verified_after=150.0)) == keys[1:].tolist()

    def test_a_recall_joins_an_open_episode_of_its_namespace_alone(self) -> None:
        """A recall cannot join an episode of another namespace, nor a closed one."""
        ledger = self._ledger()
        first = ledger.record(self._recall("e1"))
        assert ledger.record(self._recall("e1", query="again")) > first
        assert ledger.namespace("other", create=True) == 2
        self._refused(UnknownEpisode, lambda: ledger.record(self._recall("e1", namespace=2)))
        ledger.episodes.close(["e1"], "censored")
        self._refused(EpisodeClosed, lambda: ledger.record(self._recall("e1")))
        assert ledger.insight.recalls(1) == 2

    def test_a_recall_that_waited_does_not_bring_back_what_was_forgotten(self) -> None:
        """A recall is refused if one of its candidates was forgotten since it was made; its episode is not opened.

        A recall that was made after the deletion is recorded.
        """
        ledger = self._ledger()
        ledger.cases.add([self._case(query="a"), self._case(query="b")])
        gone, stays = self._keys(ledger)
        since = ledger.head()
        ledger.forgetting.forget(1, [gone])
        late = self._recall("late", candidates=(gone, stays), opens_episode=True)
        self._refused(UnknownEpisode, lambda: ledger.record(late, unless_forgotten_since=since))
        assert ledger.episodes.one("late") is None
        ledger.record(self._recall("other", candidates=(stays,), opens_episode=True), unless_forgotten_since=since)
        ledger.record(late, unless_forgotten_since=ledger.head())
        assert ledger.insight.recalls(1) == 2
