"""``spanner-watcher emulator``: seeds, snapshots, reset and the log of statements, as a command."""

from __future__ import annotations

import os
import re
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import PIPE, STDOUT

import pytest
from fixtures.commands import CODE, run_command
from fixtures.server import VARIABLE
from fixtures.warm_python import WarmProcess
from google.cloud import spanner
from google.cloud.spanner_v1 import param_types
from google.cloud.spanner_v1.database import Database

from emulator import command as emulator_process
from emulator.data_directories import StartError

ADDRESS = "projects/project/instances/instance/databases/database"
MAIN = ["-u", "-c", CODE]
SEED = {
    "1.sql": "CREATE TABLE T (Id INT64 NOT NULL, V STRING(MAX)) PRIMARY KEY (Id); -- ; not an end",
    "2.sql": "INSERT INTO T (Id, V) VALUES (1, 'a;b'), (2, NULL);\n"
    "UPDATE T SET V = 'c' WHERE Id = 2",
    "readme.txt": "not a statement",
}


@pytest.fixture
def seed(tmp_path: Path) -> Path:
    folder = tmp_path / "seed"
    folder.mkdir()
    for name, text in SEED.items():
        (folder / name).write_text(text)
    return folder


@pytest.fixture(autouse=True)
def keep_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, os.environ.get(VARIABLE, ""))


@contextmanager
def serve(*arguments: object) -> Iterator[tuple[Database, list[str]]]:
    """The database, and the lines that the command prints: the first four, then all at the end."""
    command = [*MAIN, "emulator", "--port", "0", "--database", ADDRESS, *map(str, arguments)]
    process = WarmProcess(command, stdout=PIPE, stderr=STDOUT)
    assert process.stdout is not None
    printed: list[str] = []
    try:
        while not any(line.startswith("dotenv") for line in printed):
            line = process.stdout.readline()
            assert line, printed
            printed.append(line.rstrip("\n"))
        (ready,) = [line for line in printed if line.startswith("listening on ")]
        os.environ[VARIABLE] = ready.removeprefix("listening on ")
        client = spanner.Client(project="project", disable_builtin_metrics=True)
        yield client.instance("instance").database("database"), printed
        process.terminate()
        printed += process.stdout.read().splitlines()
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def read(database: Database) -> list[list[object]]:
    with database.snapshot() as snapshot:
        return list(snapshot.execute_sql("SELECT Id, V FROM T ORDER BY Id"))


def test_a_seed_fills_a_new_database_and_leaves_one_that_exists(seed: Path, tmp_path: Path) -> None:
    data, copy = tmp_path / "data", tmp_path / "copy"
    with serve("--data-dir", data, "--seed", seed) as (database, printed):
        assert read(database) == [[1, "a;b"], [2, "c"]]
        with database.batch() as batch:
            batch.delete("T", spanner.KeySet(keys=[[1]]))
        taken = run_command("emulator", "--snapshot", str(copy))
        assert (taken.returncode, taken.stderr) == (0, "")
        assert f"--restore {copy}" in taken.stdout
    address = os.environ[VARIABLE]
    assert printed[:4] == [
        f"listening on {address}",
        f"export SPANNER_EMULATOR_HOST={address}",
        f'PowerShell: $env:SPANNER_EMULATOR_HOST = "{address}"',
        f"dotenv: SPANNER_EMULATOR_HOST={address}",
    ]
    gone = run_command("emulator", "--snapshot", str(tmp_path / "more"))
    assert gone.returncode == 3
    assert "nothing answers" in gone.stderr
    with serve("--data-dir", data, "--seed", seed) as (database, printed):
        assert read(database) == [[2, "c"]]
        assert f"spanner://{ADDRESS} exists: --seed has changed nothing" in printed
    with serve("--data-dir", data, "--seed", seed, "--reset", "--yes") as (database, _):
        assert read(database) == [[1, "a;b"], [2, "c"]]
    with serve("--data-dir", tmp_path / "restored", "--restore", copy) as (database, _):
        assert read(database) == [[2, "c"]]


def test_a_seed_that_is_refused_leaves_no_database(tmp_path: Path) -> None:
    seed = tmp_path / "seed.sql"
    seed.write_text(f"{SEED['1.sql']}\nINSERT INTO T (Id, Nope) VALUES (1, 2)")
    asked = ("emulator", "--port", "0", "--database", ADDRESS, "--data-dir", str(tmp_path / "d"))
    refused = run_command(*asked, "--seed", str(seed))
    assert refused.returncode == 2
    assert "Nope" in refused.stderr
    seed.write_text("\n".join(SEED[name] for name in ("1.sql", "2.sql")))
    with serve("--data-dir", tmp_path / "d", "--seed", seed) as (database, _):
        assert read(database) == [[1, "a;b"], [2, "c"]]


def test_options_that_need_others_say_so(tmp_path: Path, seed: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "registry.json").write_text("{}")
    data = ("--data-dir", str(tmp_path / "data"))
    for arguments, words in [
        (("--seed", str(seed)), "--seed needs --database"),
        (("--reset",), "--reset needs --data-dir"),
        (("--reset", *data), "add --yes"),
        (("--restore", str(seed)), "--restore needs --data-dir"),
        (("--database", ADDRESS, "--seed", str(tmp_path / "empty")), "has no *.sql files"),
        (("--snapshot", str(tmp_path / "s")), "--snapshot needs SPANNER_EMULATOR_HOST"),
    ]:
        done = run_command("emulator", "--port", "0", *arguments, **{VARIABLE: ""})
        assert done.returncode == 2, arguments
        assert words in re.sub(r"[\s│]+", " ", done.stderr), arguments
    assert (tmp_path / "data" / "registry.json").exists()


def test_statements_are_logged_without_the_values_of_parameters(seed: Path) -> None:
    with serve("--seed", seed, "--log-sql") as (database, printed):
        with database.snapshot() as snapshot:
            sql = "SELECT Id\nFROM T WHERE V = @v -- \x1b[31m"
            list(snapshot.execute_sql(sql, {"v": "secret"}, {"v": param_types.STRING}))
        database.run_in_transaction(lambda t: t.execute_update("DELETE FROM T WHERE Id = 1"))
        with database.snapshot() as snapshot, pytest.raises(Exception, match="Nope"):
            list(snapshot.execute_sql("SELECT CAST('Nope' AS INT64) FROM T"))
    logged = [line for line in printed if " INFO " in line]
    whole = "\n".join(logged)
    assert re.search(r"\d+\.\d ms, 0 rows: SELECT Id FROM T WHERE V = @v -- \\x1b\[31m", whole)
    assert re.search(r"\d+\.\d ms, 1 rows: DELETE FROM T WHERE Id = 1", whole)
    assert "2 rows: INSERT INTO T" in whole
    assert "secret" not in "\n".join(printed)


def test_a_server_that_does_not_start_leaves_the_signals_as_they_are(tmp_path: Path) -> None:
    """What is blocked here is blocked in each process that is started later: it would not end."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(StartError):
        emulator_process.serve("127.0.0.1", taken.getsockname()[1], tmp_path / "data")
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == before
