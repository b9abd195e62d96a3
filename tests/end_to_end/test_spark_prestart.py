"""Workers that are started ahead have imported the source before a query runs in them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from watcher.process.spark.java import ensure_java

SECONDS_MAX = 500
JOB = """
import sys
from pyspark.sql import SparkSession
from watcher.runners.spark import prestart_workers

spark = (
    SparkSession.builder.master("local[1]")
    .config("spark.ui.enabled", "false")
    .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
    .getOrCreate()
)

def look(batches):
    import sys
    import pyarrow as pa
    for batch in batches:
        imported = "watcher.runners.spark.source" in sys.modules
        yield pa.RecordBatch.from_pydict({"imported": [imported] * batch.num_rows})

def has_imported():
    return spark.range(0, 1, 1, 1).mapInArrow(look, "imported boolean").collect()[0][0]

print("BEFORE", has_imported())
prestart_workers(spark).join()
print("AFTER", has_imported())
"""


@pytest.mark.spark
@pytest.mark.timeout(SECONDS_MAX * 2)
def test_workers_that_are_started_ahead_have_imported_the_source(tmp_path: Path) -> None:
    ensure_java()
    job = tmp_path / "job.py"
    job.write_text(JOB)
    ran = subprocess.run(
        [sys.executable, str(job)],
        env=os.environ | {"PYSPARK_PYTHON": sys.executable},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
    )
    assert "BEFORE False\nAFTER True\n" in ran.stdout, ran.stderr
