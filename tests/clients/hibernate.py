"""com.google.cloud:google-cloud-spanner-hibernate-dialect. Its own tests are not published: a
program of ours has entities as its samples do, and lets Hibernate generate their schema."""

from __future__ import annotations

from clients.jdbc import PACKAGE as JDBC
from clients.jdbc import VERSION as JDBC_VERSION
from clients.maven_packages import run_program
from clients.outcomes import Outcome
from clients.suite import Suite, Workplace

PACKAGE, VERSION = "com.google.cloud:google-cloud-spanner-hibernate-dialect", "3.9.6"
PACKAGES = (
    f"{PACKAGE}:{VERSION}",
    "org.hibernate.orm:hibernate-core:6.6.31.Final",
    f"{JDBC}:{JDBC_VERSION}",
)


def run(place: Workplace) -> list[Outcome]:
    """Runs our program."""
    return run_program(place, PACKAGES, "HibernateSuite")


SUITE = Suite("hibernate", f"{PACKAGE} {VERSION}", run)
