"""How the values of Delta's partitions name folders, and which values none can have."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote

from watcher.model.errors import ReplicaError

FOLDER_BYTES_MAX = 250
NULL = "__HIVE_DEFAULT_PARTITION__"
"""How Hive names the folder of rows without a value."""
TAKEN_FOR_NULL = ("", NULL)
ADVICE = "use partitions by another column, or iceberg:, in another folder"


def refuse_taken(name: str, path: str) -> ReplicaError:
    """The error of a text that readers take for NULL."""
    return ReplicaError(
        f"{path} is partitioned by {name}, and a row has an empty text there, or {NULL}, which"
        f" readers of Delta take for NULL: {ADVICE}"
    )


def refuse_long(names: Sequence[str], path: str) -> ReplicaError:
    """The error of a value that no folder can be named by."""
    return ReplicaError(
        f"{path} is partitioned by {', '.join(names)}, and a value is longer than the name of a"
        f" folder can be: {ADVICE}"
    )


def name_folder(names: Sequence[str], values: Sequence[str | None], path: str) -> str:
    """The folder of a partition, as Hive names it: polars knows the values from there. Raises
    ReplicaError for a value that no folder can be named by."""
    parts = [f"{quote(n, safe='')}={name_value(v)}/" for n, v in zip(names, values, strict=True)]
    if any(len(part) > FOLDER_BYTES_MAX for part in parts):
        raise refuse_long(names, path)
    return "".join(parts)


def name_value(value: str | None) -> str:
    """A value in the name of a folder."""
    return NULL if value is None else quote(value, safe="")
