"""How fast rows become rows of tables: ``python -m benchmarks.table_sinks --to duckdb:FILE``.

Beside the sink, in the same run, the statement that one writes first: INSERT ... ON CONFLICT for
each row, by ``executemany``. The CPU time is this process's, and that of the server's process for
this connection where it runs on this machine.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from importlib import import_module
from typing import Any

import psutil
import pyarrow as pa

from spanner_schema.model.column_types import Type, TypeCode
from watcher.captures import COMMIT_TIMESTAMP_COLUMN, SHARD_ID_COLUMN, TableRows
from watcher.model.window import Window
from watcher.settings.destinations import DuckDbDestination, PostgresDestination
from watcher.settings.watcher import WatchConfig, parse_watch_config
from watcher.sinks.queues import open_queue
from watcher.sinks.table_sink import TableSink
from watcher.spanner.results.columns import TIMESTAMP, build_schema
from watcher.tables.values import WatchedTable

DATABASE = "projects/p1/instances/i1/databases/d1"
BATCH_ROWS = 10_000
SECOND = 1_000_000
COLUMNS = (
    ("SingerId", Type(TypeCode.INT64)),
    ("FirstName", Type(TypeCode.STRING)),
    ("LastName", Type(TypeCode.STRING)),
    ("Score", Type(TypeCode.FLOAT64)),
    ("Fee", Type(TypeCode.NUMERIC)),
    ("Active", Type(TypeCode.BOOL)),
    ("Born", Type(TypeCode.TIMESTAMP)),
    ("Picture", Type(TypeCode.BYTES)),
    ("Notes", Type(TypeCode.JSON)),
)
TABLE = WatchedTable("Singers", COLUMNS, ("SingerId",), "LastModified", None, None, None)
NAMES = ", ".join(f'"{name}"' for name, _ in COLUMNS)
UPDATES = ", ".join(f'"{name}" = excluded."{name}"' for name, _ in COLUMNS)
NAIVE = "NaiveSingers"
POSTGRESQL = (
    "bigint PRIMARY KEY, text, text, double precision, numeric, boolean, timestamptz, bytea, json"
)
DUCKDB = (
    "BIGINT PRIMARY KEY, VARCHAR, VARCHAR, DOUBLE, DECIMAL(38, 9), BOOLEAN, TIMESTAMPTZ, BLOB, JSON"
)


@dataclass(frozen=True, slots=True)
class Costs:
    """What so many rows have cost."""

    rows: int
    seconds: float
    cpu_seconds: float

    def describe(self, way: str) -> dict[str, object]:
        """As JSON."""
        return {
            "way": way,
            "rows": self.rows,
            "rows per CPU second": round(self.rows / max(self.cpu_seconds, 0.01)),
            "rows per second": round(self.rows / self.seconds),
        }


def main(arguments: Sequence[str] | None = None) -> None:
    """Reads the command line, prints JSON: a line for inserts, one for updates of the same rows,
    and one for the naive way."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.table_sinks", description=__doc__)
    parser.add_argument("--to", required=True, help="as that of watch")
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--naive-rows", type=int, default=10_000)
    options = parser.parse_args(arguments)
    config = parse_watch_config(
        {"database": DATABASE, "consumer": "bench", "delivery": {"to": options.to}}
    )
    sink = open_queue(config)
    assert isinstance(sink, TableSink)
    sink.open()
    for way, commit in (("inserts", SECOND), ("updates", 2 * SECOND)):
        batches = make_batches(options.rows, commit)
        costs = measure(lambda: write(sink, batches), options.rows, find_server(sink))  # noqa: B023 (called at once)
        print_line(costs.describe(way))
    sink.close()
    print_line(measure_naive(config, options.naive_rows).describe("executemany"))


def print_line(figures: dict[str, object]) -> None:
    """A line of the output."""
    sys.stdout.write(json.dumps(figures) + "\n")


def write(sink: TableSink, batches: Sequence[TableRows]) -> None:
    """One window."""
    for rows in batches:
        assert sink.write_rows(rows)
    sink.resolved(SECOND)
    sink.flush()


