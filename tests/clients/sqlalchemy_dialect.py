"""sqlalchemy-spanner: SQLAlchemy's compliance suite as this dialect has it."""

from __future__ import annotations

from clients.outcomes import Outcome
from clients.python_packages import make_environment, run_pytest, unpack
from clients.suite import INSTANCE, PROJECT, Suite, Workplace

PACKAGE, VERSION = "sqlalchemy-spanner", "1.20.1"
REQUIREMENTS = (
    f"{PACKAGE}=={VERSION}",
    "google-cloud-spanner==3.71.0",
    "sqlalchemy==2.0.45",
    "mock==5.2.0",
    "opentelemetry-api==1.39.0",
    "opentelemetry-sdk==1.39.0",
    "opentelemetry-instrumentation==0.60b0",
    "pytest==8.4.2",
    "pytest-timeout==2.4.0",
)
DATABASE = "compliance-test"
CREATE = f"""
from google.cloud import spanner
instance = spanner.Client().instance("{INSTANCE}")
instance.database("{DATABASE}").create().result(60)
"""
PATH = f"projects/{PROJECT}/instances/{INSTANCE}/databases/{DATABASE}"
URL = f"spanner+spanner:///{PATH}"
HELPERS = f"""
def get_db_url():
    return "{URL}"

def get_project():
    return "{PROJECT}"
"""
"""A module of the suite that its distribution lacks."""
CONFTEST = """
import pytest
from sqlalchemy import Column, Integer, Table, literal, select
from sqlalchemy.dialects import registry
registry.register("spanner", "google.cloud.sqlalchemy_spanner", "SpannerDialect")
from sqlalchemy.testing.plugin.pytestplugin import *

@pytest.fixture
def literal_round_trip_spanner(metadata, connection):
    def run(type_, values, expected, filter_=lambda value: value):
        table = Table("t", metadata, Column("id", Integer, primary_key=True), Column("x", type_))
        metadata.create_all(connection)
        for number, value in enumerate(values):
            value = literal(value, type_, literal_execute=True)
            connection.execute(table.insert().values(id=number, x=value))
        rows = [filter_(row[0]) for row in connection.execute(select(table.c.x))]
        assert all(value in expected for value in rows) and len(rows) == len(values)
    return run
"""
"""How pytest finds the suite, with a fixture of its authors that their distribution lacks: values
that are written into a statement come back."""


def run(place: Workplace) -> list[Outcome]:
    """Runs the suite for SQLAlchemy 2.0 in a database of its own."""
    python = make_environment(place, REQUIREMENTS)
    source = unpack(place, python, PACKAGE, VERSION)
    (source / "conftest.py").write_text(CONFTEST)
    (source / "tests/_helpers.py").write_text(HELPERS)
    place.call([python, "-c", CREATE])
    arguments = ["--dburi", URL, "--maxfail=1000", "--timeout=300"]
    return run_pytest(place, python, source, [*arguments, "tests/test_suite_20.py"], {})


SUITE = Suite("sqlalchemy", f"{PACKAGE} {VERSION}", run)
