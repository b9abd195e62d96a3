"""The plugin of pytest that the package brings: a run of pytest of its own, as users have."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

from emulator.process import ServerProcess

ROOT = Path(__file__).resolve().parent.parent.parent
PAGE = (ROOT / "docs" / "emulator.md").read_text()
LISTING = (
    PAGE.partition("### Tests of applications")[2].partition("```python\n")[2].partition("```")[0]
)
SUITE = """
import pytest

TABLE = "CREATE TABLE Singers (SingerId INT64 NOT NULL) PRIMARY KEY (SingerId)"

def count(database):
    with database.snapshot() as snapshot:
        return list(snapshot.execute_sql("SELECT COUNT(*) FROM Singers"))[0][0]

def add(database):
    with database.batch() as batch:
        batch.insert("Singers", ["SingerId"], [[7]])

@pytest.mark.spanner_schema(TABLE, "INSERT INTO Singers (SingerId) VALUES (1), (2)")
@pytest.mark.parametrize("n", range(3))
def test_marker(spanner_database, n):
    assert count(spanner_database) == 2
    add(spanner_database)
    assert count(spanner_database) == 3

def test_ini(spanner_database):
    assert count(spanner_database) == 1

@pytest.mark.spanner_schema(
    "CREATE TABLE singers (singerid bigint PRIMARY KEY)",
    "INSERT INTO singers (singerid) VALUES (1)",
    dialect="postgresql",
)
@pytest.mark.parametrize("n", range(2))
def test_postgresql(spanner_database, n):
    spanner_database.reload()
    assert spanner_database.database_dialect.name == "POSTGRESQL"
    assert count(spanner_database) == 1

class TestOwn:
    @pytest.fixture
    def spanner_schema(self):
        return [TABLE]

    def test_own(self, spanner_database):
        assert count(spanner_database) == 0
"""


def run_suite(folder: Path, *arguments: str, **variables: str) -> str:
    (folder / "test_suite.py").write_text(SUITE)
    (folder / "pytest.ini").write_text("[pytest]\nspanner_schema = seed\n")
    (folder / "seed").mkdir()
    (folder / "seed" / "1.sql").write_text("CREATE TABLE Singers (SingerId INT64) PRIMARY KEY ();")
    (folder / "seed" / "2.sql").write_text("INSERT INTO Singers (SingerId) VALUES (5); -- all\n")
    (folder / "test_page.py").write_text(LISTING)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "watcher.pytest_plugin", *arguments]
    without = {name: text for name, text in os.environ.items() if not name.startswith("PYTEST")}
    without.pop("SPANNER_EMULATOR_HOST", None)
    environment = without | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"} | variables
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    return done.stdout + done.stderr


@pytest.mark.essential
def test_each_test_has_a_database_of_its_own(tmp_path: Path, server: ServerProcess) -> None:
    given = run_suite(tmp_path, SPANNER_EMULATOR_HOST=server.address)
    assert "8 passed" in given, given


def test_a_server_is_started_where_none_is_given(tmp_path: Path) -> None:
    started = run_suite(tmp_path, "-k", "ini")
    assert "1 passed" in started, started


def test_an_unknown_dialect_is_refused(tmp_path: Path, server: ServerProcess) -> None:
    options = ("-k", "ini", "-o", "spanner_dialect=mysql")
    refused = run_suite(tmp_path, *options, SPANNER_EMULATOR_HOST=server.address)
    assert "there is no dialect 'mysql'" in refused


def test_it_is_registered_and_loads_nothing_of_the_client() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    (name,) = settings["project"]["entry-points"]["pytest11"].values()
    assert import_module(name).__name__ == "watcher.pytest_plugin"
    program = (
        "import sys, watcher.pytest_plugin; print([n for n in ('grpc', 'google.cloud', 'pyarrow')"
        " if n in sys.modules])"
    )
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert loaded.stdout.strip() == b"[]"
