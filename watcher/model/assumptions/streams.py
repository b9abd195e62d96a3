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
)
