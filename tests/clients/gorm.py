"""github.com/googleapis/go-gorm-spanner, the dialect for GORM: its tests that ask a server."""

from __future__ import annotations

from clients.go_modules import copy_module, name_tests, run_go_tests
from clients.outcomes import Outcome
from clients.suite import INSTANCE, PROJECT, Suite, Workplace

MODULE, VERSION = "github.com/googleapis/go-gorm-spanner", "v1.8.0"


def run(place: Workplace) -> list[Outcome]:
    """Runs the integration tests, and the migrations, which are for emulators alone."""
    source = copy_module(place, MODULE, VERSION)
    pattern = name_tests(source / "integration_test.go", source / "migrator_emulator_test.go")
    environment = {"SPANNER_TEST_PROJECT": PROJECT, "SPANNER_TEST_INSTANCE": INSTANCE}
    return run_go_tests(place, source, ["-run", pattern, "."], environment)


ORDER = "GetDatabaseDdl of Google's emulator has an index after its table, here tables come first"
SUITE = Suite("gorm", f"{MODULE} {VERSION}", run, {"TestAutoMigrate_CreateDataModel": ORDER})
