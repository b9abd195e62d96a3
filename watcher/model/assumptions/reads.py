"""Assumptions about reads: timestamps, and the schema that is valid at one."""

from __future__ import annotations

from watcher.model.assumptions.entry import Assumption, Consequence, Mode

EVERY_READER = (Mode.POLL, Mode.STREAM, Mode.SNAPSHOT, Mode.VERIFY)

READS = (
    Assumption(
        "strong-read-bound",
        "A transaction that commits after a strong read was served has a commit timestamp after the"
        " timestamp of that read.",
        "timestamp-bounds",
        Consequence.LOST,
        "a window ends before all its transactions are committed, and the missing ones are never"
        " delivered",
        "do not watch this database, and report it",
        EVERY_READER,
    ),
    Assumption(
        "exact-read-repeats",
        "A read at an exact timestamp returns what was committed at or before it and nothing else,"
        " however often it is repeated.",
        "timestamp-bounds",
        Consequence.LOST,
        "a window that is read again has other rows, and the tables of a window do not agree",
        "do not watch this database, and report it",
        (Mode.POLL, Mode.SNAPSHOT, Mode.WHOLE_ROWS, Mode.VERIFY),
    ),
    Assumption(
        "schema-at-timestamp",
        "INFORMATION_SCHEMA, read at an earlier timestamp, shows the schema at that timestamp.",
        "information-schema",
        Consequence.LOST,
        "a window is read with the tables, columns and shards of another time",
        "change the schema only while no watcher runs and no consumer is behind",
        EVERY_READER,
    ),
    Assumption(
        "columns-at-timestamp",
        "A column that was dropped can be read at a timestamp before the drop.",
        "schema-updates",
        Consequence.ERROR,
        "a window that ends before its column was dropped cannot be read",
        "let every consumer catch up before you drop a column (ctl drain)",
        EVERY_READER,
    ),
    Assumption(
        "dropped-table-readable",
        "A table that was dropped can be read at a timestamp before the drop.",
        "",
        Consequence.ERROR,
        "the last changes before a table was dropped cannot be read, or not as whole rows",
        "let every consumer catch up before you drop a table (ctl drain)",
        (Mode.POLL, Mode.WHOLE_ROWS, Mode.SNAPSHOT, Mode.VERIFY),
    ),
    Assumption(
        "renamed-table-readable",
        "A table that was renamed can be read by its old name at a timestamp before that.",
        "",
        Consequence.ERROR,
        "a window that ends before its table was renamed cannot be read",
        "let every consumer catch up before you rename a table (ctl drain)",
        (Mode.POLL, Mode.WHOLE_ROWS, Mode.SNAPSHOT, Mode.VERIFY),
    ),
    Assumption(
        "schema-changes-listed",
        "ListDatabaseOperations names the statements of each schema update with their commit"
        " timestamps.",
        "reference/rest/v1/UpdateDatabaseDdlMetadata",
        Consequence.LOST,
        "if a table is dropped and created again while a watcher is down, the watcher treats it as"
        " the old one and does not poll its first rows",
        "unregister the table before you create it again (ctl forget --table)",
        (Mode.POLL,),
    ),
    Assumption(
        "expired-versions-refused",
        "A read at a timestamp that is older than version_retention_period is refused with"
        " FAILED_PRECONDITION and the words 'maximum timestamp staleness'.",
        "",
        Consequence.ERROR,
        "a watcher stops at a window that is older than the retained versions, instead of reading"
        " it strongly",
        "keep the lag of consumers below version_retention_period (the page shows it), or start"
        " again with start = 'latest'",
        EVERY_READER,
    ),
    Assumption(
        "missing-objects-named",
        "A statement that names a missing table, column or forced index is refused with"
        " INVALID_ARGUMENT or NOT_FOUND, and the message says which of them is missing.",
        "",
        Consequence.ERROR,
        "a watcher stops after a schema change, instead of reading the schema again",
        "restart watchers after a schema change",
        EVERY_READER,
    ),
    Assumption(
        "partitions-cover-rows",
        "The partitions that PartitionQuery and PartitionRead return, read at one timestamp,"
        " contain each row exactly once.",
        "reads",
        Consequence.LOST,
        "whole tables that are read in partitions lack rows, or contain some twice",
        "let 'verify' compare the copy, and do not use whole tables if it finds a difference",
        (Mode.SNAPSHOT, Mode.VERIFY),
    ),
    Assumption(
        "resume-token",
        "A stream that continues from a resume token returns exactly the rows after it.",
        "reference/rpc/google.spanner.v1",
        Consequence.LOST,
        "when a connection breaks, rows are lost or doubled",
        "do not watch this database, and report it",
        EVERY_READER,
    ),
    Assumption(
        "index-reads-entries",
        "A query that is forced to a null-filtered index reads the entries of the index, not the"
        " rows of its table.",
        "secondary-indexes",
        Consequence.SLOW,
        "the cost of every poll grows with the size of the table",
        "read a change stream",
        (Mode.POLL,),
    ),
    Assumption(
        "optimistic-conflict",
        "If another transaction changes what a transaction with optimistic locks has read, the"
        " latter is aborted at its commit.",
        "concurrency-control",
        Consequence.DOUBLED,
        "two instances hold the lease of one consumer",
        "run one instance of a consumer at a time, without --standby",
        (Mode.CONSUMER,),
    ),
    Assumption(
        "retention-not-back",
        "When version_retention_period is raised, timestamps that were already too old stay too"
        " old.",
        "pitr",
        Consequence.WRONG,
        "a read at such a timestamp returns some of the rows, but not all",
        "raise the period before a consumer lags by more than the period",
        EVERY_READER,
        untried="a database keeps versions for at least an hour",
    ),
)
