"""The table with which the embedded server is measured: made, filled, changed, polled, streamed."""

from __future__ import annotations

import os
import statistics
import time
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass

from google.cloud import spanner
from google.cloud.spanner_v1 import ExecuteSqlRequest, param_types
from google.cloud.spanner_v1.database import Database
from google.cloud.spanner_v1.transaction import Transaction

from benchmarks.index import parse_seconds
from watcher.spanner.timestamps import to_micros

DDL = (
    "CREATE TABLE Singers (SingerId INT64 NOT NULL, FirstName STRING(200), LastName STRING(200), "
    "BirthDate DATE, Picture BYTES(MAX), LastModified TIMESTAMP "
    "OPTIONS (allow_commit_timestamp=true), ShardId INT64 AS (MOD(FARM_FINGERPRINT("
    "COALESCE(FirstName || ' ', '') || LastName), 19)) STORED) PRIMARY KEY (SingerId)",
    "CREATE NULL_FILTERED INDEX ByChange ON Singers(ShardId, LastModified)",
)
COLUMNS = ("SingerId", "FirstName", "LastName", "BirthDate", "LastModified")
ALL = "SELECT SingerId, FirstName, LastName, BirthDate, Picture, LastModified, ShardId FROM Singers"
ROWS_A_COMMIT = 5_000
CHANGED = 135
POLLS = 21
PROFILE = ExecuteSqlRequest.QueryMode.PROFILE
PICTURE_BYTES = 230
LOAD = (
    "INSERT INTO Singers (SingerId, FirstName, LastName, BirthDate, Picture)"
    " SELECT k, CONCAT('First ', CAST(k AS STRING)), CONCAT('Last ', CAST(k AS STRING)),"
    " DATE '1970-01-01', @picture FROM UNNEST(GENERATE_ARRAY(@low, @high)) AS k"
)
LAST = "SELECT MAX(SingerId) FROM Singers"
CHANGE = (
    "UPDATE Singers SET LastModified = PENDING_COMMIT_TIMESTAMP() WHERE MOD(SingerId, @every) = 0"
    " AND SingerId < @changed * @every"
)
POLL = (
    "SELECT * FROM Singers@{FORCE_INDEX=ByChange} WHERE ShardId IN UNNEST(@shards)"
    " AND ShardId IS NOT NULL AND LastModified > @start"
)


@dataclass(frozen=True, slots=True)
class Poll:
    """What a poll found; ``server_ms`` is the median of what the server says it took."""

    rows: int
    scanned: int
    server_ms: float


def create_database(address: str) -> Database:
    """The database on a server, which is new unless the server has it; the clients of this process
    go there from now on."""
    os.environ["SPANNER_EMULATOR_HOST"] = address
    client = spanner.Client(project="benchmark", disable_builtin_metrics=True)
    config = f"{client.project_name}/instanceConfigs/emulator-config"
    instance = client.instance("benchmark", configuration_name=config, node_count=1)
    if not instance.exists():
        instance.create().result(30)
    database: Database = instance.database("server", ddl_statements=DDL)
    if not database.exists():
        database.create().result(30)
    return database


def commit(database: Database, first: int, count: int) -> None:
    """One commit of upserts of keys that follow each other."""
    commit_keys(database, range(first, first + count))


def commit_keys(database: Database, keys: Sequence[int]) -> int:
    """One commit of upserts: its timestamp in microseconds."""
    values = [
        (key, f"First{n}", f"Last{key}", "1990-01-01", spanner.COMMIT_TIMESTAMP)
        for n, key in enumerate(keys)
    ]
    with database.batch() as batch:
        batch.insert_or_update("Singers", COLUMNS, values)
    return to_micros(batch.committed)


def count_listed(database: Database, first: int, count: int) -> int:
    """How many singers a list of ids in a query's text finds."""
    ids = ", ".join(map(str, range(first, first + count)))
    with database.snapshot() as snapshot:
        sql = f"SELECT COUNT(*) FROM Singers WHERE SingerId IN ({ids})"  # noqa: S608
        ((found,),) = snapshot.execute_sql(sql)
    return int(found)


def load(database: Database, rows: int) -> None:
    """Inserts rows of about 300 bytes, outside of the index; those that an interrupted load has
    left out, where there are some."""
    types = {"low": param_types.INT64, "high": param_types.INT64, "picture": param_types.BYTES}
    with database.snapshot() as snapshot:
        ((last,),) = snapshot.execute_sql(LAST)
    for low in range(0 if last is None else last + 1, rows, ROWS_A_COMMIT):
        high = min(low + ROWS_A_COMMIT, rows) - 1
        values = {"low": low, "high": high, "picture": b64encode(b"x" * PICTURE_BYTES)}

        def work(transaction: Transaction, values: dict[str, object] = values) -> None:
            transaction.execute_update(LOAD, params=values, param_types=types)

        database.run_in_transaction(work)


def change(database: Database, rows: int) -> None:
    """Gives 135 rows, or all where there are fewer, a commit timestamp."""

    def work(transaction: Transaction) -> None:
        transaction.execute_update(
            CHANGE,
            params={"every": max(rows // CHANGED, 1), "changed": CHANGED},
            param_types={"every": param_types.INT64, "changed": param_types.INT64},
        )

    database.run_in_transaction(work)


NOTHING_SINCE = "2200-01-01T00:00:00Z"
"""A start behind which nothing has changed."""


def poll(database: Database, start: str = "1970-01-01T00:00:00Z") -> Poll:
    """Asks for the rows that changed since ``start``, several times."""
    params = {"shards": list(range(-18, 19)), "start": start}
    types = {"shards": param_types.Array(param_types.INT64), "start": param_types.TIMESTAMP}
    times: list[float] = []
    rows = scanned = 0
    for _ in range(POLLS):
        with database.snapshot() as snapshot:
            results = snapshot.execute_sql(
                POLL, params=params, param_types=types, query_mode=PROFILE
            )
            rows = sum(1 for _ in results)
            stats = results.stats.query_stats
        scanned = int(stats["rows_scanned"])
        times.append((parse_seconds(stats["elapsed_time"]) or 0.0) * 1_000)
    return Poll(rows, scanned, round(statistics.median(times), 3))


def stream_table(database: Database) -> tuple[int, float]:
    """Reads the whole table: rows and seconds."""
    started = time.perf_counter()
    count = 0
    with database.snapshot() as snapshot:
        for _ in snapshot.execute_sql(ALL, lazy_decode=True):
            count += 1
    return count, time.perf_counter() - started
