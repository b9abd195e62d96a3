"""A watcher beside a real schema registry, Apicurio's: Confluent's client reads what it wrote."""

from __future__ import annotations

from typing import Any

import pytest
from fixtures.everything import rows, write
from fixtures.kafka import MockCluster, read_records
from fixtures.registered_records import RegistryReader
from fixtures.singers import address_of, write_singers
from google.cloud.spanner_v1.database import Database

from watcher import Watcher
from watcher.runners.delivery.queues import open_queue
from watcher.runners.delivery.refusals import RefusedChangesError

pytest.importorskip("authlib", reason="needs the extra [registry]")
pytestmark = pytest.mark.long


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


@pytest.mark.parametrize("envelope", ["plain-avro", "datastream-avro", "plain"])
def test_every_type_passes_through_a_real_registry(
    everything: Database, cluster: MockCluster, apicurio: str, envelope: str
) -> None:
    cluster.create_topic(f"{envelope}.Everything", partitions=1)
    write(everything, rows())
    run_once(everything, cluster, apicurio, "Everything", envelope, envelope=envelope)
    kind = "json" if envelope == "plain" else "avro"
    records = read_records(cluster, f"{envelope}.Everything")
    read = list(RegistryReader(apicurio).read_values(records, kind))
    shown = [value.get("values") or value["payload"] for value in read]
    assert sorted(row["Id"] for row in shown) == list(range(len(rows())))
    for row in shown:
        assert row["St"] == rows()[row["Id"]]["St"]


@pytest.mark.parametrize("envelope", ["plain-avro", "datastream-avro"])
def test_columns_that_come_and_go_pass_a_real_registrys_rule(
    singers: Database, cluster: MockCluster, apicurio: str, envelope: str
) -> None:
    prefix = f"evolved-{envelope}"
    topic = f"{prefix}.Singers"
    reader = RegistryReader(apicurio)
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
    records = read_records(cluster, topic)
    read = [value.get("values") or value["payload"] for value in reader.read_values(records)]
    assert ["Age" in row for row in read] == [False, False, True, False]
    assert read[-1]["LastName"] == "last"
    assert len(reader.client.get_versions(f"{topic}-value")) == 2


def test_a_new_column_passes_the_default_rule_as_json_schema(
    singers: Database, cluster: MockCluster, apicurio: str
) -> None:
    reader = RegistryReader(apicurio)
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


def test_a_real_registry_refuses_what_its_rule_forbids(
    singers: Database, cluster: MockCluster, apicurio: str
) -> None:
    cluster.create_topic("refused.Singers", partitions=1)
    client = RegistryReader(apicurio).client
    client.set_compatibility(level="BACKWARD")
    write_singers(singers, range(2), "name")
    run_once(singers, cluster, apicurio, "Singers", "refused", envelope="plain-avro")
    for statement in ("DROP COLUMN LastName", "ADD COLUMN LastName INT64"):
        singers.update_ddl([f"ALTER TABLE Singers {statement}"]).result(30)
    with singers.batch() as batch:
        batch.update("Singers", ("SingerId", "LastName"), [(1, 40)])
    with pytest.raises(RefusedChangesError, match=r"'refused.Singers-value'.*\(BACKWARD\)"):
        run_once(singers, cluster, apicurio, "Singers", "refused", envelope="plain-avro")
    client.set_compatibility(level="NONE")  # a subject's own NONE means the registry's rule here
    run_once(singers, cluster, apicurio, "Singers", "refused", envelope="plain-avro")
    records = read_records(cluster, "refused.Singers")
    read = RegistryReader(apicurio).read_avro(records)
    assert [value["values"]["LastName"] for _, value in read] == ["name", "name", 40]
