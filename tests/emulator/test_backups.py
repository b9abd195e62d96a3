"""Backups, restored databases and schedules, as Spanner documents them, by the real client."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from fixtures.backups import DAY, admin, back_up, instance_of, name_new, restore, tomorrow
from fixtures.queries import ask
from fixtures.server import connect, spawn
from google.api_core import exceptions
from google.cloud.spanner_admin_database_v1 import types
from google.cloud.spanner_v1 import KeySet
from google.cloud.spanner_v1.database import Database
from google.protobuf.duration_pb2 import Duration
from google.protobuf.field_mask_pb2 import FieldMask

from emulator.copy_calls import SNAPSHOT
from emulator.data_directories import restore_directory
from emulator.process import call_server
from emulator.services.backup_store import READY, BackupStore, StoredBackup
from emulator.wire import messages as m
from watcher.spanner.timestamps import to_micros

TABLE = (
    "CREATE TABLE t (id INT64 NOT NULL, v STRING(MAX), n INT64 AS (id * 2) STORED) PRIMARY KEY (id)"
)
STREAM = "CREATE CHANGE STREAM S FOR ALL"
CRON = types.BackupScheduleSpec(cron_spec=types.CrontabSpec(text="0 2 * * *"))


def micros_of(time: Any) -> int:
    """A time that the client shows as a datetime."""
    return to_micros(time)


def write(database: Database, *ids: int, value: str = "v") -> datetime:
    with database.batch() as batch:
        batch.insert_or_update("t", ("id", "v"), [(each, value) for each in ids])
    committed: datetime = batch.committed
    return committed


def delete(database: Database, *ids: int) -> None:
    with database.batch() as batch:
        batch.delete("t", KeySet(keys=[[each] for each in ids]))


def read(database: Database) -> list[tuple[Any, ...]]:
    return list(ask(database, "SELECT id, v, n FROM t ORDER BY id").rows)


@pytest.mark.both_dialects
@pytest.mark.ddl(TABLE)
def test_a_restored_database_has_what_was_backed_up(database: Database) -> None:
    write(database, 1, 2)
    backup = back_up(database)
    write(database, 2, 3, value="later")
    restored = restore(database, backup.name)
    assert read(restored) == [(1, "v", 2), (2, "v", 4)]
    write(restored, 4)
    assert len(read(database)) == 3
    shown = admin(database).get_database(name=restored.name)
    assert shown.restore_info.backup_info.backup == backup.name
    assert shown.restore_info.backup_info.source_database == database.name
    assert micros_of(shown.earliest_version_time) > micros_of(backup.version_time)
    assert backup.state == types.Backup.State.READY
    assert backup.version_time == backup.create_time
    assert backup.database_dialect == database.database_dialect
    assert backup.size_bytes > 0


@pytest.mark.both_dialects
@pytest.mark.ddl(TABLE, "CREATE INDEX by_v ON t (v)")
def test_a_version_time_of_the_past_gives_the_rows_of_then(database: Database) -> None:
    write(database, 1, 2, 3)
    write(database, 2, value="second")
    then = write(database, 5)
    write(database, 1, 4, value="too late")
    delete(database, 3, 5)
    backup = back_up(database, version_time=then)
    restored = restore(database, backup.name)
    assert read(restored) == [(1, "v", 2), (2, "second", 4), (3, "v", 6), (5, "v", 10)]
    found = ask(restored, "SELECT id FROM t WHERE v = 'second'").rows
    assert found == [(2,)]
    assert micros_of(backup.version_time) == micros_of(then)


@pytest.mark.ddl(TABLE)
@pytest.mark.parametrize("ahead", [-DAY, DAY])
def test_a_version_time_that_cannot_be_read_is_refused(
    database: Database, ahead: timedelta
) -> None:
    with pytest.raises(exceptions.InvalidArgument, match="version_time must be between"):
        back_up(database, version_time=datetime.now(UTC) + ahead)


@pytest.mark.ddl(TABLE)
def test_a_version_time_before_a_schema_change_is_unimplemented(database: Database) -> None:
    then = write(database, 1)
    database.update_ddl(["ALTER TABLE t ADD COLUMN W INT64"]).result(60)
    with pytest.raises(
        exceptions.MethodNotImplemented, match="version_time before the last change"
    ):
        back_up(database, version_time=then)
    assert not list(
        admin(database).list_backups(
            request={"parent": instance_of(database), "filter": f"database:{database.name}"}
        )
    )


POLICY = (
    "CREATE TABLE Old (Id INT64, Seen TIMESTAMP) PRIMARY KEY (Id),"
    " ROW DELETION POLICY (OLDER_THAN(Seen, INTERVAL 1 DAY))"
)


@pytest.mark.both_dialects
@pytest.mark.ddl(TABLE, STREAM, POLICY)
def test_what_a_restored_database_does_not_have(database: Database) -> None:
    """Versions and change records of before, and row deletion policies."""
    then = write(database, 1)
    restored = restore(database, back_up(database).name)
    with (
        pytest.raises(
            exceptions.FailedPrecondition, match="exceeded the maximum timestamp staleness"
        ),
        restored.snapshot(read_timestamp=then) as snapshot,
    ):
        list(snapshot.read("t", ("id",), KeySet(all_=True)))
    restored.reload()
    ddl = "".join(restored.ddl_statements)
    assert "CHANGE STREAM" in ddl
    assert "DELETION" not in ddl
    assert "TTL" not in ddl


@pytest.mark.ddl(TABLE)
def test_backups_are_listed_changed_copied_and_deleted(database: Database) -> None:
    api = admin(database)
    write(database, 1)
    first, second = back_up(database), back_up(database)
    request = {"parent": instance_of(database), "filter": f"database:{database.name}"}
    assert [each.name for each in api.list_backups(request=request)] == [second.name, first.name]
    kind = types.EncryptionInfo.Type.GOOGLE_DEFAULT_ENCRYPTION
    assert first.encryption_info.encryption_type is kind
    database.reload()
    assert [each.encryption_type for each in database.encryption_info] == [kind]
    later = first.create_time + 2 * DAY
    changed = api.update_backup(
        backup=types.Backup(name=first.name, expire_time=later),
        update_mask=FieldMask(paths=["expire_time"]),
    )
    assert changed.expire_time == later == api.get_backup(name=first.name).expire_time
    identifier = name_new("copied")
    asked = types.CopyBackupRequest(
        parent=instance_of(database),
        backup_id=identifier,
        source_backup=first.name,
        expire_time=later,
    )
    copied = api.copy_backup(asked).result(60)
    assert (copied.version_time, copied.database) == (first.version_time, database.name)
    for _ in range(2):  # that of what is gone is no error
        api.delete_backup(name=first.name)
        with pytest.raises(exceptions.NotFound, match="Backup not found"):
            api.get_backup(name=first.name)
    assert read(restore(database, copied.name)) == [(1, "v", 2)]
    operations = api.list_backup_operations(request={"parent": instance_of(database)})
    assert any(each.name.startswith(copied.name + "/operations/") for each in operations)


@pytest.mark.ddl(TABLE)
@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (
            lambda d: back_up(d, expire_time=datetime.now(UTC) + DAY / 5),
            exceptions.InvalidArgument,
            "at least 6 hours",
        ),
        (
            lambda d: back_up(d, expire_time=datetime.now(UTC) + 367 * DAY),
            exceptions.InvalidArgument,
            "at most 366 days",
        ),
        (lambda d: back_up(d, database=d.name + "x"), exceptions.NotFound, "Database not found"),
        (lambda d: restore(d, f"{instance_of(d)}/backups/none"), exceptions.NotFound, "Backup not"),
        (lambda d: restore(d, "none"), exceptions.InvalidArgument, "Invalid backup uri"),
        (
            lambda d: admin(d).update_backup(
                backup=types.Backup(name=f"{instance_of(d)}/backups/none"),
                update_mask=FieldMask(paths=["version_time"]),
            ),
            exceptions.InvalidArgument,
            "expire_time alone",
        ),
    ],
)
def test_what_is_refused(
    database: Database, make: Callable[[Database], object], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        make(database)


@pytest.mark.ddl(TABLE)
def test_names_are_taken_once(database: Database) -> None:
    backup = back_up(database)
    request = {
        "parent": instance_of(database),
        "backup_id": backup.name.rpartition("/")[2],
        "backup": types.Backup(database=database.name, expire_time=tomorrow()),
    }
    with pytest.raises(exceptions.AlreadyExists):
        admin(database).create_backup(request=request)
    taken = {
        "parent": instance_of(database),
        "database_id": database.database_id,
        "backup": backup.name,
    }
    with pytest.raises(exceptions.AlreadyExists):
        admin(database).restore_database(request=taken)


def test_backups_and_schedules_outlive_the_server(tmp_path: Path) -> None:
    server = spawn(tmp_path / "data")
    database = connect(server.address).database("kept", ddl_statements=[TABLE])
    database.create().result(30)
    write(database, 1)
    backup = back_up(database)
    keep = types.BackupSchedule(
        spec=CRON, retention_duration=Duration(seconds=86_400), full_backup_spec={}
    )
    admin(database).create_backup_schedule(
        parent=database.name, backup_schedule=keep, backup_schedule_id="nightly"
    )
    call_server(server.address, SNAPSHOT, {"directory": str(tmp_path / "snapshot")})
    database.drop()
    server.kill()
    restore_directory(tmp_path / "snapshot", tmp_path / "other")
    for folder in ("data", "other"):
        with spawn(tmp_path / folder) as again:
            known = connect(again.address).database("kept")
            assert read(restore(known, backup.name)) == [(1, "v", 2)]
            if folder == "other":
                (schedule,) = admin(known).list_backup_schedules(parent=known.name)
                assert schedule.name.endswith("/backupSchedules/nightly")


@pytest.mark.ddl(TABLE)
def test_schedules_are_kept_changed_and_deleted(database: Database) -> None:
    api = admin(database)
    asked = types.BackupSchedule(
        spec=CRON, retention_duration=Duration(seconds=86_400), incremental_backup_spec={}
    )
    names = [
        api.create_backup_schedule(
            parent=database.name, backup_schedule=asked, backup_schedule_id=f"schedule-{n}"
        ).name
        for n in range(4)
    ]
    with pytest.raises(exceptions.FailedPrecondition, match="has 4 backup schedules"):
        api.create_backup_schedule(
            parent=database.name, backup_schedule=asked, backup_schedule_id="schedule-4"
        )
    changed = types.BackupSchedule(name=names[0], retention_duration=Duration(seconds=7_200))
    api.update_backup_schedule(
        backup_schedule=changed, update_mask=FieldMask(paths=["retention_duration"])
    )
    shown = api.get_backup_schedule(name=names[0])
    assert shown.retention_duration == timedelta(hours=2)
    assert shown.spec.cron_spec.text == "0 2 * * *"
    api.delete_backup_schedule(name=names[1])
    listed = [each.name for each in api.list_backup_schedules(parent=database.name)]
    assert listed == [names[0], *names[2:]]
    with pytest.raises(exceptions.InvalidArgument, match="five fields"):
        api.update_backup_schedule(
            backup_schedule=types.BackupSchedule(name=names[0], spec=types.BackupScheduleSpec()),
            update_mask=FieldMask(paths=["spec"]),
        )


def test_what_is_made_of_a_backup_keeps_it_for_a_while_only(tmp_path: Path) -> None:
    """A copy does not inherit what the source is used for, and a server forgets it when it ends."""
    store = BackupStore(tmp_path, threading.RLock(), lambda: None)
    proto = m.BackupProto(name="b", state=READY, referencing_databases=["d"])
    proto.expire_time.seconds = 1
    store.new_file().touch()
    (file,) = tmp_path.iterdir()
    store.add(StoredBackup(proto, file.name))
    content = store.describe()
    assert store.find("b") is not None
    again = BackupStore(tmp_path, threading.RLock(), lambda: None)
    again.load(content)
    assert again.find("b") is None
    assert not file.exists()
