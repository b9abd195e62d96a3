"""com.google.cloud:spring-cloud-gcp-data-spanner. Its own tests are not published: a program of
ours uses its template on entities as its samples do."""

from __future__ import annotations

from clients.maven_packages import run_program
from clients.outcomes import Outcome
from clients.suite import Suite, Workplace

PACKAGE, VERSION = "com.google.cloud:spring-cloud-gcp-data-spanner", "6.1.1"


def run(place: Workplace) -> list[Outcome]:
    """Runs our program."""
    return run_program(place, [f"{PACKAGE}:{VERSION}"], "SpringDataSuite")


SUITE = Suite("spring-data", f"{PACKAGE} {VERSION}", run)
