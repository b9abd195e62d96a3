"""Debezium's connector as a command that prints its events:
``python -m benchmarks.debezium.command``.

A Kafka broker, which lives on when this process is killed, as a broker does; a worker of Kafka
Connect in distributed mode, whose offsets are in the broker; and this process, which reads the
topics, prints, and keeps in a file how far it has printed.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import BinaryIO

from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from benchmarks.compiled import MissingToolsError
from benchmarks.debezium import build
from benchmarks.debezium.cluster import (
    NAME,
    Ports,
    set_up_connector,
    start_broker,
    start_distributed_connect,
    wait_for_broker,
)
from benchmarks.files import write_atomically
from benchmarks.processes import RunError
from conformance.system import PROCESSES

START_SECONDS_MAX = 170.0
STOP_SECONDS_MAX = 30.0
HTTP_SECONDS_MAX = 20.0
POLL_SECONDS = 0.05
MESSAGES_MAX = 1_000
LOOK_EVERY_SECONDS = 3.0
"""So often a failed task is looked for, and started again, as an operator does."""
LAST_SECONDS = 2.0
"""After the worker has ended: topics without a message for so long are read to their ends."""


class Cluster:
    """The broker of a run and the worker of this start."""

    def __init__(self, command: list[str], state: Path) -> None:
        self._command = command
        self._state = state
        self._worker: subprocess.Popen[bytes] | None = None
        self.ports = self._find_broker()

    def _find_broker(self) -> Ports:
        """That of a start before, or a new one."""
        pid = self._state / PROCESSES / "broker"
        known = self._state / "ports.json"
        if pid.exists():
            ports = Ports(**json.loads(known.read_text()))
            wait_for_broker(None, ports, START_SECONDS_MAX)
            return ports
        ports = Ports.choose()
        folder = self._state / f"broker-{ports.broker}"
        folder.mkdir()
        write_atomically(known, json.dumps(asdict(ports)))
        broker = start_broker(self._command, folder, ports, own_session=True)
        write_atomically(pid, str(broker.pid))
        wait_for_broker(broker, ports, START_SECONDS_MAX)
        return ports

    def start_worker(self, connector: dict[str, object]) -> None:
        """Starts the worker, and gives it the connector. Raises RunError."""
        self._worker = start_distributed_connect(self._command, self._state, self.ports)
        ends = time.monotonic() + START_SECONDS_MAX
        settings = {name: str(value) for name, value in connector.items()}
        while time.monotonic() < ends:
            if self._worker.poll() is not None:
                raise RunError(f"Kafka Connect ended with code {self._worker.returncode}")
            if self._ask("PUT", f"/connectors/{NAME}/config", settings) is not None:
                return
            time.sleep(0.5)
        raise RunError(f"Kafka Connect takes no connector after {START_SECONDS_MAX:g} s")

    @property
    def ended(self) -> bool:
        """Whether the worker has ended."""
        return self._worker is not None and self._worker.poll() is not None

    def restart_failed_tasks(self) -> None:
        """Starts the connector's failed tasks again, and says so in the log."""
        status = self._ask("GET", f"/connectors/{NAME}/status")
        failed = [task for task in (status or {}).get("tasks", ()) if task["state"] == "FAILED"]
        if failed:
            print(f"a task has FAILED and is started again: {failed}", file=sys.stderr, flush=True)
            self._ask("POST", f"/connectors/{NAME}/restart?includeTasks=true&onlyFailed=true", {})

    def stop(self) -> None:
        """Ends the worker as an operator does, by SIGTERM."""
        if self._worker is None:
            return
        self._worker.terminate()
        try:
            self._worker.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self._worker.kill()
            self._worker.wait()

    def _ask(
        self, method: str, path: str, body: dict[str, str] | None = None
    ) -> dict[str, list[dict[str, str]]] | None:
        """The answer of the worker; None where it has none yet."""
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.ports.rest}{path}",
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
            method=method,
        )
        try:
            with urllib.request.urlopen(request, timeout=HTTP_SECONDS_MAX) as answer:
                text = answer.read()
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            return None
        answered: dict[str, list[dict[str, str]]] = json.loads(text) if text else {}
        return answered


