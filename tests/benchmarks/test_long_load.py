"""The measurement of a load that lasts longer than versions are kept, in a small size."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.long_load import LoadPlan, find_peaks, run_long_load

ROWS = 12_000
"""So many that a load is seen before it is whole."""


def test_a_load_with_kills_is_exact(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPANNER_EMULATOR_HOST", "")
    plan = LoadPlan(
        rows=ROWS, rate=100.0, kept_seconds=60.0, chunk_seconds=0.0, kills=1, kill_within=0.0
    )
    seen = run_long_load(tmp_path, plan)
    assert seen.equal
    assert seen.refused
    assert (seen.rows, seen.kills) == (ROWS, 1)
    assert seen.rows_at_cut > 0


def test_peaks_are_of_each_fifth() -> None:
    assert find_peaks([]) == []
    assert find_peaks([1.0, 5.0]) == [1.0, 5.0]
    assert find_peaks([float(n) for n in range(10)]) == [1.0, 3.0, 5.0, 7.0, 9.0]
