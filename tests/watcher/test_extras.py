"""What needs the extra ``spark`` only can be imported where ``deltalake`` is not installed."""

from __future__ import annotations

import subprocess
import sys

import pytest

WITHOUT_DELTALAKE = (
    "import sys; sys.modules['deltalake'] = None; import {module}; print('imported')"
)


@pytest.mark.parametrize(
    "module",
    [
        "watcher.replica.frame_reading",
        "watcher.runners.spark_replica",
        "watcher.runners.spark_job",
    ],
)
def test_replicas_by_spark_do_without_deltalake(module: str) -> None:
    command = [sys.executable, "-c", WITHOUT_DELTALAKE.format(module=module)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "imported", done.stderr
