"""Packages of optimizer statistics: ANALYZE makes them, ALTER STATISTICS keeps them, and hints and
options of the database name them."""

from __future__ import annotations

import re

import pytest
from fixtures.postgres_databases import CreatePostgres, query
from fixtures.queries import ask, change
from google.api_core.exceptions import GoogleAPICallError, InvalidArgument, NotFound
from google.cloud.spanner_v1.database import Database

from emulator.engine.schema_changes import replay_statements
from emulator.storage.statements import ExecutedStatement
from spanner_schema.model.schema import Dialect

PACKAGES = "SELECT * FROM INFORMATION_SCHEMA.SPANNER_STATISTICS ORDER BY PACKAGE_NAME"
NAME = re.compile(r"analyze_\d{8}_\d\d_\d\d_\d\dUTC")
pytestmark = pytest.mark.ddl("CREATE TABLE T (K INT64) PRIMARY KEY (K)")


def list_packages(database: Database) -> list[str]:
    return [str(row[2]) for row in ask(database, PACKAGES).rows]


def test_analyze_makes_a_package_with_a_name_of_its_own(database: Database) -> None:
    assert ask(database, PACKAGES).rows == []
    before = change(database, "ANALYZE")
    assert change(database, "ANALYZE", "ANALYZE") == before
    rows = ask(database, PACKAGES).rows
    assert [row[:2] + row[3:] for row in rows] == [("", "", True)] * 3
    assert len({name for name in list_packages(database) if NAME.fullmatch(name)}) == 3


def test_a_query_names_a_package_that_is_kept(database: Database) -> None:
    change(database, "ANALYZE")
    (name,) = list_packages(database)
    hinted = f"@{{OPTIMIZER_STATISTICS_PACKAGE={name}}} SELECT 1"
    of_catalog = hinted.replace("SELECT 1", "SELECT COUNT(*) FROM INFORMATION_SCHEMA.TABLES AS t")
    for sql in (hinted, of_catalog):
        with pytest.raises(InvalidArgument, match=f"{name} may be garbage collected"):
            ask(database, sql)
    change(database, f"ALTER STATISTICS {name} SET OPTIONS (allow_gc = false)")
    assert ask(database, PACKAGES).rows == [("", "", name, False)]
    assert ask(database, hinted).rows == [(1,)]
    assert len(ask(database, of_catalog).rows) == 1
    change(database, f"ALTER STATISTICS {name} SET OPTIONS (allow_gc = true)")
    with pytest.raises(InvalidArgument, match="garbage collected"):
        ask(database, hinted)


def test_a_database_is_pinned_to_a_package(database: Database) -> None:
    change(database, "ANALYZE")
    (name,) = list_packages(database)
    told = change(database, f"ALTER DATABASE d SET OPTIONS (optimizer_statistics_package='{name}')")
    assert f"(optimizer_statistics_package = '{name}')" in told[0]
    options = "SELECT OPTION_VALUE FROM INFORMATION_SCHEMA.DATABASE_OPTIONS WHERE OPTION_NAME ="
    assert ask(database, f"{options} 'optimizer_statistics_package'").rows == [(name,)]
    hinted = f"@{{OPTIMIZER_STATISTICS_PACKAGE={name}}} SELECT 1"
    assert ask(database, hinted).rows == [(1,)]
    told = change(database, "ALTER DATABASE d SET OPTIONS (optimizer_statistics_package = null)")
    assert not any("optimizer_statistics_package" in each for each in told)
    with pytest.raises(InvalidArgument, match="garbage collected"):
        ask(database, hinted)


@pytest.mark.parametrize(
    ("statement", "code", "message"),
    [
        ("ALTER STATISTICS auto_x SET OPTIONS (allow_gc = false)", NotFound, "not found: auto_x"),
        ("ALTER STATISTICS {} SET OPTIONS (allow_gc = 1)", InvalidArgument, "allow_gc"),
        ("ALTER STATISTICS {} SET OPTIONS (kept = true)", InvalidArgument, "kept is unknown"),
        ("ALTER STATISTICS {} SET OPTIONS ()", InvalidArgument, "allow_gc"),
        ("ALTER STATISTICS {}", InvalidArgument, "Expecting 'SET'"),
        ("ANALYZE T", InvalidArgument, "found 'T'"),
        ("DROP STATISTICS {}", InvalidArgument, "found 'STATISTICS'"),
        ("CREATE STATISTICS s", InvalidArgument, "found 'STATISTICS'"),
    ],
)
def test_what_is_no_package_or_no_option_is_refused(
    database: Database, statement: str, code: type[GoogleAPICallError], message: str
) -> None:
    change(database, "ANALYZE")
    (name,) = list_packages(database)
    with pytest.raises(code, match=message):
        change(database, statement.format(name))
    assert ask(database, PACKAGES).rows == [("", "", name, True)]


def test_the_postgresql_dialect_has_them(create_postgres: CreatePostgres) -> None:
    database = create_postgres("ANALYZE")
    catalog = database.database_id
    ((_, _, name, _),) = rows = query(database, PACKAGES)
    assert rows == [[catalog, "public", name, "YES"]]
    hinted = f"/*@OPTIMIZER_STATISTICS_PACKAGE={name}*/ SELECT 1"
    with pytest.raises(InvalidArgument, match="garbage collected"):
        query(database, hinted)
    change(database, f'ALTER STATISTICS spanner."{name}" SET OPTIONS (allow_gc = false)')
    assert query(database, PACKAGES) == [[catalog, "public", name, "NO"]]
    assert query(database, hinted) == [[1]]
    change(database, f"ALTER DATABASE d SET spanner.optimizer_statistics_package = '{name}'")
    change(database, "ALTER DATABASE d SET spanner.optimizer_statistics_package = DEFAULT")
    with pytest.raises(InvalidArgument, match="package not found: auto_x"):
        change(database, "ALTER DATABASE d SET spanner.optimizer_statistics_package = 'auto_x'")
    with pytest.raises(InvalidArgument, match=r"ALTER STATISTICS"):
        change(database, f'ALTER STATISTICS "{name}" SET OPTIONS (allow_gc = false)')


def test_packages_are_those_of_the_statements_in_the_file() -> None:
    """Also ANALYZE in the file of an older server, which made none."""
    texts = ["ANALYZE", "ANALYZE analyze_20261128_10_00_00UTC"]
    texts += ["ALTER STATISTICS analyze_20261128_10_00_00UTC SET OPTIONS (allow_gc = false)"]
    executed = [ExecutedStatement(text, number) for number, text in enumerate(texts, 1)]
    versions = replay_statements(executed, Dialect.GOOGLESQL)
    name = "analyze_20261128_10_00_00UTC"
    assert [dict(each.schema.statistics) for each in versions] == [
        {},
        {},
        {name: True},
        {name: False},
    ]