def find_server(sink: TableSink) -> list[psutil.Process]:
    """The server's process of a connection; none where the database is in this process."""
    connection = getattr(sink.store, "_connection", None)
    info = getattr(connection, "info", None)
    return [psutil.Process(info.backend_pid)] if info is not None else []


def measure(work: Callable[[], None], rows: int, servers: Sequence[psutil.Process]) -> Costs:
    """What it costs here and in the server."""

    def cpu() -> float:
        times = [each.cpu_times() for each in servers]
        return time.process_time() + sum(each.user + each.system for each in times)

    began, before = time.perf_counter(), cpu()
    work()
    return Costs(rows, time.perf_counter() - began, cpu() - before)


def measure_naive(config: WatchConfig, rows: int) -> Costs:
    """The way without COPY and Arrow, in one transaction, too."""
    values = [tuple(row[name] for name, _ in COLUMNS) for row in list_rows(0, rows)]
    queue = config.delivery.queue
    if isinstance(queue, DuckDbDestination):
        connection = import_module("duckdb").connect(queue.path)
        mark, types, servers = "?", DUCKDB, []
    else:
        assert isinstance(queue, PostgresDestination)
        given = dict(queue.parameters)
        connection = import_module("psycopg").connect(queue.address, **given).cursor()
        mark, types = "%s", POSTGRESQL
        servers = [psutil.Process(connection.connection.info.backend_pid)]
    declared = zip(COLUMNS, types.replace("38, 9", "38;9").split(", "), strict=True)
    columns = ", ".join(f'"{name}" {type_}' for (name, _), type_ in declared).replace(";", ", ")
    connection.execute(f"DROP TABLE IF EXISTS {NAIVE}")
    connection.execute(f"CREATE TABLE {NAIVE} ({columns})")
    marks = ", ".join([mark] * len(COLUMNS))
    statement = (
        f"INSERT INTO {NAIVE} ({NAMES}) VALUES ({marks})"  # noqa: S608 (fixed names)
        f' ON CONFLICT ("SingerId") DO UPDATE SET {UPDATES.split(", ", 1)[1]}'
    )

    def work() -> None:
        connection.execute("BEGIN" if mark == "?" else "SELECT 1")
        connection.executemany(statement, values)
        connection.execute("COMMIT")

    costs = measure(work, rows, servers)
    connection.close()
    return costs


def list_rows(first: int, count: int) -> list[dict[str, Any]]:
    """Rows as Python's values."""
    return [
        {
            "SingerId": number,
            "FirstName": f"first name {number}",
            "LastName": f"last name {number}",
            "Score": number / 8,
            "Fee": Decimal(number) / 4,
            "Active": number % 3 == 0,
            "Born": datetime.fromtimestamp(number * 1_000, UTC),
            "Picture": number.to_bytes(8) * 4,
            "Notes": json.dumps({"number": number}),
        }
        for number in range(first, first + count)
    ]


def make_batches(rows: int, commit: int) -> list[TableRows]:
    """Rows as a poll reads them, committed at one time."""
    return [
        make_batch(first, min(BATCH_ROWS, rows - first), commit)
        for first in range(0, rows, BATCH_ROWS)
    ]


def make_batch(first: int, count: int, commit: int) -> TableRows:
    """A batch of them."""
    schema = build_schema(COLUMNS)
    batch = pa.RecordBatch.from_pylist(list_rows(first, count), schema)
    stamps = pa.array([commit] * count, pa.int64()).cast(TIMESTAMP)
    shards = pa.nulls(count, pa.int64())
    fields = [
        *schema,
        pa.field(COMMIT_TIMESTAMP_COLUMN, TIMESTAMP),
        pa.field(SHARD_ID_COLUMN, pa.int64()),
    ]
    arrays = [*batch.columns, stamps, shards]
    with_stamps = pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))
    return TableRows(TABLE, Window(0, commit), with_stamps)


if __name__ == "__main__":
    main()