class Topics:
    """The topics of a connector, read from where the last start had printed them."""

    def __init__(self, ports: Ports, tables: Sequence[str], state: Path, output: BinaryIO) -> None:
        self._file = state / "printed.json"
        self._output = output
        topics = [f"{NAME}.{table}" for table in tables]
        create_topics(ports, topics)
        known = json.loads(self._file.read_text()) if self._file.exists() else {}
        self._next: dict[str, int] = dict.fromkeys(topics, 0) | known
        self._consumer = Consumer(
            {
                "bootstrap.servers": ports.bootstrap,
                "group.id": "conformance",
                "enable.auto.commit": "false",
                "auto.offset.reset": "error",
                "log_level": 2,
            }
        )
        self._consumer.assign(
            [TopicPartition(topic, 0, offset) for topic, offset in self._next.items()]
        )

    def print_new(self) -> int:
        """Prints the messages that have come, then keeps how far; how many they were."""
        printed = 0
        for message in self._consumer.consume(MESSAGES_MAX, POLL_SECONDS):
            error, topic, offset = message.error(), message.topic(), message.offset()
            if error is not None or topic is None or offset is None:
                print(f"Kafka: {error}", file=sys.stderr, flush=True)
                continue
            self._output.write((message.value() or b"null") + b"\n")
            self._next[topic] = offset + 1
            printed += 1
        if printed:
            self._output.flush()
            write_atomically(self._file, json.dumps(self._next))
        return printed

    def close(self) -> None:
        """Closes the connection."""
        self._consumer.close()


def create_topics(ports: Ports, topics: Sequence[str]) -> None:
    """A topic with one partition for each table, where there is none yet."""
    admin = AdminClient({"bootstrap.servers": ports.bootstrap, "log_level": 2})
    there = admin.list_topics(timeout=START_SECONDS_MAX).topics
    missing = [NewTopic(topic, 1, 1) for topic in topics if topic not in there]
    for created in admin.create_topics(missing).values() if missing else ():
        created.result(START_SECONDS_MAX)


def take_over_output() -> BinaryIO:
    """The standard output for the events alone: what the Java processes print goes to the log."""
    output = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return output


def run(options: argparse.Namespace, output: BinaryIO, stop: threading.Event) -> None:
    """Prints events until SIGTERM. Raises MissingToolsError and RunError."""
    state = Path(options.state)
    (state / PROCESSES).mkdir(parents=True, exist_ok=True)
    cluster = Cluster(build.command(), state)
    topics = Topics(cluster.ports, options.tables.split(","), state, output)
    emulator = os.environ.get("SPANNER_EMULATOR_HOST")
    cluster.start_worker(
        set_up_connector(options.database, emulator, options.stream, options.start, cluster.ports)
    )
    looked = time.monotonic()
    while not stop.is_set():
        topics.print_new()
        if cluster.ended:
            raise RunError("Kafka Connect has ended")
        if time.monotonic() - looked > LOOK_EVERY_SECONDS:
            cluster.restart_failed_tasks()
            looked = time.monotonic()
    cluster.stop()
    latest = time.monotonic()
    while time.monotonic() - latest < LAST_SECONDS:
        if topics.print_new():
            latest = time.monotonic()
    topics.close()


def check() -> int:
    """Fetches everything where needed; the exit code."""
    try:
        build.command()
    except (MissingToolsError, RunError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def main() -> int:
    """Reads the command line; the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.debezium.command", description=__doc__
    )
    parser.add_argument("--check", action="store_true", help="fetch what it needs, and end")
    for name in ("database", "stream", "start", "state", "tables"):
        parser.add_argument(f"--{name}", required="--check" not in sys.argv)
    options = parser.parse_args()
    if options.check:
        return check()
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    try:
        run(options, take_over_output(), stop)
    except (MissingToolsError, RunError, KafkaException) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
