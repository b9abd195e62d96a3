"""com.google.cloudspannerecosystem:liquibase-spanner. Its own tests are not published: a program of
ours applies a changelog as its samples do, reads it back, and rolls it back."""

from __future__ import annotations

from clients.jdbc import PACKAGE as JDBC
from clients.jdbc import VERSION as JDBC_VERSION
from clients.maven_packages import run_program
from clients.outcomes import Outcome
from clients.suite import Suite, Workplace

PACKAGE, VERSION = "com.google.cloudspannerecosystem:liquibase-spanner", "4.31.1"
PACKAGES = (
    f"{PACKAGE}:{VERSION}",
    f"org.liquibase:liquibase-core:{VERSION}",
    f"{JDBC}:{JDBC_VERSION}",
)


def run(place: Workplace) -> list[Outcome]:
    """Runs our program."""
    return run_program(place, PACKAGES, "LiquibaseSuite")


SUITE = Suite("liquibase", f"{PACKAGE} {VERSION}", run)
