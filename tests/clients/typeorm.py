"""typeorm: the tests of its repository that it runs with its driver for Spanner, on what npm has
installed. Those that it switches off for Spanner, or that ask no database, are no cases."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

from fixtures.server import connect_other

from clients.npm_packages import install, run_mocha
from clients.outcomes import Outcome, Verdict
from clients.repositories import copy_files
from clients.suite import INSTANCE, PROJECT, Suite, Workplace

PACKAGE, VERSION = "typeorm", "1.1.0"
REPOSITORY = "typeorm/typeorm"
PACKAGES = (
    f"{PACKAGE}@{VERSION}",
    "@google-cloud/spanner@8.6.0",
    "@tsconfig/node20@20.1.9",
    "@types/mocha@10.0.10",
    "@types/node@20.19.43",
    "chai@6.2.2",
    "chai-as-promised@8.0.2",
    "class-transformer@0.5.1",
    "reflect-metadata@0.2.2",
    "sinon@22.0.0",
    "sinon-chai@4.0.1",
    "source-map-support@0.5.21",
    "typescript@5.9.3",
)
DATABASE = "typeorm"
CONFIGURATION = {"extends": "./tsconfig.json", "include": ["test"], "exclude": []}
"""Compiles the tests alone: ``src`` is the package."""
COMPILER = {"noCheck": True, "declaration": False, "sourceMap": False, "rootDir": "."}
OPENS = re.compile(r"createTestingConnections|setup(Single)?TestingConnections?")
RESTRICTS = re.compile(r"enabledDrivers|setupSingleTestingConnection")
CASES = Path(__file__).with_name("plugins") / "typeorm_cases.js"


def run(place: Workplace) -> list[Outcome]:
    """Runs the tests, one after another, in a database of their own."""
    modules = install(place, PACKAGES)
    source = copy_files(place, REPOSITORY, VERSION, "test", "tsconfig.json")
    compiled = compile_tests(place, source, modules)
    host, _, port = place.address.rpartition(":")
    names = {"projectId": PROJECT, "instanceId": INSTANCE, "databaseId": DATABASE}
    connection = {"type": "spanner", "host": host, "port": int(port), **names}
    (compiled / "ormconfig.json").write_text(json.dumps([connection]))
    connect_other(place.address, INSTANCE).database(DATABASE).create().result(60)
    written = place.folder / "cases.json"
    written.unlink(missing_ok=True)
    files = [
        compiled / path.relative_to(source).with_suffix(".js")
        for path in sorted((source / "test").rglob("*.test.ts"))
        if may_use_spanner(path.read_text())
    ]
    setup: list[str | Path] = ["--file", compiled / "test/utils/test-setup.js", "--require", CASES]
    environment = {"TYPEORM": str(modules / PACKAGE), "CASES": str(written)}
    outcomes = run_mocha(place, place.folder, [*setup, *files], environment)
    cases = set(json.loads(written.read_text()))
    return [each for each in outcomes if each.case in cases or each.verdict is Verdict.FAILED]


def compile_tests(place: Workplace, source: Path, modules: Path) -> Path:
    """The folder of the compiled tests, beside the package."""
    compiled = place.folder / "compiled"
    shutil.rmtree(compiled, ignore_errors=True)
    (source / "src").symlink_to(modules / PACKAGE)
    options = {"compilerOptions": {**COMPILER, "outDir": str(compiled)}}
    (source / "tests.json").write_text(json.dumps({**CONFIGURATION, **options}))
    place.call(["node", modules / "typescript/bin/tsc", "-p", source / "tests.json"])
    (compiled / "src").symlink_to(modules / PACKAGE)
    return compiled


def may_use_spanner(test: str) -> bool:
    """Whether a file opens data sources, of Spanner, too. What others need is not installed."""
    if not OPENS.search(test):
        return False
    return '"spanner"' in test or not RESTRICTS.search(test)


SUITE = Suite(
    "typeorm",
    f"{PACKAGE} {VERSION}",
    run,
    {
        "persistence > order of persistence execution operations should throw exception when"
        " non-resolvable circular relations found.should throw CircularRelationsError": (
            "it opens MySQL, whose client is not installed"
        ),
    },
)
