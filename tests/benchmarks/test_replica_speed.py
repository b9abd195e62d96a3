"""The measurement of replicas in a small size, without Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.conduct import conduct
from benchmarks.merge_costs import MergeCost, measure_merges
from benchmarks.position_costs import measure_all
from benchmarks.replica_speed import (
    KEYS,
    ReplicaBench,
    choose_keys,
    measure_changes,
    start_server,
)
from benchmarks.scan_costs import READERS, measure_scans
from benchmarks.scenario import number
from benchmarks.scenarios import find_scenario
from benchmarks.verify_costs import ENGINES, measure_verify
from benchmarks.verify_scale import Scale

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


@pytest.mark.parametrize("to", list(ENGINES))
def test_proofs_are_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, to: str) -> None:
    with start_server(tmp_path) as server:
        monkeypatch.setenv("SPANNER_EMULATOR_HOST", server.address)
        bench = ReplicaBench(server, tmp_path, to, ENGINES[to])
        steps = list(measure_verify(bench, ROWS, 10))
    names = ("initial load", "verify", "verify --data-boost", *["verify --incremental"] * 3)
    assert [each.step for each in steps if each.step != "merge"] == list(names)


def test_each_way_finds_the_same_rows(tmp_path: Path) -> None:
    costs = list(measure_all(tmp_path, 1_000, [10]))
    assert [each.by for each in costs] == ["index", "polars", "row groups"] * 3


def test_scans_are_measured_with_more_and_more_deleted_rows(tmp_path: Path) -> None:
    costs = list(measure_scans(tmp_path, 1_000))
    assert [each.deleted for each in costs] == [n for n in (0, 30, 80) for _ in READERS]


def test_passes_over_a_large_copy_do_not_grow_with_it(tmp_path: Path) -> None:
    whole, killed, later = Scale(tmp_path, ranges=800, rows_a_range=3).steps()
    assert all(each.equal for each in (whole, killed, later))
    assert (whole.ranges, whole.passes) == (800, 1)
    assert (killed.ranges, killed.passes) == (400, 20)  # ranges of the run that goes on
    assert (later.ranges, later.passes) == (5, 1)  # an hour of seven days
    assert later.proof_kb


def test_changes_wait_for_the_first_cut_that_has_them() -> None:
    cuts = [(100, 0.5), (200, 0.000_025)]
    measured = measure_changes([(100, 2), (101, 1), (200, 1), (201, 3)], cuts, 1.0)
    assert measured.micros.tolist() == [500_000, 500_000, 124, 25]
    assert (measured.unread, measured.cuts) == (3, 2)


def test_a_copy_is_measured_from_commit_to_cut() -> None:
    result = conduct(find_scenario("replica"), ("rows=300", "rate=50", "seconds=2"))
    assert result.passed
    (figure,) = result.figures
    values = [number(figure[name]) or 0 for name in ("changes", "p50_s", "p99_s", "max_s")]
    assert values[0] >= 50
    assert 0 < values[1] <= values[2]
    assert values[3] > 0


def test_chosen_keys_are_as_many_as_asked_for() -> None:
    for kind in KEYS:
        for count in (0, 1, 50, 1_000):
            chosen = choose_keys(kind, 1_000, count)
            assert len(set(chosen)) == len(chosen) == count
            assert set(chosen) <= set(range(1_000))
    hot = [key for key in choose_keys("skewed", 100_000, 1_000) if key < 1_000]
    assert len(hot) >= 500


def test_what_merges_cost_is_measured(tmp_path: Path) -> None:
    costs = [
        cost
        for merging in ("merge-on-read", "copy-on-write")
        for cost in measure_merges(tmp_path / merging, merging, 4_000, [10, 100], "random")
    ]
    assert [(each.merging, each.changes) for each in costs] == [
        (merging, changes)
        for merging in ("merge-on-read", "copy-on-write")
        for changes in (10, 100)
    ]
    by_way = {
        way: [c for c in costs if c.merging == way] for way in ("merge-on-read", "copy-on-write")
    }

    def written(way: str) -> list[int]:
        costs_of: list[MergeCost] = by_way[way]
        return [each.written for each in costs_of]

    assert max(written("merge-on-read")) < min(written("copy-on-write"))


def test_what_merges_into_iceberg_cost_is_measured(tmp_path: Path) -> None:
    (cost,) = measure_merges(tmp_path, "merge-on-read", 4_000, [100], "random", "iceberg")
    assert (cost.format, cost.changes) == ("iceberg", 100)
    assert cost.written > cost.own
    assert cost.index > 0
