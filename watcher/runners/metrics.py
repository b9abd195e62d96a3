"""What a watcher counts, for Prometheus."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge, start_http_server


class Metrics:
    """The metrics of one consumer, in a registry of their own."""

    def __init__(self, consumer: str) -> None:
        self.registry = CollectorRegistry()
        label = ("consumer", "table")
        self._consumer = consumer
        self._port: int | None = None
        self._rows = Counter(
            "spanner_watcher_rows", "Rows delivered", label, registry=self.registry
        )
        self._windows = Counter(
            "spanner_watcher_windows", "Windows delivered", label[:1], registry=self.registry
        )
        self._errors = Counter(
            "spanner_watcher_errors", "Errors met", ("consumer", "kind"), registry=self.registry
        )
        self._cleared = Counter(
            "spanner_watcher_cleared_rows",
            "Rows cleared from the index",
            label,
            registry=self.registry,
        )
        self._position = Gauge(
            "spanner_watcher_position_seconds",
            "End of the last delivered window, in seconds since 1970",
            label[:1],
            registry=self.registry,
        )
        lag = Gauge(
            "spanner_watcher_lag_seconds",
            "Age of the end of the last delivered window",
            label[:1],
            registry=self.registry,
        )
        self._retries = Counter(
            "spanner_watcher_retries",
            "Windows and changes that were retried",
            ("consumer", "what"),
            registry=self.registry,
        )
        self._scanned = Gauge(
            "spanner_watcher_scanned_rows",
            "Rows that Spanner scanned for the queries of this process, as it counts them",
            label[:1],
            registry=self.registry,
        )
        self._restarts = Gauge(
            "spanner_watcher_stream_restarts",
            "Streams that broke and were resumed",
            label[:1],
            registry=self.registry,
        )
        self._end = 0.0
        lag.labels(consumer).set_function(lambda: time.time() - self._end if self._end else 0.0)

    def count_window(self, rows: Mapping[str, int], end: int) -> None:
        """A window was delivered; ``end`` in microseconds since 1970."""
        self._end = end / 1_000_000
        self._windows.labels(self._consumer).inc()
        self._position.labels(self._consumer).set(self._end)
        for table, count in rows.items():
            self._rows.labels(self._consumer, table).inc(count)

    def count_backfilled(self, rows: Mapping[str, int]) -> None:
        """A page of a backfill was delivered."""
        for table, count in rows.items():
            self._rows.labels(self._consumer, table).inc(count)

    def count_error(self, kind: str) -> None:
        """A window failed with this kind of error."""
        self._errors.labels(self._consumer, kind).inc()

    def count_retry(self, what: str) -> None:
        """A window or a change is retried."""
        self._retries.labels(self._consumer, what).inc()

    def measure_queries(self, scanned: Callable[[], float], restarts: Callable[[], float]) -> None:
        """Reads the numbers of scanned rows and of resumed streams from these functions."""
        self._scanned.labels(self._consumer).set_function(scanned)
        self._restarts.labels(self._consumer).set_function(restarts)

    def count_cleared(self, table: str, rows: int) -> None:
        """Rows of a table were cleared from its index."""
        self._cleared.labels(self._consumer, table).inc(rows)

    def serve(self, host: str, port: int) -> int:
        """Serves the metrics over HTTP from now on; the port, which 0 lets the system choose."""
        if self._port is None:
            server, _ = start_http_server(port, host, self.registry)
            self._port = int(server.server_port)
        return self._port
