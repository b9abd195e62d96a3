"""examples/changes_to_kafka.py: every change of a change stream arrives in a topic of Kafka."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyspark
import pytest
from fixtures.kafka import Record, load_client, read_records
from fixtures.singers import address_of
from fixtures.versions import TABLES, Version, Writes
from google.cloud.spanner_v1.database import Database

from benchmarks.compiled import MissingToolsError
from benchmarks.debezium import build
from benchmarks.debezium.cluster import Ports, start_broker, wait_for_broker
from benchmarks.processes import RunError
from watcher.model.change import Operation
from watcher.process.spark.java import ensure_java

pytestmark = [
    pytest.mark.spark,
    pytest.mark.timeout(900),
    pytest.mark.xdist_group("spark"),
]

ROOT = Path(__file__).resolve().parents[2]
STREAM = "CREATE CHANGE STREAM S FOR ALL OPTIONS (value_capture_type = 'NEW_ROW_AND_OLD_VALUES')"
SECONDS_MAX, BROKER_SECONDS_MAX = 400, 60
PARTITIONS = 4
CONNECTORS = {"4.3.0": "4.2.0"}
"""Of a Spark whose own connector is not in Maven; the one before works with it."""
OPERATIONS = {"c": Operation.INSERT, "u": Operation.UPDATE, "d": Operation.DELETE}


@dataclass(frozen=True)
class Broker:
    """A broker of Kafka on this machine."""

    address: str


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    """The broker of ``bench run debezium``: the Java client does not know the mock cluster's
    topics."""
    load_client()
    ensure_java()
    try:
        command = build.command()
    except (MissingToolsError, RunError) as error:
        pytest.skip(f"a Kafka broker cannot be had: {error}")
    folder, ports = tmp_path / "broker", Ports.choose()
    folder.mkdir()
    process = start_broker(command, folder, ports)
    try:
        wait_for_broker(process, ports, BROKER_SECONDS_MAX)
        yield Broker(ports.bootstrap)
    finally:
        process.kill()
        process.wait()


def create_topics(broker: Broker, *names: str) -> None:
    """Topics with several partitions."""
    admin = importlib.import_module("confluent_kafka.admin")
    client = admin.AdminClient({"bootstrap.servers": broker.address})
    made = client.create_topics([admin.NewTopic(name, PARTITIONS) for name in names])
    for each in made.values():
        each.result(BROKER_SECONDS_MAX)


def run_example(database: Database, brokers: str, folder: Path) -> None:
    """Runs the example until now."""
    ensure_java()
    version = CONNECTORS.get(pyspark.__version__, pyspark.__version__)
    package = f"org.apache.spark:spark-sql-kafka-0-10_2.13:{version}"
    address = address_of(database)
    done = subprocess.run(
        [
            str(Path(pyspark.__file__).parent / "bin" / "spark-submit"),
            *("--master", "local[2]", "--packages", package),
            *("--conf", "spark.ui.enabled=false"),
            str(ROOT / "examples" / "changes_to_kafka.py"),
            *(address.project, address.instance, address.database),
            *(brokers, str(folder / "checkpoint"), "--until-now"),
        ],
        env=os.environ | {"PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
    )
    if "unresolved dependency" in done.stderr:
        pytest.skip(f"{package} cannot be had: no Maven repository answers")
    assert done.returncode == 0, done.stderr[-4000:]


def decode_key(record: Record) -> tuple[str, int | str]:
    """The row that a message is about."""
    assert record.key is not None
    return record.topic.removeprefix("spanner."), json.loads(record.key)["Id"]


def decode_message(record: Record) -> tuple[tuple[str, int | str], Version]:
    """The row that a message is about, and what it says."""
    assert record.value is not None
    row, event = decode_key(record), json.loads(record.value)
    before, after, source = event["before"], event["after"], event["source"]
    assert (source["table"], (after or before)["Id"]) == row
    version = Version(
        int(source["ts_us"]),
        OPERATIONS[event["op"]],
        after["Version"] if after else None,
        before["Version"] if before else None,
    )
    return row, version


@pytest.mark.ddl(*TABLES, STREAM)
def test_every_change_arrives_once_under_its_key(
    database: Database, broker: Broker, tmp_path: Path
) -> None:
    create_topics(broker, "spanner.T", "spanner.U")
    writes = Writes(database, 1)
    run_example(database, broker.address, tmp_path)  # the empty tables, and from there on
    writes.write(60)
    run_example(database, broker.address, tmp_path)
    records = read_records(broker, "spanner.T", "spanner.U")
    events = [record for record in records if record.value is not None]
    arrived = Counter(decode_message(record) for record in events)
    expected = Counter((row, each) for row, versions in writes.truth.items() for each in versions)
    assert arrived == expected
    assert len({record.headers["change-id"] for record in events}) == len(events)
    deleted = Counter(row for row, each in expected.elements() if each.operation == "DELETE")
    tombstones = [record for record in records if record.value is None]
    assert Counter(decode_key(record) for record in tombstones) == deleted
    partitions: dict[tuple[str, bytes | None], set[int]] = {}
    for record in records:
        partitions.setdefault((record.topic, record.key), set()).add(record.partition)
    assert all(len(each) == 1 for each in partitions.values())
