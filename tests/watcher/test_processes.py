"""The long-running commands as processes: they serve, deliver, and stop cleanly on SIGTERM."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fixtures.singers import SINGERS, address_of
from google.cloud import spanner
from google.cloud.spanner_v1.database import Database

from watcher.positions import SpannerPositions

COMMAND = [sys.executable, "-u", "-c", "from watcher.cli import main; main()"]
STOP_SECONDS_MAX = 60


@contextmanager
def running(*arguments: str, **environment: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [*COMMAND, *arguments], stdout=subprocess.PIPE, text=True, env=os.environ | environment
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        if process.stdout:
            process.stdout.close()


def lines(process: subprocess.Popen[str], count: int) -> list[str]:
    assert process.stdout is not None
    return [process.stdout.readline() for _ in range(count)]


def stopped(process: subprocess.Popen[str]) -> int:
    process.send_signal(signal.SIGTERM)
    return process.wait(STOP_SECONDS_MAX)


def write(database: Database, key: int, name: str) -> None:
    with database.batch() as batch:
        batch.insert_or_update("Singers", ("SingerId", "LastName"), [(key, name)])


def test_a_scheduled_watch_delivers_as_it_happens_and_stops_on_sigterm(singers: Database) -> None:
    write(singers, 1, "before")
    where = ("--database", str(address_of(singers)), "--table", "Singers")
    consumer = ("--consumer", "scheduled", "--from", "earliest", "--interval", "50ms")
    with running("watch", *where, *consumer) as process:
        seen = [json.loads(line) for line in lines(process, 1)]
        for number in range(3):
            write(singers, 1, f"while watching {number}")
            seen += [json.loads(line) for line in lines(process, 1)]
        assert stopped(process) == 0
    assert [change["values"]["LastName"] for change in seen] == [
        "before",
        *(f"while watching {number}" for number in range(3)),
    ]
    assert len({change["id"] for change in seen}) == len(seen)
    kept = SpannerPositions(singers).load("scheduled", "Singers")
    assert kept is not None


def test_the_emulator_creates_the_database_it_is_asked_for(tmp_path: Path) -> None:
    schema = tmp_path / "schema.sql"
    schema.write_text("-- a comment\n" + SINGERS + ";\n")
    address = "projects/project/instances/instance/databases/database"
    asked = ("--port", "0", "--database", address, "--schema", str(schema))
    with running("emulator", *asked) as process:
        host = lines(process, 1)[0].removeprefix("listening on ").strip()
        before = os.environ.get("SPANNER_EMULATOR_HOST")
        os.environ["SPANNER_EMULATOR_HOST"] = host
        try:
            client = spanner.Client(project="project", disable_builtin_metrics=True)
            database = client.instance("instance").database("database")
            write(database, 7, "there")
            with database.snapshot() as snapshot:
                rows = snapshot.execute_sql("SELECT SingerId, LastName FROM Singers")
                assert [list(row) for row in rows] == [[7, "there"]]
        finally:
            os.environ.pop("SPANNER_EMULATOR_HOST")
            if before is not None:
                os.environ["SPANNER_EMULATOR_HOST"] = before
        assert stopped(process) == 0


def test_the_emulator_refuses_a_wrong_schema_and_ends(tmp_path: Path) -> None:
    schema = tmp_path / "schema.sql"
    schema.write_text("CREATE TABLE Broken (Id NOTYPE) PRIMARY KEY (Id)")
    address = "projects/project/instances/instance/databases/database"
    with running("emulator", "--port", "0", "-d", address, "--schema", str(schema)) as process:
        assert process.wait(STOP_SECONDS_MAX) != 0
