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
)
