"""Behaviours of Spanner that a test makes wrong on purpose, so that a probe of them can fail.

A place that imitates such a behaviour asks ``is_wrong`` with the name that the behaviour has in
docs/assumptions.md. The set is that of the process, as one process is one server.
"""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum

from emulator.errors import invalid_argument

METHOD = "/spanner_watcher.emulator.Wrong/Set"
"""Takes and returns a google.protobuf.Struct whose field ``entries`` is a list of names."""


class Wrong(StrEnum):
    """What can be wrong, by its name in docs/assumptions.md."""

    ON_UPDATE_DML = "on-update-dml"
    ON_UPDATE_SAME_VALUE = "on-update-same-value"
    ON_UPDATE_MUTATION = "on-update-mutation"
    ON_UPDATE_UPSERT = "on-update-upsert"
    ON_UPDATE_REPLACE = "on-update-replace"
    ON_UPDATE_PARTITIONED = "on-update-partitioned"
    ON_UPDATE_KEY_ONLY = "on-update-key-only"
    DEFAULT_ON_INSERT = "default-on-insert"
    DEFAULT_FILLS_ROWS = "default-fills-rows"
    EXPLICIT_VALUE_WINS = "explicit-value-wins"
    EXPLICIT_NULL_WINS = "explicit-null-wins"
    READ_AFTER_DML = "read-after-dml"
    STRONG_READ_BOUND = "strong-read-bound"
    EXACT_READ_REPEATS = "exact-read-repeats"
    SCHEMA_AT_TIMESTAMP = "schema-at-timestamp"
    COLUMNS_AT_TIMESTAMP = "columns-at-timestamp"
    DROPPED_TABLE_READABLE = "dropped-table-readable"
    RENAMED_TABLE_READABLE = "renamed-table-readable"
    SCHEMA_CHANGES_LISTED = "schema-changes-listed"
    EXPIRED_VERSIONS_REFUSED = "expired-versions-refused"
    MISSING_OBJECTS_NAMED = "missing-objects-named"
    PARTITIONS_COVER_ROWS = "partitions-cover-rows"
    RESUME_TOKEN = "resume-token"
    INDEX_READS_ENTRIES = "index-reads-entries"
    OPTIMISTIC_CONFLICT = "optimistic-conflict"
    STREAM_NAMES_PARTITIONS = "stream-names-partitions"
    STREAM_HEARTBEAT_BOUND = "stream-heartbeat-bound"
    STREAM_START_INSIDE = "stream-start-inside"
    STREAM_END_INSIDE = "stream-end-inside"
    STREAM_OPEN_TO_THE_END = "stream-open-to-the-end"
    STREAM_COMMIT_ORDER = "stream-commit-order"
    STREAM_TRANSACTION_ID = "stream-transaction-id"
    STREAM_EXCLUDES = "stream-excludes-transaction"
    STREAM_OLD_VALUES = "stream-old-values"
    STREAM_NEW_ROW = "stream-new-row"
    STREAM_HIDDEN_COLUMNS = "stream-hidden-columns"
    STREAM_GENERATED_COLUMNS = "stream-generated-columns"
    RETENTION_NOT_BACK = "retention-not-back"
    STREAM_CHILDREN_LAST = "stream-children-last"
    STREAM_KEY_IN_ONE_PARTITION = "stream-key-in-one-partition"
    STREAM_MARKS_TTL = "stream-marks-ttl"


_wrong: frozenset[Wrong] = frozenset()


def is_wrong(entry: Wrong) -> bool:
    """Whether a behaviour is to be wrong."""
    return entry in _wrong


def set_wrong(names: Collection[str]) -> None:
    """What is wrong from now on; everything else is right. Raises INVALID_ARGUMENT for a name that
    no place asks for."""
    global _wrong  # noqa: PLW0603 (the one value that the places ask)
    unknown = sorted(set(names) - {entry.value for entry in Wrong})
    if unknown:
        known = ", ".join(entry.value for entry in Wrong)
        raise invalid_argument(f"Nothing is called {unknown[0]}: use one of {known}.")
    _wrong = frozenset(map(Wrong, names))
