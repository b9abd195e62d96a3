"""go.mercari.io/yo, which generates Go from a schema: the tests of the code that it generates. The
module proxy does not have it: they are those of its repository."""

from __future__ import annotations

from clients.go_modules import run_go_tests
from clients.outcomes import Outcome
from clients.repositories import copy_files
from clients.suite import INSTANCE, PROJECT, Suite, Workplace

REPOSITORY, VERSION = "cloudspannerecosystem/yo", "v0.7.0"


def run(place: Workplace) -> list[Outcome]:
    """Runs every test of the generated code."""
    source = copy_files(place, REPOSITORY, VERSION, ".")
    settings = {"PROJECT": PROJECT, "INSTANCE": INSTANCE, "DATABASE": "yo-test"}
    environment = {f"SPANNER_{name}_NAME": value for name, value in settings.items()}
    return run_go_tests(place, source / "v2", ["./test"], environment)


SUITE = Suite("yo", f"github.com/{REPOSITORY} {VERSION}", run)
