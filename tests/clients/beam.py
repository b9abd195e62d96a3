"""org.apache.beam:beam-sdks-java-io-google-cloud-platform. Its own integration tests set a host,
which the client takes instead of SPANNER_EMULATOR_HOST: a program of ours has its pipelines."""

from __future__ import annotations

from clients.maven_packages import run_program
from clients.outcomes import Outcome
from clients.suite import Suite, Workplace

PACKAGE, VERSION = "org.apache.beam:beam-sdks-java-io-google-cloud-platform", "2.70.0"
PACKAGES = (
    f"{PACKAGE}:{VERSION}",
    f"org.apache.beam:beam-runners-direct-java:{VERSION}",
    "junit:junit:4.13.2",
    "org.hamcrest:hamcrest:3.0",
)


def run(place: Workplace) -> list[Outcome]:
    """Runs our program."""
    return run_program(place, PACKAGES, "BeamSuite")


SUITE = Suite("beam", f"{PACKAGE} {VERSION}", run)
