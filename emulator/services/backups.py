"""Backups in google.spanner.admin.database.v1.DatabaseAdmin: made, copied, kept, restored."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

from google.protobuf.empty_pb2 import Empty

from emulator.engine.clock import wall_micros
from emulator.errors import (
    already_exists,
    failed_precondition,
    invalid_argument,
    resource_not_found,
)
from emulator.services.backup_store import (
    CREATING,
    READY,
    StoredBackup,
    back_up,
    copy_whole,
    forget_references,
)
from emulator.services.calls import Call, RpcContext
from emulator.services.database_admin import (
    DIALECT_NUMBERS,
    DIALECTS,
    GOOGLE_DEFAULT_ENCRYPTION,
    SERVICE,
    check_database_id,
    database_message,
    operation_name,
)
from emulator.services.filters import read_filter, select
from emulator.services.instance_store import INSTANCE_NAME
from emulator.services.operations import run_in_background, set_response
from emulator.services.paging import cut_page
from emulator.services.registry import HostedDatabase, Registry
from emulator.wire import messages as m
from emulator.wire import times
from emulator.wire.messages import Message
from spanner_schema.model.resource_ids import IdRules

BACKUP_TYPE = "google.spanner.admin.database.v1.Backup"
BACKUP_NAME = re.compile(rf"({INSTANCE_NAME.pattern})/backups/[^/]+")
FROM_BACKUP = 1
"""The number of RestoreSourceType.BACKUP."""
HOUR_MICROS = 3_600 * 1_000_000
EXPIRY_MICROS_MIN = 6 * HOUR_MICROS
EXPIRY_MICROS_MAX = 366 * 24 * HOUR_MICROS


class Backups:
    """The methods that are about backups."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._store = registry.backups
        self._queue = ThreadPoolExecutor(1, thread_name_prefix="backups")

    def calls(self) -> Mapping[str, Call]:
        """The methods by name."""
        return {
            SERVICE + "CreateBackup": Call(m.CreateBackupRequest, self.create),
            SERVICE + "CopyBackup": Call(m.CopyBackupRequest, self.copy),
            SERVICE + "GetBackup": Call(m.GetBackupRequest, self.get),
            SERVICE + "ListBackups": Call(m.ListBackupsRequest, self.list),
            SERVICE + "UpdateBackup": Call(m.UpdateBackupRequest, self.update),
            SERVICE + "DeleteBackup": Call(m.DeleteBackupRequest, self.delete),
            SERVICE + "RestoreDatabase": Call(m.RestoreDatabaseRequest, self.restore),
            SERVICE + "ListBackupOperations": Call(
                m.ListBackupOperationsRequest, self.list_operations
            ),
        }

    def create(self, request: Message, context: RpcContext) -> Message:
        """Writes a database as of its version time, which is now unless the request says so."""
        name = self._check_new(request.parent, request.backup_id, "CreateBackup")
        database = self._registry.database(request.backup.database)
        if not database.name.startswith(f"{request.parent}/databases/"):
            raise invalid_argument(
                f"Invalid CreateBackup request: {database.name} is not in {request.parent}."
            )
        now = wall_micros()
        check_expiry(request.backup.expire_time, now, "CreateBackup")
        at = self._read_version_time(database, request.backup)
        proto = m.BackupProto(
            name=name,
            database=database.name,
            state=CREATING,
            database_dialect=DIALECT_NUMBERS[database.engine.schema.dialect],
        )
        proto.encryption_info.encryption_type = GOOGLE_DEFAULT_ENCRYPTION
        proto.encryption_information.add(encryption_type=GOOGLE_DEFAULT_ENCRYPTION)
        proto.expire_time.CopyFrom(request.backup.expire_time)
        times.fill_timestamp(proto.create_time, now)
        times.fill_timestamp(proto.max_expire_time, now + EXPIRY_MICROS_MAX)

        def write(file: Path) -> None:
            version = back_up(database.engine, file, at, self._registry.clock)
            times.fill_timestamp(proto.version_time, version)
            times.fill_timestamp(proto.oldest_version_time, version)
            if at is None:
                times.fill_timestamp(proto.create_time, version)

        metadata = m.CreateBackupMetadata(name=name, database=database.name)
        return self._make(proto, metadata, write)

    def copy(self, request: Message, context: RpcContext) -> Message:
        """A backup of its own with the same content."""
        name = self._check_new(request.parent, request.backup_id, "CopyBackup")
        source = self._ready(request.source_backup)
        created = times.to_micros(source.proto.create_time)
        check_expiry(request.expire_time, created, "CopyBackup")
        proto = m.BackupProto()
        proto.CopyFrom(source.proto)
        proto.name, proto.state = name, CREATING
        forget_references(proto)
        proto.expire_time.CopyFrom(request.expire_time)
        times.fill_timestamp(proto.create_time, wall_micros())
        path = self._store.path(source)
        metadata = m.CopyBackupMetadata(name=name, source_backup=source.proto.name)

        source.proto.referencing_backups.append(name)

        def write(file: Path) -> None:
            try:
                copy_whole(path, file)
            finally:
                source.proto.referencing_backups.remove(name)

        return self._make(proto, metadata, write)

    def get(self, request: Message, context: RpcContext) -> Message:
        """A backup."""
        return self._find(request.name).proto

    def list(self, request: Message, context: RpcContext) -> Message:
        """The backups of an instance that the filter takes, the newest first."""
        self._registry.instances.get(request.parent)
        backups = [each.proto for each in self._store.below(f"{request.parent}/backups/")]
        listed, token = cut_page(select(backups, request, lambda each: each), request)
        return m.ListBackupsResponse(backups=listed, next_page_token=token)

    def update(self, request: Message, context: RpcContext) -> Message:
        """When a backup expires, the only field that can be changed."""
        if list(request.update_mask.paths) != ["expire_time"]:
            raise invalid_argument(
                "Invalid UpdateBackup request: the mask must name expire_time alone."
            )
        backup = self._find(request.backup.name)
        created = times.to_micros(backup.proto.create_time)
        check_expiry(request.backup.expire_time, created, "UpdateBackup")
        backup.proto.expire_time.CopyFrom(request.backup.expire_time)
        self._store.put(backup)
        return backup.proto

    def delete(self, request: Message, context: RpcContext) -> Message:
        """Deletes a backup that nobody restores or copies; databases that were restored stay. One
        that is gone is no error."""
        backup = self._look_up(request.name)
        if backup is None:
            return Empty()
        proto = backup.proto
        users = [*proto.referencing_databases, *proto.referencing_backups]
        if users:
            raise failed_precondition(
                f"Cannot delete backup {proto.name} while it is referenced by {', '.join(users)}."
            )
        self._store.remove(proto.name)
        return Empty()

    def restore(self, request: Message, context: RpcContext) -> Message:
        """A new database of a backup, in any instance of its project."""
        stored = self._ready(request.backup)
        backup = stored.proto
        check_database_id(request.database_id)
        self._registry.instances.get(request.parent)
        if request.parent.split("/")[1] != backup.name.split("/")[1]:
            raise invalid_argument(
                f"Invalid RestoreDatabase request: {backup.name} is in another project than"
                f" {request.parent}. Copy the backup into it first."
            )
        name = f"{request.parent}/databases/{request.database_id}"
        if name in self._registry.databases:
            raise already_exists(f"Database already exists: {name}")
        info = describe_source(backup)
        optimize = operation_name(name)
        metadata = m.RestoreDatabaseMetadata(
            name=name,
            source_type=FROM_BACKUP,
            backup_info=info.backup_info,
            optimize_database_operation_name=optimize,
        )
        times.fill_timestamp(metadata.progress.start_time, wall_micros())
        path = self._store.path(stored)
        backup.referencing_databases.append(name)

        def work() -> Message:
            dialect = DIALECTS[backup.database_dialect]
            try:
                self._registry.restore_database(name, path, info, dialect)
            finally:
                backup.referencing_databases.remove(name)
            database = database_message(self._registry.database(name))
            optimized = m.OptimizeRestoredDatabaseMetadata(name=name)
            self._registry.operations.start(optimize, optimized)
            self._registry.operations.change(optimize, lambda each: set_response(each, database))
            return database

        return run_in_background(self._registry, self._queue, operation_name(name), metadata, work)

    def list_operations(self, request: Message, context: RpcContext) -> Message:
        """The operations of an instance's backups."""
        self._registry.instances.get(request.parent)
        accept = read_filter(request)
        operations = self._registry.operations.below(f"{request.parent}/backups/", accept)
        listed, token = cut_page(operations, request)
        return m.ListBackupOperationsResponse(operations=listed, next_page_token=token)

    def _check_new(self, instance: str, identifier: str, method: str) -> str:
        """The name of a backup that is not there yet."""
        problem = IdRules.BACKUP.explain(identifier)
        if problem is not None:
            raise invalid_argument(f"Invalid {method} request: {problem}.")
        self._registry.instances.get(instance)
        name = f"{instance}/backups/{identifier}"
        if self._store.find(name) is not None:
            raise already_exists(f"Backup already exists: {name}")
        return name

    def _find(self, name: str) -> StoredBackup:
        """A backup. Raises NOT_FOUND: for its instance first."""
        backup = self._look_up(name)
        if backup is None:
            raise resource_not_found("Backup", BACKUP_TYPE, name)
        return backup

    def _look_up(self, name: str) -> StoredBackup | None:
        """A backup of an instance, None where the instance has none of this name. Raises NOT_FOUND
        where there is no instance."""
        backup = self._store.find(name)
        if backup is None:
            match = BACKUP_NAME.fullmatch(name)
            if match is None:
                raise invalid_argument(f"Invalid backup uri: {name}")
            self._registry.instances.get(match[1])
        return backup

    def _ready(self, name: str) -> StoredBackup:
        backup = self._find(name)
        if backup.proto.state != READY:
            raise failed_precondition(f"Backup {name} is still being created.")
        return backup

    def _read_version_time(self, database: HostedDatabase, backup: Message) -> int | None:
        if not backup.HasField("version_time"):
            return None
        at = times.to_micros(backup.version_time)
        oldest = database.engine.oldest_readable()
        if not oldest <= at <= database.engine.strong_timestamp():
            raise invalid_argument(
                "Invalid CreateBackup request: the version_time must be between the"
                f" earliest_version_time of {database.name} and now."
            )
        return at

    def _make(self, proto: Message, metadata: Message, write: Callable[[Path], None]) -> Message:
        """Starts the operation that writes the file of a new backup."""
        file = self._store.new_file()
        if not self._store.add(StoredBackup(proto, file.name)):
            raise already_exists(f"Backup already exists: {proto.name}")

        def work() -> Message:
            with ExitStack() as failed:
                failed.callback(self._store.remove, proto.name)
                write(file)
                failed.pop_all()
            for name in ("size_bytes", "freeable_size_bytes", "exclusive_size_bytes"):
                setattr(proto, name, file.stat().st_size)
            proto.state = READY
            self._store.put(StoredBackup(proto, file.name))
            return proto

        return run_in_background(
            self._registry, self._queue, operation_name(proto.name), metadata, work
        )


def check_expiry(expire_time: Message, created: int, method: str) -> None:
    """Raises INVALID_ARGUMENT for a time that a backup of then must not expire at."""
    ahead = times.to_micros(expire_time) - created
    if not EXPIRY_MICROS_MIN <= ahead <= EXPIRY_MICROS_MAX:
        raise invalid_argument(
            f"Invalid {method} request: the expire_time must be at least 6 hours and at most 366"
            " days after the backup is created."
        )


def describe_source(backup: Message) -> Message:
    """What a restored database says of its backup."""
    info = m.RestoreInfo(source_type=FROM_BACKUP)
    info.backup_info.backup, info.backup_info.source_database = backup.name, backup.database
    info.backup_info.version_time.CopyFrom(backup.version_time)
    info.backup_info.create_time.CopyFrom(backup.create_time)
    return info
