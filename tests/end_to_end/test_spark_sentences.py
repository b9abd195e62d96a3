"""What a user reads of a mistake: our sentence, before all else that Spark lets a source say.

Spark begins with its own condition (``[PYTHON_DATA_SOURCE_ERROR] Failed to ...:``), a query with
its ids; then comes the name of the exception and its sentence, without a traceback before it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from fixtures.spark import batch, changes, drain, options_of, start
from google.cloud.spanner_v1.database import Database
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from ddl.migration.apply import read_schema

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

OF_SOURCE = r"\[PYTHON_DATA_SOURCE_ERROR\] Failed to [\w ]+: "
OF_STREAM = r"\[PYTHON_STREAMING_DATA_SOURCE_RUNTIME_ERROR\] Failed when [\w ]+: "
OF_QUERY = r"\[STREAM_FAILED\] Query \[id = [\w-]+, runId = [\w-]+\] terminated with exception: "
OF_TASK = (
    r"(?:\[PYTHON_EXCEPTION\] An exception was thrown from the Python worker|Job aborted .*): "
)
PYDANTIC = re.compile("Input should|pydantic|should have at least|validation error|errors.pydantic")

MISTAKES = {
    "a misspelt option": ({"tabel": "x"}, "unknown option 'tabel'; did you mean 'table'?"),
    "a number": (
        {"maxRowsPerBatch": "many"},
        "option 'maxRowsPerBatch': 'many' is not a whole number",
    ),
    "a number that is too small": (
        {"shardGroups": "-1"},
        "option 'shardGroups': '-1' is too small: use 1 or more",
    ),
    "a boolean": (
        {"dataBoost": "perhaps"},
        "option 'dataBoost': 'perhaps' is neither true nor false",
    ),
    "a choice": (
        {"jsonType": "xml"},
        "option 'jsonType': 'xml' is not one of 'string' or 'variant'",
    ),
    "a list of choices": (
        {"capture": "change-stream", "operations": "PATCH"},
        "option 'operations': 'PATCH' is not one of 'INSERT', 'UPDATE', 'DELETE', 'UPSERT' or",
    ),
    "no JSON": (
        {"envelope": "debezium", "envelopeOptions": "{x"},
        "option 'envelopeOptions': '{x' is not JSON: write an object such as",
    ),
    "JSON, but no object": (
        {"envelope": "debezium", "envelopeOptions": "[1]"},
        "option 'envelopeOptions': '[1]' is not a JSON object: write one such as",
    ),
    "inside of JSON": (
        {"directedRead": '{"inclde": []}'},
        "unknown option 'directedRead.inclde'",
    ),
    "nothing": ({"table": ""}, "option 'table': '' is too short: at least 1 character is needed"),
    "a timestamp": (
        {"startingTimestamp": "yesterday"},
        "option 'startingTimestamp': invalid start 'yesterday': use latest, earliest or a",
    ),
    "a duration": (
        {"outageSeconds": "soon"},
        "option 'outageSeconds': invalid duration 'soon': use 500ms, 1s, 5m, 2h or 1d",
    ),
    "options of another capture": (
        {"stream": "S"},
        "'stream' needs 'capture' = 'change-stream'",
    ),
    "a table that is not there": (
        {"table": "Singer"},
        "projects/test-project/instances/test-instance/databases/",
    ),
    "a database that is not there": ({"database": "nope"}, "database spanner://"),
}


def read_refusal(work: Callable[[], object]) -> str:
    """What a user reads."""
    with pytest.raises(PySparkException) as refused:
        work()
    return str(refused.value)


def check_sentence(text: str, before: str, sentence: str) -> None:
    """The sentence comes right after what Spark says, and without a traceback."""
    begin = re.compile(before + r"watcher\.[\w.]+: " + re.escape(sentence))
    assert begin.match(text), text
    assert "Traceback" not in text[: text.index(sentence)]
    assert not PYDANTIC.search(text), text


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_in_the_options_is_read_at_load(
    spark: SparkSession, singers: Database, name: str
) -> None:
    options, sentence = MISTAKES[name]
    source = options_of(singers) | options
    for load in (
        spark.read.format("spanner-changes").options(**source).load,
        spark.readStream.format("spanner-changes").options(**source).load,
    ):
        check_sentence(read_refusal(load), OF_SOURCE, sentence)


def test_what_is_missing_is_read_at_load(spark: SparkSession, singers: Database) -> None:
    refusal = read_refusal(lambda: spark.read.format("spanner-changes").load())
    check_sentence(refusal, OF_SOURCE, "no options were given: spanner-changes needs project")
    options = {k: v for k, v in options_of(singers).items() if k != "instance"}
    refusal = read_refusal(lambda: spark.read.format("spanner-changes").options(**options).load())
    check_sentence(refusal, OF_SOURCE, "option 'instance' is missing")


def test_a_column_that_is_not_there(spark: SparkSession, singers: Database, tmp_path: Path) -> None:
    options = options_of(singers)
    columns = spark.read.format("spanner-changes").schema("Name STRING").options(**options)
    sentence = "column Name does not exist; the columns are: SingerId,"
    check_sentence(read_refusal(columns.load().collect), OF_SOURCE, sentence)
    stream = spark.readStream.format("spanner-changes").schema("Name STRING").options(**options)
    query = start(stream.load(), tmp_path)
    refusal = read_refusal(lambda: query.awaitTermination(60))
    check_sentence(refusal, OF_QUERY + OF_STREAM, sentence)


def test_a_timestamp_in_the_future(spark: SparkSession, singers: Database) -> None:
    later = batch(spark, singers, snapshotTimestamp="2999-01-01T00:00:00Z")
    refusal = read_refusal(later.collect)
    check_sentence(refusal, OF_SOURCE, "'snapshotTimestamp' 2999-01-01T00:00:00Z is in the future")


def test_a_table_that_cannot_be_watched(
    spark: SparkSession, create_database: Callable[..., Database], tmp_path: Path
) -> None:
    plain = create_database("CREATE TABLE Plain (Id INT64) PRIMARY KEY (Id)")
    refusal = read_refusal(lambda: changes(spark, plain, table="Plain"))
    check_sentence(refusal, OF_SOURCE, "table Plain")
    assert "spanner-watcher ddl apply" in refusal
    assert str(tmp_path) not in refusal


def test_a_checkpoint_of_another_query(
    spark: SparkSession, singers: Database, tmp_path: Path
) -> None:
    drain(changes(spark, singers), tmp_path)
    other = changes(spark, singers, tables="Sing*")
    refusal = read_refusal(lambda: start(other, tmp_path).awaitTermination(60))
    check_sentence(refusal, OF_QUERY + OF_STREAM, "the checkpoint belongs to Singers of projects/")


def test_an_index_that_is_dropped_while_a_query_runs(
    spark: SparkSession, singers: Database, tmp_path: Path
) -> None:
    stream = changes(spark, singers)
    drain(stream, tmp_path)
    (index,) = read_schema(singers).indexes
    singers.update_ddl([f"DROP INDEX {index.name}"]).result(60)
    refusal = read_refusal(lambda: drain(stream, tmp_path))
    check_sentence(refusal, OF_QUERY + OF_STREAM, "")
    assert "spanner-watcher ddl apply" in refusal


def test_what_a_task_refuses(
    spark: SparkSession, create_database: Callable[..., Database], tmp_path: Path
) -> None:
    exact = create_database(
        "CREATE TABLE Exact (`At` TIMESTAMP, Number INT64) PRIMARY KEY (Number)",
        "CREATE CHANGE STREAM S FOR ALL OPTIONS (value_capture_type = 'NEW_ROW')",
    )
    with exact.batch() as written:
        written.insert("Exact", ("At", "Number"), [("2026-01-31T12:00:00.123456789Z", 1)])
    options = {
        "table": "Exact",
        "capture": "change-stream",
        "nanoseconds": "refuse",
        "startingTimestamp": "earliest",
    }
    refusal = read_refusal(
        lambda: drain(changes(spark, exact, **options), tmp_path),
    )
    moment = "the TIMESTAMP 2026-01-31T12:00:00.123456789Z is finer than the microseconds"
    check_sentence(refusal, OF_QUERY + OF_TASK, moment)
