"""A watcher beside a real schema registry, Apicurio's: Confluent's client reads what it wrote."""

from __future__ import annotations

import json
from typing import Any

import pytest
from fixtures.apicurio_readers import read_in_java
from fixtures.everything import rows, write
from fixtures.kafka import MockCluster, Record, read_records
from fixtures.registered_records import RegistryReader, show_row
from fixtures.singers import address_of, write_singers
from google.cloud.spanner_v1.database import Database

from watcher import Watcher
from watcher.sinks.queues import open_queue
from watcher.sinks.refusals import RefusedChangesError

pytest.importorskip("authlib", reason="needs the extra [registry]")
pytestmark = pytest.mark.long


KINDS = {
    "plain-avro": "avro",
    "datastream-avro": "avro",
    "debezium-avro": "avro",
    "plain-protobuf": "protobuf",
    "plain": "json",
}
"""The envelopes that have schemas, and what reads them."""
WIRE_BYTES = 5
"""A zero and the id of the schema."""


def read_rows(reader: RegistryReader, records: list[Record], envelope: str) -> list[dict[str, Any]]:
    """The rows afterwards."""
    values = reader.read_values(records, KINDS[envelope])
    return [show_row(value) for value in values]


def run_once(
    database: Database, cluster: MockCluster, address: str, table: str, prefix: str, **delivery: Any
) -> None:
    """A watcher delivers all there is. ``prefix`` keeps the subjects of a test apart."""
    watcher = Watcher(
        database=str(address_of(database)),
        tables=[table],
        consumer="to-kafka",
        start="earliest",
        delivery={
            "to": f"kafka://{cluster.address}/{prefix}.{{table}}",
            "kafka": {"schema_registry": address},
            **delivery,
        },
    )
    watcher.deliver_to(open_queue(watcher.config))
    watcher.run_once()


@pytest.mark.parametrize("envelope", list(KINDS))
def test_every_type_passes_through_a_real_registry(
    everything: Database, cluster: MockCluster, apicurio: str, envelope: str
) -> None:
    cluster.create_topic(f"{envelope}.Everything", partitions=1)
    write(everything, rows())
    run_once(everything, cluster, apicurio, "Everything", envelope, envelope=envelope)
    records = read_records(cluster, f"{envelope}.Everything")
    shown = read_rows(RegistryReader(apicurio, serialized=False), records, envelope)
    assert sorted(row["Id"] for row in shown) == list(range(len(rows())))
    for row in shown:
        assert row.get("St") == rows()[row["Id"]]["St"]


@pytest.mark.parametrize("envelope", [name for name in KINDS if name != "plain-protobuf"])
def test_apicurios_deserializers_in_java_get_every_type(
    everything: Database, cluster: MockCluster, apicurio: str, envelope: str
) -> None:
    """They read Protobuf in a wire format of their own alone: the message by name, not by index."""
    topic = f"java-{envelope}.Everything"
    cluster.create_topic(topic, partitions=1)
    write(everything, rows())
    run_once(everything, cluster, apicurio, "Everything", f"java-{envelope}", envelope=envelope)
    records = read_records(cluster, topic)
    read = read_in_java(records, KINDS[envelope], apicurio)
    assert len(read) == len(rows())
    for record, (value, again) in zip(records, read, strict=True):
        row = show_row(value)
        assert row["St"] == rows()[row["Id"]]["St"]
        written = (record.value or b"")[WIRE_BYTES:]
        assert again == written if KINDS[envelope] == "avro" else value == json.loads(written)


@pytest.mark.parametrize("envelope", [name for name in KINDS if name != "plain"])
def test_columns_that_come_and_go_pass_a_real_registrys_rule(
    singers: Database, cluster: MockCluster, apicurio: str, envelope: str
) -> None:
    prefix = f"evolved-{envelope}"
    topic = f"{prefix}.Singers"
    reader = RegistryReader(apicurio, serialized=False)
    reader.client.set_compatibility(level="FULL_TRANSITIVE")
    cluster.create_topic(topic, partitions=1)
    write_singers(singers, range(2), "name")
    run_once(singers, cluster, apicurio, "Singers", prefix, envelope=envelope)
    for statement, column, cell in [
        ("ADD COLUMN Age INT64", "Age", 40),
        ("DROP COLUMN Age", "LastName", "last"),
    ]:
        singers.update_ddl([f"ALTER TABLE Singers {statement}"]).result(30)
        with singers.batch() as batch:
            batch.update("Singers", ("SingerId", column), [(1, cell)])
        run_once(singers, cluster, apicurio, "Singers", prefix, envelope=envelope)
    read = read_rows(reader, read_records(cluster, topic), envelope)
    assert [row.get("Age") for row in read] == [None, None, 40, None]
    assert read[-1]["LastName"] == "last"
    assert len(reader.client.get_versions(f"{topic}-value")) == 2


def test_a_new_column_passes_the_default_rule_as_json_schema(
    singers: Database, cluster: MockCluster, apicurio: str
) -> None:
    reader = RegistryReader(apicurio, serialized=False)
    reader.client.set_compatibility(level="BACKWARD")
    cluster.create_topic("json.Singers", partitions=1)
    write_singers(singers, range(2), "name")
    run_once(singers, cluster, apicurio, "Singers", "json")
    singers.update_ddl(["ALTER TABLE Singers ADD COLUMN Age INT64"]).result(30)
    with singers.batch() as batch:
        batch.update("Singers", ("SingerId", "Age"), [(1, 40)])
    run_once(singers, cluster, apicurio, "Singers", "json")
    values = reader.read_values(read_records(cluster, "json.Singers"), "json")
    assert [value["values"].get("Age") for value in values] == [None, None, 40]
    assert len(reader.client.get_versions("json.Singers-value")) == 2


@pytest.mark.parametrize("envelope", ["plain-avro", "plain-protobuf", "debezium-avro"])
def test_a_real_registry_refuses_what_its_rule_forbids(
    singers: Database, cluster: MockCluster, apicurio: str, envelope: str
) -> None:
    prefix = f"refused-{envelope}"
    cluster.create_topic(f"{prefix}.Singers", partitions=1)
    client = RegistryReader(apicurio, serialized=False).client
    client.set_compatibility(level="BACKWARD")
    write_singers(singers, range(2), "name")
    run_once(singers, cluster, apicurio, "Singers", prefix, envelope=envelope)
    for statement in ("DROP COLUMN LastName", "ADD COLUMN LastName INT64"):
        singers.update_ddl([f"ALTER TABLE Singers {statement}"]).result(30)
    with singers.batch() as batch:
        batch.update("Singers", ("SingerId", "LastName"), [(1, 40)])
    with pytest.raises(RefusedChangesError, match=rf"'{prefix}.Singers-value'.*\(BACKWARD\)"):
        run_once(singers, cluster, apicurio, "Singers", prefix, envelope=envelope)
    client.set_compatibility(level="NONE")  # a subject's own NONE means the registry's rule here
    run_once(singers, cluster, apicurio, "Singers", prefix, envelope=envelope)
    read = read_rows(
        RegistryReader(apicurio, serialized=False),
        read_records(cluster, f"{prefix}.Singers"),
        envelope,
    )
    assert [row["LastName"] for row in read] == ["name", "name", 40]
