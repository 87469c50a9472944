"""What the ``cases`` and the ``episodes`` of every ledger must do."""

from __future__ import annotations

import numpy as np

from cascade_memory import Step, Trajectory
from cascade_memory.domain import MOST_REPORTED_BYTES
from cascade_memory.errors import QuotaExceeded
from cascade_memory.testing.ledger_material import VECTOR, LedgerMaterial


class LedgerCasesContract(LedgerMaterial):
    """Cases are added, read, counted, and removed to make room."""

    def test_cases_come_back_whole(self) -> None:
        """Cases can be read by key and by id, with text, metadata and vector."""
        ledger = self._ledger()
        (case_id,) = ledger.cases.add([self._case(metadata={"tool": "search", "steps": 3})])
        rows = ledger.scan(1, 0, 10)
        np.testing.assert_allclose(rows.vectors[0], VECTOR)
        key = int(rows.keys[0])
        found = ledger.cases.by_key([key, 10_000])
        assert list(found) == [key]
        case = found[key]
        assert (case.id, case.query, case.solution) == (case_id, "q", "s")
        assert dict(case.metadata) == {"tool": "search", "steps": 3}
        assert ledger.cases.by_id([case_id, "nobody"], 1) == [case]
        assert ledger.cases.by_id([case_id], 2) == []
        assert ledger.cases.keys_of([case_id, "nobody"]) == [key]
        for steps, share in ((3, 1.0), (4, 0.5)):
            asked = {"tool": "search", "steps": steps}
            assert ledger.cases.alike(np.array([key, 10_000]), 1, asked).tolist() == [share, 0.0]

    def test_the_same_pair_is_counted_not_stored_twice(self) -> None:
        """If the same query and solution are added again, ``copies`` counts them, and no second case is stored.

        Otherwise copies of one case would fill the candidates.
        """
        ledger = self._ledger()
        first, second = ledger.cases.add([self._case(), self._case()])
        assert first == second
        assert ledger.insight.counts(1)["cases"] == 1
        assert ledger.cases.by_id([first], 1)[0].copies == 2

    def test_cases_are_stored_all_or_none(self) -> None:
        """If two cases have the same id, none of the batch is stored."""
        ledger = self._ledger()
        new = [self._case(query="a", id="same"), self._case(query="b", id="same")]
        self._refused(Exception, lambda: ledger.cases.add(new))
        assert ledger.cases.count(None) == 0
        assert ledger.head() == 0

    def test_cases_are_counted_by_namespace_and_up_to_a_key(self) -> None:
        """``count`` counts the cases of one namespace or of all; with ``until``, only those up to this key."""
        ledger = self._ledger()
        other = ledger.namespace("other", create=True)
        assert other is not None
        ledger.cases.add([self._case(query="a"), self._case(query="b"), self._case(other)])
        assert [ledger.cases.count(number) for number in (1, other, None)] == [2, 1, 3]
        assert ledger.cases.count(1, until=self._keys(ledger)[0]) == 1

    def test_what_makes_room_leaves_its_episode(self) -> None:
        """Evicting a case keeps the episode that it came from, since what was learned from it stays valid."""
        ledger = self._ledger()
        ledger.record(self._recall("e1"))
        ledger.settle(self._settlement("e1", 1.0, self._case(episode_id="e1")))
        ledger.cases.add([self._case(query="stays")])
        gone, stays = self._keys(ledger)
        before = ledger.head()
        ledger.cases.evict([gone])
        assert self._keys(ledger) == [stays]
        (change,) = ledger.tail(before)
        assert (change.makes_room, change.forgets, change.ref) == (True, False, gone)
        assert ledger.episodes.one("e1") is not None
        assert len(ledger.lessons.history(1, 10)) == 1

    def test_records_say_what_a_case_is_worth(self) -> None:
        """A record has the novelty of a case, how often it was shown, and its rewards."""
        ledger = self._ledger()
        ledger.cases.add([self._case(query="a", novelty=0.25), self._case(query="b")])
        first, second = self._keys(ledger)
        for episode, value in (("e1", 1.0), ("e2", 0.5)):
            ledger.record(self._recall(episode, candidates=(first,)))
            ledger.settle(self._settlement(episode, value))
        records = ledger.cases.records(1)
        assert records.keys.tolist() == [first, second]
        assert records.novelty.tolist() == [0.25, 1.0]
        assert (records.shown.tolist(), records.succeeded.tolist()) == ([2.0, 0.0], [1.5, 0.0])
        assert len(ledger.cases.records(2)) == 0

    def test_a_copy_knows_how_much_it_lacks(self) -> None:
        """``behind`` returns how many cases were added or removed since a copy of the cases was made."""
        ledger = self._ledger()
        ledger.cases.add([self._case(query="a")])
        (key,), line = self._keys(ledger), ledger.head()
        assert ledger.cases.behind(key, line) == 0
        ledger.cases.add([self._case(query="b"), self._case(query="c")])
        assert ledger.cases.behind(key, line) == 2
        ledger.cases.evict([key])
        assert ledger.cases.behind(key, line) == 3

    def test_all_cases_are_read_page_by_page(self) -> None:
        """``after`` returns the cases of all namespaces with their vectors, page by page, oldest first."""
        ledger = self._ledger()
        other = ledger.namespace("other", create=True)
        assert other is not None
        ledger.cases.add([self._case(query="a"), self._case(other, query="b"), self._case(query="c")])
        pages = [ledger.cases.after(0, 2)]
        while pages[-1]:
            pages.append(ledger.cases.after(pages[-1][-1][0].key, 2))
        found = [row for page in pages for row in page]
        assert [(case.query, case.namespace) for case, _ in found] == [("a", "default"), ("b", "other"), ("c", "default")]
        for _, vector in found:
            np.testing.assert_allclose(vector, VECTOR)

    def test_the_keys_of_a_namespace_are_read_page_by_page(self) -> None:
        """Keys are read in both directions; a page goes on after a key even if the case of that key is gone by then."""
        ledger = self._ledger()
        other = ledger.namespace("other", create=True)
        assert other is not None
        ledger.cases.add([self._case(query="a"), self._case(other), self._case(query="b"), self._case(query="c")])
        first, second, third = (int(key) for key in ledger.newest(1, 10))
        assert ledger.cases.page(1, 2) == [first, second]
        assert ledger.cases.page(1, 2, newest_first=True) == [third, second]
        ledger.cases.evict([second])
        assert ledger.cases.page(1, 2, after=second) == [third]
        assert ledger.cases.page(1, 2, after=second, newest_first=True) == [first]
        assert ledger.cases.page(1, 2, after=third) == []

    def test_solutions_are_known_by_their_group(self) -> None:
        """The solution of a group (cases with equal solutions) can be looked up as long as the group has a case.

        ``solutions`` returns the whole solutions, ``told_apart`` only their keys and kinds.
        """
        ledger = self._ledger()
        steps = Trajectory([Step(action="go to the sink")])
        new = [self._case(query="a"), self._case(query="b"), self._case(query="c", solution=steps)]
        ledger.cases.add(new)
        keys = ledger.newest(1, 10)
        text, again, way = (ledger.candidates(keys)[int(key)][2] for key in keys)
        assert text == again
        assert ledger.cases.solutions([text, way, 10_000]) == {text: "s", way: steps}
        found = ledger.cases.told_apart([text, way, 10_000])
        assert found == {text: (new[0].solution_key, "text"), way: (new[2].solution_key, "trajectory")}
        ledger.cases.evict([int(keys[2])])
        assert list(ledger.cases.solutions([text, way])) == list(ledger.cases.told_apart([text, way])) == [text]


