"""A Spark session that the product starts on this machine listens on loopback alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import json, os, re
from pathlib import Path
from watcher.runners.spark_job import open_session
from watcher.settings.watcher import parse_watch_config

config = parse_watch_config({
    "database": "spanner://projects/p1/instances/i1/databases/d1",
    "replica": {"to": "parquet:copies", "engine": "spark", "spark": {"spark.master": "local[1]"}},
})
session = open_session(config)
jvm = session.sparkContext._gateway.proc.pid
inodes = set()
for fd in Path(f"/proc/{jvm}/fd").iterdir():
    inodes |= set(re.findall(r"socket:\\[(\\d+)\\]", os.readlink(fd)))
listening = []
for name in ("tcp", "tcp6"):
    for line in Path(f"/proc/{jvm}/net/{name}").read_text().splitlines()[1:]:
        fields = line.split()
        if fields[3] == "0A" and fields[9] in inodes:
            listening.append(fields[1].partition(":")[0])
print(json.dumps(listening))
session.stop()
"""
LOOPBACK = {
    "0100007F",
    "00000000000000000000000001000000",
    "0000000000000000FFFF00000100007F",
}


@pytest.mark.spark
def test_it_listens_on_loopback_alone(tmp_path: Path) -> None:
    """Spark's page on port 4040 listened on every address, and asks for no password."""
    environment = {name: value for name, value in os.environ.items() if name != "SPARK_LOCAL_IP"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    listening = json.loads(done.stdout.splitlines()[-1])
    assert listening
    assert set(listening) <= LOOPBACK
