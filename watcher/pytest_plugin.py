"""A plugin of pytest: ``spanner``, an embedded Spanner, and ``spanner_database``, a database a
test.

Every run of pytest beside this package loads it: it loads the rest when a test asks for a fixture.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from google.cloud.spanner_v1.database import Database

    from watcher.template_databases import SpannerServer

SCHEMA, DIALECT = "spanner_schema", "spanner_dialect"


def pytest_addoption(parser: pytest.Parser) -> None:
    """The settings of the configuration file."""
    parser.addini(SCHEMA, "*.sql files, or folders of them, for spanner_database", "paths", [])
    parser.addini(DIALECT, "dialect of spanner_database: googlesql (default), postgresql")


def pytest_configure(config: pytest.Config) -> None:
    """The marker."""
    config.addinivalue_line(
        "markers",
        f"{SCHEMA}(*statements, files, dialect): what spanner_database begins with: DDL, DML",
    )


@pytest.fixture(scope="session")
def spanner() -> Iterator[SpannerServer]:
    """The server that SPANNER_EMULATOR_HOST names, or one that is started for this process (with
    pytest-xdist each worker has its own), to which the variable points while tests run."""
    with import_module("watcher.template_databases").find_server() as server:
        yield server


@pytest.fixture
def spanner_dialect(request: pytest.FixtureRequest) -> str:
    """The dialect of the test's marker, else of the configuration file."""
    marker = request.node.get_closest_marker(SCHEMA)
    chosen = marker.kwargs.get("dialect") if marker is not None else None
    return str(chosen or request.config.getini(DIALECT) or "googlesql")


@pytest.fixture
def spanner_schema(request: pytest.FixtureRequest) -> list[str | Path]:
    """The statements and files of the test's marker, else the files of the configuration file; a
    test suite may have a fixture of this name instead."""
    marker = request.node.get_closest_marker(SCHEMA)
    if marker is None:
        return list(request.config.getini(SCHEMA))
    folder = request.path.parent
    return [*(folder / file for file in marker.kwargs.get("files", ())), *marker.args]


@pytest.fixture
def spanner_database(
    spanner: SpannerServer, spanner_schema: list[str | Path], spanner_dialect: str
) -> Iterator[Database]:
    """A database of this test alone, dropped when it ends."""
    make = import_module("watcher.template_databases").make_database
    with make(spanner, spanner_schema, spanner_dialect) as database:
        yield database
