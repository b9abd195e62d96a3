"""Workers that have imported the source before a query runs in them: forks of the template, and,
with a Python of the user's, workers that were started ahead."""

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
import watcher
from watcher.runners.spark.prestart import prestart_workers

if sys.argv[1] == "before":
    watcher.prestart()
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

if sys.argv[1] == "workers":
    print("BEFORE", has_imported())
    prestart_workers(spark).join()
elif sys.argv[1] == "register":
    watcher.register(spark)
print("AFTER", has_imported())
"""


def run_job(folder: Path, way: str, more: dict[str, str]) -> str:
    """What the job prints."""
    ensure_java()
    job = folder / "job.py"
    job.write_text(JOB)
    environment = {name: value for name, value in os.environ.items() if name != "PYSPARK_PYTHON"}
    ran = subprocess.run(
        [sys.executable, str(job), way],
        env=environment | more,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


@pytest.mark.spark
@pytest.mark.timeout(SECONDS_MAX * 2)
def test_workers_that_are_started_ahead_have_imported_the_source(tmp_path: Path) -> None:
    printed = run_job(tmp_path, "workers", {"PYSPARK_PYTHON": sys.executable})
    assert "BEFORE False\nAFTER True\n" in printed


@pytest.mark.spark
@pytest.mark.timeout(SECONDS_MAX * 2)
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="there is no template elsewhere")
@pytest.mark.parametrize("way", ["register", "before"])
def test_workers_of_this_machine_are_forks_of_the_template(tmp_path: Path, way: str) -> None:
    assert "AFTER True\n" in run_job(tmp_path, way, {})
