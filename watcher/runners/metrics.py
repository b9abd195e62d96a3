"""What a watcher counts, for Prometheus."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Protocol

from prometheus_client import CollectorRegistry, Counter, Gauge, make_wsgi_app

from watcher.process.http_server import HttpServer
from watcher.spanner.timestamps import measure_age


class MetricFamilies:
    """What all consumers of a process count, in a registry of their own, served once."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        label = ("consumer", "table")
        self._port: int | None = None
        self.rows = Counter("spanner_watcher_rows", "Rows delivered", label, registry=self.registry)
        self.windows = Counter(
            "spanner_watcher_windows", "Windows delivered", label[:1], registry=self.registry
        )
        self.errors = Counter(
            "spanner_watcher_errors", "Errors met", ("consumer", "kind"), registry=self.registry
        )
        self.cleared = Counter(
            "spanner_watcher_cleared_rows",
            "Rows cleared from the index",
            label,
            registry=self.registry,
        )
        self.position = Gauge(
            "spanner_watcher_position_seconds",
            "End of the last delivered window, in seconds since 1970",
            label[:1],
            registry=self.registry,
        )
        self.lag = Gauge(
            "spanner_watcher_lag_seconds",
            "Age of the end of the last delivered window",
            label[:1],
            registry=self.registry,
        )
        self.retries = Counter(
            "spanner_watcher_retries",
            "Windows and changes that were retried",
            ("consumer", "what"),
            registry=self.registry,
        )
        self.scanned = Gauge(
            "spanner_watcher_scanned_rows",
            "Rows that Spanner scanned for the queries of this process, as it counts them",
            label[:1],
            registry=self.registry,
        )
        self.restarts = Gauge(
            "spanner_watcher_stream_restarts",
            "Streams that broke and were resumed",
            label[:1],
            registry=self.registry,
        )
        self.failed_calls = Gauge(
            "spanner_watcher_failed_calls",
            "Calls that Spanner did not answer, or refused for now, and that were made again",
            label[:1],
            registry=self.registry,
        )

        self.compactions = Counter(
            "spanner_watcher_compactions",
            "Rewrites of data files of a copy that were committed, or abandoned",
            (*label, "outcome"),
            registry=self.registry,
        )
        self.compacted = Counter(
            "spanner_watcher_compaction_written_bytes",
            "Bytes of data files that compaction has written",
            label,
            registry=self.registry,
        )
        self.compaction_seconds = Counter(
            "spanner_watcher_compaction_seconds",
            "Time that compaction took, between windows",
            label,
            registry=self.registry,
        )
        self.copy_files = Gauge(
            "spanner_watcher_copy_files", "Data files of a copy", label, registry=self.registry
        )
        self.copy_deleted = Gauge(
            "spanner_watcher_copy_deleted_rows",
            "Rows in data files of a copy that deletion vectors remove",
            label,
            registry=self.registry,
        )

    def serve(self, host: str, port: int) -> int:
        """Serves the metrics over HTTP from now on; the port, which 0 lets the system choose.
        Raises ConfigurationError."""
        if self._port is None:
            app = make_wsgi_app(self.registry, disable_compression=True)
            server = HttpServer(app, host, port, "metrics")
            server.start()
            self._port = server.port
        return self._port


class Measured(Protocol):
    """What runs the queries of a consumer."""

    scanned_rows: int
    restarts: int

    @property
    def failed_calls(self) -> int:
        """Calls that were made again."""
        ...

    def estimate_now(self) -> int | None:
        """Spanner's time in microseconds, where it is known."""
        ...


class Metrics:
    """The metrics of one consumer."""

    def __init__(self, consumer: str, families: MetricFamilies | None = None) -> None:
        self.families = families or MetricFamilies()
        self._consumer = consumer
        self._end = 0
        self._estimate_now: Callable[[], int | None] = lambda: None
        self.families.lag.labels(consumer).set_function(self._measure_lag)

    @property
    def registry(self) -> CollectorRegistry:
        """Where they are registered."""
        return self.families.registry

    def count_window(self, rows: Mapping[str, int], end: int) -> None:
        """A window was delivered; ``end`` in microseconds since 1970."""
        self._end = end
        self.families.windows.labels(self._consumer).inc()
        self.families.position.labels(self._consumer).set(end / 1_000_000)
        for table, count in rows.items():
            self.families.rows.labels(self._consumer, table).inc(count)

    def count_backfilled(self, rows: Mapping[str, int]) -> None:
        """A page of a backfill was delivered."""
        for table, count in rows.items():
            self.families.rows.labels(self._consumer, table).inc(count)

    def count_error(self, kind: str) -> None:
        """A window failed with this kind of error."""
        self.families.errors.labels(self._consumer, kind).inc()

    def count_retry(self, what: str) -> None:
        """A window or a change is retried."""
        self.families.retries.labels(self._consumer, what).inc()

    def measure_queries(self, stream: Measured) -> None:
        """Reads the numbers of scanned rows, of resumed streams and of failed calls, and Spanner's
        time, from what runs the queries."""
        self._estimate_now = stream.estimate_now
        self.families.scanned.labels(self._consumer).set_function(lambda: stream.scanned_rows)
        self.families.restarts.labels(self._consumer).set_function(lambda: stream.restarts)
        self.families.failed_calls.labels(self._consumer).set_function(lambda: stream.failed_calls)

    def _measure_lag(self) -> float:
        return measure_age(self._end, self._estimate_now()) if self._end else 0.0

    def count_compaction(
        self, table: str, written: int, seconds: float, outcome: str | None
    ) -> None:
        """A run of compaction; ``outcome``: ``committed``, ``abandoned``, or None where the next
        run goes on."""
        self.families.compacted.labels(self._consumer, table).inc(written)
        self.families.compaction_seconds.labels(self._consumer, table).inc(seconds)
        if outcome is not None:
            self.families.compactions.labels(self._consumer, table, outcome).inc()

    def measure_copy(self, table: str, files: int, deleted: int) -> None:
        """The data files of a copy, and the rows of them that are deleted."""
        self.families.copy_files.labels(self._consumer, table).set(files)
        self.families.copy_deleted.labels(self._consumer, table).set(deleted)

    def count_cleared(self, table: str, rows: int) -> None:
        """Rows of a table were cleared from its index."""
        self.families.cleared.labels(self._consumer, table).inc(rows)

    def serve(self, host: str, port: int) -> int:
        """As ``MetricFamilies.serve``."""
        return self.families.serve(host, port)

    def forget_position(self) -> None:
        """Somebody else runs as this consumer now: what it has counted stays, its lag goes."""
        for family in (self.families.lag, self.families.position):
            with suppress(KeyError):
                family.remove(self._consumer)
