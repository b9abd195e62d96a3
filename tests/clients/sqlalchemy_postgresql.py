"""SQLAlchemy's dialect for PostgreSQL, with psycopg, through PGAdapter: a program of ours does what
PGAdapter's sample does, and has SQLAlchemy make and inspect the tables, too."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fixtures.server import connect_other
from google.cloud.spanner_admin_database_v1 import DatabaseDialect

from clients import pgadapter
from clients.maven_packages import resolve
from clients.outcomes import Outcome
from clients.python_packages import make_environment, run_pytest
from clients.suite import INSTANCE, PROJECT, Suite, Workplace
from emulator.ports import find_port

PACKAGE, VERSION = "sqlalchemy", "2.0.45"
REQUIREMENTS = (f"{PACKAGE}=={VERSION}", "psycopg[binary]==3.2.13", "pytest==8.4.2")
ADAPTER = f"{pgadapter.PACKAGE}:{pgadapter.VERSION}"
PROGRAM = Path(__file__).with_name("programs") / "sqlalchemy_postgresql.py"
DATABASE = "sqlalchemy"
OPTIONS = "options=-c spanner.ddl_transaction_mode=AutocommitExplicitTransaction"
"""SQLAlchemy makes tables in a transaction, which Spanner does not have."""
MAIN = "com.google.cloud.spanner.pgadapter.Server"
STARTED = "Server started on port"


def run(place: Workplace) -> list[Outcome]:
    """Runs the program on a database of its own."""
    python = make_environment(place, REQUIREMENTS)
    # Where it lies, it would be one of our own tests to pytest.
    program = shutil.copy(PROGRAM, place.folder / "test_program.py")
    instance = connect_other(place.address, INSTANCE)
    database = instance.database(DATABASE, database_dialect=DatabaseDialect.POSTGRESQL)
    database.create().result(60)
    with start_adapter(place) as port:
        url = f"postgresql+psycopg://user:password@localhost:{port}/{DATABASE}?{OPTIONS}"
        return run_pytest(place, python, place.folder, [str(program)], {"PGADAPTER_URL": url})


@contextmanager
def start_adapter(place: Workplace) -> Iterator[int]:
    """PGAdapter beside the server, and its port. Raises RuntimeError where it does not start."""
    port = find_port()
    command = [
        "java",
        "-cp",
        resolve(place, [ADAPTER]),
        "com.google.cloud.spanner.pgadapter.Server",
    ]
    command += ["-p", PROJECT, "-i", INSTANCE, "-s", str(port), "-c", ""]
    process = subprocess.Popen(
        command,
        cwd=place.folder,
        env=place.make_environment({}),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        assert process.stdout is not None
        for line in process.stdout:
            if STARTED in line:
                break
        else:
            raise RuntimeError("PGAdapter did not start")
        yield port
    finally:
        process.kill()
        process.wait()


SUITE = Suite(
    "sqlalchemy-postgresql",
    f"{PACKAGE} {VERSION}, {ADAPTER}",
    run,
    {
        "test_program.test_the_inspector_finds_the_columns": (
            "it casts to regclass; PGAdapter's page says that SQLAlchemy's reflection does not work"
        ),
    },
)
