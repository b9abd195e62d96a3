"""What the embedded server did for a client's queries, as its SPANNER_SYS tells."""

from __future__ import annotations

from dataclasses import dataclass

from google.cloud.spanner_v1 import param_types
from google.cloud.spanner_v1.database import Database

from benchmarks.index import TAG, TAGGED
from watcher.spanner.dialects import find_dialect

STATS = (
    "SELECT SUM(EXECUTION_COUNT), SUM(EXECUTION_COUNT * AVG_ROWS),"
    " SUM(EXECUTION_COUNT * AVG_ROWS_SCANNED), SUM(EXECUTION_COUNT * AVG_CPU_SECONDS)"
    " FROM SPANNER_SYS.QUERY_STATS_TOP_HOUR"
    " WHERE REQUEST_TAG != @tag AND RUN_IN_RW_TRANSACTION_EXECUTION_COUNT = 0"
)


@dataclass(frozen=True, slots=True)
class QueryCosts:
    """Sums over all queries outside of read-write transactions, the benchmark's own left out."""

    queries: int
    rows_returned: int
    rows_scanned: int
    cpu_seconds: float

    def subtract(self, before: QueryCosts) -> QueryCosts:
        """What came after."""
        return QueryCosts(
            self.queries - before.queries,
            self.rows_returned - before.rows_returned,
            self.rows_scanned - before.rows_scanned,
            round(self.cpu_seconds - before.cpu_seconds, 3),
        )


def query_costs(database: Database) -> QueryCosts:
    """Until now."""
    with database.snapshot() as snapshot:
        bound = find_dialect(database).bind(STATS, {"tag": (TAG, param_types.STRING)})
        results = snapshot.execute_sql(*bound, request_options=TAGGED)
        row = next(iter(results))
    queries, returned, scanned, cpu = (each or 0 for each in row)
    return QueryCosts(int(queries), round(returned), round(scanned), float(cpu))
