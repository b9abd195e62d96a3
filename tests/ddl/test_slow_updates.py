"""A schema update that takes long: its progress, an interruption, and how it is found again."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Callable

import pytest
from fixtures.commands import CODE, run_command
from fixtures.consumers import ALBUMS
from fixtures.pace import allow
from fixtures.singers import SINGERS, address_of, make_watchable
from fixtures.warm_python import WarmProcess
from google.cloud.spanner_v1.database import Database

SECONDS = 60
INTERRUPTED = 130
SetFaults = Callable[..., None]


@pytest.mark.ddl(SINGERS, ALBUMS)
def test_an_interrupted_update_goes_on_is_found_and_is_completed(
    database: Database, faults: SetFaults
) -> None:
    make_watchable(database, "Albums")  # makes our own tables, too
    where = ("-d", str(address_of(database)))
    assert run_command("ddl", "status", "--running", "--json", *where).stdout.strip() == "[]"
    apply = ("ddl", "apply", *where, "-t", "Singers", "--shards", "4")
    statements = len(json.loads(run_command(*apply, "--dry-run", "--json").stdout)["statements"])
    faults(schema_statement_seconds=60)
    command = ["-u", "-c", CODE, *apply]
    process = WarmProcess(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert process.stderr is not None
    shown = ""
    while "throttled by Spanner" not in shown:
        line = process.stderr.readline()
        assert line, shown
        shown += line
    process.send_signal(signal.SIGINT)
    assert process.wait(allow(SECONDS)) == INTERRUPTED
    assert "Spanner goes on with the statements that it has begun" in process.stderr.read()

    (running,) = json.loads(run_command("ddl", "status", "--running", "--json", *where).stdout)
    assert running["throttled"] is True
    assert 0 <= running["done"] < len(running["statements"]) == statements
    text = run_command("ddl", "status", *where).stdout
    assert "runs in Spanner: statement " in text

    again = WarmProcess(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert again.stderr is not None
    assert "waiting for a schema update, statement" in again.stderr.readline()
    faults()
    assert "nothing to do: Singers is watched" in again.stderr.read()
    assert again.wait(allow(SECONDS)) == 0
    assert run_command("ddl", "status", "--running", "--json", *where).stdout.strip() == "[]"
