"""How much memory a whole table takes on its way into Spark, for tables of several sizes."""

from __future__ import annotations

from typing import Annotated

from google.cloud.spanner_v1 import param_types
from google.cloud.spanner_v1.database import Database
from google.cloud.spanner_v1.transaction import Transaction
from pydantic import BaseModel, ConfigDict, Field

from benchmarks.processes import ask_module
from benchmarks.reads.form_tables import ADDRESS
from benchmarks.reads.served_table import serve_table
from benchmarks.scenario import Bench, Scenario, has_java, make_bar_chart
from ddl.migration import apply
from watcher.spanner.database import connect

ROWS_A_COMMIT = 10_000
TYPES = {"low": param_types.INT64, "high": param_types.INT64}


class MemorySettings(BaseModel):
    """A table of ``rows`` rows of two columns (INT64, and a STRING of 30), for each of them: read
    whole by ``count()``, in a session of its own with a heap of 1 GB for its JVM. Peak memory is
    resident, of the driver's Python, its JVM, and the largest worker."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    rows: tuple[Annotated[int, Field(ge=1)], ...] = (1_000_000, 10_000_000)


def run(settings: MemorySettings, bench: Bench) -> None:
    """A row of the table for each size."""
    if not has_java(bench):
        return
    with serve_table(1):
        database = connect(ADDRESS)
        for number, rows in enumerate(settings.rows):
            table = f"Narrow{number}"
            fill_narrow(database, table, rows)
            (figure,) = ask_module("memory", "benchmarks.reads.memory_reads", (table, str(rows)))
            bench.add(figure)
    bench.outcome.charts.append(
        make_bar_chart("MB of the largest worker", "rows", "worker_mb", bench.outcome.figures)
    )


def fill_narrow(database: Database, table: str, rows: int) -> None:
    """A table of two columns, and a commit timestamp, which is NULL; a snapshot needs no index."""
    stamp = "LastModified TIMESTAMP OPTIONS (allow_commit_timestamp = true)"
    columns = f"Id INT64, Name STRING(MAX), {stamp}"
    apply.run_statements(database, [f"CREATE TABLE {table} ({columns}) PRIMARY KEY (Id)"])
    statement = (
        f"INSERT INTO {table} (Id, Name)"  # noqa: S608 (a name of ours)
        " SELECT k, CONCAT('a name of some length ', CAST(k AS STRING))"
        " FROM UNNEST(GENERATE_ARRAY(@low, @high)) AS k"
    )

    def insert(transaction: Transaction, low: int, high: int) -> None:
        transaction.execute_update(statement, {"low": low, "high": high}, TYPES)

    for low in range(0, rows, ROWS_A_COMMIT):
        database.run_in_transaction(insert, low, min(low + ROWS_A_COMMIT, rows) - 1)


SCENARIO = Scenario(
    name="memory",
    summary="a whole table into Spark: peak memory of driver and workers, by the size of the table",
    settings=MemorySettings,
    keys=("rows",),
    run=run,
    short=("rows=20000,100000",),
    own_server=True,
    in_short_set=False,
)
