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

from emulator.data_directories import BACKUPS, DATABASES, REGISTRY
from emulator.engine.clock import Clock, wall_micros
from emulator.engine.database import Database
from emulator.engine.query_stats import COUNTED_EACH, QueryStats
from emulator.errors import (
    SpannerError,
    already_exists,
    failed_precondition,
    invalid_argument,
    resource_not_found,
)
from emulator.files import replace_file
from emulator.services.backup_store import BackupStore, copy_whole, decode_message, encode_message
from emulator.services.instance_store import INSTANCE_NAME, InstanceStore
from emulator.services.operation_store import OperationStore
from emulator.wire.messages import Message, RestoreInfo
from emulator.wire.mutations import MutationReader
from spanner_schema.model.schema import Dialect
from spanner_schema.syntax.placements import read_placements

DATABASE_TYPE = "google.spanner.admin.database.v1.Database"
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
        self.operations = OperationStore(self._lock, self.save)
        self.instances = InstanceStore(self._lock, self.save)
        self.databases: dict[str, HostedDatabase] = {}
        self.lasting_sessions: dict[str, str] = {}
        self.session_roles: dict[str, str] = {}
        folder = data_dir / BACKUPS if data_dir is not None else None
        self.backups = BackupStore(folder, self._lock, self.save)
        if data_dir is not None:
            (data_dir / DATABASES).mkdir(parents=True, exist_ok=True)
            self._load(data_dir)

    def delete_instance(self, name: str) -> None:
        """Removes an instance with its databases, unless one of them is protected, or it has
        backups."""
        self.instances.get(name)
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
        self.instances.delete(name)

    def delete_instance_partition(self, name: str) -> None:
        """Removes a partition of an instance, unless a placement is in it."""
        with self._lock:
            self.instances.partition(name)
            users = self.users_of_partition(name)
            if users:
                raise failed_precondition(
                    f"Cannot delete instance partition {name} because it is in use by placements "
                    f"of these databases: {', '.join(users)}."
                )
            self.instances.delete_partition(name)

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
            self.instances.get(match[1])
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

    def drop_database(self, name: str) -> None:
        """Deletes a database and its file."""
        with self._lock:
            dropped = self.database(name)
            del self.databases[name]
            self.backups.forget_schedules(name)
            self.save()
        dropped.ddl_queue.shutdown(wait=True, cancel_futures=True)
        dropped.engine.drop()

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
                **self.instances.describe(),
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
                "operations": self.operations.describe(),
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
            return [p.name.rpartition("/")[2] for p in self.instances.partitions_of(instance)]

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
        self.instances.load(content)
        for item in content.get("databases", []):
            # Files of older versions hold databases of GoogleSQL alone, and do not say so.
            dialect = Dialect(item.get("dialect", Dialect.GOOGLESQL.value))
            opened = self._open(item["name"], item["file"], item["create_time_micros"], dialect)
            opened.drop_protection = item["drop_protection"]
            if restored := item.get("restore_info"):
                opened.restore_info = decode_message(RestoreInfo, restored)
            self.databases[opened.name] = opened
        self.operations.load(content.get("operations", []))
        self.lasting_sessions = dict(content.get("sessions", {}))
        self.session_roles = dict(content.get("session_roles", {}))
        self.backups.load(content)
        remove_strays(data_dir / DATABASES, {each.file for each in self.databases.values()})


def remove_strays(folder: Path, files: set[str]) -> None:
    """Files of databases that were dropped, or never finished, when the process ended."""
    for path in folder.iterdir():
        if path.name.partition(".sqlite")[0] + ".sqlite" not in files:
            path.unlink()
