"""Spark's processes import PySpark as it is installed, not from the zip that Spark puts first."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyspark
import pytest

from watcher.process.spark.installed_spark import LIBRARY, find_zips

INSTALLED = Path(pyspark.__file__).parent
ZIPS = sorted(map(str, (INSTALLED / LIBRARY).glob("py*.zip")))
JAR = "/no/spark-core_2.13-4.jar"
SECONDS_MAX = 300
SHOW = """
import json, py4j, pyspark, sys
cached = sys.path_importer_cache
jars = [entry for entry in [*sys.path, *cached] if "spark-core" in entry]
zips = [entry for entry in [*sys.path, *cached] if "pyspark.zip" in entry]
print(json.dumps([pyspark.__file__, py4j.__file__, sys.argv, [*zips, *jars]]))
"""
BECOME = "from watcher.process.spark.installed_spark import run_python; run_python()"
DAEMON = (
    f"from watcher.process.spark.installed_spark import use_installed_spark as use; use()\n{SHOW}"
)


LEAVE = """
import gc, json, pyspark.sql.types, sys
frozen = gc.get_freeze_count()  # Python 3.12 begins with some
{worker}
import watcher.runners.spark, pyspark.sql.avro.functions as late
caches = [entry for entry in sys.path_importer_cache if ".zip" in entry or ".jar" in entry]
on_path = [entry for entry in sys.path if ".zip" in entry or ".jar" in entry]
more = gc.get_freeze_count() > frozen
print(json.dumps([pyspark.__file__, late.__file__, caches, on_path, more]))
"""


def run_python(*arguments: str, zips: Sequence[str] = ZIPS) -> list[Any]:
    """What a process prints that Spark has started: with its zips first on the path."""
    path = os.pathsep.join([*zips, JAR, *filter(None, sys.path)])
    done = subprocess.run(
        [sys.executable, *arguments],
        env=os.environ | {"PYTHONPATH": path},
        stdout=subprocess.PIPE,
        text=True,
        timeout=SECONDS_MAX,
        check=True,
    )
    printed: list[Any] = json.loads(done.stdout)
    return printed


def is_zipped(file: object) -> bool:
    return ".zip" in str(file)


def test_spark_has_zips_that_come_first() -> None:
    spark, py4j, _, jars = run_python("-c", SHOW)
    assert is_zipped(spark)
    assert is_zipped(py4j)
    assert JAR in jars


def test_the_command_is_this_interpreter_without_the_zips_and_the_jar() -> None:
    spark, py4j, arguments, jars = run_python("-c", BECOME, "-c", SHOW, "-m", "a b")
    assert spark == str(INSTALLED / "__init__.py")
    assert not is_zipped(py4j)
    assert arguments == ["-c", "-m", "a b"]
    assert not jars


def test_the_daemon_takes_the_zips_and_the_jar_off_its_path() -> None:
    spark, py4j, _, jars = run_python("-c", DAEMON)
    assert spark == str(INSTALLED / "__init__.py")
    assert not is_zipped(py4j)
    assert not jars


def test_a_worker_whose_path_has_no_zips_leaves_the_jar() -> None:
    """A worker of an earlier daemon, or of a Python that was started without zips."""
    worker = LEAVE.format(worker="import pyspark.worker_util")
    spark, late, caches, on_path, _ = run_python("-c", worker, zips=[])
    assert spark == str(INSTALLED / "__init__.py")
    assert late == str(INSTALLED / "sql" / "avro" / "functions.py")
    assert not any("spark-core" in entry for entry in [*caches, *on_path])


def copy_zips(folder: Path, change: bytes = b"") -> list[str]:
    """Zips as a cluster has them, elsewhere; ``change`` is added to one module."""
    copies = [folder / Path(each).name for each in ZIPS]
    for original, copy in zip(ZIPS, copies, strict=True):
        with zipfile.ZipFile(original) as read, zipfile.ZipFile(copy, "w") as written:
            for entry in read.infolist():
                more = change if entry.filename == "pyspark/version.py" else b""
                written.writestr(entry.filename, read.read(entry) + more)
    return [str(copy) for copy in copies]


@pytest.mark.parametrize("copied", [False, True], ids=["own", "of-the-cluster"])
def test_a_worker_leaves_the_zips_when_it_loads_the_source(tmp_path: Path, copied: bool) -> None:
    zips = copy_zips(tmp_path) if copied else ZIPS
    worker = LEAVE.format(worker="import pyspark.worker_util")
    spark, late, caches, on_path, frozen = run_python("-c", worker, zips=zips)
    assert is_zipped(spark)
    assert late == str(INSTALLED / "sql" / "avro" / "functions.py")
    # The standard library may be in a zip, too.
    assert not any("pyspark" in entry or "py4j" in entry for entry in [*caches, *on_path])
    assert not any("spark-core" in entry for entry in on_path)
    assert frozen


def test_a_driver_keeps_its_path() -> None:
    spark, late, _, on_path, frozen = run_python("-c", LEAVE.format(worker=""))
    assert is_zipped(spark)
    assert is_zipped(late)
    assert set(ZIPS) <= set(on_path)
    assert not frozen


def test_a_zip_with_another_module_is_another_pyspark(tmp_path: Path) -> None:
    assert find_zips([*copy_zips(tmp_path), *sys.path]) == copy_zips(tmp_path)
    changed = copy_zips(tmp_path, b"# changed")
    assert find_zips([*changed, *sys.path]) == [each for each in changed if "py4j" in each]


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
