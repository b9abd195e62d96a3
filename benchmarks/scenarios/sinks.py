"""How fast changes get from an embedded server into a sink, with a watcher as it is configured.

The server and the brokers (librdkafka's mock cluster) are processes of their own: CPU time is the
watcher's, with its connecting and its Kafka client. Every message is counted.
"""

from __future__ import annotations

import contextlib
import os
import statistics
import time
from dataclasses import dataclass
from importlib import import_module
from typing import Annotated, Literal

from google.cloud.spanner_v1.database import Database
from pydantic import BaseModel, ConfigDict, Field

from benchmarks.experiment import restore_environment
from benchmarks.kafka_sink import run_brokers
from benchmarks.processes import RunError
from benchmarks.scenario import Bench, Figure, Scenario, make_bar_chart
from benchmarks.singers import ROWS_A_COMMIT, commit, create_database
from emulator.process import spawn
from watcher import Watcher
from watcher.model.change import Change
from watcher.process.extras import MissingExtraError, require_extras
from watcher.sinks.queues import open_queue
from watcher.spanner.address import EMULATOR_HOST

SinkName = Literal["callback", "kafka", "kafka-transactions"]
COUNTED_ROWS = 100_000
"""CPU time is given for so many rows."""
ANSWER_SECONDS_MAX = 30.0


class SinksSettings(BaseModel):
    """``rows`` of five columns are in the index; each run delivers all of them with a new consumer,
    in windows of ``max_rows``. ``callback`` gets ``Change`` objects and has no envelope. The median
    of ``runs`` counts."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    sinks: tuple[SinkName, ...] = ("callback", "kafka", "kafka-transactions")
    envelopes: tuple[str, ...] = ("plain", "debezium")
    rows: Annotated[int, Field(ge=1_000)] = 200_000
    max_rows: Annotated[int, Field(ge=1)] = 100_000
    runs: Annotated[int, Field(ge=1)] = 3


@dataclass(frozen=True, slots=True)
class Delivery:
    """What a run took, in seconds."""

    seconds: float
    cpu_seconds: float


def run(settings: SinksSettings, bench: Bench) -> None:
    """A row of the table for each sink and envelope."""
    with contextlib.ExitStack() as stack:
        stack.callback(restore_environment, os.environ.get(EMULATOR_HOST))
        server = stack.enter_context(spawn())
        database = create_database(server.address)
        for first in range(0, settings.rows, ROWS_A_COMMIT):
            commit(database, first, min(ROWS_A_COMMIT, settings.rows - first))
        for sink in settings.sinks:
            try:
                measure_sink(sink, settings, database, bench)
            except MissingExtraError as error:
                bench.outcome.skipped.append(f"{sink}: {error}")
    bench.outcome.charts.append(
        make_bar_chart("rows a second by sink", "sink", "rows/s", bench.outcome.figures)
    )


def measure_sink(sink: SinkName, settings: SinksSettings, database: Database, bench: Bench) -> None:
    """Measures a sink with each envelope."""
    if sink == "callback":
        deliveries = [deliver_to_callback(database, settings) for _ in range(settings.runs)]
        bench.add(describe("callback", deliveries, settings.rows))
        return
    require_extras("kafka")
    for envelope in settings.envelopes:
        with run_brokers() as address:
            deliveries = [
                deliver_to_kafka(database, settings, address, envelope, sink, number)
                for number in range(settings.runs)
            ]
        bench.add(describe(f"{sink}, {envelope}", deliveries, settings.rows))


def describe(name: str, deliveries: list[Delivery], rows: int) -> Figure:
    """A row of the table."""
    seconds = statistics.median(each.seconds for each in deliveries)
    cpu = statistics.median(each.cpu_seconds for each in deliveries)
    return {
        "sink": name,
        "rows": rows,
        "seconds": round(seconds, 2),
        "rows/s": round(rows / seconds),
        "cpu_s": round(cpu, 2),
        "cpu_s/100k": round(cpu * COUNTED_ROWS / rows, 2),
        "rows/cpu_s": round(rows / cpu),
    }


def make_watcher(
    database: Database, settings: SinksSettings, consumer: str, **delivery: object
) -> Watcher:
    """A watcher of everything in the index."""
    return Watcher(
        database=f"spanner://{database.name}",
        tables=["Singers"],
        consumer=consumer,
        start="earliest",
        max_rows=settings.max_rows,
        delivery=delivery,
    )


def measure_run(watcher: Watcher, rows: int) -> Delivery:
    """Delivers everything. Raises RunError unless that is every row."""
    began, used = time.perf_counter(), time.process_time()
    count = watcher.run_once()
    delivery = Delivery(time.perf_counter() - began, time.process_time() - used)
    if count != rows:
        raise RunError(f"delivered {count:,} of {rows:,} rows")
    return delivery


def deliver_to_callback(database: Database, settings: SinksSettings) -> Delivery:
    """A run whose changes go to a function that does nothing."""
    watcher = make_watcher(database, settings, f"callback-{time.time_ns()}")
    watcher.on_change(ignore_change)
    return measure_run(watcher, settings.rows)


def ignore_change(_: Change) -> None:
    """A callback that does nothing."""


def deliver_to_kafka(
    database: Database,
    settings: SinksSettings,
    address: str,
    envelope: str,
    sink: SinkName,
    number: int,
) -> Delivery:
    """A run whose changes go to a topic of its own. Raises RunError unless the topic has them."""
    topic = f"{envelope}.{number}"
    delivery = {
        "to": f"kafka://{address}/{topic}",
        "envelope": envelope,
        "kafka": {"transactional": sink == "kafka-transactions"},
    }
    watcher = make_watcher(database, settings, f"kafka-{time.time_ns()}", **delivery)
    watcher.deliver_to(open_queue(watcher.config))
    took = measure_run(watcher, settings.rows)
    messages = count_messages(address, topic)
    # A transaction ends with a record of the broker's own in each partition.
    if messages < settings.rows or (sink == "kafka" and messages != settings.rows):
        raise RunError(f"topic {topic} has {messages:,} messages of {settings.rows:,}")
    return took


def count_messages(address: str, topic: str) -> int:
    """How many records a topic has got."""
    client = import_module("confluent_kafka")
    consumer = client.Consumer({"bootstrap.servers": address, "group.id": "count"})
    try:
        partitions = (
            consumer.list_topics(topic, timeout=ANSWER_SECONDS_MAX).topics[topic].partitions
        )
        total = 0
        for partition in partitions:
            whole = client.TopicPartition(topic, partition)
            # The mock brokers soon drop messages, but count on.
            _, high = consumer.get_watermark_offsets(whole, timeout=ANSWER_SECONDS_MAX)
            total += high
        return total
    finally:
        consumer.close()


SCENARIO = Scenario(
    name="sinks",
    summary="from an embedded server into callbacks and Kafka (mock brokers): rows a second, CPU",
    settings=SinksSettings,
    keys=("sink",),
    run=run,
    short=("rows=20000", "runs=1"),
    own_server=True,
)
