"""Assumptions about writes: the commit timestamp that Spanner puts into rows."""

from __future__ import annotations

from watcher.model.assumptions.entry import Assumption, Consequence, Mode

DDL = "reference/standard-sql/data-definition-language"
DML = "reference/standard-sql/dml-syntax"
MANUAL = (
    "let applications write the timestamp (ddl apply --strategy manual), or use a change stream"
)

WRITES = (
    Assumption(
        "on-update-dml",
        "ON UPDATE sets the commit timestamp of a row when an UPDATE statement writes a column"
        " outside the key.",
        DML,
        Consequence.LOST,
        "an update by DML is never polled",
        MANUAL,
        (Mode.POLL,),
    ),
    Assumption(
        "on-update-same-value",
        "ON UPDATE sets the commit timestamp even if an UPDATE changes no value.",
        DDL,
        Consequence.LOST,
        "a row that was cleared and is written again with its old values is not polled",
        MANUAL,
        (Mode.POLL,),
    ),
    Assumption(
        "on-update-mutation",
        "ON UPDATE sets the commit timestamp of a row that an update mutation writes.",
        "",
        Consequence.LOST,
        "an update by mutation is never polled",
        MANUAL,
        (Mode.POLL,),
    ),
    Assumption(
        "on-update-upsert",
        "ON UPDATE sets the commit timestamp of an existing row when an insert-or-update mutation"
        " (not documented) or INSERT with ON CONFLICT DO UPDATE writes it.",
        DML,
        Consequence.LOST,
        "an upsert of an existing row is never polled",
        MANUAL,
        (Mode.POLL,),
    ),
    Assumption(
        "on-update-replace",
        "A replace mutation gives a row the commit timestamp of its transaction.",
        "",
        Consequence.LOST,
        "a row that is replaced is never polled",
        MANUAL,
        (Mode.POLL,),
    ),
    Assumption(
        "on-update-partitioned",
        "ON UPDATE sets the commit timestamp of the rows that partitioned DML writes.",
        "",
        Consequence.LOST,
        "an update by partitioned DML is never polled",
        MANUAL,
        (Mode.POLL,),
    ),
    Assumption(
        "on-update-key-only",
        "A write that names only the key of an existing row does not change its commit timestamp,"
        " whether it is an update or insert-or-update mutation (not documented) or INSERT with ON"
        " CONFLICT DO UPDATE.",
        DML,
        Consequence.SLOW,
        "rows of which applications write only the key are polled, although nothing in them has"
        " changed",
        "expect such rows; nothing is lost",
        (Mode.POLL,),
    ),
    Assumption(
        "default-on-insert",
        "If a row is inserted without a value for the column, DEFAULT (PENDING_COMMIT_TIMESTAMP())"
        " gives it the commit timestamp that Commit returns, both by mutation and by DML.",
        "commit-timestamp",
        Consequence.LOST,
        "a new row has no timestamp, or an earlier one, and is never polled",
        MANUAL,
        (Mode.POLL,),
    ),
    Assumption(
        "default-fills-rows",
        "ALTER TABLE ADD COLUMN with a constant as DEFAULT gives this value to every row that the"
        " table has.",
        DDL,
        Consequence.WRONG,
        "rows of copies that were written before the statement have another value in the new column"
        " than Spanner; verify finds them",
        "remove the folder of the copy after such a statement, so that the table is loaded",
        (Mode.POLL, Mode.STREAM),
    ),
    Assumption(
        "explicit-value-wins",
        "An UPDATE that assigns a column with ON UPDATE to itself keeps its value.",
        DDL,
        Consequence.WRONG,
        "clearing with the strategy processed replaces the timestamp of a row by that of the"
        " clearing",
        "do not clear, or use the strategy automatic",
        (Mode.CLEAR,),
    ),
    Assumption(
        "explicit-null-wins",
        "An UPDATE that sets a column with ON UPDATE to NULL leaves it NULL.",
        DDL,
        Consequence.DOUBLED,
        "clearing gives rows a new timestamp, so they are delivered again after every clearing",
        "do not clear, or use the strategy processed",
        (Mode.CLEAR,),
    ),
    Assumption(
        "read-after-dml",
        "A transaction in which DML has set a timestamp of a table by DEFAULT or ON UPDATE can"
        " still read the table.",
        "",
        Consequence.ERROR,
        "an application that writes a row by DML and then reads its table gets an error",
        "test applications with 'spanner-watcher emulator --strict-pending-timestamps', or read a"
        " change stream, which adds no column",
        (Mode.POLL,),
    ),
)
