"""Copies that Spark writes into S3, by Hadoop's client."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from deltalake import DeltaTable
from fixtures.changing_schemas import STREAM_DDL, watchable_ddl
from fixtures.object_stores import OpenStore, StoreServers, open_store
from fixtures.pace import allow
from fixtures.replicas import CONSUMER, read_delta
from fixtures.server import CreateDatabase
from fixtures.singers import address_of
from fixtures.spark_formats import find_s3_jars, require_format
from fixtures.spark_replica_process import ROOT, SECONDS_MAX, SESSION
from google.cloud.spanner_v1.database import Database
from pyspark.sql import SparkSession

from watcher.model.errors import ConfigurationError
from watcher.replica.cuts.cut import DELTA
from watcher.replica.formats import ICEBERG, PARQUET, open_copies
from watcher.replica.frame_stores import LOG_STORES, SINGLE_DRIVER, make_client_settings
from watcher.replica.spark.frames import session_settings
from watcher.runners.spark_replica import start_replica
from watcher.runners.spark_replica_request import ReplicaRequest

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

TABLES = ("A", "B")
JOB = Path(__file__).with_name("store_copies_job.py")


@pytest.fixture
def database(create_database: CreateDatabase) -> Database:
    """Two tables that can be polled, and a change stream of them."""
    return create_database(*(ddl for name in TABLES for ddl in watchable_ddl(name)), STREAM_DDL)


@pytest.fixture
def s3(store_servers: StoreServers, monkeypatch: pytest.MonkeyPatch) -> OpenStore:
    """A bucket, to which the variables of this process and of its children lead."""
    return open_store("s3", store_servers, monkeypatch)


@pytest.mark.parametrize("format_", [DELTA, PARQUET])
def test_copies_in_s3_are_merged_and_read_by_others(
    request: pytest.FixtureRequest, s3: OpenStore, format_: str
) -> None:
    """Spark is led there by the variables. A writer that comes late is refused; versions stay."""
    folder = f"{s3.address}/lake"
    settings = {
        **SESSION,
        **require_format(request, format_),
        **make_client_settings(folder, os.environ),
        "spark.driver.extraClassPath": find_s3_jars(),
        LOG_STORES[0]: SINGLE_DRIVER,
    }
    job = {"settings": settings, "format": format_, "folder": folder}
    done = subprocess.run(
        [sys.executable, str(JOB), json.dumps(job)],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        timeout=allow(SECONDS_MAX),
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-5000:]
    told = json.loads(done.stdout.splitlines()[-1])
    assert (told["count"], told["ends"]) == (10, [100, 200])
    assert "another writer has changed" in told["refused"]
    assert "Both must lead to the same store" in told["missed"]
    assert (told["compacted"] > 0) == (format_ == DELTA)
    loaded = dict.fromkeys(range(10), "loaded")
    merged = {n: name for n, name in loaded.items() if n != 2} | {1: "new", 11: "n"}
    copy = open_copies(format_, folder, CONSUMER)("T")
    for name, rows in (("loaded", loaded), ("merged", merged)):
        batches = copy.scan(told["versions"][name], ["Id", "Name"])
        assert {r["Id"]: r["Name"] for batch in batches for r in batch.to_pylist()} == rows
    if format_ == DELTA:
        newest = read_delta(DeltaTable(f"{folder}/T")).to_pylist()
        assert {row["Id"]: row["Name"] for row in newest} == merged


@pytest.mark.parametrize(
    ("format_", "settings", "message"),
    [
        (ICEBERG, {}, "by renames, which an object store does not do at once"),
        (DELTA, {}, f"Set {LOG_STORES[0]} to {SINGLE_DRIVER}"),
        (DELTA, {LOG_STORES[0]: SINGLE_DRIVER}, "Spark has no client for s3a://bucket/lake"),
        (PARQUET, {}, "Spark has no client for s3a://bucket/lake"),
    ],
)
def test_what_spark_cannot_write_safely_is_refused(
    spark: SparkSession,
    database: Database,
    format_: str,
    settings: Mapping[str, str],
    message: str,
) -> None:
    """Before this product asks the store for anything."""
    request = ReplicaRequest(str(address_of(database)), TABLES, f"{format_}:s3://bucket/lake")
    with session_settings(spark, settings), pytest.raises(ConfigurationError) as raised:
        start_replica(spark, request)
    assert message in str(raised.value)
