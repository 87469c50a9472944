"""Settings that decide when a recall shows nothing or a random case: abstaining, holding out and exploring."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from cascade_memory.domain.quoting import quoted
from cascade_memory.domain.validation import check_share
from cascade_memory.errors import InvalidInput


@dataclass(frozen=True, slots=True, kw_only=True)
class Exposure:
    """Whether a recall may abstain, which share of episodes runs without memory, and which share of choices is random."""

    abstain: bool = True
    holdout: float = 0.0
    explore: float = 0.0

    def __post_init__(self) -> None:
        """Refuse shares that are not from 0 to below 1."""
        if type(self.abstain) is not bool:
            raise InvalidInput(f"abstain must be True or False, not {quoted(self.abstain)}")
        check_share(self.holdout, "holdout")
        check_share(self.explore, "explore")

    def arm_of(self, episode_id: str) -> str:
        """Choose the arm of a new episode by its id: every process chooses the same one, whatever was recalled before.

        >>> arms = [Exposure(holdout=0.2).arm_of(f"episode {i}") for i in range(1000)]
        >>> 150 < arms.count("holdout") < 250
        True
        """
        digest = hashlib.blake2b(episode_id.encode(), digest_size=8, person=b"cascade-holdout").digest()
        return "holdout" if int.from_bytes(digest, "big") < self.holdout * 2**64 else "live"
