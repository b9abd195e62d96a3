"""What an operator sees, for Prometheus: measured from the database, for every consumer at once.

A watcher's own metrics are in runners/metrics.py; these have other names, so that both may be
scraped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from watcher.consumers.states import State
from watcher.overview.conditions import judge
from watcher.overview.values import ConsumerOverview, Overview

PREFIX = "spanner_watcher"
CONSUMER, TABLE = ["consumer"], ["consumer", "table"]


class OverviewCollector(Collector):
    """Gauges of the latest overview; none before there is one."""

    def __init__(self, latest: Callable[[], Overview | None]) -> None:
        self._latest = latest

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """As ``Collector.collect``."""
        overview = self._latest()
        if overview is None:
            return
        yield from collect_consumers(overview)
        yield from collect_tables(overview)
        yield from collect_backfills(overview)
        yield from collect_indexes(overview)


def make_gauge(name: str, meaning: str, labels: list[str]) -> GaugeMetricFamily:
    """A gauge without values."""
    return GaugeMetricFamily(f"{PREFIX}_{name}", meaning, labels=labels)


def collect_consumers(overview: Overview) -> Iterator[GaugeMetricFamily]:
    """A value for each consumer."""
    alive = make_gauge("consumer_alive", "1 while an instance holds the lease", CONSUMER)
    state = make_gauge("consumer_state", "1 for the state that it is in", [*CONSUMER, "state"])
    condition = make_gauge(
        "consumer_condition",
        "1 for the worst condition that it is in",
        [*CONSUMER, "condition", "level"],
    )
    for each in overview.consumers:
        worst = judge(each, overview.database).worst
        condition.add_metric([each.consumer, str(worst.condition), str(worst.level)], 1.0)
        alive.add_metric([each.consumer], float(each.alive))
        for name in State:
            state.add_metric([each.consumer, str(name)], float(each.state == name))
    yield alive
    yield state
    yield condition
    readings: dict[tuple[str, str], Callable[[ConsumerOverview], float | None]] = {
        ("consumer_rows_per_second", "Rows/s of its last run"): lambda c: c.rows_per_second,
        ("consumer_delivered_rows", "Rows that its last run delivered"): lambda c: c.delivered_rows,
        ("consumer_dead_letters", "Changes in its file of dead letters"): lambda c: c.dead_letters,
        ("consumer_last_error_seconds", "When it met its last error, in seconds since 1970"): (
            lambda c: c.last_error.occurred_at / 1_000_000 if c.last_error else None
        ),
    }
    for (name_, meaning), read in readings.items():
        gauge = make_gauge(name_, meaning, CONSUMER)
        for each in overview.consumers:
            if (value := read(each)) is not None:
                gauge.add_metric([each.consumer], float(value))
        yield gauge


def collect_tables(overview: Overview) -> Iterator[GaugeMetricFamily]:
    """A value for each table of a consumer."""
    lag = make_gauge("consumer_lag_seconds", "Age of the position, unless it has ended", TABLE)
    behind = make_gauge(
        "consumer_rows_behind", "Rows after the position; no more than 10,000 are counted", TABLE
    )
    lost = make_gauge(
        "lost_in_seconds", "Until the change stream deletes records that were not read", TABLE
    )
    exact = make_gauge(
        "exact_for_seconds", "Until the row versions at the position are deleted", TABLE
    )
    proved = make_gauge(
        "copy_proved_seconds",
        "When the copy was proved equal, in seconds since 1970; 0: not as a whole",
        TABLE,
    )
    share = make_gauge(
        "copy_proved_ratio", "Part of its rows that was compared whole within the time", TABLE
    )
    for consumer in overview.consumers:
        for table in consumer.tables:
            proof = table.proof
            rows = table.rows_behind.rows if table.rows_behind else None
            for gauge, value in (
                (lag, table.lag_seconds),
                (behind, rows),
                (lost, table.lost_in_seconds),
                (exact, table.exact_for_seconds),
                (proved, None if proof is None else (proof.at or 0) / 1_000_000),
                (share, None if proof is None else proof.share),
            ):
                if value is not None:
                    gauge.add_metric([consumer.consumer, table.table], float(value))
    yield from (lag, behind, lost, exact, proved, share)


def collect_backfills(overview: Overview) -> Iterator[GaugeMetricFamily]:
    """A value for each backfill under way."""
    left = make_gauge(
        "backfill_rows_left", "Rows that a backfill has left; at most 10,000 are counted", TABLE
    )
    exact = make_gauge(
        "backfill_exact_for_seconds", "Until the row versions of its snapshot are deleted", TABLE
    )
    for each in overview.backfills:
        exact.add_metric([each.consumer, each.table], each.exact_for_seconds)
        if each.left is not None:
            left.add_metric([each.consumer, each.table], float(each.left.rows))
    yield from (left, exact)


def collect_indexes(overview: Overview) -> Iterator[GaugeMetricFamily]:
    """A value for each index."""
    rows = make_gauge("index_rows", "Rows in the index, counted up to a limit", ["table"])
    fullest = make_gauge("index_fullest_shard_rows", "Rows of its fullest shard", ["table"])
    clearable = make_gauge(
        "index_clearable_rows", "Rows that every consumer has delivered", ["table"]
    )
    for index in overview.indexes:
        rows.add_metric([index.table], float(index.rows.rows))
        fullest.add_metric([index.table], float(max(s.count.rows for s in index.shards)))
        if index.clearable is not None:
            clearable.add_metric([index.table], float(index.clearable.rows))
    yield from (rows, fullest, clearable)
