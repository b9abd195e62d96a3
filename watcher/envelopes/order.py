"""Which of two records of one row is newer, by the fields of each format."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from watcher.model.errors import ConfigurationError

Part = str | int
Path = tuple[Part, ...]
Record = tuple[bytes | None, bytes | None]


@dataclass(frozen=True, slots=True)
class Ordering:
    """Where a record has its table (None if it does not name it), and the fields that order it.

    ``roots`` are the places where a record may begin: with a schema, Debezium's record is in
    ``payload``. ``needs`` says what to do if the fields are missing.
    """

    table: Path | None
    fields: tuple[tuple[Path, Literal["long", "string"]], ...]
    roots: tuple[Path, ...] = ((),)
    needs: str = "check that the records have this format"


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
"""By the envelope's name. Two records of one row with the same order are the same change, delivered
twice. In ``ydb`` and ``ydb-debezium`` they may also be changes of one transaction, which those
formats cannot tell apart: the one that was delivered last is the newest."""


def find_ordering(name: str) -> Ordering:
    """The ordering of an envelope's records. Raises ConfigurationError if there is none."""
    if name not in ORDERINGS:
        known = ", ".join(ORDERINGS)
        raise ConfigurationError(f"records of the envelope '{name}' have no order: use {known}")
    return ORDERINGS[name]


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
    ordering = find_ordering(name)
    for root in ordering.roots:
        first = read_path(record, root + ordering.fields[0][0])
        if first is not None:
            order = tuple(
                convert_part(read_path(record, root + path), kind) for path, kind in ordering.fields
            )
            return (read_path(record, root + ordering.table) if ordering.table else None), order
    raise ConfigurationError(
        f"a record of the envelope '{name}' has no commit time: {ordering.needs}"
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
