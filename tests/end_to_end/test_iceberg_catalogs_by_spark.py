"""Copies in Iceberg that Spark writes into a namespace of a catalog, which pyiceberg has, too."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import pytest
from fixtures import replicas
from fixtures.changing_schemas import STREAM_DDL, watchable_ddl, write_everywhere
from fixtures.iceberg_catalogs import set_properties
from fixtures.replicas import assert_equal, read_rows
from fixtures.server import CreateDatabase
from fixtures.singers import address_of
from fixtures.spark_formats import require_format
from fixtures.spark_replicas import replicate_by_spark
from google.cloud.spanner_v1.database import Database
from pyspark.sql import SparkSession

from watcher.model.errors import ConfigurationError
from watcher.replica.formats import ICEBERG
from watcher.replica.frame_catalogs import CACHED, CLASS, PREFIX
from watcher.replica.frame_reading import as_of
from watcher.replica.spark.frames import session_settings
from watcher.runners.spark_replica import start_replica
from watcher.runners.spark_replica_request import ReplicaRequest
from watcher.spanner.timestamps import format_timestamp

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

TABLES = ("A", "B")
NUMBERS = count()


@pytest.fixture
def database(create_database: CreateDatabase) -> Database:
    return create_database(*(ddl for name in TABLES for ddl in watchable_ddl(name)), STREAM_DDL)


@pytest.fixture
def catalog(monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of one that no session has yet."""
    monkeypatch.setattr(replicas, "FORMAT", ICEBERG)
    return f"lake{next(NUMBERS)}"


def describe_catalog(name: str, file: Path, warehouse: str) -> dict[str, str]:
    """A catalog in SQLite, as Spark has it."""
    properties = {"type": "jdbc", "uri": f"jdbc:sqlite:{file}", "jdbc.schema-version": "V1"}
    properties["warehouse"] = warehouse.replace("s3://", "s3a://")
    return {f"{PREFIX}.{name}": CLASS} | {
        f"{PREFIX}.{name}.{each}": value for each, value in properties.items()
    }


@pytest.fixture
def files(catalog: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> tuple[Path, str]:
    """The file of a catalog of pyiceberg's, and the folder of its tables."""
    file, warehouse = tmp_path / "c.db", str(tmp_path / "warehouse")
    set_properties(monkeypatch, catalog, uri=f"sqlite:///{file}", warehouse=warehouse)
    return file, warehouse


def test_spark_reads_a_namespace_as_of_a_cut(
    request: pytest.FixtureRequest,
    spark: SparkSession,
    database: Database,
    catalog: str,
    files: tuple[Path, str],
) -> None:
    require_format(request, ICEBERG)
    place = f"{catalog}.a.b"
    settings = describe_catalog(catalog, *files) | {f"{PREFIX}.{catalog}.{CACHED}": "false"}
    write_everywhere(database, TABLES, 1)
    with session_settings(spark, settings):
        first = replicate_by_spark(spark, database, place, TABLES, format=ICEBERG)[0]
        rows = as_of(spark, f"iceberg:{place}").read("A").collect()
        write_everywhere(database, TABLES, 2)
        replicate_by_spark(spark, database, place, TABLES, format=ICEBERG)
        assert (
            as_of(spark, f"iceberg:{place}", format_timestamp(first.cut.end)).read("A").collect()
            == rows
        )
        newest = {
            row.Id: row.Version for row in as_of(spark, f"iceberg:{place}").read("A").collect()
        }
    assert newest == {row["Id"]: row["Version"] for row in read_rows(place, "A")}
    assert len(newest) > len(rows)
    assert_equal(database, place)


def test_a_catalog_that_is_not_the_one_of_pyiceberg_is_refused(
    request: pytest.FixtureRequest,
    spark: SparkSession,
    database: Database,
    catalog: str,
    files: tuple[Path, str],
    tmp_path: Path,
) -> None:
    require_format(request, ICEBERG)
    wanted = ReplicaRequest(str(address_of(database)), TABLES, f"iceberg:{catalog}.music")
    with pytest.raises(ConfigurationError, match=f"the Spark session has no catalog {catalog}"):
        start_replica(spark, wanted)
    with session_settings(spark, describe_catalog(catalog, tmp_path / "other.db", files[1])):
        with pytest.raises(ConfigurationError, match=f"set {PREFIX}.{catalog}.{CACHED} to false"):
            start_replica(spark, wanted)
        with (
            session_settings(spark, {f"{PREFIX}.{catalog}.{CACHED}": "false"}),
            pytest.raises(ConfigurationError, match="is not pyiceberg's"),
        ):
            start_replica(spark, wanted)
    assert not Path(files[1], "music", "_owner.json").exists()
