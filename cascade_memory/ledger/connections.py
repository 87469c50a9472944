"""The connections of a ledger: one for quick commits, one for durable commits, and one reader per thread."""

from __future__ import annotations

import contextlib
import gc
import os
import sqlite3
import threading
import time
import weakref
from collections import deque
from collections.abc import Generator
from pathlib import Path

from cascade_memory.domain.interruptible import interruptible, take
from cascade_memory.domain.waiting import patience, patience_ends
from cascade_memory.errors import CascadeError, MemoryForked, StoreBusy, StoreError, StoreReplaced, StoreUnwritable
from cascade_memory.ledger import forking
from cascade_memory.ledger.belonging import Belonging
from cascade_memory.ledger.explained import FAILURES, explain, explained
from cascade_memory.ledger.maintenance import vacuum_elsewhere
from cascade_memory.ledger.opening import BUSY_MS, State, check_sqlite, opened, opened_for_reading, state_of

_ATTEMPTS = 3  # attempts to open a file that another process is replacing
_STEP_MS = 50
_OURS = (*FAILURES, CascadeError)  # but an OSError may be the TimeoutError of an alarm
_UNKNOWN = -1
_TRY_AGAIN = 0.5  # seconds between two attempts to write to a ledger that could not be written
_TRY_FOR = 0.1  # seconds that such an attempt waits for others


