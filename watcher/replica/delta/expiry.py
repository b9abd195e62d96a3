"""What a Delta table has of versions that no cut needs: data files, files of vectors, entries of
the log; and their removal.

VACUUM and the clean-up of the log by other writers go by time alone, and know no cuts.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Sequence
from pathlib import PurePosixPath
from urllib.parse import unquote

from watcher.process.failpoints import failpoint
from watcher.replica.copies import Needed
from watcher.replica.delta.actions import list_removed_files, read_time
from watcher.replica.delta.change_feed import FOLDER as CHANGES
from watcher.replica.delta.deletion_vectors import FOLDER, RELATIVE
from watcher.replica.delta.files import TableFiles
from watcher.replica.delta.snapshot import LiveFile, Snapshot, SnapshotReader

MARGIN = 86_400_000_000
"""A day in microseconds: clocks of machines, how late a cut may name the version of a table that is
idle, and readers that have begun."""
HERE, DATA_FILE, SPARKS_VECTOR = PurePosixPath(), ".parquet", ".bin"
LOG_CLEANUP, LOG_RETENTION = "delta.enableExpiredLogCleanup", "delta.logRetentionDuration"
LOG_DAYS = 30.0
"""For how long Delta keeps entries of its log by default."""
UNITS = {"hour": 1 / 24, "day": 1.0, "week": 7.0}
DURATION = re.compile(rf"interval (\d+) ({'|'.join(UNITS)})s?")


class FileExpiry:
    """Removes files of one table. What it has read of the log it does not read again."""

    def __init__(self, files: TableFiles, reader: SnapshotReader) -> None:
        self._files = files
        self._reader = reader
        self._removed: dict[PurePosixPath, tuple[int, int]] = {}
        """Files that earlier versions have: when a commit removed them last, and which."""
        self._walked = -1
        """Up to which version the log was read for them."""

    def remove(self, snapshot: Snapshot, needed: Needed, unfinished: Sequence[str] | None) -> None:
        """Removes files that neither the newest version has, nor one that was in effect at a
        timestamp or after it, nor one from a version on. A young file may be one that is about to
        be committed; ``unfinished`` are data files that this process is still writing; None: data
        files stay."""
        limit = needed.since - MARGIN
        self._read_removed(snapshot, needed, limit)
        kept = self._removed.keys() | set(list_files(snapshot.files.values()))
        self._files.remove_files(PurePosixPath(FOLDER), "", kept, limit)
        if unfinished is not None:
            partitioned = bool(snapshot.metadata["partitionColumns"])
            here = kept | {PurePosixPath(unquote(path)) for path in unfinished}
            self._files.remove_files(HERE, DATA_FILE, here, limit, partitioned)
            self._files.remove_files(HERE, SPARKS_VECTOR, here, limit)
            self._files.remove_files(PurePosixPath(CHANGES), DATA_FILE, (), limit, partitioned)
        failpoint("after-files-removed")
        self._remove_entries(snapshot, needed)

    def _read_removed(self, snapshot: Snapshot, needed: Needed, limit: int) -> None:
        """Reads what commits have removed, back to those that nothing needs."""
        version = snapshot.version
        while version > self._walked and (actions := self._reader.read_entry(version)):
            when = read_time(actions)
            if when < limit and version <= needed.version:
                break
            for path in list_removed_files(actions):
                known = self._removed.get(path, (0, 0))
                self._removed[path] = (max(when, known[0]), max(version, known[1]))
            version -= 1
        self._walked = snapshot.version
        self._removed = {
            path: (when, version)
            for path, (when, version) in self._removed.items()
            if when >= limit or version > needed.version
        }

    def _remove_entries(self, snapshot: Snapshot, needed: Needed) -> None:
        """Removes entries of the log before the checkpoint from which every needed version can be
        read, once they are as old as the table's properties say."""
        days = read_log_days(snapshot.properties.get(LOG_RETENTION))
        if snapshot.properties.get(LOG_CLEANUP) == "false" or days is None:
            return
        before = int(time.time() - days * 86_400)
        self._reader.remove_entries(needed.version, min(before * 1_000_000, needed.since - MARGIN))


def list_files(files: Iterable[LiveFile]) -> Iterable[PurePosixPath]:
    """The data files of a version, and their vectors."""
    for file in files:
        yield PurePosixPath(unquote(file.path))
        if file.vector is not None and file.vector.kind == RELATIVE:
            yield file.vector.path


def read_log_days(retention: str | None) -> float | None:
    """For how many days a table keeps entries of its log; None where it is said in a way that is
    not known here."""
    if retention is None:
        return LOG_DAYS
    found = DURATION.fullmatch(retention.strip().lower())
    return None if found is None else int(found[1]) * UNITS[found[2]]
