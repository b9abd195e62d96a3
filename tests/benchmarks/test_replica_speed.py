"""The measurement of replicas in a small size, without Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.replica_speed import ReplicaBench, start_server

ROWS = 200


def test_every_step_is_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with start_server(tmp_path) as server:
        monkeypatch.setenv("SPANNER_EMULATOR_HOST", server.address)
        bench = ReplicaBench(server, tmp_path, "delta", "delta-rs")
        steps = [bench.load(ROWS), bench.merge(ROWS // 2), bench.verify(ROWS)]
        lag = bench.measure_lag(rate=100, seconds=1.0, rows=ROWS)
    assert [(step.step, step.rows) for step in steps] == [
        ("initial load", ROWS),
        ("merge", ROWS // 2),
        ("verify", ROWS),
    ]
    assert all(step.scanned >= step.rows for step in steps)
    assert all(step.client_cpu_seconds > 0 and step.client_peak_mb > 0 for step in steps)
    assert bench.count_bytes() > 0
    assert lag["mutations"] >= 100
    assert lag["cuts"] >= 1
