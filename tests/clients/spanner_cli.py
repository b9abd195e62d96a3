"""github.com/cloudspannerecosystem/spanner-cli, a shell: its integration tests. The module proxy
does not have it: they are those of its repository."""

from __future__ import annotations

from fixtures.server import connect_other

from clients.go_modules import name_tests, run_go_tests
from clients.outcomes import Outcome
from clients.repositories import copy_files
from clients.suite import INSTANCE, PROJECT, Suite, Workplace

REPOSITORY, VERSION = "cloudspannerecosystem/spanner-cli", "v0.11.1"
DATABASE = "spanner-cli"


def run(place: Workplace) -> list[Outcome]:
    """Runs every test."""
    source = copy_files(place, REPOSITORY, VERSION, ".")
    connect_other(place.address, INSTANCE).database(DATABASE).create().result(60)
    settings = {"PROJECT_ID": PROJECT, "INSTANCE_ID": INSTANCE, "DATABASE_ID": DATABASE}
    environment = {f"SPANNER_CLI_INTEGRATION_TEST_{name}": each for name, each in settings.items()}
    pattern = name_tests(source / "integration_test.go")
    return run_go_tests(place, source, ["-run", pattern, "."], environment)


SUITE = Suite("spanner-cli", f"github.com/{REPOSITORY} {VERSION}", run)
