"""What the settings say of a replica, whatever writes it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from watcher.captures.poll import PollCapture
from watcher.model.errors import ConfigurationError
from watcher.replica.copies import Dropped
from watcher.replica.cuts.modes import HISTORY, LATEST, Mode
from watcher.replica.layout import Layout, Layouts, check_tables, find_layout
from watcher.replica.row_versions import extend_schema
from watcher.replica.rows import copy_schema
from watcher.replica.stores.places import name_place
from watcher.settings.destination_grammar import CopiesDestination
from watcher.settings.fields import describe_validation_error
from watcher.settings.sections import ReplicaConfig
from watcher.settings.table_specs import check_named_once
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


MISSED_VERSIONS = (
    "polling sees the last version of a row in a window: others are not in its history"
)


def list_caveats(mode: Mode, streamed: bool) -> tuple[str, ...]:
    """What copies lack because of how changes are captured, clauses for people."""
    return () if mode != HISTORY or streamed else (MISSED_VERSIONS,)


def choose_dropped(mode: Mode, asked: Dropped) -> Dropped:
    """What becomes of columns that are dropped. In other modes they stay: without them a copy would
    have to be loaded."""
    return asked if mode == LATEST else "keep"


LAYOUTS: TypeAdapter[dict[str, Layout]] = TypeAdapter(dict[str, Layout])


def parse_layouts(given: Mapping[str, object]) -> Layouts:
    """Layouts by table, whose options are given as a file has them. Raises ConfigurationError."""
    check_named_once(given, "layouts")
    try:
        return LAYOUTS.validate_python(given)
    except ValidationError as error:
        raise ConfigurationError(describe_validation_error(error)) from None


def fit_layouts(
    layouts: Layouts, captures: Mapping[str, PollCapture], mode: Mode = LATEST
) -> dict[str, Layout]:
    """The layouts that are stated, by the tables that are copied, with the names of their columns.
    Raises ConfigurationError for what a table does not have."""
    check_tables(layouts, captures.keys())
    stated = {name: find_layout(layouts, name) for name in captures}
    return {
        name: layout.fit(name, extend_schema(copy_schema(captures[name]), mode))
        for name, layout in stated.items()
        if layout is not None
    }
