"""Which of two records of one row is newer, by the fields of each format."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Literal

from watcher.envelopes import ENVELOPES
from watcher.envelopes.message import Path, RecordLayout
from watcher.model.errors import ConfigurationError

Record = tuple[bytes | None, bytes | None]


def find_layout(name: str) -> RecordLayout:
    """The layout of an envelope's records. Raises ConfigurationError if it has none."""
    layout = ENVELOPES[name].layout if name in ENVELOPES else None
    if layout is None:
        known = ", ".join(each for each, kind in ENVELOPES.items() if kind.layout is not None)
        raise ConfigurationError(f"records of the envelope '{name}' have no order: use {known}")
    return layout


def select_newest(messages: Iterable[Record], name: str) -> list[Record]:
    """Selects the newest record of each row from keys and values, as ``encode`` gives them.

    Leaves out tombstones, barriers and heartbeats; a delete is a record like any other. If two
    records are equally new, selects the last one.
    """
    kept: dict[tuple[object, bytes], tuple[tuple[object, ...], Record]] = {}
    for key, value in messages:
        if key is None or value is None:
            continue
        table, order = locate(json.loads(value), name)
        before = kept.get((table, key))
        if before is None or before[0] <= order:
            kept[table, key] = order, (key, value)
    return [record for _, record in kept.values()]


def locate(record: object, name: str) -> tuple[object, tuple[object, ...]]:
    """The table of a record, and the values that order it. Raises ConfigurationError."""
    layout = find_layout(name)
    for root in layout.roots:
        first = read_path(record, root + layout.order[0][0])
        if first is not None:
            order = tuple(
                convert_part(read_path(record, root + path), kind) for path, kind in layout.order
            )
            return (read_path(record, root + layout.table) if layout.table else None), order
    raise ConfigurationError(
        f"a record of the envelope '{name}' has no commit time: {layout.needs}"
    )


def convert_part(value: object, kind: Literal["long", "string"]) -> int | str:
    """Converts a value that orders records; a value that is not known comes first."""
    if kind == "long":
        return int(value) if isinstance(value, int | str) else -1
    return value if isinstance(value, str) else ""


def read_path(record: object, path: Path) -> object:
    """The value at a path of a record; None if there is none."""
    for part in path:
        if isinstance(part, int) and isinstance(record, list) and part < len(record):
            record = record[part]
        elif isinstance(part, str) and isinstance(record, dict):
            record = record.get(part)
        else:
            return None
    return record
