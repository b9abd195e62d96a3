"""A broker of Kafka and a worker of Kafka Connect on this machine, as files of settings and
processes."""

from __future__ import annotations

import base64
import socket
import subprocess
import time
import uuid
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path
from types import MappingProxyType

from benchmarks.processes import RunError
from emulator.ports import find_port
from watcher.spanner.address import DatabaseAddress

STORAGE_TOOL = "kafka.tools.StorageTool"
BROKER = "kafka.Kafka"
CONNECT = "org.apache.kafka.connect.cli.ConnectStandalone"
DISTRIBUTED = "org.apache.kafka.connect.cli.ConnectDistributed"
FORMAT_SECONDS_MAX = 120.0
LOOK_EVERY_SECONDS = 0.1
NAME = "spanner"
"""The connector's; topics are ``NAME.table``."""


@dataclass(frozen=True, slots=True)
class Ports:
    """Free ports of this machine."""

    broker: int
    controller: int
    rest: int

    @classmethod
    def choose(cls) -> Ports:
        """Three that are free now."""
        numbers: dict[int, None] = {}
        while len(numbers) < len(fields(cls)):
            numbers[find_port()] = None
        return cls(*numbers)

    @property
    def bootstrap(self) -> str:
        """The broker's address."""
        return f"127.0.0.1:{self.broker}"


def write_properties(path: Path, values: Mapping[str, object]) -> Path:
    """A file of Java properties."""
    path.write_text("".join(f"{name}={value}\n" for name, value in values.items()))
    return path


def set_up_broker(folder: Path, ports: Ports) -> dict[str, object]:
    """The settings of a broker that is its own controller."""
    return {
        "process.roles": "broker,controller",
        "node.id": 1,
        "controller.quorum.voters": f"1@127.0.0.1:{ports.controller}",
        "listeners": f"PLAINTEXT://{ports.bootstrap},CONTROLLER://127.0.0.1:{ports.controller}",
        "advertised.listeners": f"PLAINTEXT://{ports.bootstrap}",
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "log.dirs": folder / "data",
        "offsets.topic.replication.factor": 1,
        "transaction.state.log.replication.factor": 1,
        "transaction.state.log.min.isr": 1,
        "group.initial.rebalance.delay.ms": 0,
        "num.partitions": 1,
    }


def set_up_worker(folder: Path, ports: Ports) -> dict[str, object]:
    """The settings of a worker: JSON without schemas."""
    converter = "org.apache.kafka.connect.json.JsonConverter"
    return {
        "bootstrap.servers": ports.bootstrap,
        "key.converter": converter,
        "value.converter": converter,
        "key.converter.schemas.enable": "false",
        "value.converter.schemas.enable": "false",
        "offset.storage.file.filename": folder / "offsets",
        "offset.flush.interval.ms": 1_000,
        "plugin.discovery": "service_load",
        "listeners": f"http://127.0.0.1:{ports.rest}",
    }


def set_up_connector(
    database: str, emulator: str | None, stream: str, since: str, ports: Ports
) -> dict[str, object]:
    """The settings of the connector: its defaults, one task, from a timestamp on."""
    address = DatabaseAddress.parse(database)
    values: dict[str, object] = {
        "name": NAME,
        "connector.class": "io.debezium.connector.spanner.SpannerConnector",
        "tasks.max": 1,
        "gcp.spanner.project.id": address.project,
        "gcp.spanner.instance.id": address.instance,
        "gcp.spanner.database.id": address.database,
        "gcp.spanner.change.stream": stream,
        "gcp.spanner.start.time": since,
        "connector.spanner.sync.kafka.bootstrap.servers": ports.bootstrap,
        "heartbeat.interval.ms": 1_000,
    }
    if emulator is not None:
        values["gcp.spanner.emulator.host"] = f"http://{emulator}"
    return values


def start_broker(
    command: list[str],
    folder: Path,
    ports: Ports,
    *,
    own_session: bool = False,
    more: Mapping[str, object] = MappingProxyType({}),
) -> subprocess.Popen[bytes]:
    """Formats the broker's storage, and starts it, in a session of its own on request; ``more`` are
    settings that replace those of ``set_up_broker``. Raises CalledProcessError. Kafka Connect gives
    up where a broker does not answer for a minute: see ``wait_for_broker``."""
    values = {**set_up_broker(folder, ports), **more}
    settings = write_properties(folder / "server.properties", values)
    cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=").decode().replace("-", "A")
    subprocess.run(
        [*command, STORAGE_TOOL, "format", "-t", cluster, "-c", str(settings)],
        check=True,
        timeout=FORMAT_SECONDS_MAX,
    )
    return subprocess.Popen([*command, BROKER, str(settings)], start_new_session=own_session)


def wait_for_broker(broker: subprocess.Popen[bytes] | None, ports: Ports, seconds: float) -> None:
    """Until the broker takes connections; None is one that another process has started. Raises
    RunError where it does not."""
    ends_at = time.monotonic() + seconds
    while time.monotonic() < ends_at and (broker is None or broker.poll() is None):
        with suppress(OSError), socket.create_connection(("127.0.0.1", ports.broker), seconds):
            return
        time.sleep(LOOK_EVERY_SECONDS)
    raise RunError(f"the Kafka broker does not answer after {seconds:g} s")


def start_connect(
    command: list[str], folder: Path, ports: Ports, connector: Mapping[str, object]
) -> subprocess.Popen[bytes]:
    """Starts a worker with one connector."""
    worker = write_properties(folder / "worker.properties", set_up_worker(folder, ports))
    settings = write_properties(folder / "connector.properties", connector)
    return subprocess.Popen([*command, CONNECT, str(worker), str(settings)])


def set_up_distributed_worker(ports: Ports) -> dict[str, object]:
    """The settings of a worker that keeps connectors, offsets and states in the broker, and takes
    up the work of one that was killed without a delay."""
    values = set_up_worker(Path(), ports)
    del values["offset.storage.file.filename"]
    for kind in ("config", "offset", "status"):
        values |= {
            f"{kind}.storage.topic": f"connect-{kind}",
            f"{kind}.storage.replication.factor": 1,
        }
    return values | {
        "group.id": "connect",
        "offset.storage.partitions": 1,
        "status.storage.partitions": 1,
        "scheduled.rebalance.max.delay.ms": 0,
        "session.timeout.ms": 6_000,
        "heartbeat.interval.ms": 2_000,
    }


def start_distributed_connect(
    command: list[str], folder: Path, ports: Ports
) -> subprocess.Popen[bytes]:
    """Starts a worker without connectors of its own: they are given to it by HTTP."""
    worker = write_properties(folder / "worker.properties", set_up_distributed_worker(ports))
    return subprocess.Popen([*command, DISTRIBUTED, str(worker)])
