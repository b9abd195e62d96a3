"""What the server holds: instances, their partitions, databases, operations, long-lived sessions;
kept in a file."""

from __future__ import annotations

import json
import re
import threading
import uuid
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import grpc
from google.longrunning.operations_pb2 import Operation

from ddl.model.schema import Dialect
from ddl.syntax.placements import read_placements
from emulator.data_directories import BACKUPS, DATABASES, REGISTRY
from emulator.engine.clock import Clock, wall_micros
from emulator.engine.database import Database
from emulator.engine.query_stats import COUNTED_EACH, QueryStats
from emulator.errors import (
    SpannerError,
    already_exists,
    failed_precondition,
    invalid_argument,
    not_found,
    resource_not_found,
)
from emulator.files import replace_file
from emulator.services.backup_store import BackupStore, copy_whole, decode_message, encode_message
from emulator.wire.messages import InstancePartitionProto, InstanceProto, Message, RestoreInfo
from emulator.wire.mutations import MutationReader
from emulator.wire.status import to_status

DATABASE_TYPE = "google.spanner.admin.database.v1.Database"
INSTANCE_TYPE = "google.spanner.admin.instance.v1.Instance"
PARTITION_TYPE = "google.spanner.admin.instance.v1.InstancePartition"
INSTANCE_NAME = re.compile(r"projects/[^/]+/instances/[^/]+")
PARTITION_NAME = re.compile(rf"({INSTANCE_NAME.pattern})/instancePartitions/[^/]+")
DATABASE_NAME = re.compile(rf"({INSTANCE_NAME.pattern})/databases/[^/]+")


@dataclass(slots=True)
class HostedDatabase:
    """A database with its properties in the admin API. ``file`` is empty in memory;
    ``restore_info`` says of which backup it was made."""

    name: str
    file: str
    create_time_micros: int
    engine: Database
    drop_protection: bool = False
    restore_info: Message | None = None
    mutations: MutationReader = field(default_factory=MutationReader)
    ddl_queue: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(1, thread_name_prefix="ddl")
    )


