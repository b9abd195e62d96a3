"""What the settings say of a replica, whatever writes it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

from watcher.captures.poll import PollCapture
from watcher.model.errors import ConfigurationError
from watcher.replica.cuts.modes import LATEST, Mode
from watcher.replica.layout import Layout, Layouts, check_tables, find_layout
from watcher.replica.row_versions import extend_schema
from watcher.replica.rows import copy_schema
from watcher.replica.stores.places import name_place
from watcher.settings.destination_grammar import CopiesDestination
from watcher.settings.sections import ReplicaConfig
from watcher.settings.watcher import WatchConfig


def require_replica(config: WatchConfig) -> ReplicaConfig:
    """The section of the replica. Raises ConfigurationError without one."""
    if config.replica is None:
        raise ConfigurationError(
            "the replica's folder is missing: use --to delta:FOLDER, or to = 'delta:FOLDER' in"
            " [replica]"
        )
    return config.replica


def name_consumer(copies: CopiesDestination) -> str:
    """The name for a replica that was not given one: another place has another."""
    place = name_place(copies.place)
    if not copies.in_catalog and "://" not in place:
        place = str(Path(place).resolve())
    return f"replica-{hashlib.blake2b(place.encode(), digest_size=5).hexdigest()}"


def fit_layouts(
    layouts: Layouts, captures: Mapping[str, PollCapture], mode: Mode = LATEST
) -> dict[str, Layout]:
    """The layouts of the tables that are copied, with the names of their columns. Raises
    ConfigurationError for what a table does not have."""
    check_tables(layouts, captures.keys())
    return {
        name: find_layout(layouts, name).fit(name, extend_schema(copy_schema(capture), mode))
        for name, capture in captures.items()
    }
