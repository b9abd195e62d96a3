"""@google-cloud/spanner: its system tests, both dialects, as on Spanner and not on an emulator. The
package has no tests: they are those of its repository, compiled beside what npm has installed."""

from __future__ import annotations

import re
import shutil

from clients.go_modules import replace_in
from clients.judging import list_exceptions
from clients.npm_packages import install, run_mocha
from clients.outcomes import Outcome
from clients.repositories import copy_files
from clients.suite import INSTANCE, Suite, Workplace

PACKAGE, VERSION = "@google-cloud/spanner", "8.6.0"
REPOSITORY = "googleapis/nodejs-spanner"
PACKAGES = (
    f"{PACKAGE}@{VERSION}",
    "concat-stream@2.0.0",
    "p-limit@3.1.0",
    "typescript@5.8.2",
)
IS_EMULATOR = "typeof process.env.SPANNER_EMULATOR_HOST !== 'undefined';"
WAIT, NO_WAIT = re.compile(r"setTimeout\(resolve, \d+\)"), "setTimeout(resolve, 0)"
"""Minutes until a change of privileges is known everywhere, which is at once here."""
COMPILE = """
const {transpileModule} = require('typescript'), {readFileSync, writeFileSync} = require('fs');
const [source, to] = process.argv.slice(1);
const compilerOptions = {module: 'commonjs', target: 'es2020'};
const {outputText} = transpileModule(readFileSync(source, 'utf8'), {compilerOptions});
writeFileSync(to, outputText);
"""
DATABASES, SNAPSHOTS = "Spanner Databases", "Spanner Transactions snapshots"
KNOWN = {
    "it makes an instance configuration from regional-us-central1, and the server has one of its"
    " own": (
        'Spanner instanceConfigs."before all" hook for "should have created the instance config"',
    ),
    "policies of IAM are not served: the server checks no credentials": (
        f"{DATABASES} FineGrainedAccessControl.GOOGLE_STANDARD_SQL should get IAM Policy",
        f"{DATABASES} FineGrainedAccessControl.POSTGRESQL should should get IAM Policy",
    ),
    "it expects rows without ORDER BY in the order of a read before they were changed": (
        f"{SNAPSHOTS}.GOOGLE_STANDARD_SQL should do a strong read with concurrent updates",
        f"{SNAPSHOTS}.POSTGRESQL should do a strong read with concurrent updates",
    ),
}


def run(place: Workplace) -> list[Outcome]:
    """Runs every test."""
    modules = install(place, PACKAGES)
    source = copy_files(place, REPOSITORY, f"v{VERSION}", "system-test/spanner.ts", "test/data")
    tests = source / "system-test/spanner.ts"
    replace_in(tests, IS_EMULATOR, "false;")
    tests.write_text(WAIT.sub(NO_WAIT, tests.read_text()))
    build = modules / PACKAGE / "build"
    shutil.copytree(source / "test", build / "test", dirs_exist_ok=True)
    (build / "system-test").mkdir(exist_ok=True)
    place.call(["node", "-e", COMPILE, tests, build / "system-test/spanner.js"])
    environment = {"SPANNERTEST_INSTANCE": INSTANCE, "IAM_MEMBER": "user:somebody@example.com"}
    return run_mocha(place, build, ["system-test"], environment)


SUITE = Suite("node", f"{PACKAGE} {VERSION}", run, list_exceptions(KNOWN))
