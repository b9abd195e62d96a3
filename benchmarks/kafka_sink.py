"""How fast rows become acknowledged messages of Kafka: ``python -m benchmarks.kafka_sink``.

The brokers are librdkafka's mock cluster, in a process of its own: what is measured is this side.
Only this process's CPU time is counted.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from multiprocessing.connection import Connection

import pyarrow as pa

from spanner_schema.model.column_types import Type, TypeCode
from watcher.captures import COMMIT_TIMESTAMP_COLUMN, SHARD_ID_COLUMN, TableRows
from watcher.envelopes import ENVELOPES, make_envelope
from watcher.model.window import Window
from watcher.process.extras import require_extras
from watcher.settings.destinations import KafkaDestination
from watcher.sinks.kafka import KafkaSink
from watcher.sinks.retries import DeliveryPolicy, RetryingSink
from watcher.sinks.whole_batches import choose_each
from watcher.spanner.results.columns import TIMESTAMP
from watcher.tables.values import WatchedTable

BATCH_ROWS = 10_000
WINDOW_ROWS = 50_000
SECOND = 1_000_000
TABLE = WatchedTable(
    "Singers",
    (
        ("SingerId", Type(TypeCode.INT64)),
        ("FirstName", Type(TypeCode.STRING)),
        ("LastName", Type(TypeCode.STRING)),
        ("Score", Type(TypeCode.FLOAT64)),
    ),
    ("SingerId",),
    "LastModified",
    "ShardId",
    None,
    None,
)


def main() -> None:
    """Reads the command line, prints JSON: changes and CPU seconds, for each envelope."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.kafka_sink", description=__doc__)
    parser.add_argument("--changes", type=int, default=200_000)
    parser.add_argument("--envelopes", default="plain,debezium")
    parser.add_argument("--transactional", action="store_true")
    options = parser.parse_args()
    require_extras("kafka")
    with run_brokers() as address:
        for name in options.envelopes.split(","):
            figures = measure(address, name, options.changes, options.transactional)
            sys.stdout.write(json.dumps({"envelope": name} | figures) + "\n")


@contextmanager
def run_brokers() -> Iterator[str]:
    """The address of brokers in another process."""
    ours, theirs = multiprocessing.Pipe()
    context = multiprocessing.get_context("spawn")
    process = context.Process(target=serve_brokers, args=(theirs,))
    process.start()
    try:
        yield str(ours.recv())
    finally:
        ours.send(None)
        process.join(30)


def serve_brokers(connection: Connection) -> None:
    """Three brokers, until something is received."""
    client = import_module("confluent_kafka")
    producer = client.Producer(
        {"test.mock.num.brokers": 3, "bootstrap.servers": "mock:1", "log_level": 4}
    )
    brokers = producer.list_topics(timeout=30).brokers.values()
    connection.send(",".join(f"{broker.host}:{broker.port}" for broker in brokers))
    connection.recv()


def measure(address: str, name: str, changes: int, transactional: bool) -> dict[str, object]:
    """Writes so many changes, window by window, each flushed as before a position is saved."""
    if name not in ENVELOPES:
        raise SystemExit(f"unknown envelope '{name}': use {', '.join(ENVELOPES)}")
    queue = KafkaDestination(tuple(address.split(",")), f"{name}.{{table}}")
    identity = f"bench-{name}" if transactional else None
    kafka = KafkaSink(queue, make_envelope(name, {}), {}, identity)
    retrying = RetryingSink(kafka, DeliveryPolicy())
    sink = choose_each(retrying, kafka, "projects/p1/instances/i1/databases/d1")
    batches = [make_rows(first) for first in range(0, changes, BATCH_ROWS)]
    sink.write(make_rows(0, 1))
    sink.flush()  # the topic is there
    began, cpu = time.perf_counter(), time.process_time()
    for number, rows in enumerate(batches, start=1):
        sink.write(rows)
        if number * BATCH_ROWS % WINDOW_ROWS == 0:
            sink.flush()
    sink.flush()
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    count = len(batches) * BATCH_ROWS
    return {
        "changes": count,
        "changes per second": round(count / seconds),
        "changes per CPU second": round(count / cpu),
        "CPU seconds per 100,000 changes": round(cpu * 100_000 / count, 2),
    }


def make_rows(first: int, count: int = BATCH_ROWS) -> TableRows:
    """Rows as a poll reads them."""
    numbers = range(first, first + count)
    columns: dict[str, pa.Array] = {
        "SingerId": pa.array(numbers, pa.int64()),
        "FirstName": pa.array([f"first name {number}" for number in numbers]),
        "LastName": pa.array([f"last name {number}" for number in numbers]),
        "Score": pa.array([number / 8 for number in numbers], pa.float64()),
        COMMIT_TIMESTAMP_COLUMN: pa.array([SECOND + n for n in numbers], pa.int64()).cast(
            TIMESTAMP
        ),
        SHARD_ID_COLUMN: pa.array([number % 8 for number in numbers], pa.int64()),
    }
    window = Window(SECOND, SECOND + first + count)
    return TableRows(TABLE, window, pa.RecordBatch.from_pydict(columns))


if __name__ == "__main__":
    main()
