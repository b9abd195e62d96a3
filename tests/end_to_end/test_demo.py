"""The demo in a small size: the whole data path, its driver killed with -9, and its verdict."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.essential]


def test_the_demo_verifies_everything_row_by_row() -> None:
    result = subprocess.run(
        [
            *(sys.executable, "-c", "from watcher.cli import main; main()", "demo", "--json"),
            *("--rows", "500", "--rate", "400", "--seconds", "8", "--clear-every", "1"),
            *("--kill-driver", "1"),
        ],
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
        env={k: v for k, v in os.environ.items() if k != "SPANNER_EMULATOR_HOST"},
    )
    assert result.returncode == 0, result.stderr[-3000:]
    summary = json.loads(result.stdout)
    assert summary["verified"]
    assert summary["mutations"] == 3_200
    assert summary["missing"] == summary["duplicates"] == summary["invented"] == 0
    assert summary["driver_kills"] == 1
    assert summary["index_rows_after_clearing"] == 0
