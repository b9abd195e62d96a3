"""What watchers and Spark queries say alike about their tables."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from watcher.consumers.positions import Registered
from watcher.model.errors import IndexDroppedError
from watcher.model.log_events.reading import ROWS_CLEARED_BEFORE_START
from watcher.spanner.timestamps import format_timestamp
from watcher.tables.values import WatchedTable


def map_change_sets(tables: Iterable[WatchedTable]) -> dict[str, str]:
    """The table of change sets of each table that has one: clearing deletes from it instead."""
    return {each.name: sets.table for each in tables if (sets := each.change_sets) is not None}


def check_still_polled(missing: Iterable[str], existing: Iterable[str], remedy: str) -> None:
    """Raises IndexDroppedError where a table that was polled exists but cannot be polled: it must
    not be left out silently. ``remedy`` is what else can be done than to create its index again."""
    names = {name.casefold() for name in existing}
    for name in sorted(missing):
        if name.casefold() in names:
            raise IndexDroppedError(
                f"table {name} cannot be polled any more because its index was dropped: create it"
                f" again with 'spanner-watcher ddl apply', or {remedy}"
            )


def warn_about_cleared(
    log: logging.Logger, consumer: str, registered: Registered, remedy: str
) -> None:
    """Warns of tables where the consumer starts below what may have been cleared."""
    for name, cleared in registered.cleared.items():
        ROWS_CLEARED_BEFORE_START.log(
            log,
            consumer=consumer,
            table=name,
            start=format_timestamp(registered.positions[name]),
            cleared_to=format_timestamp(cleared),
            remedy=remedy,
        )
