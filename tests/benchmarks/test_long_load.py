"""The measurement of a load that lasts longer than versions are kept, in a small size."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.long_load import run_long_load


def test_a_load_with_kills_is_exact(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPANNER_EMULATOR_HOST", "")
    seen = run_long_load(
        tmp_path, rows=3_000, rate=100.0, kept_seconds=60.0, load_seconds=0.0, kills=1
    )
    assert seen.equal
    assert (seen.rows, seen.kills) == (3_000, 1)
    assert seen.rows_at_cut > 0
