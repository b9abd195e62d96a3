"""The log of a Delta table, read for what others have committed between two versions."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from pyarrow.fs import FileSystem

from watcher.replica.copies import OutsideCommit
from watcher.replica.loads import CHUNK, ON
from watcher.replica.stores.stored_files import explain_damage, open_file_system, read_whole

LOG = "_delta_log"
DIGITS = 20
METADATA = "spanner_watcher"
"""The name in ``commitInfo`` of what the commits of a replica say of themselves."""
USER_METADATA = "userMetadata"
LOAD = "load"
LOADED = "loaded"
"""When the copy was loaded: its history begins there. The name of a transaction; Spark's commits,
which have one, each say it of themselves."""
GONE = "spanner-watcher.goneColumns"
"""The property of a table that lists columns which have left its schema, and which its files may
have."""
Actions = Sequence[Mapping[str, Any]]


class DeltaLog:
    """The commits of a table whose copies one consumer writes, as files of JSON."""

    def __init__(self, path: str, consumer: str) -> None:
        self._files, base = open_file_system(path)
        self._folder = PurePosixPath(base) / LOG
        self._consumer = consumer
        self._chained: tuple[int, Any] | None = None
        """The newest commit up to which a load was found chained: its version and its chunk."""

    def list_outside(self, after: int | None, upto: int) -> tuple[OutsideCommit, ...]:
        """What others have changed after a version, the latest first. A load by this consumer has
        replaced all that was there when it read the table: what is older does not count. ``after``
        None: since that load."""
        return tuple(self._iterate_outside(-1 if after is None else after, upto))

    def find_end(self, version: int) -> int:
        """As ``StoredCopy.find_end``."""
        mark = self.find_mark(version)
        return 0 if mark is None else int(mark["end"])

    def find_mark(self, version: int) -> dict[str, Any] | None:
        """What the newest commit by this consumer up to a version says of itself; None where its
        entry is gone."""
        while version >= 0 and (actions := self._read(version)) is not None:
            mark = read_mark(actions)
            if mark is not None and mark["consumer"] == self._consumer:
                return mark
            version -= 1
        return None

    def find_transaction(self, version: int, application: str) -> int:
        """The number of the newest transaction of an application up to a version; 0 where its entry
        is gone."""
        while version >= 0 and (actions := self._read(version)) is not None:
            numbers = (each["txn"] for each in actions if "txn" in each)
            own = [each["version"] for each in numbers if each["appId"] == application]
            if own:
                return int(max(own))
            version -= 1
        return 0

    def is_chained(self, version: int) -> bool:
        """Whether each commit of the load that is under way at a version knew the one before it.
        Spark's writers append a chunk whatever has been committed meanwhile. What an earlier call
        has found chained is not read again."""
        newest: tuple[int, Any] | None = None
        later: Mapping[str, Any] | None = None
        while version >= 0 and (actions := self._read(version)) is not None:
            mark = read_mark(actions)
            if mark is not None and mark["consumer"] == self._consumer:
                if later is not None and later.get(ON, later.get(CHUNK)) != mark.get(CHUNK):
                    return False
                place = version, mark.get(CHUNK)
                newest = newest or place
                if mark["kind"] == LOAD or place == self._chained:
                    break
                # A chunk of this process was refused unless it knew the one before.
                later = mark if ON in mark or mark["kind"] != CHUNK else None
            version -= 1
        self._chained = newest
        return True

    def _iterate_outside(self, after: int, upto: int) -> Iterator[OutsideCommit]:
        version = upto
        while version > after:
            actions = self._read(version)
            mark = read_mark(actions or ())
            if actions is None:
                yield OutsideCommit(version, "its entry in the log is gone")
                return
            if mark is not None and mark["consumer"] == self._consumer:
                if mark["kind"] == LOAD:
                    after = max(after, mark.get("replaced", version - 1))
            elif changed := describe_change(actions):
                yield OutsideCommit(version, changed)
            version -= 1

    def _read(self, version: int) -> Actions | None:
        """The actions of a commit; None where the clean-up of the log has removed it."""
        text = read_entry_text(self._files, self._folder, version)
        with explain_damage(str(self._folder / name_entry(version))):
            return None if text is None else parse_entry(text)


def name_entry(version: int) -> str:
    """The file of a commit."""
    return f"{version:0{DIGITS}d}.json"


def read_entry_text(files: FileSystem, folder: PurePosixPath, version: int) -> str | None:
    """The text of an entry of a log; None where there is none."""
    try:
        return read_whole(files, str(folder / name_entry(version)))
    except FileNotFoundError:
        return None


def parse_entry(text: str) -> list[Mapping[str, Any]]:
    """The actions of an entry of the log. Raises ValueError for a damaged one."""
    actions = [json.loads(line) for line in text.split("\n") if line]
    if not actions or not all(isinstance(action, dict) for action in actions):
        raise ValueError("it has no actions")
    return actions


def read_mark(actions: Actions) -> dict[str, Any] | None:
    """What a commit of a replica says of itself; None for one of somebody else. delta-rs has it as
    a text in ``commitInfo``, Spark in its user metadata."""
    for action in actions:
        info = action.get("commitInfo")
        if not info:
            continue
        try:
            stored = info.get(METADATA) or json.loads(info[USER_METADATA])[METADATA]
            mark: dict[str, Any] = json.loads(stored) if isinstance(stored, str) else stored
        except (KeyError, TypeError, ValueError):
            return None
        return mark
    return None


def describe_change(actions: Actions) -> str:
    """What a commit has done to rows or columns; empty for maintenance: compaction, clean-up,
    properties. Writers of Delta say of each file whether it changes data."""
    infos = [action["commitInfo"] for action in actions if action.get("commitInfo")]
    operation = infos[0].get("operation", "a write") if infos else "a write"
    files = [action.get("add") or action.get("remove") for action in actions]
    if any(each is not None and each.get("dataChange", True) for each in files):
        return f"{operation} has changed rows"
    if any("metaData" in action for action in actions) and operation not in HARMLESS:
        return f"{operation} has changed the columns"
    return ""


def list_gone(properties: Mapping[str, str]) -> list[str]:
    """The columns that have left the schema of a table with these properties without a load."""
    return list(json.loads(properties.get(GONE, "[]")))


HARMLESS = ("CREATE TABLE", "SET TBLPROPERTIES", "UNSET TBLPROPERTIES", "UPGRADE PROTOCOL")
"""Operations that write the metadata of a table anew with the columns that it has."""
