"""com.google.cloudspannerecosystem:liquibase-spanner. Its own tests are not published: a program of
ours applies a changelog as its samples do, reads it back, and rolls it back. It has GoogleSQL only:
in the PostgreSQL dialect Liquibase works through PGAdapter, whose test runs the changelog of its
sample, by Liquibase's plugin for Maven."""

from __future__ import annotations

from clients import pgadapter
from clients.jdbc import PACKAGE as JDBC
from clients.jdbc import VERSION as JDBC_VERSION
from clients.maven_packages import run_program
from clients.outcomes import Outcome
from clients.repositories import copy_files
from clients.suite import Suite, Workplace

PACKAGE, VERSION = "com.google.cloudspannerecosystem:liquibase-spanner", "4.31.1"
PACKAGES = (
    f"{PACKAGE}:{VERSION}",
    f"org.liquibase:liquibase-core:{VERSION}",
    f"{JDBC}:{JDBC_VERSION}",
)
SAMPLE = "samples/java/liquibase"


def run(place: Workplace) -> list[Outcome]:
    """Runs our program."""
    return run_program(place, PACKAGES, "LiquibaseSuite")


def run_postgresql(place: Workplace) -> list[Outcome]:
    """Runs PGAdapter's test, once the plugin is there: the test does not read what a fetch says."""
    source = copy_files(place, pgadapter.REPOSITORY, f"v{pgadapter.VERSION}", SAMPLE)
    place.call(["mvn", "--quiet", "--batch-mode", "liquibase:help"], source / SAMPLE)
    return pgadapter.run_classes(place, "liquibase.ITLiquibaseTest", samples=SAMPLE)


GOOGLESQL = Suite("liquibase", f"{PACKAGE} {VERSION}", run)
POSTGRESQL = Suite(
    "liquibase-postgresql",
    f"org.liquibase:liquibase-maven-plugin, {pgadapter.PACKAGE} {pgadapter.VERSION}",
    run_postgresql,
)
