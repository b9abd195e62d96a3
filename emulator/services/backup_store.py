"""The backups that the server keeps, each with its file, and the schedules of databases."""

from __future__ import annotations

import base64
import shutil
import threading
import uuid
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from emulator.engine.clock import Clock, wall_micros
from emulator.engine.database import Database
from emulator.errors import failed_precondition
from emulator.storage.sqlite import temporary_directory
from emulator.wire import times
from emulator.wire.messages import BackupProto, BackupScheduleProto, Message

CREATING, READY = 1, 2
"""States of a backup."""


@dataclass(slots=True)
class StoredBackup:
    """A backup as the API shows it, and the name of its file, which never changes."""

    proto: Message
    file: str


class BackupStore:
    """Thread-safe, under the lock of the registry. Every change is saved before it is answered."""

    def __init__(
        self, folder: Path | None, lock: threading.RLock, save: Callable[[], None]
    ) -> None:
        """``folder`` None keeps files until the server ends."""
        self._folder, self._lock, self._save = folder, lock, save
        self._temporary: Path | None = None
        self._backups: dict[str, StoredBackup] = {}
        self._schedules: dict[str, Message] = {}

    def new_file(self) -> Path:
        """Where a new backup can be written."""
        with self._lock:
            folder = self._find_folder()
        folder.mkdir(parents=True, exist_ok=True)
        return folder / f"{uuid.uuid4().hex}.sqlite"

    def path(self, backup: StoredBackup) -> Path:
        """The file of a backup."""
        with self._lock:
            return self._find_folder() / backup.file

    def find(self, name: str) -> StoredBackup | None:
        """The backup of this name that has not expired."""
        with self._lock:
            self._expire()
            return self._backups.get(name)

    def below(self, prefix: str) -> list[StoredBackup]:
        """The backups whose names begin like this, the newest first."""
        with self._lock:
            self._expire()
            found = [each for name, each in self._backups.items() if name.startswith(prefix)]
        return sorted(found, key=lambda each: -times.to_micros(each.proto.create_time))

    def add(self, backup: StoredBackup) -> bool:
        """Adds a backup; False where one has its name."""
        with self._lock:
            if self.find(backup.proto.name) is not None:
                return False
            self.put(backup)
            return True

    def put(self, backup: StoredBackup) -> None:
        """Adds or replaces a backup."""
        with self._lock:
            self._backups[backup.proto.name] = backup
            self._save()

    def remove(self, name: str) -> None:
        """Forgets a backup and deletes its file."""
        with self._lock:
            removed = self._backups.pop(name, None)
            self._save()
            if removed is not None:
                (self._find_folder() / removed.file).unlink(missing_ok=True)

    def find_schedule(self, name: str) -> Message | None:
        """The schedule of this name."""
        with self._lock:
            return self._schedules.get(name)

    def schedules_below(self, prefix: str) -> list[Message]:
        """The schedules whose names begin like this, by name."""
        with self._lock:
            return [s for name, s in sorted(self._schedules.items()) if name.startswith(prefix)]

    def put_schedule(self, proto: Message) -> None:
        """Adds or replaces a schedule."""
        with self._lock:
            self._schedules[proto.name] = proto
            self._save()

    def remove_schedule(self, name: str) -> None:
        """Forgets a schedule."""
        with self._lock:
            del self._schedules[name]
            self._save()

    def forget_schedules(self, database: str) -> None:
        """A database that is dropped has no schedules any more; the caller saves."""
        with self._lock:
            for schedule in self.schedules_below(f"{database}/backupSchedules/"):
                del self._schedules[schedule.name]

    def describe(self) -> dict[str, object]:
        """What the registry's file says of them."""
        with self._lock:
            return {
                "backups": [
                    {"proto": encode_message(each.proto), "file": each.file}
                    for each in self._backups.values()
                ],
                "backup_schedules": [encode_message(each) for each in self._schedules.values()],
            }

    def load(self, content: Mapping[str, Any]) -> None:
        """Reads what ``describe`` gave; a backup that was not finished is none."""
        for item in content.get("backups", []):
            proto = decode_message(BackupProto, item["proto"])
            forget_references(proto)
            if proto.state == READY:
                self._backups[proto.name] = StoredBackup(proto, item["file"])
        for text in content.get("backup_schedules", []):
            schedule = decode_message(BackupScheduleProto, text)
            self._schedules[schedule.name] = schedule
        files = {each.file for each in self._backups.values()}
        folder = self._find_folder()
        for path in folder.iterdir() if folder.is_dir() else ():
            if path.name not in files:
                path.unlink()

    def link_files(self, folder: Path) -> None:
        """Brings the files of all backups into another folder."""
        with self._lock:
            files = [self.path(each) for each in self._backups.values()]
            for path in filter(Path.exists, files):
                copy_whole(path, folder / path.name)

    def close(self) -> None:
        """Removes files that are kept only as long as the server runs."""
        if self._temporary is not None:
            shutil.rmtree(self._temporary, ignore_errors=True)

    def _find_folder(self) -> Path:
        if self._folder is not None:
            return self._folder
        if self._temporary is None:
            self._temporary = temporary_directory()
        return self._temporary

    def _expire(self) -> None:
        now = wall_micros()
        for name, each in list(self._backups.items()):
            proto = each.proto
            used = proto.referencing_databases or proto.referencing_backups
            if not used and times.to_micros(proto.expire_time) <= now:
                self.remove(name)


def forget_references(proto: Message) -> None:
    """Nothing is made of a backup that is new, or that a server has just found."""
    proto.ClearField("referencing_databases")
    proto.ClearField("referencing_backups")


def copy_whole(source: Path, target: Path) -> None:
    """A copy of a file that nobody changes. Raises OSError."""
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)


def encode_message(message: Message) -> str:
    """A message as text."""
    return base64.b64encode(message.SerializeToString()).decode("ascii")


def decode_message(kind: Message, text: str) -> Message:
    """A message of such a text."""
    return kind.FromString(base64.b64decode(text))


def back_up(database: Database, file: Path, at: int | None, clock: Clock) -> int:
    """Writes a database as of a timestamp, or (None) as it is now, to a file; the timestamp."""
    with ExitStack() as reader:
        with database.without_commits():
            version = database.strong_timestamp() if at is None else at
            if version < database.oldest_readable():
                raise failed_precondition(
                    f"The versions of {database.name} at the version_time are gone."
                )
            write = reader.enter_context(database.frozen())
        write(file)
    if at is not None:
        backup = Database(database.name, file, clock, dialect=database.schema.dialect)
        try:
            backup.rewind(at)
        finally:
            backup.close()
    return version
