"""Spark's Python processes as forks of one that the driver has started and that has imported the
source: what a fork sees, how it ends, and what becomes of it all when the driver ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyspark
import pytest

from watcher.process.spark.installed_spark import LIBRARY, TEMPLATE, find_worker_python

SECONDS_MAX = 300
ZIPS = sorted(map(str, (Path(pyspark.__file__).parent / LIBRARY).glob("py*.zip")))
ENVIRONMENT = {"PYTHONHASHSEED": "0", "PYTHONUNBUFFERED": "YES"}
DRIVER = """
import sys
from watcher.process.spark.template_start import offer_template
print(offer_template({"PYTHONHASHSEED": "0"}), flush=True)
sys.stdin.read()
"""
LOOK = """
import json, os, sys
print(json.dumps({
    "forked": "watcher.runners.spark.source" in sys.modules,
    "arguments": sys.argv[1:],
    "read": sys.stdin.readline(),
    "folder": os.getcwd(),
    "first": sys.path[0],
    "zips": [each for each in sys.path if each.endswith("pyspark.zip")],
    "ours": os.environ.get("OURS"),
    "hash": hash("spanner"),
    "name": __name__,
}))
sys.stderr.write("said\\n")
sys.exit(int(sys.argv[1]))
"""
SLEEP = "import sys, threading; print('up', flush=True); threading.Event().wait()"

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="forks are followed by descriptors of processes"
)


@contextmanager
def driver() -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A process that has started a template, and its address."""
    with subprocess.Popen(
        [sys.executable, "-c", DRIVER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        # The template has it, too: it is read to its end when both have ended.
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        try:
            yield process, process.stdout.readline().strip()
        finally:
            process.kill()


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with driver() as (_, address):
        yield address


def start(address: str, folder: Path, module: str, *arguments: str, **more: str) -> Any:
    """What Spark does: its zips are first on the path."""
    path = os.pathsep.join([*ZIPS, str(folder)])
    return subprocess.Popen(
        [find_worker_python(), "-m", module, *arguments],
        env=os.environ | ENVIRONMENT | {"PYTHONPATH": path, TEMPLATE: address} | more,
        cwd=folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def look(address: str, folder: Path, code: int = 0, **more: str) -> dict[str, Any]:
    (folder / "look.py").write_text(LOOK)
    process = start(address, folder, "look", str(code), "a b", **more)
    out, errors = process.communicate("a line\n", timeout=SECONDS_MAX)
    assert process.returncode == code, errors
    assert "said" in errors
    found: dict[str, Any] = json.loads(out)
    return found


def test_a_fork_is_the_process_that_was_asked_for(address: str, tmp_path: Path) -> None:
    found = look(address, tmp_path, code=7, OURS="1")
    assert found.pop("forked")
    assert found == {
        "arguments": ["7", "a b"],
        "read": "a line\n",
        "folder": str(tmp_path),
        "first": str(tmp_path),
        "zips": [],
        "ours": "1",
        "hash": look("", tmp_path)["hash"],
        "name": "__main__",
    }


def test_another_start_of_python_is_not_forked(address: str, tmp_path: Path) -> None:
    found = look(address, tmp_path, PYTHONHASHSEED="1")
    assert not found["forked"]
    assert found["hash"] != look(address, tmp_path)["hash"]


def test_without_a_template_python_is_started(tmp_path: Path) -> None:
    found = look(str(tmp_path / "nobody"), tmp_path)
    assert not found["forked"]
    assert found["zips"] == []


def test_a_fork_ends_by_the_signal_that_its_launcher_gets(address: str, tmp_path: Path) -> None:
    (tmp_path / "sleep.py").write_text(SLEEP)
    process = start(address, tmp_path, "sleep")
    assert process.stdout.readline() == "up\n"
    process.terminate()
    process.communicate(timeout=SECONDS_MAX)
    assert process.returncode == -signal.SIGTERM


def test_a_killed_launcher_takes_its_fork_along(address: str, tmp_path: Path) -> None:
    (tmp_path / "sleep.py").write_text(SLEEP)
    process = start(address, tmp_path, "sleep")
    assert process.stdout.readline() == "up\n"
    process.kill()
    # The output of the fork ends when nobody has it any more.
    assert process.communicate(timeout=SECONDS_MAX)[0] == ""


@pytest.mark.parametrize("killed", [False, True], ids=["ended", "killed"])
def test_the_template_ends_with_the_driver(tmp_path: Path, killed: bool) -> None:
    with driver() as (process, address):
        assert look(address, tmp_path)["forked"]
        if killed:
            process.kill()
        process.communicate(timeout=SECONDS_MAX)
    assert not Path(address).parent.exists()
    assert not look(address, tmp_path)["forked"]


PRESTART = """
import json, os, sys, watcher
watcher.prestart()
print(json.dumps([os.environ.get("PYSPARK_PYTHON"), "SPANNER_WATCHER_TEMPLATE" in os.environ]))
"""


@pytest.mark.parametrize("own", ["", sys.executable], ids=["ours", "own"])
def test_a_python_of_the_user_s_own_is_kept(own: str) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "PYSPARK_PYTHON"}
    printed = subprocess.run(
        [sys.executable, "-c", PRESTART],
        env=environment | ({"PYSPARK_PYTHON": own} if own else {}),
        stdout=subprocess.PIPE,
        text=True,
        timeout=SECONDS_MAX,
        check=True,
    ).stdout
    assert json.loads(printed) == ([own, False] if own else [find_worker_python(), True])
