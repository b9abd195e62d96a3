"""Debezium's connector as a system under test: ``python -m benchmarks.systems.debezium RUN``.

A broker, a worker of Kafka Connect with the connector, and this process, which reads the topics.
CPU time is the worker's alone: neither the broker's nor that of who reads.
"""

from __future__ import annotations

import json
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from subprocess import Popen
from typing import Any

import numpy as np
import psutil
from confluent_kafka import Consumer

from benchmarks.debezium import build
from benchmarks.debezium.cluster import (
    NAME,
    Ports,
    set_up_connector,
    start_broker,
    start_connect,
    wait_for_broker,
)
from benchmarks.files import write_atomically
from benchmarks.load.records import CPU, DELIVERED, WRITTEN, Appender, count
from benchmarks.processes import RunError
from benchmarks.run_settings import Run

PROCESS = "debezium"
START_SECONDS_MAX = 280.0
LOOK_EVERY_SECONDS = 0.2
POLL_SECONDS = 0.05
MESSAGES_MAX = 1_000
SILENCE_SECONDS_MAX = 60.0
"""After everything was written: what has not come by then is missing."""
LAST_SECONDS = 1.0
"""How long it may still bring what it has brought already."""


@contextmanager
def end_at_exit(process: Popen[bytes]) -> Iterator[Popen[bytes]]:
    """The process is killed at the end of the block."""
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def wait_until_running(worker: Popen[bytes], port: int) -> None:
    """Until the connector's task runs. Raises RunError where it does not."""
    ends_at = time.monotonic() + START_SECONDS_MAX
    address = f"http://127.0.0.1:{port}/connectors/{NAME}/status"
    while time.monotonic() < ends_at:
        if worker.poll() is not None:
            raise RunError(f"Kafka Connect ended with exit code {worker.returncode}")
        states = read_task_states(address)
        if "FAILED" in states:
            raise RunError("Debezium's connector has failed: see the log above")
        if states == ["RUNNING"]:
            return
        time.sleep(LOOK_EVERY_SECONDS)
    raise RunError(f"Debezium's connector does not run after {START_SECONDS_MAX:g} s")


def read_task_states(address: str) -> list[str]:
    """The states of the connector's tasks; none before the worker answers."""
    try:
        with urllib.request.urlopen(address) as answer:
            return [task["state"] for task in json.load(answer)["tasks"]]
    except (urllib.error.URLError, ConnectionError):
        return []


class Reader:
    """Reads the topics of a connector, and logs every change with the moment of its arrival."""

    def __init__(self, run: Run, ports: Ports) -> None:
        self._run = run
        self._table_numbers = {f"{NAME}.{table}": number for number, table in enumerate(run.tables)}
        self._log = Appender(run.records("delivered", PROCESS), DELIVERED)
        self._consumer = Consumer(
            {
                "bootstrap.servers": ports.bootstrap,
                "group.id": PROCESS,
                "auto.offset.reset": "earliest",
                "topic.metadata.refresh.interval.ms": 500,
                "allow.auto.create.topics": "true",
                "log_level": 2,
            }
        )
        self._consumer.subscribe(list(self._table_numbers))
        self.rows = 0

    def read(self) -> int:
        """Logs what has come; how many changes."""
        messages = self._consumer.consume(MESSAGES_MAX, POLL_SECONDS)
        at = time.time_ns() // 1_000
        changes = [
            (self._table_numbers[topic], *parse_change(value))
            for message in messages
            if message.error() is None
            and (value := message.value()) is not None
            and (topic := message.topic()) is not None
        ]
        if changes:
            columns = np.array(changes, np.int64).T
            self._log.add((*columns, at), len(changes))
            self.rows += len(changes)
        return len(changes)

    def read_until_drained(self) -> None:
        """Everything that was written when ``run.drain`` comes to exist, or what comes of it."""
        latest = time.monotonic()
        while True:
            if self.read():
                latest = time.monotonic()
                continue
            if not self._run.drain.exists():
                latest = time.monotonic()
                continue
            written = count(self._run.all_records("written"), WRITTEN)
            silence = LAST_SECONDS if self.rows >= written else SILENCE_SECONDS_MAX
            if time.monotonic() - latest > silence:
                return

    def close(self) -> None:
        """Leaves the topics."""
        self._consumer.close()


def parse_change(text: bytes) -> tuple[int, int, int]:
    """Key, version and commit timestamp (microseconds) of a change event."""
    event: dict[str, Any] = json.loads(text)
    row, source = event["after"], event["source"]
    return int(row["Id"]), int(row["Version"]), int(source["ts_us"])


def log_cpu(run: Run, worker: Popen[bytes]) -> None:
    """The CPU time of the worker so far."""
    times = psutil.Process(worker.pid).cpu_times()
    micros = round((times.user + times.system) * 1_000_000)
    with Appender(run.records("cpu", PROCESS), CPU) as log:
        log.add((time.time_ns() // 1_000, micros), 1)


def main(arguments: list[str]) -> None:
    """Delivers until drained."""
    run = Run.load(arguments[0], consumes=True)
    command, ports = build.command(), Ports.choose()
    folder = run.folder / PROCESS
    folder.mkdir()
    connector = set_up_connector(run.database, run.emulator, run.stream_of(0), run.since, ports)
    began = time.time_ns() // 1_000
    with ExitStack() as stack:
        broker = stack.enter_context(end_at_exit(start_broker(command, folder, ports)))
        wait_for_broker(broker, ports, START_SECONDS_MAX)
        worker = stack.enter_context(end_at_exit(start_connect(command, folder, ports, connector)))
        log_cpu(run, worker)
        reader = Reader(run, ports)
        stack.callback(reader.close)
        wait_until_running(worker, ports.rest)
        log_cpu(run, worker)
        write_atomically(run.ready(PROCESS), str(began))
        reader.read_until_drained()
        log_cpu(run, worker)


if __name__ == "__main__":
    main(sys.argv[1:])
