"""cloud.google.com/go/spanner: its integration tests, in each dialect, as on Spanner and not on an
emulator, on which they would skip what Google's lacks."""

from __future__ import annotations

from functools import partial

from clients.go_modules import copy_module, name_tests, replace_in, run_go_tests
from clients.outcomes import Outcome
from clients.suite import PROJECT, Suite, Workplace

MODULE, VERSION = "cloud.google.com/go/spanner", "v1.96.1"
IS_EMULATOR = 'return os.Getenv("SPANNER_EMULATOR_HOST") != ""'
DIALECT = "adminpb.DatabaseDialect_"
BOTH = f"{DIALECT}GOOGLE_STANDARD_SQL, {DIALECT}POSTGRESQL}} {{"


def run(place: Workplace, dialect: str) -> list[Outcome]:
    """Runs the tests in one dialect: by themselves they go through both, under the same names."""
    source = copy_module(place, MODULE, VERSION)
    tests = source / "integration_test.go"
    replace_in(tests, IS_EMULATOR, "return false")
    replace_in(tests, BOTH, f"{DIALECT}{dialect}}} {{")
    environment = {
        "GCLOUD_TESTS_GOLANG_PROJECT_ID": PROJECT,
        # One test gives its client this endpoint, and an empty one is Google's own.
        "GCLOUD_TESTS_GOLANG_SPANNER_HOST": place.address,
    }
    return run_go_tests(place, source, ["-run", name_tests(tests), "."], environment)


GOOGLESQL = Suite("go", f"{MODULE} {VERSION}", partial(run, dialect="GOOGLE_STANDARD_SQL"))
POSTGRESQL = Suite("go-postgresql", f"{MODULE} {VERSION}", partial(run, dialect="POSTGRESQL"))
