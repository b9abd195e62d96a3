"""What a large table costs the embedded server: disk a row, start, and a poll that finds little.

``python -m benchmarks.footprint --rows 1000000``: rows of about 300 bytes of which 135 have changed
since; server time is what the server itself tells of the poll, in the mode PROFILE.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from base64 import b64encode
from dataclasses import asdict, dataclass
from pathlib import Path

from google.cloud.spanner_v1 import param_types
from google.cloud.spanner_v1.database import Database
from google.cloud.spanner_v1.transaction import Transaction

from benchmarks.server import connect
from emulator.process import spawn

ROWS_A_COMMIT = 10_000
CHANGED = 135
POLLS = 21
PROFILE = 2
PICTURE_BYTES = 230
LOAD = (
    "INSERT INTO Singers (SingerId, FirstName, LastName, BirthDate, Picture)"
    " SELECT k, CONCAT('First ', CAST(k AS STRING)), CONCAT('Last ', CAST(k AS STRING)),"
    " DATE '1970-01-01', @picture FROM UNNEST(GENERATE_ARRAY(@low, @high)) AS k"
)
CHANGE = (
    "UPDATE Singers SET LastModified = PENDING_COMMIT_TIMESTAMP() WHERE MOD(SingerId, @every) = 0"
    " AND SingerId < @changed * @every"
)
POLL = (
    "SELECT * FROM Singers@{FORCE_INDEX=ByChange} WHERE ShardId IN UNNEST(@shards)"
    " AND ShardId IS NOT NULL AND LastModified > @start"
)


@dataclass(frozen=True, slots=True)
class Footprint:
    """Bytes on the disk; times in milliseconds (of the server) and seconds."""

    rows: int
    bytes_a_row: float
    ready_seconds: float
    polled_rows: int
    scanned_rows: int
    poll_server_ms: float


def load(database: Database, rows: int) -> None:
    """Inserts rows outside of the index."""
    types = {"low": param_types.INT64, "high": param_types.INT64, "picture": param_types.BYTES}
    for low in range(0, rows, ROWS_A_COMMIT):
        high = min(low + ROWS_A_COMMIT, rows) - 1
        values = {"low": low, "high": high, "picture": b64encode(b"x" * PICTURE_BYTES)}

        def work(transaction: Transaction, values: dict[str, object] = values) -> None:
            transaction.execute_update(LOAD, params=values, param_types=types)

        database.run_in_transaction(work)


def change(database: Database, rows: int) -> None:
    """Gives 135 rows a commit timestamp."""

    def work(transaction: Transaction) -> None:
        transaction.execute_update(
            CHANGE,
            params={"every": rows // CHANGED, "changed": CHANGED},
            param_types={"every": param_types.INT64, "changed": param_types.INT64},
        )

    database.run_in_transaction(work)


def poll(database: Database) -> tuple[int, int, float]:
    """Rows found, rows scanned, and the median of the server's milliseconds."""
    params = {"shards": list(range(-18, 19)), "start": "1970-01-01T00:00:00Z"}
    types = {"shards": param_types.Array(param_types.INT64), "start": param_types.TIMESTAMP}
    times: list[float] = []
    found = scanned = 0
    for _ in range(POLLS):
        with database.snapshot() as snapshot:
            results = snapshot.execute_sql(
                POLL, params=params, param_types=types, query_mode=PROFILE
            )
            found = sum(1 for _ in results)
            stats = results.stats.query_stats
        scanned = int(stats["rows_scanned"])
        times.append(float(str(stats["elapsed_time"]).split()[0]))
    return found, scanned, statistics.median(times)


def measure(rows: int) -> Footprint:
    """Loads, changes, polls, and starts the server again on the same files."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with spawn(folder) as server:
            database = connect(server.address)
            load(database, rows)
            change(database, rows)
            found, scanned, milliseconds = poll(database)
        size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
        began = time.perf_counter()
        with spawn(folder):
            ready = time.perf_counter() - began
    return Footprint(
        rows, round(size / rows, 1), round(ready, 3), found, scanned, round(milliseconds, 3)
    )


def main() -> None:
    """Reads the command line, prints JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.footprint", description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    options = parser.parse_args()
    sys.stdout.write(json.dumps(asdict(measure(options.rows))) + "\n")


if __name__ == "__main__":
    main()
