"""Runs the case files and prints a table: ``make conformance`` (``CONFORMANCE_ARGS="--list"``)."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from fixtures.server import connect
from google.cloud.spanner_admin_database_v1 import DatabaseDialect

from emulator.process import ServerProcess, spawn
from golden import compliance, grammar, out_of_scope, schema_changes
from golden.folder import FOLDER, VARIABLE
from golden.outcomes import OUT_OF_SCOPE, Outcome, format_table, mark_out_of_scope

Part = Callable[[ServerProcess, Path], Iterator[Outcome]]


def run_compliance(server: ServerProcess, folder: Path) -> Iterator[Outcome]:
    """GoogleSQL's compliance tests."""
    return compliance.run_files(server.address, folder, compliance.find_files(folder))


def run_grammar(server: ServerProcess, folder: Path) -> Iterator[Outcome]:
    """GoogleSQL's parser tests."""
    database = connect(server.address).database("grammar", ddl_statements=[grammar.SCHEMA])
    database.create().result(60)
    for case in grammar.read_cases(folder):
        yield grammar.judge(case, database)


def run_schema_changes(server: ServerProcess, folder: Path) -> Iterator[Outcome]:
    """The schema-change tests of Google's emulator."""
    instance = connect(server.address)
    for number, case in enumerate(schema_changes.read_cases(folder)):
        yield schema_changes.judge(case, instance, number)


def run_postgresql_schema_changes(server: ServerProcess, folder: Path) -> Iterator[Outcome]:
    """The same in the PostgreSQL dialect."""
    instance = connect(server.address)
    cases = schema_changes.read_cases(folder, schema_changes.POSTGRESQL_PART)
    for number, case in enumerate(cases):
        yield schema_changes.judge(case, instance, number, DatabaseDialect.POSTGRESQL)


PARTS: dict[str, Part] = {
    "compliance": run_compliance,
    "grammar": run_grammar,
    "schema_changes": run_schema_changes,
    "schema_changes_pg": run_postgresql_schema_changes,
}


def main() -> int:
    """Runs the parts that are named; 1 if a case of theirs is a fault."""
    parser = argparse.ArgumentParser(prog="make conformance", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}")
    parser.add_argument("--list", action="store_true", help="every fault, and what is out of scope")
    options = parser.parse_args()
    unknown = [name for name in options.parts if name not in PARTS]
    if unknown:
        parser.error(f"there is no part '{unknown[0]}'; the parts are {', '.join(PARTS)}")
    if not FOLDER.is_dir():
        print(f"no case files in {FOLDER}: {VARIABLE} says where they are", file=sys.stderr)
        return 2
    faults = 0
    with spawn() as server:
        for name in options.parts or PARTS:
            outcomes = list(mark_out_of_scope(PARTS[name](server, FOLDER)))
            print(format_table(name, outcomes), flush=True)
            faults += sum(each.is_fault for each in outcomes)
            for each in outcomes if options.list else ():
                if each.is_fault or each.verdict.startswith((OUT_OF_SCOPE, "beyond")):
                    print(f"    {each.case}: {each.verdict}: {each.detail}")
    for name, reason in out_of_scope.FOLDERS.items():
        print(f"{name}: {OUT_OF_SCOPE}: {reason}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
