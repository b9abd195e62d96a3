"""The long-running commands as processes: they serve, deliver, and stop cleanly on SIGTERM."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from fixtures.server import connect, spawn
from fixtures.singers import SINGERS, address_of, make_watchable
from fixtures.warm_python import WARM_PYTHON, WarmProcess
from google.api_core import exceptions
from google.cloud import spanner
from google.cloud.spanner_v1.database import Database

from watcher.consumers.positions import SpannerPositions
from watcher.runners.signals import EXIT_GAVE_UP

COMMAND = ["-u", "-c", "from watcher.cli import main; main()"]
STOP_SECONDS_MAX = 60


@contextmanager
def run_process(*arguments: str, **environment: str) -> Iterator[subprocess.Popen[str]]:
    process = WarmProcess(
        [*COMMAND, *arguments], stdout=subprocess.PIPE, env=os.environ | environment
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


def stop_process(process: subprocess.Popen[str]) -> int:
    process.send_signal(signal.SIGTERM)
    return process.wait(STOP_SECONDS_MAX)


def write(database: Database, key: int, name: str) -> None:
    with database.batch() as batch:
        batch.insert_or_update("Singers", ("SingerId", "LastName"), [(key, name)])


def test_a_scheduled_watch_delivers_as_it_happens_and_stops_on_sigterm(singers: Database) -> None:
    write(singers, 1, "before")
    where = ("--database", str(address_of(singers)), "--table", "Singers")
    consumer = ("--consumer", "scheduled", "--from", "earliest", "--interval", "50ms")
    with run_process("watch", *where, *consumer) as process:
        seen = [json.loads(line) for line in lines(process, 1)]
        for number in range(3):
            write(singers, 1, f"while watching {number}")
            seen += [json.loads(line) for line in lines(process, 1)]
        assert stop_process(process) == 0
    assert [change["values"]["LastName"] for change in seen] == [
        "before",
        *(f"while watching {number}" for number in range(3)),
    ]
    assert len({change["id"] for change in seen}) == len(seen)
    kept = SpannerPositions(singers).load("scheduled", "Singers")
    assert kept is not None


def test_a_frozen_instance_is_replaced_and_delivers_nothing_when_it_thaws(
    singers: Database, tmp_path: Path
) -> None:
    config = tmp_path / "watch.toml"
    config.write_text(
        f'database = "{address_of(singers)}"\ntables = ["Singers"]\nconsumer = "one"\n'
        'start = "earliest"\ninterval = "20ms"\nlease = "1s"\n'
    )
    write(singers, 1, "before")
    with run_process("watch", "-c", str(config)) as first:
        delivered = json.loads(lines(first, 1)[0])
        first.send_signal(signal.SIGSTOP)
        with run_process("watch", "-c", str(config), "--standby") as second:
            write(singers, 2, "while frozen")
            change = json.loads(lines(second, 1)[0])
            if change["id"] == delivered["id"]:  # frozen before its position was saved
                change = json.loads(lines(second, 1)[0])
            assert change["key"] == {"SingerId": 2}
            first.send_signal(signal.SIGCONT)
            write(singers, 3, "after")
            assert json.loads(lines(second, 1)[0])["key"] == {"SingerId": 3}
            assert first.wait(STOP_SECONDS_MAX) == 6
            assert first.stdout is not None
            assert first.stdout.read() == ""
            assert stop_process(second) == 0


def test_the_emulator_creates_the_database_it_is_asked_for(tmp_path: Path) -> None:
    schema = tmp_path / "schema.sql"
    schema.write_text("-- a comment\n" + SINGERS + ";\n")
    address = "projects/project/instances/instance/databases/database"
    asked = ("--port", "0", "--database", address, "--schema", str(schema))
    with run_process("emulator", *asked) as process:
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
        assert stop_process(process) == 0


def test_the_emulator_refuses_a_wrong_schema_and_ends(tmp_path: Path) -> None:
    schema = tmp_path / "schema.sql"
    schema.write_text("CREATE TABLE Broken (Id NOTYPE) PRIMARY KEY (Id)")
    address = "projects/project/instances/instance/databases/database"
    with run_process("emulator", "--port", "0", "-d", address, "--schema", str(schema)) as process:
        assert process.wait(STOP_SECONDS_MAX) != 0


def test_the_emulator_has_the_faults_it_is_started_with() -> None:
    faults = ("--fault", "aborted_commit_probability=1", "--fault", "seed=7")
    with run_process("emulator", "--port", "0", *faults) as process:
        host = lines(process, 1)[0].removeprefix("listening on ").strip()
        database = connect(host).database("faulty", ddl_statements=[SINGERS])
        database.create().result(60)
        api = database.spanner_api
        session = api.create_session(database=database.name).name
        with pytest.raises(exceptions.Aborted, match="fault injected"):
            api.commit(
                request={"session": session, "single_use_transaction": {"read_write": {}}},
                retry=None,
            )
        assert stop_process(process) == 0


def test_the_emulator_refuses_an_unknown_fault() -> None:
    ended = subprocess.run(
        [*WARM_PYTHON, *COMMAND, "emulator", "--port", "0", "--fault", "thunder=1"],
        check=False,
        capture_output=True,
        text=True,
        timeout=STOP_SECONDS_MAX,
    )
    assert ended.returncode == 2
    assert "Unknown fault thunder" in ended.stderr


def test_it_stops_on_sigterm_though_the_server_is_gone(tmp_path: Path) -> None:
    with spawn() as server:
        database = connect(server.address).database("gone", ddl_statements=[SINGERS])
        database.create().result(60)
        make_watchable(database)
        write(database, 1, "before")
        config = tmp_path / "watch.toml"
        config.write_text(
            f'database = "{address_of(database)}"\ntables = ["Singers"]\nconsumer = "one"\n'
            'start = "earliest"\ninterval = "20ms"\ngrace = "3s"\n'
        )
        with run_process("watch", "--config", str(config)) as process:
            assert json.loads(lines(process, 1)[0])["values"]["LastName"] == "before"
            server.kill()
            assert stop_process(process) in (0, EXIT_GAVE_UP)
