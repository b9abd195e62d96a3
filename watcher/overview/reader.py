"""Queries at one read timestamp that yield to everybody else's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from google.cloud.spanner_v1.database import Database

from watcher.spanner.dialects import SqlDialect, find_dialect
from watcher.spanner.read_options import DirectedRead
from watcher.spanner.requests import build_directed_read, build_type, make_low_options
from watcher.spanner.sql import Statement
from watcher.spanner.timestamps import to_datetime

LOW_PRIORITY = make_low_options("status")


@dataclass(frozen=True, slots=True)
class StaleReader:
    """A ``RowReader`` of a database as it was at ``at``, in microseconds since 1970.

    Spanner: a read at a timestamp some seconds ago is served by the nearest replica, without asking
    the leader. Each query is a read-only transaction of its own: it holds nothing.
    """

    database: Database
    at: int
    seconds_max: float = 30.0
    directed_read: DirectedRead | None = None

    @property
    def sql(self) -> SqlDialect:
        """How statements are written for the database."""
        return find_dialect(self.database)

    def execute_sql(
        self,
        sql: str,
        params: Mapping[str, Any] | None = None,
        param_types: Mapping[str, Any] | None = None,
    ) -> list[list[Any]]:
        """The rows of a query. Raises DeadlineExceeded after ``seconds_max``."""
        directed = self.directed_read and build_directed_read(self.directed_read)
        with self.database.snapshot(read_timestamp=to_datetime(self.at)) as snapshot:
            return list(
                snapshot.execute_sql(
                    sql,
                    params=params,
                    param_types=param_types,
                    request_options=LOW_PRIORITY,
                    directed_read_options=directed,
                    timeout=self.seconds_max,
                )
            )

    def run(self, statement: Statement) -> list[list[Any]]:
        """The rows of a statement."""
        values = {
            name: (value, build_type(statement.types[name]))
            for name, value in statement.params.items()
        }
        return self.execute_sql(*self.sql.bind(statement.sql, values))
