"""go.mercari.io/yo, which generates Go from a schema: the tests of the code that it generates. The
module proxy does not have it: they are those of its repository."""

from __future__ import annotations

import shutil

from clients.go_modules import run_go_tests
from clients.outcomes import Outcome
from clients.repositories import copy_files
from clients.suite import PROJECT, Suite, Workplace

ORDERED = 'expected := []string{"pkey3", "pkey2"}'
SORTED = 'sort.Strings(pkeys)\n\t\texpected := []string{"pkey2", "pkey3"}'
"""Two tests expect an order of rows that no query asks for; the rows are inserted at random."""
REPOSITORY, VERSION = "cloudspannerecosystem/yo", "v0.7.0"


def run(place: Workplace) -> list[Outcome]:
    """Runs every test of the generated code."""
    source = place.folder / "v2"  # Tests look for their files below a folder yo.
    shutil.rmtree(source, ignore_errors=True)
    (copy_files(place, REPOSITORY, VERSION, "v2") / "v2").rename(source)
    tests = source / "test/integration_test.go"
    text = tests.read_text().replace(ORDERED, SORTED)
    tests.write_text(text.replace('"testing"', '"sort"\n\t"testing"', 1))
    settings = {"PROJECT": PROJECT, "INSTANCE": "yo-test", "DATABASE": "yo-test"}
    environment = {f"SPANNER_{name}_NAME": value for name, value in settings.items()}
    return run_go_tests(place, source, ["./test"], environment)


SUITE = Suite("yo", f"github.com/{REPOSITORY} {VERSION}", run)
