"""Spark's processes import PySpark as it is installed, not from the zip that Spark puts first."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pyspark
import pytest

from watcher.process.spark.installed_spark import LIBRARY, find_zips

INSTALLED = Path(pyspark.__file__).parent
ZIPS = sorted(map(str, (INSTALLED / LIBRARY).glob("py*.zip")))
SECONDS_MAX = 300
SHOW = """
import json, py4j, pyspark, sys
print(json.dumps([pyspark.__file__, py4j.__file__, sys.argv]))
"""
BECOME = "from watcher.process.spark.installed_spark import run_python; run_python()"
DAEMON = (
    f"from watcher.process.spark.installed_spark import use_installed_spark as use; use()\n{SHOW}"
)


def run_python(*arguments: str) -> list[object]:
    """What a process prints that Spark has started: with its zips first on the path."""
    path = os.pathsep.join([*ZIPS, "/no/spark-core.jar", *filter(None, sys.path)])
    done = subprocess.run(
        [sys.executable, *arguments],
        env=os.environ | {"PYTHONPATH": path},
        stdout=subprocess.PIPE,
        text=True,
        timeout=SECONDS_MAX,
        check=True,
    )
    printed: list[object] = json.loads(done.stdout)
    return printed


def is_zipped(file: object) -> bool:
    return ".zip" in str(file)


def test_spark_has_zips_that_come_first() -> None:
    spark, py4j, _ = run_python("-c", SHOW)
    assert is_zipped(spark)
    assert is_zipped(py4j)


def test_the_command_is_this_interpreter_without_the_zips() -> None:
    spark, py4j, arguments = run_python("-c", BECOME, "-c", SHOW, "-m", "a b")
    assert spark == str(INSTALLED / "__init__.py")
    assert not is_zipped(py4j)
    assert arguments == ["-c", "-m", "a b"]


def test_the_daemon_takes_the_zips_off_its_path() -> None:
    spark, py4j, _ = run_python("-c", DAEMON)
    assert spark == str(INSTALLED / "__init__.py")
    assert not is_zipped(py4j)


def test_zips_of_the_installed_pyspark_are_found_and_no_others(tmp_path: Path) -> None:
    other = tmp_path / "pyspark.zip"
    with zipfile.ZipFile(other, "w") as file:
        file.writestr("pyspark/__init__.py", "")
    assert find_zips([*ZIPS, str(other), *sys.path]) == ZIPS


@pytest.mark.parametrize("rest", [[], ["installed"]], ids=["not-installed", "another-one"])
def test_zips_stay_where_spark_came_in_another_way(tmp_path: Path, rest: list[str]) -> None:
    for name in ("pyspark", "py4j"):
        package = tmp_path / "installed" / name
        package.mkdir(parents=True)
        (package / "__init__.py").touch()
    assert find_zips([*ZIPS, *(str(tmp_path / each) for each in rest)]) == []
