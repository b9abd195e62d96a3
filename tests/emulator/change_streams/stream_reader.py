"""Reads change streams through the real client and follows partitions to their end."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from google.cloud.spanner_admin_database_v1 import DatabaseDialect
from google.cloud.spanner_v1 import param_types
from google.cloud.spanner_v1.database import Database


def now() -> datetime:
    return datetime.now(UTC)


def records(
    database: Database,
    stream: str,
    start: datetime | None,
    end: datetime | None,
    token: str | None = None,
    heartbeat: int | None = 1000,
) -> Any:
    """The structs of a query, as they come: (data, heartbeats, children)."""
    if database.database_dialect == DatabaseDialect.POSTGRESQL:
        yield from read_json(database, stream, start, end, token, heartbeat)
        return
    sql = (
        f"SELECT ChangeRecord FROM READ_{stream}(start_timestamp => @start, end_timestamp => @end,"
        " partition_token => @token, read_options => NULL, heartbeat_milliseconds => @heartbeat)"
    )
    params = {"start": start, "end": end, "token": token, "heartbeat": heartbeat}
    types = {
        "start": param_types.TIMESTAMP,
        "end": param_types.TIMESTAMP,
        "token": param_types.STRING,
        "heartbeat": param_types.INT64,
    }
    with database.snapshot() as snapshot:
        for row in snapshot.execute_sql(sql, params=params, param_types=types):
            yield from row[0]


def read_json(database: Database, stream: str, *values: object) -> Iterator[Any]:
    """The same of a database of the PostgreSQL dialect, whose rows have a jsonb each."""
    sql = f'SELECT * FROM "spanner"."read_json_{stream}"($1, $2, $3, $4, null)'
    kinds = (*[param_types.TIMESTAMP] * 2, param_types.STRING, param_types.INT64)
    names = [f"p{number}" for number in range(1, 5)]
    params, types = (dict(zip(names, each, strict=True)) for each in (values, kinds))
    with database.snapshot() as snapshot:
        for (record,) in snapshot.execute_sql(sql, params=params, param_types=types):
            yield convert_record(record)


def convert_record(record: dict[str, Any]) -> tuple[list[Any], list[Any], list[Any]]:
    """A record of JSON as the struct of GoogleSQL."""
    if (data := record.get("data_change_record")) is not None:
        mods = [
            [mod[name] for name in ("keys", "new_values", "old_values")] for mod in data["mods"]
        ]
        at = datetime.fromisoformat(data["commit_timestamp"])
        return [[at, *[data.get(name) for name in FIELDS[:5]], mods, data["mod_type"]]], [], []
    if (beat := record.get("heartbeat_record")) is not None:
        return [], [[datetime.fromisoformat(beat["timestamp"])]], []
    children = record["child_partitions_record"]
    tokens = [
        [child["token"], child["parent_partition_tokens"]] for child in children["child_partitions"]
    ]
    began = datetime.fromisoformat(children["start_timestamp"])
    return [], [], [[began, children["record_sequence"], tokens]]


FIELDS = (
    "record_sequence",
    "server_transaction_id",
    "is_last_record_in_transaction_in_partition",
    "table_name",
    "column_types",
)


@dataclass
class StreamContents:
    """What a reader saw: data change records by partition, in order, and the lineage."""

    data: list[list[Any]] = field(default_factory=list)
    heartbeats: list[datetime] = field(default_factory=list)
    parents: dict[str, list[str]] = field(default_factory=dict)
    announced: dict[str, int] = field(default_factory=dict)


def read_all(database: Database, stream: str, start: datetime, end: datetime) -> StreamContents:
    """Everything in [start, end]; a child is read once, after all its parents."""
    contents = StreamContents()
    waiting: dict[str, datetime] = {}
    finished: set[str] = set()

    def take(structs: Any) -> None:
        for data, beats, children in structs:
            contents.data += data
            contents.heartbeats += [beat[0] for beat in beats]
            for began, _, tokens in children:
                for token, parents in tokens:
                    contents.announced[token] = contents.announced.get(token, 0) + 1
                    contents.parents[token] = parents
                    waiting.setdefault(token, began)

    take(records(database, stream, start, end))
    while open_ := [t for t in waiting if t not in finished]:
        ready = [t for t in open_ if all(p in finished for p in contents.parents[t])]
        assert ready, "a partition whose parents were never announced"
        for token in ready:
            take(records(database, stream, waiting[token], end, token))
            finished.add(token)
    return contents


def parse_fields(value: Any) -> dict[str, Any]:
    """The fields of a JSON value: the client gives it as text, or parsed."""
    return dict(json.loads(value)) if isinstance(value, str) else dict(value)
