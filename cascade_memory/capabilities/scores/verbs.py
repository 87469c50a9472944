"""``memory.scores``: verdicts that were given on other platforms, and what they teach."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple, cast

from cascade_memory.capabilities.scores.acting import Acting
from cascade_memory.capabilities.scores.checking import Checked, checked
from cascade_memory.capabilities.scores.collecting import Collected, Tally
from cascade_memory.capabilities.scores.score import Reading, Score, Unread
from cascade_memory.capabilities.scores.standing import ROWS, Row, rows_of
from cascade_memory.domain.display import quoted
from cascade_memory.domain.trust import REVISED
from cascade_memory.domain.validation import Moment, moment_of
from cascade_memory.engine.part import episode_of
from cascade_memory.errors import CascadeError, InvalidInput, StoreError, UnknownEpisode
from cascade_memory.ledger import Connection
from cascade_memory.memory import Capable, explained

_AT_ONCE = 200  # scores in a transaction


class _Seen(NamedTuple):
    """A score that finds an episode."""

    one: Checked
    episode_id: str

    @property
    def id(self) -> tuple[str, str]:
        return self.one.row.platform, self.one.row.feedback

    @property
    def key(self) -> tuple[str, str, str]:
        return self.episode_id, *self.id


@explained
class Scores(Capable):
    """Scores of people, models and programs that hang on traces of other platforms. They become the rewards of episodes."""

    def collect(
        self,
        scores: Iterable[Score | Unread],
        *,
        weights: Mapping[str, float] | None = None,
        labels: Mapping[str, float] | None = None,
        dry_run: bool = False,
    ) -> Collected:
        """Take scores as they come, in any order, any number of times: what they come to becomes the reward of their episode.

        Of the scores of an episode, the newest version of each counts, and those from the most trusted source decide: people,
        then programs, then judges, then the agent itself. The reward is their weighted mean. It takes the place of a direct
        reward only if that came from a less trusted source. If all scores of an episode are deleted, what they taught is
        withdrawn. A person's correction becomes a corrected case, unless somebody has undone it here.

        Args:
            scores: What a collector returns, one by one.
            weights: How much the scores of each name count; others are ignored. By default all count the same.
            labels: The numbers from 0 to 1 that labels mean, beside the usual ones, such as "pass", "no" or "thumbs up".
            dry_run: Only say how many would find an episode.

        >>> from cascade_memory import CascadeMemory
        >>> from cascade_memory.capabilities.scores.score import Score
        >>> memory = CascadeMemory(embedder="hashing")
        >>> score = Score(platform="mine", id="1", name="correct", value=True, judge="human", at=1.7e9, trace_id="0" * 31 + "1")
        >>> print(memory.scores.collect([score], dry_run=True))
        of 1 score 0 find an episode
        not used: 1 whose trace has no episode here
        a dry run: nothing was stored
        """
        if not isinstance(cast("object", scores), Iterable):
            raise InvalidInput(f"collect needs what a collector returns, one score after the other, not {quoted(scores)}")
        reading, tally, newest = Reading(weights, labels), Tally(), dict[tuple[str, str], tuple[object, ...]]()
        for batch, failed in _batches(scores):
            seen = [one for score in batch if (one := self._seen(score, reading, tally)) is not None]
            known = self._versions(seen)
            if dry_run:
                _look(seen, known, newest, tally)
            else:
                self._take(seen, known, reading, tally)
            if failed is not None:
                raise failed
        return tally.collected(dry_run=dry_run)

    def of(self, episode_id: str) -> list[Score]:
        """Return the scores of an episode as they are stored, oldest first: without labels, comments and corrections.

        >>> from cascade_memory import CascadeMemory
        >>> memory = CascadeMemory(embedder="hashing")
        >>> memory.scores.of(memory.recall("cool some mug").episode_id)
        []
        """
        with self._reading() as tx:
            key = self._key_of_episode(tx, episode_id)
            return [_score(one) for one in rows_of(tx.execute(f"{ROWS} WHERE episode = ? ORDER BY at, key", (key,)).fetchall())]

    def known(self, platform: str, *, since: Moment | None = None) -> list[Score]:
        """Return the stored scores of a platform, oldest first: a collector can ask whether they are still as they were.

        Args:
            platform: Its name, as its collector writes it.
            since: Only those that were given or changed since: seconds since 1970, a ``datetime``, or a text such as "30d".

        >>> from cascade_memory import CascadeMemory
        >>> CascadeMemory(embedder="hashing").scores.known("phoenix", since="30d")
        []
        """
        query = f"{ROWS} WHERE namespace = ? AND platform = ? AND at >= ? ORDER BY at, key"
        values = (self._namespace_id(), self._id(platform, "platform"), moment_of(since, "since") or 0.0)
        with self._reading() as tx:
            return [_score(one) for one in rows_of(tx.execute(query, values).fetchall())]

    def newest(self, platform: str) -> float | None:
        """Return when the newest stored score of a platform was given or changed, in seconds since 1970; None without any.

        >>> from cascade_memory import CascadeMemory
        >>> CascadeMemory(embedder="hashing").scores.newest("langsmith") is None
        True
        """
        of = (self._namespace_id(), self._id(platform, "platform"))
        with self._reading() as tx:
            found = tx.execute("SELECT max(at) FROM score WHERE namespace = ? AND platform = ?", of).fetchone()[0]
        return float(found) if isinstance(found, (int, float)) else None

    # -- one batch -------------------------------------------------------------------------------------------------------

    def _seen(self, score: Score | Unread, reading: Reading, tally: Tally) -> _Seen | None:
        """Return a score with its episode; count it and return None if it has none, or cannot be used."""
        tally.counts["scores"] += 1
        if isinstance(score, Unread):
            tally.refuse(score.why)
            return None
        try:
            one = checked(score, reading, self._open().parts.door.record())
        except InvalidInput as error:
            tally.refuse(f"a score with the id {quoted(score.id)} was refused: {error}")
            return None
        found = None
        if reading.weight(one.row.name) is None:
            tally.unmapped[one.row.name] += 1
            return None
        try:
            found = self._episode_of(one)
        except UnknownEpisode:
            tally.counts["unknown"] += 1
        except InvalidInput as error:
            tally.refuse(f"a score with the id {quoted(score.id)} was refused: {error}")
        else:
            tally.counts["untraced"] += found is None
        return None if found is None else _Seen(one, found)

    def _episode_of(self, one: Checked) -> str | None:
        """Return the id of the episode of a score: by its trace or, without one, by an earlier version; None without both.

        If the trace has got a second episode since, the earlier version says which one is meant.
        """
        score = one.score
        if score.trace_id is None:
            return self._of_earlier(one)
        try:
            return episode_of(self._caught_up().capable, self._namespace_id(), None, score.trace_id, score.span_id)
        except InvalidInput:
            found = self._of_earlier(one)
            if found is None:
                raise
            return found

    def _of_earlier(self, one: Checked) -> str | None:
        """Return the id of the episode of a stored version, of the same trace if the score has one."""
        query = """SELECT episode.id FROM score JOIN episode ON episode.key = score.episode
                     WHERE score.namespace = ? AND platform = ? AND feedback = ? AND (trace_id = ? OR ? IS NULL)
                     ORDER BY score.key DESC LIMIT 1"""
        row = one.row
        with self._reading() as tx:
            values = (self._namespace_id(), row.platform, row.feedback, row.trace_id, row.trace_id)
            found = tx.execute(query, values).fetchone()
        return None if found is None else str(found[0])

    def _versions(self, seen: Iterable[_Seen]) -> dict[tuple[str, str, str], Row]:
        """Return the stored versions of scores, by episode, platform and id."""
        with self._reading() as tx:
            found = ((one, _stored(tx, self._namespace_id(), one)) for one in seen)
            return {one.key: row for one, (_, row) in found if row is not None}

    def _take(self, seen: list[_Seen], known: dict[tuple[str, str, str], Row], reading: Reading, tally: Tally) -> None:
        """Store what is new of a batch, and bring about what its episodes' scores ask for, whether or not anything is new.

        A process that was killed may have stored a score without its outcome.
        """
        if any((row := known.get(one.key)) is None or row.version < one.one.row.version for one in seen):
            with self._writing() as tx:
                older = [_is_older(tx, self._namespace_id(), one) for one in seen]
        else:
            older = [one.one.row.version < known[one.key].version for one in seen]
        for one, is_older in zip(seen, older, strict=True):
            _count(one, tally, is_older=is_older)
        texts = {one.one.row.note: one.one.correction for one in seen if one.one.correction is not None}
        acting = Acting.of(self)
        for episode_id in dict.fromkeys(one.episode_id for one in seen):
            try:
                done = acting.bring_about(episode_id, reading, texts)
            except StoreError:
                raise
            except CascadeError as error:
                tally.refuse(f"the reward of episode {episode_id!r} stays as it is: {error}", score=False)
            else:
                tally.counts.update(done[-1:])


def _score(row: Row) -> Score:
    return Score(
        platform=row.platform,
        id=row.feedback,
        name=row.name,
        value=row.value,
        judge=row.judge,  # pyright: ignore[reportArgumentType] - its column has been checked
        at=row.at,
        trace_id=row.trace_id,
        span_id=row.span_id,
        by=row.actor,
        deleted=bool(row.deleted),
    )


def _one(score: object) -> Score | Unread:
    if not isinstance(score, (Score, Unread)):
        raise InvalidInput(f"a collector must return objects of the class Score, not {quoted(score)}")
    return score


def _batches(scores: Iterable[Score | Unread]) -> Iterator[tuple[list[Score | Unread], Exception | None]]:
    """Yield batches; if the collector fails, also what it returned before, with the error."""
    iterator = iter(scores)
    while True:
        batch, failed = list[Score | Unread](), None
        try:
            for score in itertools.islice(iterator, _AT_ONCE):
                batch.append(_one(score))  # one by one: what came before a failure must stay
        except Exception as error:  # noqa: BLE001 - it is raised again, after what came before it is stored
            failed = error
        if batch or failed is not None:
            yield batch, failed
        if failed is not None or len(batch) < _AT_ONCE:
            return


def _look(
    seen: Iterable[_Seen],
    known: Mapping[tuple[str, str, str], Row],
    newest: dict[tuple[str, str], tuple[object, ...]],
    tally: Tally,
) -> None:
    """Count for a dry run, which stores nothing: ``newest`` are the versions that it has seen."""
    for one in seen:
        row, version = known.get(one.key), one.one.row.version
        before = max((other for other in (row and row.version, newest.get(one.id)) if other), default=version)
        newest[one.id] = max(before, version)
        _count(one, tally, is_older=version < before)


def _count(seen: _Seen, tally: Tally, *, is_older: bool) -> None:
    row, score = seen.one.row, seen.one.score
    if is_older:
        tally.counts["older"] += 1
    elif row.value is None and row.correction is None and not row.deleted:
        tally.unnumber(score.value)
    else:
        tally.found[row.judge] += 1


def _stored(tx: Connection, namespace: int, seen: _Seen) -> tuple[int | None, Row | None]:
    """Return the key of a score's episode, and its stored version."""
    of = (seen.episode_id, namespace)
    episode = tx.execute("SELECT key FROM episode WHERE id = ? AND namespace = ?", of).fetchone()
    if episode is None:
        return None, None
    found = tx.execute(f"{ROWS} WHERE episode = ? AND platform = ? AND feedback = ?", (episode[0], *seen.id)).fetchall()
    rows = rows_of(found)
    return int(episode[0]), rows[0] if rows else None


def _is_older(tx: Connection, namespace: int, seen: _Seen) -> bool:
    """Store a score if it is new or a newer version; say whether it is an older version."""
    (episode, known), row = _stored(tx, namespace, seen), seen.one.row
    if episode is None or (known is not None and row.version <= known.version):
        return known is not None and row.version < known.version
    tx.execute("DELETE FROM score WHERE episode = ? AND platform = ? AND feedback = ?", (episode, *seen.id))
    names, marks = ", ".join(row._fields), ", ".join("?" * len(row))
    values = (episode, namespace, REVISED[0], *row)
    tx.execute(f"INSERT INTO score (episode, namespace, channel, {names}) VALUES (?, ?, ?, {marks})", values)
    return False
