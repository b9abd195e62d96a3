"""Several tables in one stream: every micro-batch is one state of the database, in one form."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from fixtures.everything import ADDED, ROWS, row, rows
from fixtures.everything import write as write_everything
from fixtures.singers import make_watchable
from fixtures.spark import batch, changes, drain, newest_offset, parquet
from fixtures.writing import run_beside
from google.cloud.spanner_v1.database import Database
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from spanner_schema.model.schema import Dialect
from watcher.captures.changes import to_json
from watcher.runners.spark.spark_versions import PLANS_FROM_START
from watcher.spanner.timestamps import format_timestamp, to_micros

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

TABLES = ("Accounts", "Ledger", "Notes")
KEYS = 20
DDL = [f"CREATE TABLE {name} (Id INT64 NOT NULL, Number INT64) PRIMARY KEY (Id)" for name in TABLES]


@pytest.fixture
def bank(create_database: Any) -> Database:
    database: Database = create_database(*DDL)
    make_watchable(database, *TABLES, shards=3)
    return database


class Transfers:
    """Each transaction writes one number for a key into several tables."""

    def __init__(self, database: Database) -> None:
        self.number = 0
        self._database = database
        self._choice = random.Random(3)

    def write(self) -> None:
        self.number += 1
        keys = self._choice.sample(range(KEYS), 3)
        with self._database.batch() as mutations:
            for table in TABLES:
                values = [(key, self.number) for key in keys]
                mutations.insert_or_update(table, ("Id", "Number"), values)


def test_no_transaction_is_torn_over_micro_batches(
    spark: SparkSession, bank: Database, tmp_path: Path
) -> None:
    transfers = Transfers(bank)
    for _ in range(10):
        transfers.write()
    states: list[dict[str, dict[int, int]]] = [{table: {} for table in TABLES}]

    def apply(changed: DataFrame, _number: int) -> None:
        state = {table: dict(cells) for table, cells in states[-1].items()}
        for each in changed.collect():
            cells = json.loads(each["values"])
            state[each["table"]][cells["Id"]] = cells["Number"]
        states.append(state)

    def run(**options: object) -> None:
        stream = changes(spark, bank, tables="Accounts,Ledger,Note*", **options)
        writer = stream.writeStream.foreachBatch(apply).trigger(availableNow=True)
        query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
        assert query.awaitTermination(300)

    with run_beside(transfers.write, 0.2) as begun:
        assert begun.wait(60)
        run()
        run(maxRowsPerBatch=20)
    run()  # what came during the last run, however long that took
    for _ in range(4):
        transfers.write()
    run(maxRowsPerBatch=1)
    assert len(states) > (6 if PLANS_FROM_START else 3)
    for state in states[1:]:
        assert state["Accounts"] == state["Ledger"] == state["Notes"]
    assert max(states[-1]["Accounts"].values()) == transfers.number
    assert newest_offset(tmp_path)["source"] == "Accounts,Ledger,Note*"


@pytest.mark.both_dialects
def test_the_envelope_holds_every_type_as_json(
    spark: SparkSession, everything: Database, dialect: Dialect, tmp_path: Path
) -> None:
    first, later = rows(dialect), row(7, dialect) | {"Id": 3}
    write_everything(everything, first)
    stream = changes(spark, everything, tables="*")
    assert [field.simpleString() for field in stream.schema] == [
        "table:string",
        "operation:string",
        "_commit_timestamp:timestamp",
        "key:string",
        "values:string",
        "_change_id:string",
    ]
    drain(stream, tmp_path)
    write_everything(everything, [later])
    drain(stream, tmp_path)
    delivered = parquet(tmp_path).to_pylist()
    assert {each["table"] for each in delivered} == {"Everything"}
    expected = [("READ", each) for each in first] + [("UPSERT", later)]
    shown = {(each["operation"], each["key"]): json.loads(each["values"]) for each in delivered}
    assert len(shown) == len(delivered) == ROWS + 1
    for operation, cells in expected:
        values = shown[operation, json.dumps({"Id": cells["Id"]})]
        assert len(values.keys() & ADDED) == 2
        values = {name: value for name, value in values.items() if name not in ADDED}
        assert values == {name: json_value(value) for name, value in cells.items()}


def json_value(value: Any) -> object:
    if isinstance(value, list):
        return [json_value(item) for item in value]
    return format_timestamp(to_micros(value)) if hasattr(value, "tzinfo") else to_json(value)


def test_tables_are_chosen_by_names_and_globs(spark: SparkSession, bank: Database) -> None:
    Transfers(bank).write()
    chosen = batch(spark, bank, tables="*", exclude="L*")
    assert {each["table"] for each in chosen.collect()} == {"Accounts", "Notes"}
    earliest = batch(spark, bank, tables="Led*,Notes", startingTimestamp="earliest")
    assert {each["table"] for each in earliest.collect()} == {"Ledger", "Notes"}
    for options, words in (
        ({"tables": "Nothing*"}, "no table of .* that can be watched matches Nothing"),
        ({"tables": "Account"}, "has no table Account"),
        ({"tables": "*", "table": "Notes"}, "use either the option 'table'"),
    ):
        with pytest.raises(PySparkException, match=words):
            changes(spark, bank, **options)
