"""github.com/googleapis/go-sql-spanner, the driver for Go's database/sql: its integration tests."""

from __future__ import annotations

from clients.go_modules import copy_module, name_tests, run_go_tests
from clients.outcomes import Outcome
from clients.suite import INSTANCE, PROJECT, Suite, Workplace

MODULE, VERSION = "github.com/googleapis/go-sql-spanner", "v1.25.1"


def run(place: Workplace) -> list[Outcome]:
    """Runs the tests that ask a server, not those with a server of their own."""
    source = copy_module(place, MODULE, VERSION)
    pattern = name_tests(source / "integration_test.go")
    environment = {"SPANNER_TEST_PROJECT": PROJECT, "SPANNER_TEST_INSTANCE": INSTANCE}
    return run_go_tests(place, source, ["-run", pattern, "."], environment)


PORT = "autoConfigEmulator of an address without a host connects to port 9010, and nothing else"
SUITE = Suite(
    "go-sql-spanner",
    f"{MODULE} {VERSION}",
    run,
    {"TestAutoConfigEmulator": PORT, "TestAutoConfigEmulatorPostgreSql": PORT},
)
