"""Assumptions about change streams."""

from __future__ import annotations

from watcher.model.assumptions.entry import Assumption, Consequence, Mode

DETAILS = "change-streams/details"
POLL = "poll the tables instead of reading the change stream"

STREAMS = (
    Assumption(
        "stream-names-partitions",
        "A query without a token returns every partition that is active at its start timestamp,"
        " for any start timestamp within the stream's retention.",
        "",
        Consequence.LOST,
        "the records of a partition that is not returned are never read",
        POLL,
        (Mode.STREAM,),
    ),
    Assumption(
        "stream-heartbeat-bound",
        "After a heartbeat, a partition returns no record at or before the heartbeat's timestamp.",
        DETAILS,
        Consequence.LOST,
        "with push, the position moves beyond records that were not delivered, and a restart loses"
        " them",
        "remove stream.push",
        (Mode.PUSH,),
    ),
    Assumption(
        "stream-start-inside",
        "A query returns the records at its start timestamp.",
        DETAILS,
        Consequence.LOST,
        "a record one microsecond after a position is never read",
        POLL,
        (Mode.STREAM,),
    ),
    Assumption(
        "stream-end-inside",
        "Before a query with an end timestamp ends, it returns every record up to and including"
        " that timestamp.",
        DETAILS,
        Consequence.LOST,
        "the records at the end of a window are never read",
        POLL,
        (Mode.STREAM,),
    ),
    Assumption(
        "stream-open-to-the-end",
        "A query whose end timestamp is in the future returns records as they are committed, not"
        " at the end.",
        DETAILS,
        Consequence.SLOW,
        "the first change after a quiet time is delivered after refresh, not immediately",
        "set listen = false in [stream]",
        (Mode.STREAM,),
    ),
    Assumption(
        "stream-commit-order",
        "A partition returns each record once, in the order of commit timestamps.",
        DETAILS,
        Consequence.WRONG,
        "an older version of a row is delivered after a newer one",
        "order the delivered changes by commit timestamp, or use transactions = true",
        (Mode.STREAM,),
    ),
    Assumption(
        "stream-transaction-id",
        "server_transaction_id is the same in all records of a transaction and differs between"
        " transactions, even if transactions that share no data have the same commit timestamp.",
        DETAILS,
        Consequence.WRONG,
        "two transactions that commit at the same timestamp are delivered as one, and a change may"
        " have the id of another change",
        "remove transactions and stream.push, and do not drop changes by their id",
        (Mode.STREAM,),
    ),
    Assumption(
        "stream-excludes-transaction",
        "A transaction with exclude_txn_from_change_streams, including partitioned DML, does not"
        " appear in a stream with allow_txn_exclusion.",
        "change-streams",
        Consequence.DOUBLED,
        "rows that are cleared from an index appear as changes in the change streams of their"
        " table",
        "do not clear tables that a change stream watches",
        (Mode.CLEAR,),
    ),
    Assumption(
        "stream-old-values",
        "With NEW_ROW_AND_OLD_VALUES, the record of an update has the old values of the columns"
        " that it wrote, and the record of a delete has the whole old row.",
        DETAILS,
        Consequence.WRONG,
        "the row before a change is missing in envelopes that contain it",
        "use an envelope without old values, or a stream with NEW_ROW and whole_rows",
        (Mode.STREAM,),
    ),
    Assumption(
        "stream-new-row",
        "With NEW_ROW, a record also has the columns that the transaction did not write.",
        DETAILS,
        Consequence.WRONG,
        "a change lacks columns, and a replica has NULL in them",
        "set whole_rows",
        (Mode.STREAM,),
    ),
    Assumption(
        "stream-hidden-columns",
        "Records contain the values of HIDDEN columns.",
        "",
        Consequence.WRONG,
        "hidden columns that you ask for are missing in changes and in replicas",
        "set whole_rows",
        (Mode.STREAM,),
    ),
    Assumption(
        "stream-generated-columns",
        "Records contain no values of generated columns outside the key, not even with NEW_ROW.",
        "change-streams",
        Consequence.SLOW,
        "whole rows and replicas read each row again, although its record already contains all of"
        " it",
        "nothing is lost; please report it",
        (Mode.STREAM, Mode.WHOLE_ROWS),
    ),
    Assumption(
        "stream-children-last",
        "When a partition ends, its last records name its children, and its query ends after them.",
        DETAILS,
        Consequence.LOST,
        "the records of a child that no record names are never read",
        POLL,
        (Mode.STREAM,),
        untried="Spanner alone decides when a partition ends",
    ),
    Assumption(
        "stream-key-in-one-partition",
        "The records of a key are in one partition at a time, even while keys move between"
        " partitions (MUTABLE_KEY_RANGE): a move neither repeats nor omits a record.",
        DETAILS,
        Consequence.LOST,
        "changes of a row are lost, doubled or out of order at a split, a merge or a move",
        POLL,
        (Mode.STREAM,),
        untried="Spanner alone decides when keys move to another partition",
    ),
    Assumption(
        "stream-marks-ttl",
        "A row deletion policy deletes rows in a system transaction.",
        "ttl",
        Consequence.WRONG,
        "such a delete looks like a delete by an application",
        "let the stream exclude these deletes (exclude_ttl_deletes)",
        (Mode.STREAM,),
        untried="Spanner deletes such rows within 72 hours, not immediately",
    ),
)
