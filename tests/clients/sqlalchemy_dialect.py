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
CONFTEST = """
from sqlalchemy.dialects import registry
registry.register("spanner", "google.cloud.sqlalchemy_spanner", "SpannerDialect")
from sqlalchemy.testing.plugin.pytestplugin import *
"""


def run(place: Workplace) -> list[Outcome]:
    """Runs the suite for SQLAlchemy 2.0 in a database of its own."""
    python = make_environment(place, REQUIREMENTS)
    source = unpack(place, python, PACKAGE, VERSION)
    (source / "conftest.py").write_text(CONFTEST)
    place.call([python, "-c", CREATE])
    path = f"projects/{PROJECT}/instances/{INSTANCE}/databases/{DATABASE}"
    arguments = ["--dburi", f"spanner+spanner:///{path}", "--maxfail=1000", "--timeout=300"]
    return run_pytest(place, python, source, [*arguments, "tests/test_suite_20.py"], {})


SUITE = Suite("sqlalchemy", f"{PACKAGE} {VERSION}", run)
