"""Runs the case files and prints a table: ``make conformance`` (``CONFORMANCE_ARGS="--list"``)."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from fixtures.server import connect
from google.cloud.spanner_v1.instance import Instance

from emulator.process import spawn
from golden import grammar
from golden.folder import FOLDER, VARIABLE
from golden.outcomes import Outcome, format_table, mark_out_of_scope

Part = Callable[[Instance, Path], Iterator[Outcome]]


def run_grammar(instance: Instance, folder: Path) -> Iterator[Outcome]:
    """GoogleSQL's parser tests."""
    database = instance.database("grammar", ddl_statements=[grammar.SCHEMA])
    database.create().result(60)
    for case in grammar.read_cases(folder):
        yield grammar.judge(case, database)


PARTS: dict[str, Part] = {"grammar": run_grammar}


def main() -> int:
    """Runs the parts that are named; 1 if a case of theirs is a fault."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}")
    parser.add_argument("--list", action="store_true", help="every fault, and what is out of scope")
    options = parser.parse_args()
    if not FOLDER.is_dir():
        print(f"no case files in {FOLDER}: {VARIABLE} says where they are", file=sys.stderr)
        return 2
    faults = 0
    with spawn() as server:
        instance = connect(server.address)
        for name in options.parts or PARTS:
            outcomes = list(mark_out_of_scope(PARTS[name](instance, FOLDER)))
            print(format_table(name, outcomes), flush=True)
            faults += sum(each.is_fault for each in outcomes)
            for each in outcomes if options.list else ():
                if each.is_fault or each.verdict == "out of scope":
                    print(f"    {each.case}: {each.verdict}: {each.detail}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
