"""What may be wrong outside of the options, in words that say what to do."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import grpc
import pytest
from fixtures.server import VARIABLE
from fixtures.singers import write_singers
from fixtures.spark import batch, changes, drain, names_of, undo_newest_commit
from google.cloud.spanner_v1.database import Database
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import watcher
from watcher.spanner.timestamps import format_timestamp, to_micros

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


class RefusingHandler(grpc.GenericRpcHandler):  # type: ignore[type-arg]
    """Refuses every call with PERMISSION_DENIED."""

    def service(self, _details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler[Any, Any]:
        def refuse(_request: bytes, context: grpc.ServicerContext) -> bytes:
            words = "Caller is missing IAM permission spanner.sessions.create on resource d."
            context.abort(grpc.StatusCode.PERMISSION_DENIED, words)

        return grpc.unary_unary_rpc_method_handler(refuse)


@pytest.fixture
def move(spark: SparkSession) -> Iterator[Callable[[str], None]]:
    """Leads Spark's Python processes to another server for the length of a test."""
    environment = spark.sparkContext.environment
    before = environment.get(VARIABLE)

    def move(address: str) -> None:
        environment[VARIABLE] = address
        watcher.register(spark)

    yield move
    if before is None:
        environment.pop(VARIABLE, None)
    else:
        environment[VARIABLE] = before
    watcher.register(spark)


def test_a_caller_without_permission_reads_which_role_is_missing(
    spark: SparkSession, singers: Database, move: Callable[[str], None]
) -> None:
    server = grpc.server(ThreadPoolExecutor(2))
    server.add_generic_rpc_handlers((RefusingHandler(),))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        move(f"127.0.0.1:{port}")
        with pytest.raises(PySparkException) as refused:
            changes(spark, singers)
    finally:
        server.stop(None).wait()
    assert "no permission to read spanner://" in str(refused.value)
    assert "roles/spanner.databaseReader" in str(refused.value)
    move(f"127.0.0.1:{port}")
    with pytest.raises(PySparkException, match=f"nothing answers at {VARIABLE}=127.0.0.1:{port}"):
        changes(spark, singers)


def edit_newest_offset(folder: Path, **values: object) -> None:
    """Puts something else into the newest offset of a checkpoint."""
    files = (folder / "checkpoint" / "offsets").glob("[0-9]*")
    newest = max(files, key=lambda path: int(path.name))
    *head, last = newest.read_text().splitlines()
    newest.write_text("\n".join([*head, json.dumps(json.loads(last) | values)]))
    newest.with_name(f".{newest.name}.crc").unlink(missing_ok=True)


def write_in_the_past(database: Database, key: int, hours: int) -> None:
    moment = datetime.now(UTC) - timedelta(hours=hours)
    with database.batch() as mutations:
        columns = ("SingerId", "LastName", "LastModified")
        mutations.insert("Singers", columns, [(key, f"{hours} hours ago", moment)])


def ago(hours: int) -> str:
    return format_timestamp(to_micros(datetime.now(UTC) - timedelta(hours=hours)))


def test_a_batch_that_is_older_than_the_versions_is_read_strongly_and_loses_nothing(
    spark: SparkSession, singers: Database, tmp_path: Path
) -> None:
    for key, hours in enumerate((6, 4, 2)):
        write_in_the_past(singers, key, hours)
    start = {"startingTimestamp": ago(7)}
    drain(changes(spark, singers, **start), tmp_path)
    undo_newest_commit(tmp_path / "checkpoint")
    edit_newest_offset(tmp_path, position=ago(3))
    folder = tmp_path / "again"
    (tmp_path / "checkpoint").rename(tmp_path / "kept")
    folder.mkdir()
    (tmp_path / "kept").rename(folder / "checkpoint")
    drain(changes(spark, singers, **start), folder)
    assert names_of(folder) == [(0, "6 hours ago"), (1, "4 hours ago"), (2, "2 hours ago")]
    metadata = folder / "parquet" / "_spark_metadata"
    assert {path.name for path in metadata.glob("[0-9]*")} == {"0", "1"}


def test_a_batch_read_of_what_is_not_kept_any_more_is_refused(
    spark: SparkSession, singers: Database
) -> None:
    window = {"startingTimestamp": ago(5), "endingTimestamp": ago(3)}
    with pytest.raises(PySparkException, match=r"no longer has the versions of .*_period"):
        batch(spark, singers, **window).collect()


def test_a_checkpoint_of_a_later_release_is_refused(
    spark: SparkSession, singers: Database, tmp_path: Path
) -> None:
    drain(changes(spark, singers), tmp_path)
    edit_newest_offset(tmp_path, version=99)
    with pytest.raises(PySparkException, match="offsets of version 99; this release reads"):
        drain(changes(spark, singers), tmp_path)


def test_each_session_of_a_process_reads(spark: SparkSession, singers: Database) -> None:
    write_singers(singers, [1, 2], "Richards")
    other = spark.newSession()
    watcher.register(other)
    assert [batch(each, singers).count() for each in (other, spark)] == [2, 2]
