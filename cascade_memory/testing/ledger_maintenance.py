"""What ``maintenance``, ``facts`` and ``archive`` of every ledger must do."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cascade_memory.errors import EncoderMismatch, InvalidInput, StoreReplaced
from cascade_memory.testing.ledger_material import VECTOR, LedgerMaterial

_OTHER = np.array([0.8, 0.6], np.float32)


def _vectors(texts: Sequence[str]) -> NDArray[np.float32]:
    return np.array([VECTOR for _ in texts], np.float32)


class LedgerMaintenanceContract(LedgerMaterial):
    """Checking a ledger, repairing it, and moving it to another embedder."""

    def test_a_sound_ledger_is_left_as_it_is(self) -> None:
        """No fault is found, and nothing is changed."""
        ledger = self._filled()
        before = list(ledger.archive.dump())
        assert ledger.maintenance.integrity() == "ok"
        assert ledger.maintenance.orphans() == {}
        assert ledger.maintenance.faults(10) == []
        assert ledger.maintenance.mend(_vectors) == ""
        ledger.maintenance.remove_orphans()
        ledger.maintenance.rebuild_indexes()
        assert list(ledger.archive.dump()) == before

    def test_what_belongs_to_nothing_goes_alone(self) -> None:
        """``remove_orphans`` removes orphaned rows (rows that belong to nothing any more), and no others."""
        ledger = self._filled()
        before, torn = list(ledger.archive.dump()), self.tear(ledger)
        assert sum(ledger.maintenance.orphans().values()) == torn
        ledger.maintenance.remove_orphans()
        assert ledger.maintenance.orphans() == {}
        assert list(ledger.archive.dump()) == before

    def test_what_cannot_be_read_is_found_and_mended(self) -> None:
        """``faults`` finds an unreadable note about a mirror, and ``mend`` removes it; no case is removed for that."""
        ledger = self._filled()
        ledger.facts.set("mirror", "no note")
        ledger.facts.set("mirror:elsewhere", "nor this")
        assert len(ledger.maintenance.faults(10)) == 2
        assert len(ledger.maintenance.faults(1)) == 1
        assert ledger.maintenance.mend(_vectors) != ""
        assert ledger.maintenance.faults(10) == []
        assert ledger.facts.get("mirror") is None
        assert ledger.cases.count(None) == 3

    def test_times_that_lie_ahead_are_brought_back(self) -> None:
        """``bring_back`` sets times after the given moment to that moment; other times stay as they are."""
        ledger = self._ledger()
        ledger.cases.add([self._case(query="a", created_at=100.0), self._case(query="b", created_at=2_000.0)])
        ledger.record(self._recall("e1", at=3_000.0))
        assert ledger.maintenance.ahead_of(5_000.0) == 0
        assert ledger.maintenance.ahead_of(1_000.0) > ledger.maintenance.ahead_of(2_500.0) > 0
        ledger.maintenance.bring_back(1_000.0)
        assert ledger.maintenance.ahead_of(1_000.0) == 0
        assert [case.created_at for case, _ in ledger.cases.after(0, 10)] == [100.0, 1_000.0]

    def test_episodes_that_stay_open_are_counted(self) -> None:
        """``open_before`` counts the open episodes that began before the given time."""
        ledger = self._ledger()
        for number in range(3):
            ledger.record(self._recall(f"e{number}", at=float(number)))
        ledger.settle(self._settlement("e0", 1.0))
        assert [ledger.maintenance.open_before(moment) for moment in (1.0, 2.0, 3.0)] == [0, 1, 2]

    def test_vectors_of_another_length_are_counted(self) -> None:
        """``odd_vectors`` counts the vectors of cases and episodes that do not have the given length."""
        ledger = self._ledger()
        ledger.cases.add([self._case()])
        ledger.record(self._recall("e1"))
        assert ledger.maintenance.odd_vectors(len(VECTOR)) == 0
        assert ledger.maintenance.odd_vectors(len(VECTOR) + 1) == 2

    def test_every_vector_is_replaced_or_none(self) -> None:
        """If ``replace_vectors`` fails, every vector stays as it was.

        After a replacement, a process that has the folder open with the old embedder gets an error.
        """
        ledger = self._ledger()
        ledger.bind("one")
        ledger.cases.add([self._case(query="a"), self._case(query="b")])
        ledger.record(self._recall("e1", query="b"))
        ledger.record(self._recall("e2", query="c"))
        ledger.facts.set("mirror:elsewhere", "so far")
        assert sorted(ledger.maintenance.query_texts()) == ["a", "b", "c"]

        def fails(_: Sequence[str]) -> dict[str, NDArray[np.float32]]:
            raise ZeroDivisionError

        self._refused(ZeroDivisionError, lambda: ledger.maintenance.replace_vectors(fails, "another"))
        assert ledger.facts.get("embedder") == "one"
        np.testing.assert_allclose(ledger.scan(1, 0, 10).vectors, [VECTOR, VECTOR])
        assert ledger.maintenance.replace_vectors(lambda texts: dict.fromkeys(texts, _OTHER), "another") == 2
        assert ledger.facts.get("embedder") == "another"
        assert ledger.facts.names("mirror") == []
        np.testing.assert_allclose(ledger.scan(1, 0, 10).vectors, [_OTHER, _OTHER])
        np.testing.assert_allclose(ledger.unsettled("e2", 1).vector, _OTHER)
        self._refused((StoreReplaced, EncoderMismatch), lambda: ledger.cases.add([self._case(query="d")]))


class LedgerFactsContract(LedgerMaterial):
    """Tests of facts: small values about the folder, each with a name."""

    def test_a_fact_is_what_it_was_set_to_last(self) -> None:
        """``get`` returns the last value of a fact; ``names`` finds facts by the beginning of their names."""
        ledger = self._ledger()
        assert ledger.facts.get("mirror:a") is None
        for name, value in (("mirror:a", "1"), ("mirror:b", "2"), ("other", "3"), ("mirror:a", "4")):
            ledger.facts.set(name, value)
        assert ledger.facts.get("mirror:a") == "4"
        assert sorted(ledger.facts.names("mirror:")) == ["mirror:a", "mirror:b"]
        assert ledger.facts.names("mirror:%") == []

    def test_the_diary_is_not_the_log(self) -> None:
        """The diary holds events such as a training: readers of the log do not see them, and the ledger stays sound."""
        ledger = self._ledger()
        before = ledger.head(), ledger.insight.counts(None), ledger.facts.names("")
        ledger.facts.note_event("trained", 1, {"steps": 7, "loss": 0.5})
        ledger.facts.note_event("trained", None, {})
        assert (ledger.head(), ledger.insight.counts(None), ledger.facts.names("")) == before
        assert ledger.maintenance.faults(10) == []


class LedgerArchiveContract(LedgerMaterial):
    """Exporting everything as plain records, importing it, and copying the ledger."""

    def test_everything_travels(self) -> None:
        """One ledger loads what another dumped; loading it twice changes nothing."""
        ledger, other = self._filled(), self.make()
        records = list(ledger.archive.dump())
        assert other.archive.load(records, len(VECTOR), str) == len(records)
        assert other.archive.load(records, len(VECTOR), str) == 0
        number = other.namespace("default", create=False)
        assert number is not None
        assert other.insight.counts(number) == ledger.insight.counts(1)
        mine, theirs = ledger.lessons.history(1, 10), other.lessons.history(number, 10)
        assert len(mine) == len(theirs) == 2
        for one, another in zip(mine, theirs, strict=True):
            np.testing.assert_allclose(one.slate.features, another.slate.features)
        assert theirs[0].agreement is not None
        assert theirs[0].agreement.tolist() == [1.0]
        assert len(other.filtered(number, {"n": 1})) == 1
        assert other.maintenance.faults(10) == []

    def test_a_record_that_cannot_be_keeps_all_others_out(self) -> None:
        """If ``load`` refuses one record, it loads none of the others."""
        ledger, other = self._filled(), self.make()
        records = [*ledger.archive.dump(), {"kind": "rumour", "namespace": "default"}]
        self._refused(InvalidInput, lambda: other.archive.load(records, len(VECTOR), str))
        self._refused(InvalidInput, lambda: other.archive.load(records[:-1], len(VECTOR) + 1, str))
        assert other.cases.count(None) == other.head() == 0

    def test_a_copy_holds_what_was_there(self) -> None:
        """The copy is a separate file; the ledger goes on as before."""
        ledger = self._filled()
        ledger.facts.set("identity", "abc")
        before = list(ledger.archive.dump())
        with tempfile.TemporaryDirectory() as folder:
            target = Path(folder) / "copy"
            if self.COPIES:
                assert ledger.archive.copy_to(target) == {"cases": 3, "episodes": 3, "outcomes": 2}
                assert target.stat().st_size > 0
            else:
                self._refused(InvalidInput, lambda: ledger.archive.copy_to(target))
        assert list(ledger.archive.dump()) == before
        assert ledger.facts.get("identity") == "abc"
