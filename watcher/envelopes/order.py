"""Which of two records of one row is newer: from what the records of each format say themselves."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from watcher.errors import ConfigurationError

Part = str | int
Path = tuple[Part, ...]
Record = tuple[bytes | None, bytes | None]


@dataclass(frozen=True, slots=True)
class Ordering:
    """Where a record has its table (None where it does not say it) and what it is ordered by.

    ``roots`` are the places where a record may begin: Debezium's stands under ``payload`` when it
    has its schema. ``needs`` is what to do where the order is missing.
    """

    table: Path | None
    fields: tuple[tuple[Path, Literal["long", "string"]], ...]
    roots: tuple[Path, ...] = ((),)
    needs: str = "it is no record of this format"


ORDERINGS = {
    "plain": Ordering(
        ("table",),
        (
            (("commit_timestamp",), "string"),
            (("transaction", "id"), "string"),
            (("transaction", "sequence"), "string"),
        ),
    ),
    "datastream": Ordering(
        ("object",),
        (
            (("sort_keys", 0), "long"),
            (("sort_keys", 1), "string"),
            (("sort_keys", 2), "string"),
            (("sort_keys", 3), "long"),
        ),
    ),
    "debezium": Ordering(
        ("source", "table"),
        (
            (("source", "ts_us"), "long"),
            (("source", "server_transaction_id"), "string"),
            (("source", "sequence"), "long"),
            (("source", "mod_number"), "long"),
        ),
        roots=((), ("payload",)),
    ),
    "ydb": Ordering(
        None, ((("ts", 0), "long"), (("ts", 1), "long")), needs="set virtual_timestamps = true"
    ),
    "ydb-debezium": Ordering(
        None,
        ((("payload", "source", "step"), "long"), (("payload", "source", "txId"), "long")),
    ),
    "change-stream": Ordering(
        ("data_change_record", "table_name"),
        (
            (("data_change_record", "commit_timestamp"), "string"),
            (("data_change_record", "server_transaction_id"), "string"),
            (("data_change_record", "record_sequence"), "string"),
        ),
    ),
}
"""By the envelope's name. Records of one row with the same order are the same change delivered
twice; or, in ``ydb`` and ``ydb-debezium``, changes of one transaction, which those formats cannot
tell apart: of them the one that was delivered last is the newest."""


def ordering(name: str) -> Ordering:
    """How records of an envelope are ordered. Raises ConfigurationError for one without."""
    if name not in ORDERINGS:
        known = ", ".join(ORDERINGS)
        raise ConfigurationError(f"records of '{name}' cannot be ordered here; there are: {known}")
    return ORDERINGS[name]


def newest(messages: Iterable[Record], name: str) -> list[Record]:
    """The newest record of each row, of keys and values as ``encode`` gives them.

    Tombstones, barriers and heartbeats are left out; a delete is a record like any other. Of
    records that are equally new the last one counts.
    """
    kept: dict[tuple[object, bytes], tuple[tuple[object, ...], Record]] = {}
    for key, value in messages:
        if key is None or value is None:
            continue
        table, order = place(json.loads(value), name)
        before = kept.get((table, key))
        if before is None or before[0] <= order:
            kept[table, key] = order, (key, value)
    return [record for _, record in kept.values()]


def place(record: object, name: str) -> tuple[object, tuple[object, ...]]:
    """The table of a record, and what it is ordered by. Raises ConfigurationError."""
    how = ordering(name)
    for root in how.roots:
        first = at(record, root + how.fields[0][0])
        if first is not None:
            order = tuple(typed(at(record, root + path), kind) for path, kind in how.fields)
            return (at(record, root + how.table) if how.table else None), order
    raise ConfigurationError(f"a record of '{name}' does not say when it happened: {how.needs}")


def typed(value: object, kind: Literal["long", "string"]) -> int | str:
    """A part of an order; what polling does not know comes before all that it could be."""
    if kind == "long":
        return int(value) if isinstance(value, int | str) else -1
    return value if isinstance(value, str) else ""


def at(record: object, path: Path) -> object:
    """What stands at a place of a record; None where there is none."""
    for part in path:
        if isinstance(part, int) and isinstance(record, list) and part < len(record):
            record = record[part]
        elif isinstance(part, str) and isinstance(record, dict):
            record = record.get(part)
        else:
            return None
    return record
