"""A PostgreSQL of its own, from Debian's package, that evaluates expressions."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from emulator.ports import find_port

PROGRAMS = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
USER = "postgres"
SEPARATOR, NULL = "\x1f", "<NULL>"
EVALUATE = """
CREATE FUNCTION evaluate(query text) RETURNS text LANGUAGE plpgsql AS $f$
DECLARE result text;
BEGIN
  EXECUTE query INTO result;
  RETURN coalesce(result, '<NULL>');
EXCEPTION WHEN OTHERS THEN
  RETURN 'ERROR ' || SQLSTATE || ' ' || SQLERRM;
END $f$;
"""


def find_programs() -> Path | None:
    """The folder of PostgreSQL's programs; None where it is not installed, or may not be run."""
    if not PROGRAMS:
        return None
    if os.getuid() == 0:
        try:
            pwd.getpwnam(USER)
        except KeyError:
            return None
    return PROGRAMS[-1].parent


class Postgres:
    """A running server, reached by psql through a socket, and by JDBC."""

    def __init__(self, programs: Path, folder: Path) -> None:
        self._programs = programs
        self._port = find_port()
        self.folder = folder
        """Where its socket is."""

    @property
    def jdbc(self) -> str:
        """Its address for Java, which has no sockets of files."""
        return f"jdbc:postgresql://127.0.0.1:{self._port}/postgres"

    def run(self, *command: str, text: str = "") -> str:
        """Runs a program as a user who is not root; its output."""
        words = list(command)
        if os.getuid() == 0:
            words = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--init-groups", *words]
        done = subprocess.run(
            words, input=text, capture_output=True, text=True, check=False, cwd=self.folder
        )
        if done.returncode:
            raise RuntimeError(f"{command[0]} failed: {done.stderr[-2000:]}")
        return done.stdout

    def psql(self, sql: str) -> str:
        """Runs statements; the rows of their results, one a line."""
        return self.run(
            str(self._programs / "psql"),
            *("-X", "-q", "-A", "-t", "-h", str(self.folder), "-U", USER, "-v", "ON_ERROR_STOP=1"),
            text=sql,
        )

    def evaluate(self, expressions: Sequence[str]) -> list[str]:
        """The value of each expression as text, or ERROR with SQLSTATE."""
        lines = [
            "SET timezone = 'America/Los_Angeles';",
            "SET standard_conforming_strings = on;",
            "SET intervalstyle = 'iso_8601';",
        ]
        lines += [
            f"SELECT replace(evaluate($q$SELECT ({each})::text$q$), chr(10), chr(31));"
            for each in expressions
        ]
        return self.psql("\n".join(lines)).split("\n")[: len(expressions)]

    def start(self) -> None:
        """Creates the database's files and starts the server."""
        data = str(self.folder / "data")
        self.run(
            str(self._programs / "initdb"),
            *("-D", data, "-U", USER, "-A", "trust", "--locale=C.UTF-8", "-E", "UTF8", "--no-sync"),
        )
        places = f"-c listen_addresses=127.0.0.1 -c unix_socket_directories={self.folder}"
        options = f"-p {self._port} {places} -c fsync=off"
        self.run(
            str(self._programs / "pg_ctl"),
            *("-D", data, "-o", options, "-w", "-l", str(self.folder / "log"), "start"),
        )
        usual = self.folder / ".s.PGSQL.5432"
        usual.symlink_to(f".s.PGSQL.{self._port}")
        self.psql(EVALUATE)

    def stop(self) -> None:
        """Stops the server."""
        data = str(self.folder / "data")
        self.run(str(self._programs / "pg_ctl"), "-D", data, "-m", "immediate", "-w", "stop")


@contextmanager
def run_postgres(programs: Path) -> Iterator[Postgres]:
    """A server for the length of a block."""
    folder = Path(tempfile.mkdtemp(prefix="postgres-reference-"))
    if os.getuid() == 0:
        shutil.chown(folder, USER, USER)
    server = Postgres(programs, folder)
    try:
        server.start()
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
