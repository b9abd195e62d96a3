"""Tests of one file or of one group run in one process, the longest group first."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from fixtures.distribution import name_group, rank_groups

FIXTURES = Path(__file__).parent / "fixtures"
WRITE_PROCESS = """
import os
from pathlib import Path
import pytest
{mark}
@pytest.mark.parametrize("example", range(6))
def test_process(example):
    with (Path(__file__).parent / "{name}").open("a") as file:
        print(os.environ["PYTEST_XDIST_WORKER"], file=file)
"""


def test_a_group_is_the_one_that_a_file_names_or_the_file() -> None:
    spark = "tests/end_to_end/test_spark_stream.py"
    assert name_group(f"{spark}::test_rows") == "spark"
    assert name_group("tests/test_skips.py::test_it[a@b]") == "tests/test_skips.py"
    assert name_group("gone.py::test_it") == "gone.py"


def test_the_group_that_takes_longest_is_first() -> None:
    nodes = ["a.py::test_a", "b.py::test_b[1]", "b.py::test_b[2]", "c.py::test_c"]
    durations = {"a.py::test_a": 3.0, "b.py::test_b": 2.0}
    assert rank_groups(nodes, durations) == {"b.py": 0, "a.py": 1, "c.py": 2}


def test_each_file_and_each_group_has_one_process(tmp_path: Path) -> None:
    """By pytest and pytest-xdist as they are installed: an older way was silently ignored."""
    tests = tmp_path / "tests"
    shutil.copytree(FIXTURES, tests / "fixtures")
    (tests / "conftest.py").write_text('pytest_plugins = ["fixtures.distribution"]\n')
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = xdist_group\n")
    files = {"test_a": "", "test_b": "", "test_c": "", "test_d": ""}
    for name in ("test_c", "test_d"):
        files[name] = 'pytestmark = pytest.mark.xdist_group("together")'
    for name, mark in files.items():
        (tests / f"{name}.py").write_text(WRITE_PROCESS.format(mark=mark, name=f"{name}.txt"))
    subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-n", "3", "--dist", "loadscope", "tests"],
        cwd=tmp_path,
        check=True,
        env={
            "PYTHONPATH": "tests",
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "PYTEST_PLUGINS": "xdist",
        },
    )
    processes = {name: (tests / f"{name}.txt").read_text().split() for name in files}
    assert all(len(each) == 6 for each in processes.values())
    assert len(set(processes["test_a"])) == len(set(processes["test_b"])) == 1
    assert len({*processes["test_c"], *processes["test_d"]}) == 1
