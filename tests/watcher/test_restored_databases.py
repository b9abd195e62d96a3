"""A database that is restored from a backup has the product's own tables of then: what its
consumers and copies do. docs/troubleshooting.md says it."""

from __future__ import annotations

from pathlib import Path

import pytest
from fixtures.backups import back_up, restore
from fixtures.changing_schemas import change_schema
from fixtures.consumers import write
from fixtures.replicas import assert_equal, read_rows, replicate
from fixtures.singers import address_of
from fixtures.watcher_threads import ChangeCollector, run_without_error
from google.cloud.spanner_v1.database import Database

from watcher import Watcher
from watcher.model.errors import ConfigurationError, StreamExpiredError
from watcher.settings.watcher import parse_watch_config

STREAM = "CREATE CHANGE STREAM S FOR Singers"
STREAMED = {"capture": "change-stream", "stream": {"name": "S"}}


def watch(database: Database, seen: ChangeCollector, **more: object) -> Watcher:
    given = {
        "database": str(address_of(database)),
        "tables": ["Singers"],
        "consumer": "c",
        "interval": "20ms",
    }
    watcher = Watcher(parse_watch_config(given | more))
    watcher.on_change(seen)
    return watcher


def keys_of(seen: ChangeCollector) -> list[int]:
    return sorted(int(str(change.key["SingerId"])) for change in seen.changes)


def test_a_polling_consumer_goes_on_from_its_position_in_the_backup(singers: Database) -> None:
    first = ChangeCollector()
    write(singers, 1)
    watch(singers, first, start="earliest").run_once()
    write(singers, 2)
    backup = back_up(singers)
    write(singers, 3)
    watch(singers, first).run_once()
    restored = restore(singers, backup.name)
    write(restored, 4)
    second = ChangeCollector()
    watch(restored, second).run_once()
    assert (keys_of(first), keys_of(second)) == ([1, 2, 3], [2, 4])


def test_a_consumer_of_a_stream_ends_instead_of_losing_what_the_stream_lost(
    singers: Database,
) -> None:
    change_schema(singers, STREAM)
    seen = ChangeCollector()
    watch(singers, seen, **STREAMED).run_once()
    write(singers, 1)
    restored = restore(singers, back_up(singers).name)
    write(restored, 2)
    with pytest.raises(StreamExpiredError, match="give the reader a new position"):
        watch(restored, seen, **STREAMED).run_once()
    assert keys_of(seen) == []


def test_a_lease_in_a_backup_ends_and_both_databases_have_their_own(singers: Database) -> None:
    """Who holds the lease in the one database neither stops nor is stopped by who holds it in the
    other."""
    here, there = ChangeCollector(), ChangeCollector()
    write(singers, 1)
    with run_without_error(watch(singers, here, start="earliest", lease="1s")):
        here.wait(1)
        restored = restore(singers, back_up(singers).name)
        with run_without_error(watch(restored, there, lease="1s")):
            write(restored, 2)
            there.wait_until(lambda: 2 in keys_of(there))
            write(singers, 3)
            here.wait_until(lambda: 3 in keys_of(here))
    assert 3 not in keys_of(there)
    assert 2 not in keys_of(here)


def test_copies_of_another_database_are_refused(singers: Database, tmp_path: Path) -> None:
    write(singers, 1)
    replicate(singers, tmp_path, tables=["Singers"])
    restored = restore(singers, back_up(singers).name)
    with pytest.raises(ConfigurationError, match=r"belongs to .* not to"):
        replicate(restored, tmp_path, tables=["Singers"])


def test_a_copy_of_a_database_that_was_restored_under_its_name_is_loaded_again(
    singers: Database, tmp_path: Path
) -> None:
    """Rows that were written after the backup are no longer there, and nobody deletes them."""
    write(singers, 1, 2)
    replicate(singers, tmp_path, tables=["Singers"])
    backup = back_up(singers)
    write(singers, 2, name="later")
    write(singers, 3)
    replicate(singers, tmp_path, tables=["Singers"])
    name = str(singers.database_id)
    singers.drop()
    restored = restore(singers, backup.name, name)
    write(restored, 4)
    replicate(restored, tmp_path, tables=["Singers"])
    found = sorted((row["SingerId"], row["LastName"]) for row in read_rows(tmp_path, "Singers"))
    assert found == [(1, "name"), (2, "name"), (4, "name")]
    assert_equal(restored, tmp_path)
