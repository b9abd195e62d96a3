"""An archive of classes made by the command, and a session whose Java takes its classes from it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from fixtures.commands import run_command

SECONDS_MAX = 600
JOB = """
import sys
import watcher
watcher.prestart()
from pyspark.sql import SparkSession
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
print(spark.range(5).count())
spark.stop()
"""
FROM_ARCHIVE = "source: shared objects file (top)"


@pytest.mark.spark
@pytest.mark.timeout(SECONDS_MAX * 2)
def test_a_session_takes_its_classes_from_the_archive(tmp_path: Path) -> None:
    cache = {"XDG_CACHE_HOME": str(tmp_path / "my cache")}
    made = run_command("spark-archive", "--json", **cache)
    assert made.returncode == 0, made.stderr
    archive = json.loads(made.stdout)
    assert Path(archive["path"]).stat().st_size == archive["bytes"]
    assert [each.name for each in Path(archive["path"]).parent.iterdir()] == [
        Path(archive["path"]).name
    ]
    loaded = tmp_path / "loaded"
    environment = {"SPARK_SUBMIT_OPTS": f'"-Xlog:class+load:file={loaded}"'}
    ran = subprocess.run(
        [sys.executable, "-c", JOB],
        env=os.environ | cache | environment,
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=True,
    )
    assert ran.stdout == "5\n"
    classes = loaded.read_text().splitlines()
    assert sum(FROM_ARCHIVE in line for line in classes) > len(classes) / 2