class Connections:
    """Hands out connections. With ``path=None`` the database is in RAM, and one connection does everything."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self._pid = os.getpid()
        self._lock = threading.RLock()  # one writer at a time: SQLite would make them wait anyway, less fairly
        self._idle: deque[sqlite3.Connection] = deque()  # idle readers; append and pop are atomic
        self._readers: list[sqlite3.Connection] = []  # all readers
        self._joining = threading.Lock()  # held while readers are created or closed, and while the process forks
        self._paused: list[sqlite3.Connection] = []
        self._entered: list[threading.Lock | threading.RLock] = []
        self._closed = True  # until the database is open
        self._unclean = False  # an interrupt has ended the work of a writer
        self.born = 0
        check_sqlite()
        self.belonging = Belonging(path)
        # For quick and for durable commits; empty while the file cannot be written.
        self._writers: list[sqlite3.Connection] = []
        self._waits: dict[sqlite3.Connection, int] = {}  # milliseconds that a writer waits for other processes
        self.read_only: str | None = None  # the reason why nothing can be written; None if writing is possible
        self._unchanged: State | None = None  # of a file that is opened as immutable
        self._next_try = 0.0
        self._openings = 0  # number of openings: readers from earlier openings are not used any more
        forking.let_go_of_inherited(self.real_path())
        forking.watch(self)
        with self._lock:
            try:
                self._open_writers()
            except StoreUnwritable as error:
                if path is None or not path.exists() or not path.stat().st_size:
                    raise
                self._fall_back(path, error)
            self._closed = False
        # A memory in RAM may be dropped without being closed, and Python 3.13 warns if a connection is collected while it is
        # open. A __del__ here could come too late: in a cycle, the collector finalises objects in any order.
        self._close_all = weakref.finalize(self, _close, self._pid, self._writers, self._idle)
        self._close_all.atexit = False  # a learning thread may still use it at exit; what was committed stays

    @property
    def _quick(self) -> sqlite3.Connection:
        return self._writers[0]

    @property
    def _durable(self) -> sqlite3.Connection:
        return self._writers[-1]

    def _open_writers(self) -> None:
        if self.path is not None and self.path.exists():
            for place in (self.path, self.path.parent):  # SQLite would open it without this check, and then refuse every write
                if not os.access(place, os.W_OK):
                    raise StoreUnwritable(f"{place} cannot be written; check its permissions and its disk")
        with explained(self.path):
            self._writers += self._two_writers()

    def _two_writers(self) -> list[sqlite3.Connection]:
        """Open the two writers; try again if the file was replaced meanwhile, since it is unclear which file they have open."""
        for _ in range(_ATTEMPTS):
            before = self.belonging.before_opening()
            with contextlib.ExitStack() as opened:
                quick = opened.enter_context(contextlib.closing(self._connect("NORMAL", first=True)))
                durable = quick if self.path is None else opened.enter_context(contextlib.closing(self._connect("FULL")))
                if self.belonging.opened(before, durable):
                    opened.pop_all()
                    return [quick] if durable is quick else [quick, durable]
        raise StoreReplaced(f"{self.path} is being replaced at this moment; open it again when that is done")

    def _fall_back(self, path: Path, error: Exception) -> None:
        """Open the file for reading only. Writing is tried again at the next write, and when another process has written."""
        with explained(path):
            connection, untouched = opened_for_reading(path)
            try:
                self.belonging.opened_for_reading(connection)
            except BaseException:
                connection.close()
                raise
        self._start_over()
        with self._joining:
            self._readers.append(connection)
        self._idle.append(connection)
        self._unchanged = state_of(path) if untouched else None
        self.read_only, self._next_try = str(error), time.monotonic() + _TRY_AGAIN

    def _start_over(self) -> None:
        """Close the idle readers now, and let those in use be closed when they are done."""
        self._openings += 1
        while self._idle:
            with contextlib.suppress(IndexError):
                self._let_go(self._idle.pop())

    def _let_go(self, reader: sqlite3.Connection) -> None:
        with self._joining:
            self._readers.remove(reader)
            _close_cursors(reader)
            reader.close()

    def _try_to_write(self) -> None:
        """Check whether the file can be written again; raise if not."""
        assert self.read_only is not None
        if time.monotonic() >= self._next_try:
            self._next_try = time.monotonic() + _TRY_AGAIN
            try:
                with patience(_TRY_FOR):
                    self._open_writers()
            except StoreReplaced:
                raise
            except StoreError as error:
                self.read_only = str(error)
            else:
                self._start_over()
                self.read_only = self._unchanged = None
                return
        raise StoreUnwritable(f"the memory can only be read at the moment: {self.read_only}")

    def _look_again(self, path: Path) -> None:
        """Open the file again if another process has written to it since it was opened as immutable (see ``opening``).

        It is opened for writing if that is possible, and otherwise for reading only.
        """
        with self._lock:
            if self._unchanged is None or self._unchanged == state_of(path):
                return
            self._next_try = 0.0
            try:
                self._try_to_write()
            except StoreUnwritable as error:
                self._fall_back(path, error)

    def _connect(self, synchronous: str, *, first: bool = False) -> sqlite3.Connection:
        return opened(self.path, self.belonging.path, synchronous, first=first)

    def _enter(self) -> None:
        """Raise if the ledger is closed, or in a forked child process, where SQLite connections do not work.

        If another thread is about to fork, let it do so first.
        """
        if os.getpid() != self._pid:
            raise MemoryForked(
                "this memory was opened before fork() and cannot be used in the child; "
                "open it again there, or start workers with the 'spawn' method"
            )
        if self._closed:
            raise StoreError("the ledger is closed")
        if forking.under_way:
            forking.give_way()

    @interruptible
    def read(self) -> Generator[sqlite3.Connection, None, None]:
        """Yield a connection that sees one consistent state per statement."""
        self._enter()
        held: list[bool] = []
        readers: list[sqlite3.Connection] = []
        openings, intact = self._openings, True
        try:
            if self.path is None:
                within_another = self._take(held, patience_ends())
                self._unclean = True
                yield self._quick
                self._unclean = within_another
                return
            if self._unchanged is not None and self._unchanged != state_of(self.path):
                self._look_again(self.path)
            openings = self._openings
            try:
                readers.extend(map(deque[sqlite3.Connection].pop, (self._idle,)))  # popped and noted in one step
            except IndexError:
                self._open_reader(self.path, readers)
            intact = False
            yield readers[0]
            intact = True
        except _OURS as error:
            if not isinstance(error, OSError):
                intact, self._unclean = True, self._unclean and self.path is not None
            explain(error, self.path)
        finally:
            if True in held:
                self._lock.release()
            if readers and intact and openings == self._openings:
                self._idle.extend(readers)
            elif readers:  # after an interrupt a traceback may keep a cursor, in whose old state the reader would remain
                self._let_go(readers[0])

    @interruptible
    def snapshot(self) -> Generator[sqlite3.Connection, None, None]:
        """Yield a connection all of whose statements see one consistent state."""
        with self.read() as connection:
            inside_another = connection.in_transaction
            try:
                connection.execute("BEGIN")
                yield connection
            finally:
                if not inside_another and connection.in_transaction:
                    connection.rollback()

    def _open_reader(self, path: Path, readers: list[sqlite3.Connection]) -> None:
        """Take a reader that has become idle meanwhile, or open one more; put it into ``readers``."""
        with self._joining:
            with contextlib.suppress(IndexError):
                readers.extend(map(deque[sqlite3.Connection].pop, (self._idle,)))  # a fork was using it
                return
            if self.read_only is not None:
                connection, _ = opened_for_reading(path)
            else:
                self.belonging.check()  # the file may have been replaced or deleted, and SQLite would create a new one
                connection = self._connect("NORMAL")
                try:
                    self.belonging.check()
                except BaseException:
                    connection.close()
                    raise
            self._readers, readers[:] = [*self._readers, connection], [connection]

    @interruptible
    def write(self, *, durable: bool, brings_vectors: bool = False) -> Generator[sqlite3.Connection, None, None]:
        """Yield a connection inside a transaction: committed at the end, rolled back on any error.

        A quick commit survives a killed process; a durable one also survives a power cut. Neither is acknowledged if the file
        was replaced. With ``brings_vectors`` the embedder is recorded, unless it was before: vectors of different embedders
        cannot be compared.
        """
        self._enter()
        until, held = patience_ends(), list[bool]()
        try:
            within_another = self._take(held, until)
            if self.read_only is not None:
                self._try_to_write()
            connection = self._durable if durable else self._quick
            self._wait_for_others(connection, until)
            inside_another = connection.in_transaction
            try:
                connection.execute("BEGIN IMMEDIATE")
                self.belonging.check_facts(connection, claims=brings_vectors)
                self._unclean = True
                yield connection
                connection.execute("COMMIT")
                self._unclean = within_another
            finally:
                if connection.in_transaction and not inside_another:
                    connection.rollback()
            self.belonging.check()
        except _OURS as error:
            self._unclean = self._unclean and isinstance(error, OSError)
            explain(error, self.path)
        finally:
            if True in held:
                self._lock.release()

    def _take(self, held: list[bool], until: float | None) -> bool:
        """Take the lock that this process's writers share; raise if it is still in use at ``until``.

        If ``until`` is None, wait without limit. Once the lock is taken, ``held`` contains True, and the caller must release
        the lock. Return whether this thread had the lock already, since it is inside another read or write of its own, which
        goes on.
        """
        within_another = self._lock._is_owned()  # pyright: ignore[reportAttributeAccessIssue, reportUnknownVariableType, reportUnknownMemberType]
        if not take(self._lock, held, None if until is None else max(0.0, until - time.monotonic())):
            raise StoreBusy(f"{self.path or 'the memory'} is being written by another thread, which has not finished in time")
        if self._closed:  # while this thread waited for the lock
            raise StoreError("the ledger is closed")
        if self._unclean and not within_another:
            for writer in self._writers:
                _close_cursors(writer)
            self._unclean = False
        return bool(within_another)

    def _wait_for_others(self, connection: sqlite3.Connection, until: float | None) -> None:
        # Setting the timeout costs a statement, so it is set only if it changes.
        wait = BUSY_MS
        if until is not None:
            wait = min(wait, -(-int(1000 * max(0.0, until - time.monotonic())) // _STEP_MS) * _STEP_MS)
        if self._waits.get(connection, BUSY_MS) != wait:
            self._waits[connection] = _UNKNOWN  # until it is set: an interrupt may come in between
            connection.execute(f"PRAGMA busy_timeout = {wait}")
            self._waits[connection] = wait

    def vacuum(self) -> str:
        """Rewrite the file without its free pages, and empty the write-ahead log.

        Return a text that says what could not be cleaned; it is empty if everything was.
        """
        self._enter()
        held: list[bool] = []
        try:
            self._take(held, patience_ends())
            with explained(self.path):
                busy = self._vacuum()
        finally:
            if True in held:
                self._lock.release()
        return "the ledger's write-ahead log, which another process was reading: purge again" if busy else ""

    def _vacuum(self) -> bool:
        """Rewrite the file and empty the log; return whether another process kept the log from being emptied."""
        if self.read_only is not None:
            self._try_to_write()
        if self.path is None:
            self._quick.execute("VACUUM")
            return False
        vacuum_elsewhere(self.path)
        self._waits[self._durable] = _UNKNOWN
        self._durable.execute("PRAGMA busy_timeout = 2000")  # a reader of an old state may hold it for long
        busy, _, _ = self._durable.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        self.belonging.check()
        return bool(busy)

    # -- forking -----------------------------------------------------------------------------------------------------

    def real_path(self) -> str | None:
        """Return the real path of the file."""
        return None if self.belonging.path is None else os.path.realpath(self.belonging.path)

    def all_connections(self) -> list[sqlite3.Connection]:
        """Return all open connections."""
        return [] if self._closed else [*self._writers, *self._readers]

    def pause(self, deadline: float) -> bool:
        """Keep all threads out of SQLite; return False if one is still inside at the deadline."""
        for lock in (self._lock, self._joining):
            taken: list[bool] = []
            try:
                if not take(lock, taken, max(0.0, deadline - time.monotonic())):
                    return False
            finally:
                if True in taken:
                    self._entered.append(lock)
        if self._closed:
            return True
        while len(self._paused) < len(self._readers):
            with contextlib.suppress(IndexError):
                self._paused.extend(map(deque[sqlite3.Connection].pop, (self._idle,)))
                continue
            if time.monotonic() > deadline:
                return False
            time.sleep(0.0005)
        return not any(writer.in_transaction for writer in self._writers)  # the forking thread itself may be in a transaction

    def resume(self) -> None:
        """Let all threads in again."""
        paused, self._paused = self._paused, []
        self._idle.extend(paused)
        while self._entered:
            lock, self._entered = self._entered[-1], self._entered[:-1]
            lock.release()

    def close(self) -> None:
        """Close every connection. Everything committed stays."""
        if os.getpid() != self._pid:
            return
        with self._lock:
            self._closed = True
            self._close_all()


def _close(pid: int, held: list[sqlite3.Connection], idle: deque[sqlite3.Connection]) -> None:
    if os.getpid() == pid:
        for connection in {*held, *idle}:
            connection.close()


def _close_cursors(connection: sqlite3.Connection) -> None:
    """Close all cursors: one that a traceback keeps open would hold an old state, and nothing could be written or cleaned."""
    for one in gc.get_referrers(connection):
        if isinstance(one, sqlite3.Cursor):
            one.close()
