"""Lets every test keep its memories in PostgreSQL instead of folders: ``pytest --in-databases direct`` (or ``pooled``).

Each folder that a test opens stands for a database of its own, in this process and in those that it starts.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

_SERVER = "CASCADE_TEST_SERVER"  # the URL of the server, with {name} for the database
_FOLDERS = "CASCADE_TEST_FOLDERS"  # a folder with one file for each database: the path that it stands for


def url_of(path: str | os.PathLike[str]) -> str:
    """Return the URL of the database that stands for a folder; create it at first use."""
    import psycopg

    name = "m" + hashlib.sha256(os.path.realpath(Path(path).expanduser()).encode()).hexdigest()[:24]
    server = os.environ[_SERVER]
    with psycopg.connect(os.environ[f"{_SERVER}_DIRECT"].format(name="postgres"), autocommit=True) as connection:
        if connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", (name,)).fetchone() is None:
            with contextlib.suppress(psycopg.errors.DuplicateDatabase, psycopg.errors.UniqueViolation):  # another process did
                connection.execute(f"CREATE DATABASE {name}")  # type: ignore[arg-type]
            (Path(os.environ[_FOLDERS]) / name).write_text(os.path.realpath(Path(path).expanduser()))
    return server.format(name=name)


def named(path: str | os.PathLike[str]) -> str:
    """Return what a program that gets no environment has to be given: the folder, or the URL that it stands for."""
    return url_of(path) if os.environ.get(_SERVER) else str(path)


def rows_of(path: Path) -> Any:
    """Connect to the ledger of a folder, or to the database that the folder stands for, to read its rows or change them."""
    if not os.environ.get(_SERVER):
        return sqlite3.connect(path / "ledger.sqlite3")
    import psycopg
    from psycopg.conninfo import conninfo_to_dict

    from cascade_memory.ledger.postgres.batch import Batch

    direct = os.environ[f"{_SERVER}_DIRECT"].format(name=conninfo_to_dict(url_of(path))["dbname"])

    class Rows(Batch):
        def commit(self) -> None:
            self.execute("SELECT 1").fetchone()  # statements wait until somebody reads; each one commits itself

        def close(self) -> None:
            connection.close()

    connection = psycopg.connect(direct, autocommit=True, cursor_factory=psycopg.ClientCursor)
    return Rows(connection, "the database of a test")


def rows_below(folder: Path) -> dict[str, bytes]:
    """Return all values in the databases that stand for folders below a folder, by the name of the table."""
    found: dict[str, bytes] = {}
    if not os.environ.get(_SERVER):
        return found
    import psycopg

    tables = (
        "SELECT table_name FROM information_schema.tables WHERE table_schema = 'cascade_memory' AND table_type = 'BASE TABLE'"
    )
    for file in Path(os.environ[_FOLDERS]).iterdir():
        if not Path(file.read_text()).is_relative_to(os.path.realpath(folder)):
            continue
        with psycopg.connect(os.environ[f"{_SERVER}_DIRECT"].format(name=file.name)) as connection:
            for (table,) in connection.execute(tables).fetchall():
                rows = connection.execute(f"SELECT * FROM cascade_memory.{table}").fetchall()  # type: ignore[arg-type]
                values = [one if isinstance(one, bytes) else str(one).encode() for row in rows for one in row]
                found[f"{file.name}.{table}"] = b"\n".join(values)
    return found


def install() -> None:
    """Let each path of a folder mean its database."""
    from cascade_memory.assembly import opened, place

    true_place = place.place_of

    def place_of(path: object) -> place.Place:
        found = true_place(path)
        return found if type(found).__name__ == "Database" else true_place(url_of(str(found)))

    for module in (place, opened):
        module.place_of = place_of  # type: ignore[attr-defined]


# What these tests look at, or damage, is only there if a memory is in a folder. tests/postgres has what takes its place.
_OF_FOLDERS = {
    "test_backup.py": "",  # every test
    "test_bad_folders.py": "",
    "test_by_whom.py": "test_it_survives_closing_a_backup_and_an_export",
    "test_tickets.py": "test_no_copy_takes_a_ticket_of_the_original",  # a copy of the folder
    "test_undo_in_any_order.py": "test_a_case_that_is_stored_anew_while_chroma_is_fed_stays_in_chroma",
    "test_failures_forgotten.py": "test_no_byte_of_them_stays_after_a_purge",
    "test_quarantine_and_hiding.py": "test_what_an_older_version_marked_as_hidden_by_a_person_stays_out_when_unhidden",
    "test_audit_chain.py": "test_that_a_log_was_begun_is_known_in_every_copy",  # a backup
    "test_cancelled_recalls.py": "test_a_recall_that_waits_for_the_ledger_is_dropped_if_its_run_ends",  # a writer in SQLite
    "test_extreme_values.py": "test_a_tool_refuses_an_extreme_value_or_stores_it_for_good",  # a backup
    "test_interrupts.py": """test_ctrl_c_while_another_process_writes_locks_nobody_out
      test_closing_again_goes_on_where_an_interrupt_has_ended_it
      test_chroma_is_fed_again_after_an_interrupt_while_it_was_opened_or_closed""",  # SQLite's lock, the folder's own Chroma
    "test_limits_of_values.py": """test_what_an_older_version_stored_beyond_the_limits_is_still_good
      test_a_count_that_is_as_great_as_it_may_be_stays_so
      test_the_greatest_values_are_in_a_backup""",  # backups
    "test_undo_what_was_replaced.py": "test_a_forgotten_case_is_not_in_what_was_replaced_either",  # a database's dead rows stay
    "test_lag.py": "",  # the folder's own Chroma
    "test_standing_aside.py": "",  # the same
    "test_event_loop.py": """test_nor_do_recalls_with_rewards test_nor_does_feeding_chroma_which_waits_for_a_quiet_moment
      test_while_a_recall_or_a_reward_waits_for_the_ledger_the_loop_goes_on""",  # the last one: a writer in SQLite
    "test_processes.py": """test_a_notebook_cell_run_twice_loses_nothing_and_ends_cleanly
      test_a_spawned_worker_works_in_its_parents_folder""",
    "test_races.py": "test_a_namespace_that_another_first_recall_writes_meanwhile_needs_no_turn_among_the_writers",
    "test_case_text.py": "test_tools_are_part_of_what_a_case_is_found_by",  # reindex
    "test_deletion.py": "test_a_process_that_only_follows_can_purge_as_well test_after_a_purge_no_file_holds_a_byte_of_it",
    "test_doctor.py": """test_a_chroma_with_other_cases_in_it_is_made_anew
      test_a_clock_that_was_set_back_is_noticed_and_put_right
      test_a_file_system_without_locks_is_refused test_a_ledger_of_another_program_is_left_alone
      test_every_torn_state_is_repaired_or_refused_in_words test_rows_that_belong_to_nothing_are_found_and_removed
      test_snapshots_that_nobody_can_read_are_found_and_removed test_the_command_line_mends_too""",
    "test_durability.py": """test_a_deleted_chroma_is_made_again test_a_forked_child_gets_a_clear_error_and_may_open_its_own
      test_a_full_disk_is_an_error_loses_nothing_and_passes test_the_ledger_is_a_plain_sqlite_file_in_wal_mode
      test_a_killed_process_leaves_a_chroma_that_is_thrown_away_unread test_chroma_that_fails_is_counted_and_recall_goes_on
      test_a_second_process_follows_and_takes_over_when_the_owner_is_gone
      test_a_snapshot_that_is_behind_is_caught_up_from_the_ledger
      test_many_cases_are_rebuilt_by_a_child_that_dies_with_its_parent
      test_without_its_snapshots_the_ranker_is_learned_again_from_the_ledger""",
    "test_let_go.py": """test_closing_saves_no_snapshots_of_many_small_namespaces
      test_forgetting_reaches_the_snapshots_of_a_namespace_that_is_not_loaded
      test_what_was_learned_is_there_when_a_namespace_comes_back""",  # they count the folder's snapshots
    "test_relearning.py": "test_a_purge_says_what_could_not_be_relearned",  # a database's dead rows stay anyway
    "test_only_rewards.py": "test_a_damaged_row_is_left_out_of_what_is_learned",  # columns have types
    "test_promises.py": """test_a_follower_cannot_take_the_owner_s_mirror_away test_a_ledger_that_is_gone_is_no_new_folder
      test_a_mirror_made_anew_after_a_wipe_holds_every_case test_a_snapshot_that_does_not_fit_is_learned_again""",
}


class InDatabases:
    """The plugin: one server per test process."""

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Leave out what is about folders."""
        left_out = [item for item in items if _is_of_folders(item)]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not _is_of_folders(item)]

    def __init__(self, how: str) -> None:
        self._how = how

    @pytest.fixture(autouse=True, scope="session")
    def in_databases(self) -> Iterator[None]:
        from cluster import cluster

        started = str(Path(__file__).parent / "started")  # for the processes that tests start
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [started, os.environ.get("PYTHONPATH")]))
        with cluster() as server, tempfile.TemporaryDirectory() as folders:
            os.environ[_FOLDERS] = folders
            direct = server.url("{name}")
            os.environ[f"{_SERVER}_DIRECT"] = direct
            if self._how == "pooled":
                with server.pooled() as port:
                    os.environ[_SERVER] = server.url("{name}", port)
                    install()
                    yield
            else:
                os.environ[_SERVER] = direct
                install()
                yield


def _is_of_folders(item: pytest.Item) -> bool:
    names = _OF_FOLDERS.get(item.path.name)
    return names is not None and (not names or item.name.split("[")[0] in names.split())
