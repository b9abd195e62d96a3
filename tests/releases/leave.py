"""Makes what a release leaves behind: ``python leave.py PROGRAM ARCHIVE``.

PROGRAM is the release's own ``spanner-watcher``, with its extras emulator, delta and spark; it is
started as a command, and this file needs nothing of it. README.md says what is in the archive.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tarfile
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from google.cloud import spanner

ADDRESS = "spanner://projects/project/instances/instance/databases/music"
SCHEMA = (
    "CREATE TABLE Singers (SingerId INT64 NOT NULL, LastName STRING(MAX)) PRIMARY KEY (SingerId)",
    "CREATE TABLE Albums (SingerId INT64 NOT NULL, AlbumId STRING(36) NOT NULL, Title STRING(MAX))"
    " PRIMARY KEY (SingerId, AlbumId)",
)
TABLES = ("-t", "Singers", "-t", "Albums")
PORT = 19_010
LEFT = ("data", "lake", "parquet")
STREAM = ("--stream", "Everything", "--consumer", "streamed", "--once", "--to", "streamed.jsonl")


def main() -> None:
    """Runs everything in a folder of its own."""
    program, archive = Path(sys.argv[1]).absolute(), Path(sys.argv[2]).absolute()
    with TemporaryDirectory() as folder:
        os.chdir(folder)
        os.environ["SPANNER_EMULATOR_HOST"] = f"127.0.0.1:{PORT}"
        server = begin(program, "emulator", "--data-dir", "data", "--port", str(PORT))
        while not answers():
            time.sleep(0.2)
        try:
            leave(program)
        finally:
            server.terminate()
            server.wait(60)
        with tarfile.open(archive, "w:xz") as packed:
            for name in LEFT:
                packed.add(name)


def leave(program: Path) -> None:
    """The commands of the release, between the writes of an application."""
    database = create_database()
    run(program, "ddl", "apply", "-d", ADDRESS, *TABLES, "--shards", "4")
    stream = ("ddl", "change-stream", "create", "Everything", "-d", ADDRESS)
    run(program, *stream, "-w", "Singers", "-w", "Albums", "--apply")
    watch = ("watch", "-d", ADDRESS, *TABLES)
    run(program, *watch, *STREAM)  # from now on
    write(database, range(10), "first")
    run(program, *watch, *STREAM)
    polled = ("--consumer", "plain", "--from", "earliest", "--once", "--to", "plain.jsonl")
    run(program, *watch, *polled)
    shared = ("--consumer", "shared", "--parts", "2", "--from", "earliest", "--to", "shared.jsonl")
    sharing = begin(program, *watch, *shared)
    while len(read_lines("shared.jsonl")) < 20:
        time.sleep(0.2)
    sharing.terminate()
    sharing.wait(60)
    copy = ("replicate", "-d", ADDRESS, *TABLES, "--once")
    run(program, *copy, "--consumer", "copy", "--to", "delta:lake")
    spark = ("--consumer", "spark-copy", "--engine", "spark", "--to", "parquet:parquet")
    run(program, *copy, *spark)
    for name in ("plain", "shared", "streamed"):
        assert len(read_lines(f"{name}.jsonl")) == 20, name
    write(database, range(5, 13), "second")


def answers() -> bool:
    """Whether the server takes connections."""
    try:
        socket.create_connection(("127.0.0.1", PORT)).close()
    except ConnectionRefusedError:
        return False
    return True


def create_database() -> Any:
    """The database, on the server of the release."""
    client = spanner.Client(project="project", disable_builtin_metrics=True)
    config = f"{client.project_name}/instanceConfigs/emulator-config"
    instance = client.instance("instance", configuration_name=config, node_count=1)
    instance.create().result(60)
    database = instance.database("music", ddl_statements=SCHEMA)
    database.create().result(60)
    return database


def write(database: Any, keys: range, text: str) -> None:
    """Rows of both tables."""
    with database.batch() as batch:
        singers = [(key, text) for key in keys]
        batch.insert_or_update("Singers", ("SingerId", "LastName"), singers)
        albums = [(key, str(key), text) for key in keys]
        batch.insert_or_update("Albums", ("SingerId", "AlbumId", "Title"), albums)


def begin(program: Path, *arguments: str) -> subprocess.Popen[bytes]:
    """A command that goes on."""
    print("+", *arguments, flush=True)
    return subprocess.Popen([str(program), *arguments])


def run(program: Path, *arguments: str) -> None:
    """A command that ends well."""
    process = begin(program, *arguments)
    if process.wait(600):
        sys.exit(f"{arguments} ended with {process.returncode}")


def read_lines(name: str) -> list[str]:
    """The lines of a file; none where it is not there yet."""
    path = Path(name)
    return path.read_text().splitlines() if path.exists() else []


if __name__ == "__main__":
    main()
