"""For how long Spanner keeps what a consumer has not read yet.

Spanner: ``version_retention_period`` is one hour unless set; a change stream keeps its records for
seven days unless set.
"""

from __future__ import annotations

import re

from spanner_schema.model.schema import Schema
from watcher.captures.change_stream.captured import read_option
from watcher.captures.change_stream.watched import list_watched

# assumes: retention-not-back
VERSION_RETENTION = "1h"
STREAM_RETENTION = "7d"
UNITS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
PERIOD = re.compile(r"(\d+)([smhd])\Z")


def parse_period(text: str) -> int:
    """The seconds of a period as Spanner writes it. Raises ValueError."""
    match = PERIOD.match(text.strip("'\" ").lower())
    if match is None:
        raise ValueError(f"Spanner has sent a retention period that is not one: {text!r}")
    return int(match.group(1)) * UNITS[match.group(2)]


def find_stream_retention(schema: Schema, table: str) -> int | None:
    """How many seconds the change streams that watch a table keep its records: the shortest, since
    it is not stored which one a consumer reads. None without a change stream."""
    periods = [
        parse_period(read_option(stream, "retention_period", STREAM_RETENTION))
        for stream in schema.change_streams
        if table in list_watched(stream, schema)
    ]
    return min(periods, default=None)


def seconds_left(micros: int, retention_seconds: int, now: int) -> float:
    """How long Spanner keeps what it had at a timestamp; negative once it may have deleted it."""
    return round(retention_seconds - (now - micros) / 1_000_000, 3)
