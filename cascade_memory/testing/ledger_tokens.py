"""What every ledger must do with signed tokens: its key, its running time, and what was redeemed."""

from __future__ import annotations

import tempfile
import time
from dataclasses import replace
from pathlib import Path

from cascade_memory.domain import Signed, Times, is_key, read, sign
from cascade_memory.errors import AlreadyRewarded, TicketRefused
from cascade_memory.ledger import Ledger
from cascade_memory.testing.ledger_material import LedgerMaterial


class LedgerTokensContract(LedgerMaterial):
    """A token is redeemed once, in its time, and only in the ledger that signed it."""

    def test_the_key_is_made_once_and_stays_here(self) -> None:
        """The key that signs tokens is made once; no export and no copy of the ledger holds it."""
        ledger, other = self._filled(), self.make()
        key = ledger.facts.key()
        assert is_key(key)
        assert ledger.facts.key() == key != other.facts.key()
        ledger.facts.redeem(self._token(ledger), "1.0", named="a ticket")
        assert key not in str(list(ledger.archive.dump()))
        with tempfile.TemporaryDirectory() as folder:
            target = Path(folder) / "copy"
            if self.COPIES:
                ledger.archive.copy_to(target)
                assert key.encode() not in target.read_bytes()
                assert b"signed:" not in target.read_bytes()
        assert ledger.facts.key() == key

    def test_running_time_does_not_go_back(self) -> None:
        """The running time (see ``facts.running``) never becomes less.

        It goes on from the first time that somebody asks for it.
        """
        ledger = self._ledger()
        times = [ledger.facts.running() for _ in range(3)]
        assert times == sorted(times)
        assert times[0] >= 0.0

    def test_a_token_is_redeemed_once(self) -> None:
        """To redeem a token again for the same thing changes nothing; for another thing it is refused."""
        ledger = self._ledger()
        one, other = self._token(ledger), self._token(ledger, "another")
        assert ledger.facts.redeem(one, "1.0", named="a ticket")
        assert not ledger.facts.redeem(one, "1.0", named="a ticket")
        self._refused(TicketRefused, lambda: ledger.facts.redeem(one, "0.0", named="a ticket"))
        assert ledger.facts.redeem(other, "0.0", named="a ticket")

    def test_a_token_whose_time_is_over_by_either_clock_is_refused(self) -> None:
        """A token ends by the wall clock or by the running time, whichever comes first."""
        ledger = self._ledger()
        token = self._token(ledger)
        for until in (Times(time.time() - 1.0, token.until.running), Times(token.until.wall, 0.0)):
            late = replace(token, until=until)
            self._refused(TicketRefused, lambda late=late: ledger.facts.redeem(late, "1.0", named="a ticket"))
        assert ledger.facts.redeem(token, "1.0", named="a ticket")

    def test_a_reward_redeems_its_ticket_with_all_else_or_not_at_all(self) -> None:
        """A ticket is redeemed together with its reward; if the reward is refused, the ticket can still be used."""
        ledger = self._ledger()
        ledger.record(self._recall("e1"))
        first, second = self._token(ledger, "first"), self._token(ledger, "second")
        case = self._case(query="new", episode_id="e1")
        stored = ledger.settle(self._settlement("e1", 1.0, case, ticket=first))
        again = ledger.settle(self._settlement("e1", 1.0, overwrite=True, ticket=first))
        assert (stored.changed, again.changed) == (True, False)
        assert again.case_id == stored.case_id is not None
        self._refused(TicketRefused, lambda: ledger.settle(self._settlement("e1", 0.0, overwrite=True, ticket=first)))
        self._refused(AlreadyRewarded, lambda: ledger.settle(self._settlement("e1", 0.0, ticket=second)))
        assert not ledger.settle(self._settlement("e1", 1.0, ticket=second)).changed
        assert ledger.insight.counts(1)["rewards"] == 1

    def _token(self, ledger: Ledger, about: str = "e1") -> Signed:
        until = Times(time.time(), ledger.facts.running()).after(60.0)
        key = ledger.facts.key()
        token = read(key, "reward", [about], sign(key, "reward", [about], until))
        assert token is not None
        return token
