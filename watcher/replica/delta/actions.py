"""Actions of Delta's log, as this product writes and reads them. A field that may be left out is
left out: a merge into many files writes two actions for each of them."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from urllib.parse import quote, unquote

from watcher.replica.delta.deletion_vectors import RELATIVE, VectorDescriptor
from watcher.replica.delta.log import read_mark
from watcher.replica.delta.snapshot import Action, LiveFile
from watcher.replica.writing.statistics import loosen


def remove_file(file: LiveFile) -> Action:
    """The action that removes a file as it is."""
    vector = file.add.get("deletionVector")
    more = {} if vector is None else {"deletionVector": vector}
    removed = {"path": file.path, "deletionTimestamp": now_millis(), "dataChange": True}
    if values := file.add.get("partitionValues"):
        more |= {"extendedFileMetadata": True, "partitionValues": values, "size": file.size}
    return {"remove": removed | more}


def add_vector(file: LiveFile, vector: VectorDescriptor, rows: int) -> Action:
    """The action that adds a file with another vector."""
    more = {
        "dataChange": True,
        "stats": loosen(file.add.get("stats"), rows),
        "deletionVector": vector.to_action(),
    }
    return {"add": {**{n: v for n, v in file.add.items() if v is not None}, **more}}


def add_file(path: str, size: int, stats: str, partition: Mapping[str, str | None]) -> Action:
    """The action that adds a new file, of a partition with these values."""
    values = {"path": path, "partitionValues": partition, "size": size}
    more = {"modificationTime": now_millis(), "dataChange": True, "stats": stats}
    return {"add": values | more}


def keep_rows(action: Action) -> Action:
    """An action whose commit has the same rows as the version before it."""
    return {kind: {**values, "dataChange": False} for kind, values in action.items()}


def name_data_file(folder: str = "") -> str:
    """A path that no other data file has, in a folder of the table, as the log has it: encoded as
    in addresses."""
    return f"{quote(folder, safe='/=')}part-00000-{uuid.uuid4()}-c000.snappy.parquet"


def list_removed_files(actions: Sequence[Action]) -> Iterator[PurePosixPath]:
    """The data files and the files of vectors that the version before a commit has, and the version
    after it may not have."""
    for action in actions:
        removed = action.get("remove")
        if removed is None:
            continue
        yield PurePosixPath(unquote(removed["path"]))
        stored = removed.get("deletionVector")
        if stored is not None and stored["storageType"] == RELATIVE:
            yield VectorDescriptor.from_action(stored).path


def read_time(actions: Sequence[Action]) -> int:
    """When a commit was made, in microseconds: by its writer's clock, or, if later, its window's
    end."""
    mark = read_mark(actions) or {}
    info: Action = next((each["commitInfo"] for each in actions if "commitInfo" in each), {})
    return max(int(info.get("timestamp", 0)) * 1_000, int(mark.get("end", 0)))


def now_millis() -> int:
    """The time, as Delta's log has it."""
    return time.time_ns() // 1_000_000
