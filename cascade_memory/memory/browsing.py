"""Looking at what a memory holds: its cases and its episodes, one after the other."""

from __future__ import annotations

import itertools
from collections.abc import Generator, Iterator, Mapping, Sequence
from typing import Any

from cascade_memory.domain.case import Case
from cascade_memory.domain.episode import Episode, Status, check_source, check_status
from cascade_memory.domain.moments import Moment
from cascade_memory.domain.provenance import Wanted
from cascade_memory.domain.recall import RecalledCase
from cascade_memory.domain.validation import check_id
from cascade_memory.errors import UnknownCase
from cascade_memory.insight.frames import frame_of
from cascade_memory.memory.handle import Handle
from cascade_memory.memory.paging import AT_ONCE, through_pages
from cascade_memory.memory.stored_texts import StoredSecret, secrets_in, set_aside_record


class Browsing(Handle):
    """The verbs that look at what is stored, and change nothing.

    They read page by page, and hold neither a connection nor a state of the database between two pages: others can add, reward
    and forget meanwhile. What they add or forget is seen or not, depending on when; nothing is returned twice.
    """

    def cases(
        self,
        *,
        where: Mapping[str, Any] | None = None,
        by_actor: str | None = None,
        by_channel: str | None = None,
        since: Moment | None = None,
        until: Moment | None = None,
        trust: str | None = None,
        newest_first: bool = False,
    ) -> Iterator[Case]:
        """Iterate over the cases of a namespace, oldest first.

        Args:
            where: A metadata filter that the cases must match, with Chroma's operators, as in ``recall``.
            by_actor: Only cases that this actor made first; "" for those of nobody named.
            by_channel: Only cases that came through this channel first: "python", "langchain", "llama_index", "mcp", "cli",
                "inspector" or "import".
            since: Only cases stored at this moment or later: seconds since 1970, a ``datetime``, a ``timedelta`` (so long
                ago), or a text such as "2026-11-24" or "7d".
            until: Only cases stored before this moment.
            trust: Only cases that are trusted exactly like this source, such as "agent" or "human".
            newest_first: Begin with the case that was stored last.

        >>> from cascade_memory import CascadeMemory
        >>> memory = CascadeMemory(embedder="hashing")
        >>> ids = memory.add([("cool some mug", "fridge", {"room": "kitchen"}), ("heat some egg", "microwave")])
        >>> [case.query for case in memory.cases(newest_first=True)]
        ['heat some egg', 'cool some mug']
        >>> [case.solution for case in memory.cases(where={"room": "kitchen"})]
        ['fridge']
        >>> len(memory), ids[0] in memory
        (2, True)
        """
        wanted = Wanted.of(by_actor, by_channel, since, until, trust)
        namespace_id = self._namespace_id()
        matching = None if where is None else self._open().parts.ledger.filtered(namespace_id, where).tolist()
        return self._cases(namespace_id, matching, wanted, newest_first)

    def _cases(self, namespace_id: int, matching: list[int] | None, wanted: Wanted, newest_first: bool) -> Iterator[Case]:
        for keys in self._pages_of_keys(namespace_id, matching, wanted, newest_first):
            found = self._open().parts.ledger.cases.by_key(keys)
            # A key that is not among them was forgotten meanwhile, or cannot be read.
            yield from (found[key] for key in keys if key in found and wanted.fits(found[key]))

    def _pages_of_keys(
        self, namespace_id: int, matching: list[int] | None, wanted: Wanted, newest_first: bool
    ) -> Iterator[list[int]]:
        if matching is not None:  # the keys of all matching cases fit into RAM; finding them again for each page would be slow
            keys = matching[::-1] if newest_first else matching
            yield from (keys[start : start + AT_ONCE] for start in range(0, len(keys), AT_ONCE))
            return
        after: int | None = None
        while page := self._page_of_keys(namespace_id, wanted, after, newest_first):
            yield page
            after = page[-1]

    def _page_of_keys(self, namespace_id: int, wanted: Wanted, after: int | None, newest_first: bool) -> list[int]:
        ledger = self._open().parts.ledger
        if wanted:
            return ledger.provenance.cases(namespace_id, AT_ONCE, wanted, after=after, newest_first=newest_first)
        return ledger.cases.page(namespace_id, AT_ONCE, after=after, newest_first=newest_first)

    def episodes(
        self,
        *,
        status: Status | None = None,
        source: str | None = None,
        by_actor: str | None = None,
        by_channel: str | None = None,
        since: Moment | None = None,
        until: Moment | None = None,
        newest_first: bool = False,
    ) -> Iterator[Episode]:
        """Iterate over the episodes of a namespace, oldest first.

        Args:
            status: Only those with this status: "open", "settled" (they have a reward), "censored" or "expired".
            source: Only those with a reward from this source: "host", "human", "env", "judge", "user" or "agent".
            by_actor: Only those in which this actor asked; "" for those of nobody named.
            by_channel: Only those that came through this channel.
            since: Only those that were opened at this moment or later, given as in ``cases``.
            until: Only those that were opened before this moment.
            newest_first: Begin with the episode that was opened last.

        >>> from cascade_memory import CascadeMemory
        >>> memory = CascadeMemory(embedder="hashing")
        >>> first, second = memory.recall("cool some mug"), memory.recall("heat some egg")
        >>> case_id = memory.reward(first.episode_id, 1.0, solution="put it into the fridge")
        >>> [(episode.query, episode.reward) for episode in memory.episodes(status="settled")]
        [('cool some mug', 1.0)]
        """
        namespace_id = self._namespace_id()
        wanted = None if status is None else check_status(status)
        by, of = None if source is None else check_source(source), Wanted.of(by_actor, by_channel, since, until)

        def read(after: int | None) -> Sequence[tuple[int, Episode]]:
            episodes = self._caught_up().parts.ledger.episodes
            return episodes.page(
                namespace_id, AT_ONCE, after=after, newest_first=newest_first, status=wanted, source=by, wanted=of or None
            )

        return through_pages(read)

    def get(self, case_id: str) -> Case:
        """Return a stored case; raise ``UnknownCase`` if there is none with this id (``get_episode`` returns None then).

        >>> from cascade_memory import CascadeMemory
        >>> memory = CascadeMemory(embedder="hashing")
        >>> memory.get(memory.add("cool some mug", "fridge")).solution
        'fridge'
        """
        ledger, name = self._open().parts.ledger, self._namespace
        case_id = check_id(case_id, "case_id")
        found = ledger.cases.by_id([case_id], self._engine.namespace_id(name))
        if not found:
            raise UnknownCase(f"there is no case {case_id!r} in namespace {name!r}")
        return found[0]

    def find_secrets(self) -> list[StoredSecret]:
        """Look for secrets in everything that is stored, in all namespaces: an older version may have let them in.

        >>> from cascade_memory import CascadeMemory
        >>> memory = CascadeMemory(embedder="hashing", redact=False)
        >>> case_id = memory.add("log in to the wiki", "use password=Tr0ub4dor there")
        >>> [(one.kind, one.where, one.id == case_id) for one in memory.find_secrets()]
        [('password', 'case solution', True)]
        """
        engine = self._open()
        ledger, known = engine.parts.ledger, engine.parts.door.kept
        aside = [one for number in ledger.namespaces().values() for one in ledger.expiry.expired(number)]
        dumps: list[Generator[dict[str, Any], None, None]] = []

        def records() -> Iterator[dict[str, Any]]:
            dumps.append(ledger.archive.dump())
            return itertools.chain(dumps[-1], map(set_aside_record, aside))

        try:
            return list(secrets_in(records, known))
        finally:
            for dump in dumps:
                dump.close()  # with its snapshot, also where a traceback keeps it

    def to_pandas(self, *, where: Mapping[str, Any] | None = None) -> Any:
        """Return the cases of a namespace as a pandas ``DataFrame``, oldest first; ``where`` filters as in ``cases``.

        Solutions are texts there (the steps of a trajectory line by line), and metadata are dictionaries.
        """
        return frame_of(self.cases(where=where))

    def __len__(self) -> int:
        """Return the number of cases in the memory's own namespace."""
        return self._open().parts.ledger.cases.count(self._namespace_id())

    def __bool__(self) -> bool:
        """Return True: an empty memory is a memory as well, and ``if memory:`` asks whether there is one."""
        return True

    def __contains__(self, case: object) -> bool:
        """Say whether the memory's own namespace holds a case, which is given by its id or as it was returned."""
        case_id = case.id if isinstance(case, (Case, RecalledCase)) else check_id(case, "case_id")
        return bool(self._open().parts.ledger.cases.by_id([case_id], self._namespace_id()))