class LedgerEpisodesContract(LedgerMaterial):
    """Episodes: reading them, how their runs ended, and closing them without a label."""

    def test_an_episode_is_read_as_it_stands(self) -> None:
        """``one`` returns an episode with what its recalls recorded, such as the metadata and the number of recalls."""
        ledger = self._ledger()
        ledger.record(self._recall("e1", thread="t", metadata={"user": "ann"}, arm="holdout", holdout=0.5, at=3.0))
        ledger.record(self._recall("e1", query="again"))
        found = ledger.episodes.one("e1")
        assert found is not None
        assert (found.id, found.namespace, found.query, found.status) == ("e1", "default", "q", "open")
        assert (found.thread_id, found.arm, found.opened_at, found.recalls) == ("t", "holdout", 3.0, 2)
        assert dict(found.metadata) == {"user": "ann"}
        assert ledger.episodes.one("nobody") is None
        assert (ledger.episodes.opened_at("e1"), ledger.episodes.opened_at("nobody")) == (3.0, None)

    def test_the_moment_at_which_an_episode_was_opened_is_kept_exactly(self) -> None:
        """The time at which an episode was opened is stored without rounding, since a ticket is signed for it."""
        ledger = self._ledger()
        for number, moment in enumerate((1764147956.1234567, 1764147956.1234569, 0.1 + 0.2, 2.0**31 + 1e-6)):
            ledger.record(self._recall(f"e{number}", at=moment))
            assert ledger.episodes.opened_at(f"e{number}") == moment

    def test_episodes_are_listed_oldest_first(self) -> None:
        """``listed`` lists episodes oldest first, filtered by namespace, status, time of opening, and source of the reward."""
        ledger = self._ledger()
        other = ledger.namespace("other", create=True)
        assert other is not None
        for number, (episode, namespace) in enumerate((("e1", 1), ("e2", 1), ("e3", 1), ("e4", other))):
            ledger.record(self._recall(episode, namespace, at=float(number)))
        ledger.settle(self._settlement("e2", 1.0))
        ledger.settle(self._settlement("e3", 1.0, source="agent"))
        assert [one.id for one in ledger.episodes.listed(None)] == ["e1", "e2", "e3", "e4"]
        assert [one.id for one in ledger.episodes.listed(1, status="settled")] == ["e2", "e3"]
        assert [one.id for one in ledger.episodes.listed(1, status="settled", source="agent")] == ["e3"]
        assert [one.id for one in ledger.episodes.listed(None, status="open", before=3.0)] == ["e1"]

    def test_episodes_are_read_page_by_page(self) -> None:
        """Episodes are read in both directions, each with its key, filtered by status and by the source of the reward."""
        ledger = self._ledger()
        other = ledger.namespace("other", create=True)
        assert other is not None
        for episode, namespace in (("e1", 1), ("e2", 1), ("e3", other), ("e4", 1)):
            ledger.record(self._recall(episode, namespace))
        ledger.settle(self._settlement("e2", 1.0))
        ledger.settle(self._settlement("e4", 1.0, source="agent"))
        page = ledger.episodes.page(1, 2)
        assert [one.id for _, one in page] == ["e1", "e2"]
        assert [one.id for _, one in ledger.episodes.page(1, 2, after=page[-1][0])] == ["e4"]
        newest = ledger.episodes.page(1, 2, newest_first=True)
        assert [one.id for _, one in newest] == ["e4", "e2"]
        assert [one.id for _, one in ledger.episodes.page(1, 2, after=newest[-1][0], newest_first=True)] == ["e1"]
        assert [one.id for _, one in ledger.episodes.page(1, 9, status="settled")] == ["e2", "e4"]
        assert [one.id for _, one in ledger.episodes.page(1, 9, source="agent")] == ["e4"]

    def test_the_newest_episode_of_a_thread(self) -> None:
        """``latest`` returns the newest episode of a thread in one namespace; None if there is none."""
        ledger = self._ledger()
        for episode in ("e1", "e2"):
            ledger.record(self._recall(episode, thread="t"))
        ledger.record(self._recall("e3", thread="another"))
        latest = ledger.episodes.latest(1, "t")
        assert latest is not None
        assert latest.id == "e2"
        assert ledger.episodes.latest(2, "t") is ledger.episodes.latest(1, "nobody's") is None

    def test_how_a_run_ended_is_noted_while_its_episode_is_open(self) -> None:
        """``finish`` notes how the run of an open episode ended; its solution is used if the reward brings no other."""
        ledger = self._ledger()
        ledger.record(self._recall("e1"))
        assert ledger.episodes.finish("e1", 1, "interrupted", None)
        assert ledger.episodes.finish("e1", 1, "ok", "tried")
        assert not ledger.episodes.finish("e1", 2, "ok", "tried")
        found = ledger.episodes.one("e1")
        assert found is not None
        assert (found.status, found.ended, found.solution) == ("open", "ok", "tried")
        assert ledger.unsettled("e1", 1).solution == "tried"
        ledger.settle(self._settlement("e1", 1.0))
        assert not ledger.episodes.finish("e1", 1, "error", None)

    def test_an_episode_closes_once(self) -> None:
        """``close`` closes an open episode without a label; a second call does nothing, and the log has one entry."""
        ledger = self._ledger()
        ledger.record(self._recall("e1"))
        key, before = ledger.unsettled("e1", 1).key, ledger.head()
        assert ledger.episodes.close(["e1", "nobody"], "censored") == ["e1"]
        assert ledger.episodes.close(["e1"], "expired") == []
        found = ledger.episodes.one("e1")
        assert found is not None
        assert (found.status, found.reward) == ("censored", None)
        assert [(change.closes, change.ref) for change in ledger.tail(before)] == [(True, key)]

    def test_an_episode_is_closed_by_the_recall_that_opened_it(self) -> None:
        """``close_opened_by`` closes an episode only for the recall that opened it, and only before its run has ended."""
        ledger = self._ledger()
        first, second = (ledger.record(self._recall("e1")) for _ in range(2))
        ledger.episodes.close_opened_by(second)
        assert [one.status for one in [ledger.episodes.one("e1")] if one] == ["open"]
        before = ledger.head()
        for _ in range(2):
            ledger.episodes.close_opened_by(first)
        assert [one.status for one in [ledger.episodes.one("e1")] if one] == ["censored"]
        assert len(ledger.tail(before, 10)) == 1
        ended = ledger.record(self._recall("e2"))
        ledger.episodes.finish("e2", 1, "ok", "tried")
        ledger.episodes.close_opened_by(ended)
        assert [one.status for one in [ledger.episodes.one("e2")] if one] == ["open"]

    def test_a_report_is_taken_back_where_that_is_asked_for(self) -> None:
        """With ``reported=True``, ``close`` withdraws an agent's own report; a reward from another source stays."""
        ledger = self._ledger()
        for episode, source in (("e1", "agent"), ("e2", "host")):
            ledger.record(self._recall(episode))
            ledger.settle(self._settlement(episode, 1.0, source=source, learns=source != "agent", waits=source == "agent"))
        assert ledger.episodes.close(["e1", "e2"], "expired") == []
        assert ledger.episodes.close(["e1", "e2"], "expired", reported=True) == ["e1"]
        assert ledger.insight.rewards(1) == [(1.0, False)]
        found = ledger.episodes.one("e1")
        assert found is not None
        assert (found.status, found.reward) == ("expired", None)

    def test_only_so_much_waits_for_somebodys_word(self) -> None:
        """``check_room`` refuses a report of an agent if the reports that wait for confirmation would exceed the limit.

        The limit is ``MOST_REPORTED_BYTES`` for each namespace.
        """
        ledger = self._ledger()
        ledger.episodes.check_room(1, 1_000)
        self._refused(QuotaExceeded, lambda: ledger.episodes.check_room(1, MOST_REPORTED_BYTES + 1))
        ledger.record(self._recall("e1"))
        ledger.settle(self._settlement("e1", 1.0, source="agent", solution="x" * 1_000, learns=False, waits=True))
        self._refused(QuotaExceeded, lambda: ledger.episodes.check_room(1, MOST_REPORTED_BYTES - 500))
        ledger.episodes.check_room(2, MOST_REPORTED_BYTES - 500)
