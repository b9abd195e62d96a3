"""The Java watcher as a system under test: ``python -m benchmarks.systems.java RUN``.

This process becomes the Java process. The index is forced and every shard is listed, as in the
library's own benchmark.
"""

from __future__ import annotations

import os
import sys

from benchmarks.java_watcher import build
from benchmarks.run_settings import PREFIX, Run
from watcher.spanner.address import DatabaseAddress
from watcher.spanner.database import connect
from watcher.tables.discovery import discover_table
from watcher.tables.values import WatchedTable

PROCESS = "java"
POSITIONS = f"{PREFIX}JavaPositions"
SHARD_TYPES = {
    "BOOL": "BOOL",
    "BYTES": "BYTES(MAX)",
    "DATE": "DATE",
    "FLOAT64": "FLOAT64",
    "INT64": "INT64",
    "STRING": "STRING(MAX)",
    "TIMESTAMP": "TIMESTAMP",
}
DDL_SECONDS_MAX = 300


def positions_ddl() -> str:
    """The library's own table of positions. It makes it itself, but its client asks only every 20 s
    whether a schema change is done, and that is none of the watcher's time."""
    names = ["DATABASE_NAME", "TABLE_CATALOG", "TABLE_SCHEMA", "TABLE_NAME"]
    columns = [f"{name} STRING(MAX) NOT NULL" for name in names]
    columns += [f"SHARD_ID_{name} {kind}" for name, kind in SHARD_TYPES.items()]
    columns.append("LAST_SEEN_COMMIT_TIMESTAMP TIMESTAMP NOT NULL")
    keys = ", ".join([*names, *(f"SHARD_ID_{name}" for name in SHARD_TYPES)])
    return f"CREATE TABLE {POSITIONS} ({', '.join(columns)}) PRIMARY KEY ({keys})"


def arguments(run: Run, tables: list[WatchedTable]) -> list[str]:
    """What the driver is told."""
    first = tables[0]
    options = {
        "database": run.database,
        "tables": ",".join(run.tables),
        "indexes": ",".join(str(table.index) for table in tables),
        "timestamp": first.timestamp_column,
        "shard": first.shard_column,
        "shards": run.preparation.shards,
        "limit": run.consumer.max_rows,
        "interval": round(run.consumer.interval * 1_000),
        "with_query_after": run.consumer.with_query_after,
        "positions": POSITIONS,
        "since": run.since,
        "ready": run.ready(PROCESS),
        "drain": run.drain,
        "delivered": run.records("delivered", PROCESS),
        "cpu": run.records("cpu", PROCESS),
    }
    return [f"{name}={value}" for name, value in options.items()]


def main(texts: list[str]) -> None:
    """Becomes the Java process."""
    run = Run.load(texts[0], consumes=True)
    database = connect(DatabaseAddress.parse(run.database))
    database.update_ddl([positions_ddl()]).result(DDL_SECONDS_MAX)
    tables = [discover_table(database, name) for name in run.tables]
    command = [*build.command(), *arguments(run, tables)]
    sys.stdout.flush()
    os.execv(command[0], command)


if __name__ == "__main__":
    main(sys.argv[1:])
