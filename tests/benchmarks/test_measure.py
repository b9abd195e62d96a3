"""From logs to figures: a late consumer is seen to be late, a stall is seen whole."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.load.latency import latency
from benchmarks.load.measure import Logs, measure
from benchmarks.load.records import ATTEMPTS, DELIVERED, WINDOWS, WRITTEN, Records

ROWS = 10_000
STEP = 1_000
BEGINNING = 5_000_000


def logs(late: int = 0) -> Logs:
    """A row a millisecond, committed 2 ms after it was due, delivered 10 ms later and ``late``."""
    written = np.zeros(ROWS, WRITTEN)
    written["key"] = written["version"] = np.arange(ROWS)
    written["intended"] = written["sent"] = BEGINNING + STEP * np.arange(ROWS)
    written["commit"] = written["acknowledged"] = written["intended"] + 2_000
    return Logs(written, arrivals(written, late), np.zeros(0, WINDOWS), np.zeros(0, ATTEMPTS))


def arrivals(written: Records, late: int) -> Records:
    delivered = np.zeros(len(written), DELIVERED)
    for name in ("table", "key", "version", "commit"):
        delivered[name] = written[name]
    delivered["at"] = delivered["commit"] + 10_000 + late
    return delivered


def test_latencies_are_from_the_commit_and_from_the_intended_moment() -> None:
    measured = measure(logs(), BEGINNING)
    assert measured.since_commit.p50 == pytest.approx(0.010, rel=0.002)
    assert measured.since_intended.p50 == pytest.approx(0.012, rel=0.002)
    assert measured.commit.p50 == pytest.approx(0.002, rel=0.002)
    assert measured.verdict.exact


def test_a_consumer_that_is_late_by_200_ms_is_seen_to_be() -> None:
    on_time, late = measure(logs(), BEGINNING), measure(logs(200_000), BEGINNING)
    for name in ("p50", "p99", "p999", "maximum"):
        difference = getattr(late.since_commit, name) - getattr(on_time.since_commit, name)
        assert difference == pytest.approx(0.2, rel=0.002)


def test_rows_that_were_due_while_the_server_stood_still_count_with_all_their_waiting() -> None:
    stalled = logs()
    stands = slice(4_000, 6_000)
    back = stalled.written["intended"][5_999] + STEP
    for name in ("commit", "acknowledged"):
        stalled.written[name][stands] = back
    measured = measure(
        Logs(stalled.written, arrivals(stalled.written, 0), stalled.windows, stalled.attempts),
        BEGINNING,
    )
    assert measured.since_intended.p999 > 1.9
    # From the commit on nothing was late: this is what coordinated omission would have shown.
    assert measured.since_commit.p999 < 0.011


def test_rates_and_seconds_are_of_the_whole_run() -> None:
    measured = measure(logs(), BEGINNING)
    assert measured.written_per_second == pytest.approx(1_000, rel=0.01)
    assert measured.delivered_per_second == pytest.approx(1_000, rel=0.01)
    assert sum(measured.series.written) == sum(measured.series.delivered) == ROWS
    assert measured.drain_seconds == pytest.approx(0.010)


def test_the_backlog_is_what_was_committed_and_had_not_come() -> None:
    measured = measure(logs(3_000_000), BEGINNING)
    assert max(measured.series.backlog) == pytest.approx(3_000, abs=20)
    assert measured.series.backlog[-1] == 0


def test_commits_that_were_sent_again_are_counted() -> None:
    logged = logs()
    attempts = np.zeros(2, ATTEMPTS)
    attempts["commits"], attempts["attempts"] = [10, 20], [13, 20]
    measured = measure(Logs(logged.written, logged.delivered, logged.windows, attempts), BEGINNING)
    assert measured.aborted == 3


def test_nothing_at_all_is_no_error() -> None:
    empty = Logs(*(np.zeros(0, kind) for kind in (WRITTEN, DELIVERED, WINDOWS, ATTEMPTS)))
    measured = measure(empty, BEGINNING)
    assert measured.since_commit.count == 0
    assert measured.series.written == ()


def test_a_histogram_keeps_three_digits() -> None:
    values = np.arange(1, 100_001)
    histogram = latency(values)
    assert histogram.p50 == pytest.approx(0.05, rel=0.002)
    assert histogram.p999 == pytest.approx(0.0999, rel=0.002)
    assert histogram.maximum == 0.1
    assert [p for p, _ in histogram.curve] == sorted(p for p, _ in histogram.curve)
