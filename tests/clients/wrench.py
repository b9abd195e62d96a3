"""github.com/cloudspannerecosystem/wrench, a tool for migrations: its tests that ask a server."""

from __future__ import annotations

from clients.go_modules import copy_module, run_go_tests
from clients.outcomes import Outcome
from clients.suite import INSTANCE, PROJECT, Suite, Workplace

MODULE, VERSION = "github.com/cloudspannerecosystem/wrench", "v1.14.0"


def run(place: Workplace) -> list[Outcome]:
    """Runs the tests of the package that asks a server."""
    source = copy_module(place, MODULE, VERSION)
    environment = {"SPANNER_PROJECT_ID": PROJECT, "SPANNER_INSTANCE_ID": INSTANCE}
    return run_go_tests(place, source, ["./pkg/spanner"], environment)


SUITE = Suite("wrench", f"{MODULE} {VERSION}", run)
