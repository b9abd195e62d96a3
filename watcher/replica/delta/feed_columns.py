"""The names that Delta's change data feed needs: its property, and its columns."""

from __future__ import annotations

from collections.abc import Iterable

from watcher.model.errors import ConfigurationError

PROPERTY = "delta.enableChangeDataFeed"
RESERVED = ("_change_type", "_commit_version", "_commit_timestamp")
"""Columns that readers of the feed add. ``_spanner_commit_timestamp`` is none of them."""


def check_feed_columns(path: str, names: Iterable[str]) -> None:
    """Raises ConfigurationError for a copy that cannot have the feed, because a column has a name
    of the feed's own."""
    taken = [name for name in names if name.casefold() in RESERVED]
    if taken:
        raise ConfigurationError(
            f"{path} has a column {taken[0]}, which Delta reserves for its change data feed: remove"
            " change_feed; or, where version 1.0.0 made the copy, remove its folder, so that it is"
            " loaded again with other names"
        )
