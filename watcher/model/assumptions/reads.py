"""Assumptions about reads: timestamps, and the schema that is valid at one."""

from __future__ import annotations

from watcher.model.assumptions.entry import Assumption, Consequence, Mode

EVERY_READER = (Mode.POLL, Mode.STREAM, Mode.SNAPSHOT, Mode.VERIFY)

READS = (
    Assumption(
        "strong-read-bound",
        "No transaction that commits after a strong read was served has a commit timestamp at or"
        " below the timestamp of that read.",
        "timestamp-bounds",
        Consequence.LOST,
        "a window ends before all its transactions are there: they are never delivered",
        "do not watch this database, and report it",
        EVERY_READER,
    ),
    Assumption(
        "exact-read-repeats",
        "A read at an exact timestamp shows what was committed at or below it and nothing else,"
        " however often it is repeated.",
        "timestamp-bounds",
        Consequence.LOST,
        "a window that is read again has other rows, and the tables of a window differ",
        "do not watch this database, and report it",
        (Mode.POLL, Mode.SNAPSHOT, Mode.WHOLE_ROWS, Mode.VERIFY),
    ),
    Assumption(
        "schema-at-timestamp",
        "INFORMATION_SCHEMA, read at an earlier timestamp, shows the schema of then.",
        "information-schema",
        Consequence.LOST,
        "a window is read with the tables, columns and shards of another time",
        "change the schema only while no watcher runs and none is behind",
        EVERY_READER,
    ),
    Assumption(
        "columns-at-timestamp",
        "A column that was dropped can be read at a timestamp from before.",
        "schema-updates",
        Consequence.ERROR,
        "a window that ends before its column was dropped cannot be read",
        "let every consumer come up to now before a column is dropped (ctl drain)",
        EVERY_READER,
    ),
    Assumption(
        "dropped-table-readable",
        "A table that was dropped can be read at a timestamp from before.",
        "",
        Consequence.ERROR,
        "the last changes before a table was dropped cannot be read, or not as whole rows",
        "let every consumer come up to now before a table is dropped (ctl drain)",
        (Mode.POLL, Mode.WHOLE_ROWS, Mode.SNAPSHOT, Mode.VERIFY),
    ),
    Assumption(
        "renamed-table-readable",
        "A table that was renamed can be read by its old name at a timestamp from before.",
        "",
        Consequence.ERROR,
        "a window that ends before its table was renamed cannot be read",
        "let every consumer come up to now before a table is renamed (ctl drain)",
        (Mode.POLL, Mode.WHOLE_ROWS, Mode.SNAPSHOT, Mode.VERIFY),
    ),
    Assumption(
        "schema-changes-listed",
        "ListDatabaseOperations names the statements of each schema update with their commit"
        " timestamps.",
        "reference/rest/v1/UpdateDatabaseDdlMetadata",
        Consequence.LOST,
        "a table that is dropped and created again while a watcher is down is taken for the old"
        " one: its first rows are not polled",
        "unregister the table before it is created again (ctl forget --table)",
        (Mode.POLL,),
    ),
    Assumption(
        "expired-versions-refused",
        "A read at a timestamp that is older than version_retention_period is refused with"
        " FAILED_PRECONDITION and the words 'maximum timestamp staleness'.",
        "",
        Consequence.ERROR,
        "a window that is older than the versions ends a watcher, where it would be read strongly",
        "keep consumers ahead of version_retention_period (the condition of the page), or begin"
        " anew with start = 'latest'",
        EVERY_READER,
    ),
    Assumption(
        "missing-objects-named",
        "A statement with a table, a column or a forced index that is not there is refused with"
        " INVALID_ARGUMENT or NOT_FOUND and words that say which of them is not.",
        "",
        Consequence.ERROR,
        "a schema change ends a watcher, where it would look at the schema again",
        "start watchers again after a schema change",
        EVERY_READER,
    ),
    Assumption(
        "partitions-cover-rows",
        "The partitions of PartitionQuery, read at one timestamp, hold each row once.",
        "reads",
        Consequence.LOST,
        "whole tables that are read in partitions lack rows, or have some twice",
        "let 'verify' compare the copy, and do not use whole tables where it finds a difference",
        (Mode.SNAPSHOT, Mode.VERIFY),
    ),
    Assumption(
        "resume-token",
        "A stream that continues from a resume token has exactly the rows after it.",
        "reference/rpc/google.spanner.v1",
        Consequence.LOST,
        "a connection that breaks loses or doubles rows",
        "do not watch this database, and report it",
        EVERY_READER,
    ),
    Assumption(
        "index-reads-entries",
        "A query that is forced to a null-filtered index reads the entries of the index, not the"
        " rows of its table.",
        "secondary-indexes",
        Consequence.SLOW,
        "every poll costs as much as the table is large",
        "read a change stream",
        (Mode.POLL,),
    ),
    Assumption(
        "optimistic-conflict",
        "A transaction with optimistic locks is aborted when another one has changed what it read"
        " before its commit.",
        "concurrency-control",
        Consequence.DOUBLED,
        "two instances hold the lease of one consumer",
        "run one instance of a consumer at a time, without --standby",
        (Mode.CONSUMER,),
    ),
    Assumption(
        "retention-not-back",
        "After version_retention_period is raised, timestamps that were too old stay so.",
        "pitr",
        Consequence.WRONG,
        "a read at such a timestamp has rows, but not all",
        "raise the period before a consumer is behind by more than it",
        EVERY_READER,
        untried="versions leave a database after an hour at the earliest",
    ),
)
