"""What the copy of a table, and its properties, are called in Iceberg. Its catalogs take some names
for themselves."""

from __future__ import annotations

from watcher.replica.cuts.cut import PREFIX

METADATA_TABLES = frozenset(
    {
        *("entries", "files", "data_files", "delete_files", "history", "metadata_log_entries"),
        *("table_properties_log", "snapshots", "refs", "manifests", "partitions"),
        *("all_data_files", "all_delete_files", "all_files", "all_manifests", "all_entries"),
        *("position_deletes", "changes"),
    }
)
"""Iceberg's MetadataTableType, in lower case, and the changelog of Spark: a catalog takes such a
name for what it shows of another table."""
ESCAPE = "_"
LOADED = f"{PREFIX}loaded"
"""The property of a table that has the end of the newest chunk of its load."""
MERGE_MODE = "write.merge.mode"
"""The property of a table that says how Spark merges rows."""


def name_copy(table: str) -> str:
    """The name of the copy: that of the table, with one underscore more where Iceberg takes the
    name, with any number of underscores, for its own. No two tables get the same."""
    return f"{table}{ESCAPE}" if is_taken(table.rstrip(ESCAPE)) else table


def is_taken(name: str) -> bool:
    """Whether Iceberg takes a name for its own; it ignores case."""
    return name.lower() in METADATA_TABLES
