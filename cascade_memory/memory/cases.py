"""``memory.cases``: the stored cases, to look at, to filter, and to pin, hide or bring back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast, get_args

from cascade_memory.domain.actions import NewAction
from cascade_memory.domain.case import Case, ExpiredCase, check_why
from cascade_memory.domain.episode import Episode, check_source
from cascade_memory.domain.provenance import Wanted
from cascade_memory.domain.recall import Recall
from cascade_memory.domain.validation import Moment, check_id, check_k, check_text, check_word
from cascade_memory.domain.viewed import CaseOrder, Neighbour, Page, Sort, State
from cascade_memory.errors import InvalidInput
from cascade_memory.insight.frames import frame_of
from cascade_memory.memory import curation
from cascade_memory.memory.bound import Bound
from cascade_memory.memory.explaining import explained
from cascade_memory.memory.rows import AT_ONCE, place_after, place_of

_WORDS, _LETTERS = 16, 200  # that a search may have
_LOOKED_AT, _AT_ONCE, _ENOUGH = 2_000, 250, 10  # recalls that shown_in searches, and the episodes that it looks for


@explained
class Cases(Bound):
    """The cases of a namespace.

    Lists are read page by page, and hold neither a connection nor a state of the database between two pages: others can add,
    reward and forget meanwhile. Whether a list has a case that is added or forgotten meanwhile depends on the moment.
    No case is returned twice.
    """

    def all(
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
            by_actor: Only cases that this actor was the first to make; "": only cases that were first made without an actor.
            by_channel: Only cases that first came through this channel: "python", "langchain", "llama_index", "mcp", "cli",
                "inspector", "import" or "scores".
            since: Only cases stored at this moment or later: seconds since 1970, a ``datetime``, a ``timedelta`` (that long
                ago), or a text such as "2026-11-24" or "7d".
            until: Only cases stored before this moment.
            trust: Only cases that are trusted exactly like this source, such as "agent" or "human".
            newest_first: Begin with the case that was stored last.

        >>> from cascade_memory import CascadeMemory
        >>> memory = CascadeMemory(embedder="hashing")
        >>> ids = memory.add([("cool some mug", "fridge", {"room": "kitchen"}), ("heat some egg", "microwave")])
        >>> [case.query for case in memory.cases.all(newest_first=True)]
        ['heat some egg', 'cool some mug']
        >>> [case.solution for case in memory.cases.all(where={"room": "kitchen"})]
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

    def get(self, case_id: str) -> Case:
        """Return a stored case; raise ``UnknownCase`` if there is none with this id (``episodes.get`` returns None then).

        >>> from cascade_memory import CascadeMemory
        >>> memory = CascadeMemory(embedder="hashing")
        >>> memory.cases.get(memory.add("cool some mug", "fridge")).solution
        'fridge'
        """
        return self._case(case_id)

    def search(
        self,
        query: str,
        *,
        k: int | None = None,
        where: Mapping[str, Any] | None = None,
        min_trust: str | None = None,
    ) -> Recall:
        """Return the most similar cases, without the learned ranking. Opens no episode; the ledger records a search."""
        return self._asked(query, k=k, where=where, search=True, min_trust=min_trust)

    def page(
        self,
        *,
        search: str = "",
        sort: Sort = "newest",
        source: str | None = None,
        where: Mapping[str, Any] | None = None,
        state: State | None = None,
        after: str | None = None,
        limit: int = 50,
        order: CaseOrder | None = None,
    ) -> Page[Case]:
        """Return a page of cases; its ``after`` says where the next page begins, and is None on the last page.

        Args:
            search: Words that must all occur in the task or in the beginning of the solution (or the id of a case).
            sort: "newest", "oldest", "shown" (most often first), "successes" (the sum of the rewards when it was shown), or
                "use" (how novel a case was when it was stored, times how often it was right; eviction uses this as well).
            source: Only cases that were first verified by this source.
            where: A metadata filter, with Chroma's operators.
            state: "pinned" or "hidden": only such cases.
            after: The ``after`` of the page before.
            limit: The greatest number of cases on the page.
            order: What ``order`` returned a moment ago, so that all cases need not be read and sorted for each page.
                It is used only if there is no other filter.

        >>> from cascade_memory import CascadeMemory
        >>> memory = CascadeMemory(embedder="hashing")
        >>> ids = memory.add([("cool some mug", "fridge"), ("heat some egg", "microwave"), ("heat some mug", "microwave")])
        >>> first = memory.cases.page(search="HEAT", limit=1)
        >>> [case.query for case in first.items]
        ['heat some mug']
        >>> [case.query for case in memory.cases.page(search="HEAT", limit=1, after=first.after).items]
        ['heat some egg']
        """
        state = None if state is None else cast("State", check_word(state, get_args(State), "state"))
        sort = _check_sort(sort)
        ledger, namespace_id = self._open().parts.ledger, self._namespace_id()
        limit, start = check_k(limit, "limit"), None if after is None else place_of(after)
        search = check_text(search, "search", 2 * _WORDS * _LETTERS, allow_empty=True)
        words = _words(search)
        if words and start is None and (named := ledger.cases.by_id([search.strip()], namespace_id)):
            return Page(items=tuple(named), after=None)
        source = None if source is None else check_source(source)
        if order is not None and not words and source is None and where is None and state is None:
            pairs = order.following(start, limit + 1)
        else:
            pairs = ledger.viewing.cases(
                namespace_id, limit + 1, sort=sort, after=start, words=words, source=source, where=where, state=state
            )
        found = ledger.cases.by_key([key for _, key in pairs[:limit]])
        items = tuple(found[key] for _, key in pairs[:limit] if key in found)
        return Page(items=items, after=place_after(pairs[limit - 1]) if len(pairs) > limit else None)

    def order(self, sort: Sort) -> CaseOrder:
        """Return the order of all cases under ``sort``, for ``page(order=...)``. Only a few numbers of each case are read."""
        sort = _check_sort(sort)
        return CaseOrder.of(self._open().parts.ledger.viewing.use(self._namespace_id()), sort)

    def neighbours(self, case_id: str, *, k: int = 6) -> list[Neighbour]:
        """Return the cases nearest to a case, the nearest first.

        >>> from cascade_memory import CascadeMemory
        >>> memory = CascadeMemory(embedder="hashing")
        >>> ids = memory.add([("cool some mug", "fridge"), ("cool some cup", "fridge"), ("reset my password", "send a link")])
        >>> [one.case.query for one in memory.cases.neighbours(ids[0], k=1)]
        ['cool some cup']
        """
        engine, name, case = self._open(), self._namespace, self.get(case_id)
        vector = engine.parts.ledger.viewing.vector(case.key)
        if vector is None:
            return []
        engine.follow()
        keys, similarity = engine.namespace_state(name).index.nearest(vector, check_k(k) + 1)
        found = engine.parts.ledger.cases.by_key(keys.tolist())
        pairs = zip(keys.tolist(), similarity.tolist(), strict=True)
        near = [Neighbour(case=found[key], similarity=cosine) for key, cosine in pairs if key in found and key != case.key]
        return near[:k]

    def shown_in(self, case_id: str, *, after: str | None = None) -> Page[Episode]:
        """Return a page of the episodes in which a case was shown, newest first; ``after`` is that of the page before.

        One call searches 2,000 recalls at most, so a page may have few episodes, or none, although another page follows.
        """
        case = self.get(case_id)
        viewing, namespace_id = self._caught_up().parts.ledger.viewing, self._namespace_id()
        before = None if after is None else place_of(after)[1]
        found: dict[str, Episode] = {}
        for _ in range(_LOOKED_AT // _AT_ONCE):
            some, before = viewing.shown_in(namespace_id, case.key, _AT_ONCE, before=before)
            found |= {one.id: one for one in some}
            if before is None or len(found) >= _ENOUGH:
                break
        return Page(items=tuple(found.values()), after=None if before is None else place_after((0.0, before)))

    def __iter__(self) -> Iterator[Case]:
        """Iterate over all cases, oldest first."""
        return self.all()

    # -- what people decide ----------------------------------------------------------------------------------------------

    def pin(self, case_id: str) -> bool:
        """Keep a case: ``max_cases`` never evicts it, and it never expires. Return False if it was pinned already.

        ``forget`` and ``correct`` still remove it. Pinned cases count towards ``max_cases``, so other cases
        are evicted to make room.
        """
        return self._flag("pin", case_id)

    def unpin(self, case_id: str) -> bool:
        """Let a pinned case be evicted and expire again, like any other one; return whether it was pinned."""
        return self._flag("unpin", case_id)

    def hide(self, case_id: str) -> bool:
        """Never show a case: no recall or search returns it or has it as a candidate. Return False if it was hidden already.

        It is still listed and exported. It is not evicted, does not expire, and does not count towards ``max_cases``. If agents
        succeed with the same solution of the same task again, the case stays hidden. ``unhide`` shows it again.

        >>> from cascade_memory import CascadeMemory
        >>> memory = CascadeMemory(embedder="hashing")
        >>> case_id = memory.add("cool some mug", "put it into the oven")
        >>> memory.acting(actor="ann").cases.hide(case_id)
        True
        >>> memory.cases.search("cool some mug").cases, memory.cases.get(case_id).hidden
        ((), True)
        >>> [(entry.action, entry.actor, entry.can_undo) for entry in memory.review.audit()]
        [('hide', 'ann', True), ('add', None, False)]
        """
        return self._flag("hide", case_id)

    def unhide(self, case_id: str) -> bool:
        """Show a case again that a person has hidden; return whether a person had hidden it.

        A case of an actor in quarantine is still not shown: ``release`` the actor, or ``pin`` the case.
        """
        return self._flag("unhide", case_id)

    def _flag(self, kind: str, case_id: str) -> bool:
        engine = self._open()
        action = NewAction(kind=kind, actor=self._who())
        done = engine.parts.ledger.actions.flag(self._namespace_id(), check_id(case_id, "case_id"), action)
        engine.learn_soon()
        return done

    # -- what was set aside ----------------------------------------------------------------------------------------------

    def expired(self, *, why: str = "expired") -> list[ExpiredCase]:
        """Return the cases that expired or were evicted and can still be brought back, oldest first.

        Args:
            why: "expired": they were not verified within the memory's ``ttl``. "evicted": they were removed because there were
                more than ``max_cases``; the last ``max_cases`` of these are kept.
        """
        engine = self._open()
        return engine.parts.ledger.expiry.expired(engine.namespace_id(self._namespace), check_why(why))

    def bring_back(self, case_ids: str | Iterable[str] | None = None) -> list[str]:
        """Bring back cases that expired or were evicted; they count as verified now. Return their ids.

        Without ids, all expired cases come back. Evicted cases come back only by their ids, since other cases may be evicted to
        make room for them.

        >>> import time
        >>> from cascade_memory import CascadeMemory, Retention
        >>> memory = CascadeMemory(embedder="hashing", learn="inline", retention=Retention(ttl=0.5))
        >>> case_id = memory.add("cool some mug", "put it into the fridge")
        >>> time.sleep(0.6)
        >>> memory.recall("cool some mug").cases
        ()
        >>> memory.cases.bring_back() == [case_id]
        True
        >>> memory.recall("cool some mug").cases[0].solution
        'put it into the fridge'
        """
        return curation.bring_back(self._open(), case_ids, namespace=self._namespace, actor=self._who())

    # -- frames ----------------------------------------------------------------------------------------------------------

    def to_pandas(self, *, where: Mapping[str, Any] | None = None) -> Any:
        """Return the cases of a namespace as a pandas ``DataFrame``, oldest first; ``where`` filters as in ``all``.

        In the frame, solutions are texts (the steps of a trajectory line by line), and metadata are dictionaries.
        """
        return frame_of(self.all(where=where))


def _check_sort(sort: Sort) -> Sort:
    return cast("Sort", check_word(sort, get_args(Sort), "sort"))


def _words(search: str) -> list[str]:
    words = search.split()
    if len(words) > _WORDS or any(len(word) > _LETTERS for word in words):
        raise InvalidInput(f"a search takes up to {_WORDS} words of up to {_LETTERS} letters")
    return words
