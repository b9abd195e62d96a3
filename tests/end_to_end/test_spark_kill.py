"""A Spark application that is killed again and again delivers every window once. Few kills here;
``SPARK_KILLS`` sets their number, and kill_spark.py does it by the hundred."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from kill_spark import run

from spanner_schema.model.schema import Dialect

pytestmark = [pytest.mark.spark]

KILLS = int(os.environ.get("SPARK_KILLS", "2"))


@pytest.mark.timeout(600 + 120 * KILLS)
def test_kills_lose_nothing_and_double_nothing(tmp_path: Path) -> None:
    report = run(tmp_path, KILLS, seed=7, cluster=False, dialect=Dialect.GOOGLESQL)
    assert sum(report.kills.values()) == KILLS
    assert report.batches > 1