class Registry:
    """Thread-safe. Every change is in the file before it is answered."""

    def __init__(
        self,
        data_dir: Path | None,
        count_scans_each: int = COUNTED_EACH,
        versions_kept: Callable[[], int | None] = lambda: None,
        *,
        log_sql: bool = False,
    ) -> None:
        self._log_sql = log_sql
        self.clock = Clock()
        self._versions_kept = versions_kept
        self._data_dir = data_dir
        self._count_scans_each = count_scans_each
        self._lock = threading.RLock()
        self._finished = threading.Condition(self._lock)
        self.instances: dict[str, Message] = {}
        self.instance_partitions: dict[str, Message] = {}
        self.databases: dict[str, HostedDatabase] = {}
        self.operations: dict[str, Message] = {}
        self.lasting_sessions: dict[str, str] = {}
        self.session_roles: dict[str, str] = {}
        folder = data_dir / BACKUPS if data_dir is not None else None
        self.backups = BackupStore(folder, self._lock, self.save)
        if data_dir is not None:
            (data_dir / DATABASES).mkdir(parents=True, exist_ok=True)
            self._load(data_dir)

    def instance(self, name: str) -> Message:
        """An instance. Raises NOT_FOUND as Spanner does."""
        proto = self.instances.get(name)
        if proto is None:
            if INSTANCE_NAME.fullmatch(name) is None:
                raise invalid_argument(f"Invalid instance uri: {name}")
            raise resource_not_found("Instance", INSTANCE_TYPE, name)
        return proto

    def put_instance(self, proto: Message) -> None:
        """Adds or replaces an instance."""
        with self._lock:
            self.instances[proto.name] = proto
            self.save()

    def delete_instance(self, name: str) -> None:
        """Removes an instance with its databases, unless one of them is protected, or it has
        backups."""
        self.instance(name)
        if self.backups.below(f"{name}/backups/"):
            raise failed_precondition(
                f"Cannot delete instance {name} because it contains backups: delete them first."
            )
        for database in self.databases_of(name):
            if database.drop_protection:
                raise failed_precondition(
                    f"Cannot delete instance {name} because it contains databases with drop "
                    f"protection enabled: {database.name}. Disable it with UpdateDatabase first."
                )
        for database in self.databases_of(name):
            self.drop_database(database.name)
        with self._lock:
            del self.instances[name]
            for partition in self.partitions_of(name):
                del self.instance_partitions[partition.name]
            self.save()

    def instance_partition(self, name: str) -> Message:
        """A partition of an instance. Raises NOT_FOUND: for its instance first."""
        proto = self.instance_partitions.get(name)
        if proto is None:
            match = PARTITION_NAME.fullmatch(name)
            if match is None:
                raise invalid_argument(f"Invalid instance partition uri: {name}")
            self.instance(match[1])
            raise resource_not_found("Instance partition", PARTITION_TYPE, name)
        return proto

    def put_instance_partition(self, proto: Message) -> None:
        """Adds or replaces a partition of an instance."""
        with self._lock:
            self.instance_partitions[proto.name] = proto
            self.save()

    def delete_instance_partition(self, name: str) -> None:
        """Removes a partition of an instance, unless a placement is in it."""
        with self._lock:
            self.instance_partition(name)
            users = self.users_of_partition(name)
            if users:
                raise failed_precondition(
                    f"Cannot delete instance partition {name} because it is in use by placements "
                    f"of these databases: {', '.join(users)}."
                )
            del self.instance_partitions[name]
            self.save()

    def partitions_of(self, instance: str) -> list[Message]:
        """The partitions of an instance, by name."""
        prefix = f"{instance}/instancePartitions/"
        with self._lock:
            found = sorted(self.instance_partitions.items())
            return [proto for name, proto in found if name.startswith(prefix)]

    def users_of_partition(self, name: str) -> list[str]:
        """The databases with a placement in a partition of their instance."""
        instance, _, identifier = name.partition("/instancePartitions/")
        return [
            database.name
            for database in self.databases_of(instance)
            if any(
                placement.instance_partition == identifier
                for placement in read_placements(database.engine.schema)
            )
        ]

    def database(self, name: str) -> HostedDatabase:
        """A database. Raises NOT_FOUND as Spanner does: for its instance first."""
        hosted = self.find_database(name)
        if hosted is None:
            raise resource_not_found("Database", DATABASE_TYPE, name)
        return hosted

    def find_database(self, name: str) -> HostedDatabase | None:
        """A database of an instance, None where the instance has none of this name. Raises
        NOT_FOUND where there is no instance."""
        hosted = self.databases.get(name)
        if hosted is None:
            match = DATABASE_NAME.fullmatch(name)
            if match is None:
                raise invalid_argument(f"Invalid database uri: {name}")
            self.instance(match[1])
        return hosted

    def databases_of(self, instance: str) -> list[HostedDatabase]:
        """The databases of an instance, by name."""
        prefix = f"{instance}/databases/"
        with self._lock:
            return [d for name, d in sorted(self.databases.items()) if name.startswith(prefix)]

    def create_database(
        self,
        name: str,
        statements: list[str],
        descriptors: bytes = b"",
        dialect: Dialect = Dialect.GOOGLESQL,
    ) -> HostedDatabase:
        """A new database with its first schema; nothing is left of it when a statement fails."""
        if name in self.databases:
            raise already_exists(f"Database already exists: {name}")
        file = f"{uuid.uuid4().hex}.sqlite" if self._data_dir is not None else ""
        created = self._open(name, file, wall_micros(), dialect)
        try:
            created.engine.update_ddl(statements, descriptors=descriptors)
            created.engine.end_creation()
        except SpannerError:
            created.engine.drop()
            raise
        with self._lock:
            self.databases[name] = created
            self.save()
        return created

    def copy_database(self, source: str, name: str) -> HostedDatabase:
        """A new database with the schema, the rows and the versions of another one as it is now."""
        original = self.database(source)
        with original.engine.frozen() as fill:
            return self.fill_database(name, original.engine.schema.dialect, fill)

    def restore_database(self, name: str, file: Path, info: Message, dialect: Dialect) -> None:
        """A new database of a backup: it begins anew."""
        self.fill_database(name, dialect, lambda path: copy_whole(file, path), info)

    def fill_database(
        self,
        name: str,
        dialect: Dialect,
        fill: Callable[[Path], None],
        restored: Message | None = None,
    ) -> HostedDatabase:
        """A new database whose file ``fill`` writes."""
        if name in self.databases:
            raise already_exists(f"Database already exists: {name}")
        file = f"{uuid.uuid4().hex}.sqlite" if self._data_dir is not None else ""
        copy = self._open(name, file, wall_micros(), dialect, fill)
        if restored is not None:
            copy.restore_info = restored
            with ExitStack() as failed:
                failed.callback(copy.engine.drop)
                copy.engine.begin_anew()
                failed.pop_all()
        with self._lock:
            self.databases[name] = copy
            self.save()
        return copy

    def back_up(self, database: HostedDatabase, file: Path, at: int | None) -> int:
        """Writes a database as of a timestamp, or (None) as it is now, to a file; the timestamp."""
        with ExitStack() as reader:
            with database.engine.without_commits():
                version = database.engine.strong_timestamp() if at is None else at
                if version < database.engine.oldest_readable():
                    raise failed_precondition(
                        f"The versions of {database.name} at the version_time are gone."
                    )
                write = reader.enter_context(database.engine.frozen())
            write(file)
        if at is not None:
            backup = Database(
                database.name, file, self.clock, dialect=database.engine.schema.dialect
            )
            try:
                backup.rewind(at)
            finally:
                backup.close()
        return version

    def drop_database(self, name: str) -> None:
        """Deletes a database and its file."""
        with self._lock:
            dropped = self.database(name)
            del self.databases[name]
            self.backups.forget_schedules(name)
            self.save()
        dropped.ddl_queue.shutdown(wait=True, cancel_futures=True)
        dropped.engine.drop()

    def start_operation(self, name: str, metadata: Message) -> Message:
        """A new operation that runs. Raises ALREADY_EXISTS when its id was used before."""
        operation = Operation(name=name)
        operation.metadata.Pack(metadata)
        with self._lock:
            if name in self.operations:
                raise already_exists(f"Operation already exists: {name}")
            self.operations[name] = operation
            self.save()
        return self.operation(name)

    def operation(self, name: str) -> Message:
        """A copy of an operation as it is now."""
        with self._lock:
            operation = self.operations.get(name)
            if operation is None:
                raise not_found(f"Operation not found: {name}")
            copy = Operation()
            copy.CopyFrom(operation)
            return copy

    def operations_below(self, prefix: str) -> list[Message]:
        """Copies of the operations whose names begin like this, by name."""
        with self._lock:
            names = sorted(name for name in self.operations if name.startswith(prefix))
            return [self.operation(name) for name in names]

    def change_operation(self, name: str, change: Callable[[Message], None]) -> None:
        """Changes an operation, if it was not deleted meanwhile; wakes those who wait for it."""
        with self._lock:
            operation = self.operations.get(name)
            if operation is not None:
                change(operation)
                self.save()
                self._finished.notify_all()

    def delete_operation(self, name: str) -> None:
        """Forgets an operation."""
        with self._lock:
            self.operation(name)
            del self.operations[name]
            self.save()

    def wait_operation(self, name: str, timeout_seconds: float) -> Message:
        """An operation once it is done, or as it is after the time."""
        with self._finished:
            self._finished.wait_for(
                lambda: name not in self.operations or self.operations[name].done, timeout_seconds
            )
            return self.operation(name)

    def keep_session(self, name: str, database: str, role: str) -> None:
        """A multiplexed session outlives the process, and so does its role."""
        with self._lock:
            self.lasting_sessions[name] = database
            if role:
                self.session_roles[name] = role
            self.save()

    def close(self) -> None:
        """Closes every database."""
        self.backups.close()
        for database in list(self.databases.values()):
            database.ddl_queue.shutdown(wait=True, cancel_futures=True)
            database.engine.close()

    def save(self) -> None:
        """Writes the file, whole or not at all."""
        if self._data_dir is None:
            return
        with self._lock:
            files = {database.file: database for database in self.databases.values()}
            replace_file(self._data_dir / REGISTRY, json.dumps(self.describe(files)))

    def describe(self, files: Mapping[str, HostedDatabase]) -> dict[str, object]:
        """What the file says of these databases, by their files, and of all else."""
        with self._lock:
            return {
                "instances": [encode_message(i) for i in self.instances.values()],
                "instance_partitions": [
                    encode_message(each) for each in self.instance_partitions.values()
                ],
                "databases": [
                    {
                        "name": d.name,
                        "file": file,
                        "create_time_micros": d.create_time_micros,
                        "drop_protection": d.drop_protection,
                        "dialect": d.engine.schema.dialect.value,
                        "restore_info": encode_message(d.restore_info) if d.restore_info else "",
                    }
                    for file, d in files.items()
                ],
                **self.backups.describe(),
                "operations": [encode_message(o) for o in self.operations.values()],
                "sessions": self.lasting_sessions,
                "session_roles": self.session_roles,
            }

    def _open(
        self,
        name: str,
        file: str,
        created: int,
        dialect: Dialect,
        fill: Callable[[Path], None] | None = None,
    ) -> HostedDatabase:
        path = self._data_dir / DATABASES / file if self._data_dir is not None else None
        stats = QueryStats(self._count_scans_each, self._log_sql)
        instance = name.partition("/databases/")[0]

        def list_partitions() -> list[str]:
            return [p.name.rpartition("/")[2] for p in self.partitions_of(instance)]

        engine = Database(
            name,
            path,
            self.clock,
            dialect=dialect,
            query_stats=stats,
            versions_kept=self._versions_kept,
            instance_partitions=list_partitions,
            fill=fill,
        )
        return HostedDatabase(name, file, created, engine)

    def _load(self, data_dir: Path) -> None:
        path = data_dir / REGISTRY
        content = json.loads(path.read_text()) if path.exists() else {}
        for text in content.get("instances", []):
            proto = decode_message(InstanceProto, text)
            self.instances[proto.name] = proto
        for text in content.get("instance_partitions", []):
            partition = decode_message(InstancePartitionProto, text)
            self.instance_partitions[partition.name] = partition
        for item in content.get("databases", []):
            # Files of older versions hold databases of GoogleSQL alone, and do not say so.
            dialect = Dialect(item.get("dialect", Dialect.GOOGLESQL.value))
            opened = self._open(item["name"], item["file"], item["create_time_micros"], dialect)
            opened.drop_protection = item["drop_protection"]
            if restored := item.get("restore_info"):
                opened.restore_info = decode_message(RestoreInfo, restored)
            self.databases[opened.name] = opened
        for text in content.get("operations", []):
            operation = decode_message(Operation, text)
            if not operation.done:
                interrupt(operation)
            self.operations[operation.name] = operation
        self.lasting_sessions = dict(content.get("sessions", {}))
        self.session_roles = dict(content.get("session_roles", {}))
        self.backups.load(content)
        self._remove_strays(data_dir)

    def _remove_strays(self, data_dir: Path) -> None:
        """Files of databases that were dropped, or never finished, when the process ended."""
        files = {database.file for database in self.databases.values()}
        for path in (data_dir / DATABASES).iterdir():
            if path.name.partition(".sqlite")[0] + ".sqlite" not in files:
                path.unlink()


def interrupt(operation: Message) -> None:
    """An operation that was running when the process ended."""
    operation.done = True
    error = SpannerError(
        grpc.StatusCode.ABORTED,
        "The server restarted while the operation ran: GetDatabaseDdl shows which of its "
        "statements were executed.",
    )
    operation.error.CopyFrom(to_status(error))
