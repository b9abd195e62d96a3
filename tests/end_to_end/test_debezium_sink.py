"""Debezium's own sink makes the tables of Spanner again, from the events of ``debezium`` and of
``debezium-avro``, which Kafka Connect's converters read."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from fixtures.debezium_sink import write_tables
from fixtures.everything import TABLE, rows, write
from fixtures.kafka import MockCluster, Record, read_records
from fixtures.postgres_databases import CreatePostgres
from fixtures.postgres_databases import write as write_sql
from fixtures.server import CreateDatabase
from fixtures.singers import address_of
from fixtures.table_targets import PostgresTarget
from google.cloud.spanner_v1 import KeySet
from google.cloud.spanner_v1.database import Database

from spanner_schema.model.schema import Dialect
from watcher import Watcher
from watcher.sinks.queues import open_queue

AS_TEXT: dict[str, Callable[[str], Any]] = {
    "Nu": Decimal,
    "Da": date.fromisoformat,
    "Ti": lambda text: datetime.fromisoformat(text).astimezone(UTC),
    "Js": json.loads,
    "Uu": str,
}
"""What stands in a text there, and how it is read; a UUID is one there, too."""
NOT_THERE = "Bys"
"""The sink fails at an array of bytes: its driver refuses ``byte[] nested inside Object[]``."""


def read_cell(name: str, value: Any, envelope: str) -> Any:
    """A value of the target, or of the row that was written, as it compares. Kafka Connect's
    converter of JSON reads NaN and infinity as 0, also from Debezium's own connectors; that of Avro
    does not."""
    if isinstance(value, list):
        return [read_cell(name, each, envelope) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return 0.0 if envelope == "debezium" else str(value)
    if value is None or name[:2] not in AS_TEXT:
        return value
    is_text = isinstance(value, str) or name.startswith("Uu")
    return AS_TEXT[name[:2]](str(value)) if is_text else value


def read_row(row: dict[str, Any], envelope: str) -> dict[str, Any]:
    return {
        name: read_cell(name, cell, envelope) for name, cell in row.items() if name != NOT_THERE
    }


@pytest.fixture
def target(postgres_target: PostgresTarget) -> Iterator[PostgresTarget]:
    """An empty schema, which is that of the sink's connection; it writes to a table of the name in
    another schema, if there is one."""
    postgres_target.make_schema()
    yield postgres_target
    postgres_target.query(f'DROP SCHEMA "{postgres_target.schema}" CASCADE')


def deliver(
    database: Database, cluster: MockCluster, start: str, table: str, registry: str | None = None
) -> list[Record]:
    """The records of a table since ``start``; in Avro with a ``registry``."""
    cluster.create_topic(table, partitions=1)
    watcher = Watcher(
        database=str(address_of(database)),
        capture="change-stream",
        stream={"name": "s"},
        table={"Everything": {"exclude_columns": [NOT_THERE]}} if table == "Everything" else {},
        consumer="to-kafka",
        start=start,
        delivery={
            "to": f"kafka://{cluster.address}/{{table}}",
            **(
                {"envelope": "debezium", "envelope_options": {"with_schema": True}}
                if registry is None
                else {"envelope": "debezium-avro", "kafka": {"schema_registry": registry}}
            ),
        },
    )
    watcher.deliver_to(open_queue(watcher.config))
    watcher.run_once()
    return read_records(cluster, table)


STREAM = "CREATE CHANGE STREAM s FOR ALL OPTIONS (value_capture_type = 'NEW_ROW_AND_OLD_VALUES')"


@pytest.mark.parametrize("envelope", ["debezium", "debezium-avro"])
def test_a_table_of_every_type_is_the_same_there(
    request: pytest.FixtureRequest,
    create_database: CreateDatabase,
    cluster: MockCluster,
    target: PostgresTarget,
    envelope: str,
) -> None:
    registry = request.getfixturevalue("apicurio") if envelope == "debezium-avro" else None
    database = create_database(TABLE, STREAM)
    start = datetime.now(UTC).isoformat()
    written = {row["Id"]: row for row in rows(Dialect.POSTGRESQL)}
    write(database, list(written.values()))
    for number in (3, 7, 11):
        written[number] = written[number + 1] | {"Id": number}
    write(database, [written[number] for number in (3, 7, 11)])
    with database.batch() as batch:
        batch.delete("Everything", KeySet(keys=[[2], [4]]))
    del written[2], written[4]
    records = deliver(database, cluster, start, "Everything", registry)
    assert [record.value for record in records if record.value is None] == [None, None]
    write_tables(target, records, registry)
    found = {row["Id"]: read_row(row, envelope) for row in target.read("Everything")}
    assert found == {number: read_row(row, envelope) for number, row in written.items()}


ODD = """CREATE TABLE "Odd_Table" (
  "select" varchar, "B c" timestamptz, "A.b" bigint NOT NULL, "x$y" varchar NOT NULL,
  n numeric, j jsonb, f real, PRIMARY KEY ("x$y", "A.b"))"""
ODD_STREAM = "CREATE CHANGE STREAM s FOR ALL WITH (value_capture_type = 'NEW_ROW_AND_OLD_VALUES')"


def test_odd_names_and_keys_of_the_postgresql_dialect(
    create_postgres: CreatePostgres, cluster: MockCluster, target: PostgresTarget
) -> None:
    database = create_postgres(ODD, ODD_STREAM)
    start = datetime.now(UTC).isoformat()
    insert = 'INSERT INTO "Odd_Table" ("select", "A.b", "x$y", n, j, f) VALUES'
    write_sql(
        database,
        f"""{insert} ('ä', 1, 'a', 'NaN', '{{"a": 1}}', 0.5), (NULL, 2, 'a', 1e30, NULL, 1)""",
    )
    write_sql(database, f"{insert} ('x', 1, 'b', -0.1, '[]', NULL), ('y', 2, 'b', NULL, NULL, 2)")
    write_sql(database, """UPDATE "Odd_Table" SET "select" = 'new', n = NULL WHERE "x$y" = 'b'""")
    write_sql(database, """DELETE FROM "Odd_Table" WHERE "A.b" = 2 AND "x$y" = 'a'""")
    write_tables(target, deliver(database, cluster, start, "Odd_Table"))
    names = ("select", "B c", "A.b", "x$y", "n", "j", "f")
    found = {tuple(row[name] for name in names) for row in target.read("Odd_Table")}
    assert found == {
        ("ä", None, 1, "a", "NaN", '{"a": 1}', 0.5),
        ("new", None, 1, "b", None, "[]", None),
        ("new", None, 2, "b", None, None, 2.0),
    }
    keys = "SELECT indexdef FROM pg_indexes WHERE tablename = 'Odd_Table'"
    (index,) = target.query(keys)
    assert index["indexdef"].endswith('("x$y", "A.b")')
