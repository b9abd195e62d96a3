"""Assumptions about change streams."""

from __future__ import annotations

from watcher.model.assumptions.entry import Assumption, Consequence, Mode

DETAILS = "change-streams/details"
POLL = "poll the tables in place of reading the change stream"

STREAMS = (
    Assumption(
        "stream-names-partitions",
        "A query without a token names every partition that is active at its start, at any start"
        " that the stream keeps.",
        "",
        Consequence.LOST,
        "the records of a partition that is not named are never read",
        POLL,
        (Mode.STREAM,),
    ),
    Assumption(
        "stream-heartbeat-bound",
        "After a heartbeat a partition has no record at or below its timestamp.",
        DETAILS,
        Consequence.LOST,
        "with push, the position passes records that were not delivered: a restart loses them",
        "remove stream.push",
        (Mode.PUSH,),
    ),
    Assumption(
        "stream-start-inside",
        "A query returns the records at its start timestamp.",
        DETAILS,
        Consequence.LOST,
        "a record at the microsecond after a position is never read",
        POLL,
        (Mode.STREAM,),
    ),
    Assumption(
        "stream-end-inside",
        "A query with an end returns every record up to it, those at it, too, before it ends.",
        DETAILS,
        Consequence.LOST,
        "the records at the end of a window are never read",
        POLL,
        (Mode.STREAM,),
    ),
    Assumption(
        "stream-open-to-the-end",
        "A query whose end is to come returns records as they are committed, not at its end.",
        DETAILS,
        Consequence.SLOW,
        "the first change after a quiet time is delivered after refresh, not at once",
        "set listen = false in [stream]",
        (Mode.STREAM,),
    ),
    Assumption(
        "stream-commit-order",
        "A partition returns each record once, in the order of commit timestamps.",
        DETAILS,
        Consequence.WRONG,
        "an older version of a row is delivered after a newer one",
        "order what is delivered by commit timestamp, or use transactions = true",
        (Mode.STREAM,),
    ),
    Assumption(
        "stream-transaction-id",
        "server_transaction_id is the same in all records of a transaction, and another in those"
        " of every other one, also where transactions that share no data have the same commit"
        " timestamp.",
        DETAILS,
        Consequence.WRONG,
        "two transactions that commit at one timestamp are delivered as one, and a change may have"
        " the id of another",
        "remove transactions and stream.push, and do not drop changes by their id",
        (Mode.STREAM,),
    ),
    Assumption(
        "stream-excludes-transaction",
        "A transaction with exclude_txn_from_change_streams, partitioned DML, too, is in no stream"
        " with allow_txn_exclusion.",
        "change-streams",
        Consequence.DOUBLED,
        "rows that are cleared from an index come as changes in change streams of their table",
        "do not clear tables that a change stream watches",
        (Mode.CLEAR,),
    ),
    Assumption(
        "stream-old-values",
        "With NEW_ROW_AND_OLD_VALUES an update has the old values of the columns that it wrote, and"
        " a delete the whole old row.",
        DETAILS,
        Consequence.WRONG,
        "the version before a change is missing in envelopes that have one",
        "use an envelope without old values, or a stream with NEW_ROW and whole_rows",
        (Mode.STREAM,),
    ),
    Assumption(
        "stream-new-row",
        "With NEW_ROW a record has the columns that the transaction did not write, too.",
        DETAILS,
        Consequence.WRONG,
        "a change lacks columns, and a replica has NULL in them",
        "set whole_rows",
        (Mode.STREAM,),
    ),
    Assumption(
        "stream-hidden-columns",
        "Records have the values of HIDDEN columns.",
        "",
        Consequence.WRONG,
        "hidden columns that are asked for are missing in changes and in replicas",
        "set whole_rows",
        (Mode.STREAM,),
    ),
    Assumption(
        "stream-generated-columns",
        "Records have no values of generated columns outside of the key, with NEW_ROW neither.",
        "change-streams",
        Consequence.SLOW,
        "whole rows and replicas read each row again, though its record has all of it",
        "nothing is lost; please report it",
        (Mode.STREAM, Mode.WHOLE_ROWS),
    ),
    Assumption(
        "stream-children-last",
        "The last records of a partition that ends name its children; its query ends after them.",
        DETAILS,
        Consequence.LOST,
        "the records of a child that nobody names are never read",
        POLL,
        (Mode.STREAM,),
        untried="Spanner alone decides when a partition ends",
    ),
    Assumption(
        "stream-key-in-one-partition",
        "The records of a key are in one partition at a time, also while keys move between"
        " partitions (MUTABLE_KEY_RANGE): at a move no record is in both or in none.",
        DETAILS,
        Consequence.LOST,
        "changes of a row are lost, doubled or out of order at a split, a merge or a move",
        POLL,
        (Mode.STREAM,),
        untried="Spanner alone decides when keys move to another partition",
    ),
    Assumption(
        "stream-marks-ttl",
        "A delete by a row deletion policy is in a transaction of the system.",
        "ttl",
        Consequence.WRONG,
        "such a delete looks as if an application had made it",
        "let the stream exclude them (exclude_ttl_deletes)",
        (Mode.STREAM,),
        untried="Spanner deletes such rows within 72 hours, not at once",
    ),
)
