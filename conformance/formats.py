"""Lines of JSON in the formats of several systems -> changes."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeAlias

from conformance.changes import UNKNOWN, Change, Version
from conformance.truth import Key
from conformance.writers import COLUMNS, KEY_TYPES
from watcher.spanner.timestamps import to_micros

VERSION = "Version"
Json: TypeAlias = Mapping[str, Any]
DEBEZIUM_OPERATIONS = {"c": "INSERT", "u": "UPDATE", "d": "DELETE", "r": "UPSERT"}


class UnreadableLineError(Exception):
    """A line is not of its format; the message says what is wrong."""


def parse_line(text: bytes, name: str) -> list[Change]:
    """The changes of a line: mostly one, none for what tells of no change. Raises
    UnreadableLineError."""
    try:
        value = json.loads(text)
        if value is None and name == "debezium":
            return []
        if not isinstance(value, Mapping):
            raise TypeError("a JSON object was expected")
        return FORMATS[name](value)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UnreadableLineError(f"{type(error).__name__}: {error}") from error


def read_plain(value: Json) -> list[Change]:
    """The kit's own format, which is this project's."""
    key, values, old = value["key"], value.get("values"), value.get("old_values")
    operation = value.get("operation") or "UPSERT"
    window, transaction = value.get("window"), value.get("transaction")
    return [
        Change(
            table=value["table"],
            key=make_key(value["table"], key),
            at=parse_time(value["commit_timestamp"]),
            operation=operation,
            new=find_new(operation, values),
            old=find_old(old),
            transaction=transaction["id"] if transaction else None,
            id=value.get("id"),
            window=(parse_time(window["start"]), parse_time(window["end"])) if window else None,
        )
    ]


def read_debezium(value: Json) -> list[Change]:
    """An event of Debezium's connector for Spanner."""
    event: Json = value.get("payload", value)
    if "source" not in event:
        return []  # of transactions, heartbeats
    source, before, after = event["source"], event.get("before"), event.get("after")
    operation = DEBEZIUM_OPERATIONS[event["op"]]
    return [
        Change(
            table=source["table"],
            key=make_key(source["table"], after or before or {}),
            at=int(source["ts_us"]),
            operation=operation,
            new=find_new(operation, after),
            old=find_old(before),
            transaction=source.get("server_transaction_id"),
        )
    ]


def read_change_stream(value: Json) -> list[Change]:
    """A record of a change stream as Spanner's functions give it as JSON."""
    if "data_change_record" not in value:
        return []  # heartbeats, partitions
    record = value["data_change_record"]
    return [
        Change(
            table=record["table_name"],
            key=make_key(record["table_name"], mod["keys"]),
            at=parse_time(record["commit_timestamp"]),
            operation=record["mod_type"],
            new=find_new(record["mod_type"], mod["new_values"]),
            old=find_old(mod["old_values"]) if record["mod_type"] != "INSERT" else None,
            transaction=record["server_transaction_id"],
        )
        for mod in record["mods"]
    ]


def read_datastream(value: Json) -> list[Change]:
    """An event of Datastream, whose first sort key is the commit timestamp in microseconds."""
    metadata, payload = value["source_metadata"], value["payload"]
    operation = "DELETE" if metadata["is_deleted"] else metadata["change_type"]
    return [
        Change(
            table=metadata["table"],
            key=make_key(metadata["table"], payload),
            at=int(value["sort_keys"][0]),
            operation=operation,
            new=find_new(operation, payload),
            transaction=metadata.get("tx_id"),
            id=value.get("uuid"),
        )
    ]


FORMATS: dict[str, Callable[[Json], list[Change]]] = {
    "plain": read_plain,
    "debezium": read_debezium,
    "change-stream": read_change_stream,
    "datastream": read_datastream,
}


def make_key(table: str, key: Json | Sequence[object]) -> Key:
    """The values of a key in its order; numbers may be texts, as Spanner's API writes them."""
    names = COLUMNS[table][:-1] if table in COLUMNS else ()
    if isinstance(key, Mapping):
        values = [key[name] for name in names] if names else list(key.values())
    else:
        values = list(key)
    types = KEY_TYPES.get(table)
    if types is None:
        return tuple(values)
    return tuple(kind(value) for kind, value in zip(types, values, strict=True))


def find_new(operation: str, values: Json | None) -> Version:
    """The version that a line gives its row."""
    if operation == "DELETE":
        return None
    if not values or VERSION not in values:
        return UNKNOWN
    return read_version(values)


def find_old(values: Json | None) -> Version:
    """The version before, where a line has it."""
    if not values or VERSION not in values:
        return UNKNOWN
    return read_version(values)


def read_version(values: Json) -> str | None:
    """The version of a row."""
    version = values[VERSION]
    if version is not None and not isinstance(version, str):
        raise TypeError(f"the column {VERSION} is {version!r}: a text was expected")
    return version


def parse_time(text: str) -> int:
    """Microseconds since 1970 of a time with its zone."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"{text!r} has no time zone: end it with Z")
    return to_micros(moment)
